//! Outputs of the programs that are installed here, field by field against what they print otherwise.

use super::{has, output, value};
use import::{PieceKind, decode, parts};
use record::{Doubt, Quantity};
use skipped::Need;
use std::{
    os::unix::{fs::MetadataExt, process::CommandExt},
    path::PathBuf,
    process::Command,
};

/// What a program prints; `None`, and said, where it is not installed.
fn printed(program: &str, arguments: &[&str]) -> Option<String> {
    let output = Command::new(program).args(arguments).env("LC_ALL", "C").output();
    let Ok(output) = output else {
        skipped::skip(Need::Program, &format!("{program} is not installed"));
        return None;
    };
    assert!(output.status.success(), "{program}: {}", String::from_utf8_lossy(&output.stderr));
    Some(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// A folder that goes with the test.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Folder {
        let path = PathBuf::from("/var/tmp")
            .join(format!("spindle-test-import-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&path).unwrap();
        Folder(path)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// The number behind a name in a text of lines `name: number…`.
fn number_after(text: &str, name: &str) -> f64 {
    let rest = text.split(name).nth(1).unwrap_or_else(|| panic!("no '{name}' in {text}"));
    let rest = rest.trim_start_matches([':', ' ', '(']);
    let end = rest.find(|c: char| !(c.is_ascii_digit() || c == '.')).unwrap_or(rest.len());
    rest[..end].parse().unwrap_or_else(|_| panic!("no number behind '{name}' in {text}"))
}

#[test]
fn fio_says_the_same_in_text_json_and_terse() {
    let folder = Folder::new("fio");
    let file = folder.0.join("data");
    let result = folder.0.join("out");
    let (file, result) = (file.to_string_lossy(), result.to_string_lossy());
    let arguments = [
        "--name=job",
        &*format!("--filename={file}"),
        "--size=4M",
        "--rw=randrw",
        "--rwmixread=70",
        "--bs=4k",
        "--runtime=1",
        "--time_based",
        "--output-format=normal,terse,json+",
        &*format!("--output={result}"),
    ];
    if Command::new("fio").arg("--version").output().is_err() {
        skipped::skip(Need::Fio, "fio is not installed");
        return;
    }
    printed("fio", &arguments).unwrap();
    let text = std::fs::read_to_string(&*result).unwrap();
    let all = super::outputs(&text);
    assert_eq!(all.len(), 3, "{text}");
    let count =
        |place: usize, subject: &str| value(&all[place].1, subject, Quantity::Rate).unwrap();
    for subject in ["read", "write"] {
        let exact = (0..3).map(|place| count(place, subject)).collect::<Vec<f64>>();
        let json: f64 = exact.iter().copied().fold(0.0, f64::max);
        for other in &exact {
            // The normal output has three digits, the terse one none behind the point.
            assert!((other / json - 1.0).abs() < 0.01, "{subject}: {exact:?}");
        }
        let means: Vec<f64> = (0..3)
            .map(|place| value(&all[place].1, subject, Quantity::LatencyMean).unwrap())
            .collect();
        for mean in &means {
            assert!((mean / means[0] - 1.0).abs() < 0.02, "{subject}: {means:?}");
        }
    }
    for (tool, it) in &all {
        assert!(tool.starts_with("fio 3") || tool == "fio", "{tool}");
        assert!(!has(it, |doubt| matches!(doubt, Doubt::Contradiction { .. })), "{:?}", it.doubts);
        // One second is far too short, and that is said.
        assert!(has(it, |doubt| matches!(doubt, Doubt::TooShort { .. })));
    }
    // Against the JSON itself, read by another reader.
    let begin = text.find("\n{").map_or(0, |at| at + 1);
    let end = text.rfind('}').unwrap();
    let json: serde_json::Value = serde_json::from_str(&text[begin..=end]).unwrap();
    let job = &json["jobs"][0];
    let (_, it) = all
        .iter()
        .find(|(_, it)| value(it, "read", Quantity::Count) == job["read"]["total_ios"].as_f64())
        .expect("the JSON's counts");
    for subject in ["read", "write"] {
        let of = |name: &str| job[subject][name].as_f64();
        assert_eq!(value(it, subject, Quantity::Rate), of("iops"));
        assert_eq!(value(it, subject, Quantity::Bytes), of("io_bytes"));
        assert_eq!(value(it, subject, Quantity::Bandwidth), of("bw").map(|kib| kib * 1024.0));
        let clat = &job[subject]["clat_ns"];
        assert_eq!(value(it, subject, Quantity::LatencyMin), clat["min"].as_f64());
        assert_eq!(value(it, subject, Quantity::LatencyMean), clat["mean"].as_f64());
        assert_eq!(value(it, subject, Quantity::LatencyMax), clat["max"].as_f64());
        for (percent, time) in clat["percentile"].as_object().unwrap() {
            let milli = (percent.parse::<f64>().unwrap() * 1e3).round() as u32;
            assert_eq!(value(it, subject, Quantity::Percentile(milli)), time.as_f64(), "{percent}");
        }
        assert_eq!(value(it, subject, Quantity::LatencyDeviation), clat["stddev"].as_f64());
        let whole = format!("{subject} lat");
        let lat = &job[subject]["lat_ns"];
        for (quantity, name) in [
            (Quantity::LatencyMin, "min"),
            (Quantity::LatencyMean, "mean"),
            (Quantity::LatencyMax, "max"),
        ] {
            assert_eq!(value(it, &whole, quantity), lat[name].as_f64(), "{whole} {name}");
        }
    }
}

#[test]
fn sysbench_fileio_made_here() {
    let folder = Folder::new("sysbench");
    let run = |verb: &str| {
        let output = Command::new("sysbench")
            .current_dir(&folder.0)
            .args(["fileio", "--file-num=2", "--file-total-size=4M", "--file-test-mode=rndrw"])
            .args(["--threads=2", "--time=1", verb])
            .output();
        output.ok().map(|output| String::from_utf8_lossy(&output.stdout).into_owned())
    };
    let Some(_) = run("prepare") else {
        skipped::skip(Need::Program, "sysbench is not installed");
        return;
    };
    let text = run("run").unwrap();
    let (tool, it) = output(&text);
    assert!(tool.starts_with("sysbench 1."), "{tool}");
    assert_eq!(it.conditions.benchmark, "fileio rndrw");
    assert_eq!((it.conditions.clients, it.conditions.block_size), (Some(2), Some(16384)));
    assert_eq!(it.conditions.size, Some(4 << 20));
    let close = |value: Option<f64>, wanted: f64| {
        assert!((value.unwrap() - wanted).abs() < 1e-6 * wanted.max(1.0), "{value:?} {wanted}");
    };
    close(value(&it, "read", Quantity::Rate), number_after(&text, "reads/s"));
    close(value(&it, "write", Quantity::Rate), number_after(&text, "writes/s"));
    close(value(&it, "fsync", Quantity::Rate), number_after(&text, "fsyncs/s"));
    let mib = value(&it, "read", Quantity::Bandwidth).map(|bytes| bytes / 1_048_576.0);
    close(mib, number_after(&text, "read, MiB/s"));
    close(it.seconds, number_after(&text, "total time"));
    close(value(&it, "events", Quantity::Count), number_after(&text, "total number of events"));
    close(
        value(&it, "events", Quantity::LatencyMean).map(|ns| ns / 1e6),
        number_after(&text, "avg"),
    );
    let p95 = value(&it, "events", Quantity::Percentile(95_000)).map(|ns| ns / 1e6);
    close(p95, number_after(&text, "95th percentile"));
    for (quantity, name) in [
        (Quantity::LatencyMin, "min:"),
        (Quantity::LatencyMax, "max:"),
        (Quantity::LatencySum, "sum:"),
    ] {
        close(value(&it, "events", quantity).map(|ns| ns / 1e6), number_after(&text, name));
    }
    let written = value(&it, "write", Quantity::Bandwidth).map(|bytes| bytes / 1_048_576.0);
    close(written, number_after(&text, "written, MiB/s"));
    let of_thread = text.split("events (avg/stddev):").nth(1).unwrap().lines().next().unwrap();
    let (mean, deviation) = of_thread.trim().split_once('/').unwrap();
    close(value(&it, "events", Quantity::PerThread), mean.parse().unwrap());
    close(value(&it, "events", Quantity::PerThreadDeviation), deviation.parse().unwrap());
    assert!(has(&it, |doubt| matches!(doubt, Doubt::TooShort { .. })));
}

#[test]
fn iostat_says_the_same_in_text_and_json() {
    // Both since boot: what happens between the two calls is little of that.
    let Some(text) = printed("iostat", &["-x"]) else { return };
    let Some(json) = printed("iostat", &["-x", "-o", "JSON"]) else { return };
    let reports = |text: &str| {
        let parts = parts(&decode(text.as_bytes()).unwrap());
        let [part] = &parts[..] else { panic!("{} parts in {text}", parts.len()) };
        match &part.piece.kind {
            PieceKind::Devices(reports) => reports.clone(),
            other => panic!("{other:?}"),
        }
    };
    let (text_reports, json_reports) = (reports(&text), reports(&json));
    for line in text.lines().skip_while(|line| !line.starts_with("Device")).skip(1) {
        let mut words = line.split_whitespace();
        let Some(device) = words.next() else { continue };
        let report = text_reports.iter().find(|report| report.device == device).unwrap();
        let shown: Vec<f64> = words.map(|word| word.parse().unwrap()).collect();
        let read: Vec<f64> = report.columns.iter().map(|(_, value)| *value).collect();
        assert_eq!(read, shown, "{device}");
    }
    for report in &text_reports {
        let other = json_reports.iter().find(|other| other.device == report.device).unwrap();
        let names = |columns: &[(String, f64)]| -> std::collections::BTreeSet<String> {
            columns.iter().map(|(name, _)| name.clone()).collect()
        };
        assert!(names(&other.columns).is_subset(&names(&report.columns)), "{:?}", other.columns);
        let close = |name: &str| {
            let (a, b) = (report.column(name).unwrap(), other.column(name).unwrap());
            assert!((a - b).abs() <= 0.1 * a.abs().max(b.abs()) + 0.5, "{name}: {a} {b}");
        };
        ["r/s", "w/s", "rkB/s", "%util"].into_iter().for_each(close);
    }
}

#[test]
fn vmstat_made_here() {
    let Some(text) = printed("vmstat", &["1", "2"]) else { return };
    let parts = parts(&decode(text.as_bytes()).unwrap());
    let [part] = &parts[..] else { panic!("{text}") };
    let PieceKind::Devices(reports) = &part.piece.kind else { panic!("{text}") };
    let rows: Vec<Vec<f64>> = text
        .lines()
        .skip(2)
        .map(|line| line.split_whitespace().map(|word| word.parse().unwrap()).collect())
        .collect();
    let read: Vec<Vec<f64>> = reports
        .iter()
        .map(|report| report.columns.iter().map(|(_, value)| *value).collect())
        .collect();
    assert_eq!(read, rows);
    assert!(reports[0].since_boot && !reports[1].since_boot);
}

/// A server of PostgreSQL that goes with the test.
struct Server {
    programs: PathBuf,
    folder: Folder,
    user: Option<(u32, u32)>,
}

impl Server {
    /// `None`, and said, where there is none, or none may be run.
    fn start() -> Option<Server> {
        let versions = std::fs::read_dir("/usr/lib/postgresql").into_iter().flatten().flatten();
        let mut all: Vec<PathBuf> = versions.map(|entry| entry.path().join("bin")).collect();
        all.retain(|folder| folder.join("initdb").exists() && folder.join("pgbench").exists());
        all.sort();
        let Some(programs) = all.pop() else {
            skipped::skip(Need::PostgreSql, "no server of PostgreSQL is installed");
            return None;
        };
        let folder = Folder::new("pgbench");
        // It refuses to run as root.
        let root = std::fs::metadata(&folder.0).unwrap().uid() == 0;
        let users = std::fs::read_to_string("/etc/passwd").unwrap_or_default();
        let own = users.lines().find(|line| line.starts_with("postgres:"));
        let user = own.and_then(|line| {
            let mut words = line.split(':').skip(2);
            Some((words.next()?.parse().ok()?, words.next()?.parse().ok()?))
        });
        if root && user.is_none() {
            skipped::skip(Need::PostgreSql, "there is no user postgres to run it");
            return None;
        }
        let user = user.filter(|_| root);
        if let Some((uid, gid)) = user {
            std::os::unix::fs::chown(&folder.0, Some(uid), Some(gid)).unwrap();
        }
        let server = Server { programs, folder, user };
        let at = server.folder.0.to_string_lossy().into_owned();
        let data = format!("{at}/data");
        server.ran("initdb", &["-D", &data, "-A", "trust", "-U", "spindle", "--no-sync"]);
        let options = format!("-c listen_addresses='' -c fsync=off -k {at}");
        let log = format!("{at}/log");
        server.ran("pg_ctl", &["-D", &data, "-w", "-l", &log, "-o", &options, "start"]);
        Some(server)
    }

    /// What a program of its version prints, on both streams.
    fn ran(&self, program: &str, arguments: &[&str]) -> (String, String) {
        let mut command = Command::new(self.programs.join(program));
        command.args(arguments).current_dir(&self.folder.0).env("LC_ALL", "C");
        command.env("PGHOST", &self.folder.0).env("PGUSER", "spindle");
        if let Some((uid, gid)) = self.user {
            command.gid(gid).uid(uid);
        }
        // What a server inherits stays open for as long as it runs.
        let (out, err) = (self.folder.0.join("out"), self.folder.0.join("err"));
        let file = |path: &PathBuf| std::fs::File::create(path).unwrap();
        let ended = command.stdout(file(&out)).stderr(file(&err)).status().unwrap();
        let read = |path: &PathBuf| std::fs::read_to_string(path).unwrap();
        assert!(ended.success(), "{program}: {}{}", read(&out), read(&err));
        (read(&out), read(&err))
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let data = self.folder.0.join("data");
        let mut command = Command::new(self.programs.join("pg_ctl"));
        command.arg("-D").arg(data).args(["-m", "immediate", "-w", "stop"]);
        if let Some((uid, gid)) = self.user {
            command.gid(gid).uid(uid);
        }
        let _ = command.current_dir("/").output();
    }
}

#[test]
fn pgbench_made_here() {
    let Some(server) = Server::start() else { return };
    server.ran("pgbench", &["-i", "-q", "-s", "2", "postgres"]);
    let (out, progress) =
        server.ran("pgbench", &["-c", "2", "-j", "2", "-T", "3", "-P", "1", "postgres"]);
    // As a terminal shows both.
    let text = format!("{progress}{out}");
    let (tool, it) = output(&text);
    assert!(tool.starts_with("pgbench"), "{tool}");
    let after = |name: &str| number_after(&out, name);
    assert_eq!(it.conditions.clients.map(|it| it as f64), Some(after("number of clients")));
    assert_eq!(it.seconds, Some(after("duration")));
    let count = after("number of transactions actually processed");
    assert_eq!(value(&it, "transactions", Quantity::Count), Some(count));
    if out.contains("number of failed transactions") {
        let failed = after("number of failed transactions");
        assert_eq!(value(&it, "errors", Quantity::Count), Some(failed));
    }
    let ms = |quantity| super::ms(&it, "transactions", quantity);
    assert_eq!(ms(Quantity::LatencyMean), Some(after("latency average =")));
    assert_eq!(ms(Quantity::LatencyDeviation), Some(after("latency stddev =")));
    assert_eq!(it.rate.unwrap().value, after("tps ="));
    let shown: Vec<f64> = progress
        .lines()
        .filter(|line| line.starts_with("progress: "))
        .map(|line| number_after(line, " s,"))
        .collect();
    let read: Vec<f64> = it.samples.iter().map(|(_, rate)| *rate).collect();
    assert!(!shown.is_empty(), "{progress}");
    assert_eq!(read, shown);
    assert!(has(&it, |doubt| matches!(doubt, Doubt::TooShort { .. })));
    assert!(!has(&it, |doubt| matches!(doubt, Doubt::Contradiction { .. })), "{:?}", it.doubts);
}
