//! What our database clients cost beside sysbench's: point selects on a private MariaDB or MySQL over
//! its socket, in turns.
//!
//!     cargo bench -p database --bench against_sysbench -- [--turns N] [--seconds S] [--clients N]
//!         [--dir DIR] [--server mariadb|mysql] [--server-program FILE] [--unpinned] [--check]
//!
//! Each turn runs both in alternating order; the figure is the median of the turns' ratios with the
//! 95 % interval of that median (from order statistics). CPU time of ours is that of the client threads
//! over the measured span; of sysbench that of its whole process less that of one that runs a single
//! event, so that neither's start counts. Both use prepared statements, the same rows and uniform keys.
//!
//! Either's clients run on one processor and the server on the others: a client that shares its server's
//! processor and one that does not are two different measurements, and left to itself the scheduler
//! chooses anew in each turn (`--unpinned`). `--check` makes a missed promise exit code 1.

use database::{Place, Programs, RunSpec, Running, Shape};
use host::{Changes, HeldFolder, Host};
use rustix::{
    process::Pid,
    thread::{CpuSet, sched_getaffinity, sched_setaffinity},
};
use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
    process::Command,
    sync::atomic::AtomicBool,
};
use units::Nanos;
use workload::{DatabaseJob, PrivateServer, StorageEngine};

type Error = Box<dyn std::error::Error>;

/// CPU time a query, and transactions a second, as shares of sysbench's.
const CPU_PROMISED: f64 = 1.25;
const SPEED_PROMISED: f64 = 0.97;

/// The median lies between the least and the most of six values with a probability of 97 %, of five 94 %.
const TURNS_LEAST: usize = 6;

const TABLES: u32 = 4;
const ROWS: u32 = 50_000;

/// What one tool did in one turn.
#[derive(Clone, Copy)]
struct Turn {
    per_second: f64,
    cpu_ns: f64,
}

struct Options {
    turns: usize,
    seconds: u64,
    clients: u32,
    folder: PathBuf,
    server: PrivateServer,
    program: Option<PathBuf>,
    unpinned: bool,
    check: bool,
}

fn main() -> Result<(), Error> {
    let options = options()?;
    if Command::new("sysbench").arg("--version").output().is_err() {
        println!("SKIPPED: sysbench is not here: install the package sysbench");
        return Ok(());
    }
    let program = options.program.as_deref();
    let programs = match Programs::find(&Host::here(), options.server, program) {
        Ok(programs) => programs,
        Err(error) => {
            println!("SKIPPED: {error}");
            return Ok(());
        }
    };
    let folder = options.folder.join(format!("spindle-bench-{}", std::process::id()));
    std::fs::create_dir_all(folder.join("run"))?;
    let mut changes = Changes::begin_in(&Host::here(), &folder, "bench")?;
    let home = HeldFolder::open(&folder.canonicalize()?)?;
    let place = Place { home, name: "data".to_owned(), run: folder.join("run") };
    let job: DatabaseJob = format!(
        "oltp_point_select,server={},tables={TABLES},rows={ROWS},buffer_pool=256MiB",
        options.server.spec().name
    )
    .parse()?;
    let never = AtomicBool::new(false);
    let running = programs.install(&mut changes, &place, &job, &BTreeMap::new(), &never)?;
    let outcome = compare(&options, &job, &running, &place);
    programs.end(&mut changes, running, false)?;
    drop(changes);
    std::fs::remove_dir_all(&folder)?;
    match outcome? || !options.check {
        true => Ok(()),
        false => Err("a promise is not kept".into()),
    }
}

fn compare(
    options: &Options,
    job: &DatabaseJob,
    running: &Running,
    place: &Place,
) -> Result<bool, Error> {
    let never = AtomicBool::new(false);
    let shape = Shape::of(job, StorageEngine::InnoDb);
    database::load(&shape, &running.endpoint, 1, &never, &mut |_, _| {})?;
    let places = match options.unpinned {
        true => "where the scheduler puts them".to_owned(),
        false => pin(running)?,
    };
    let start = sysbench(options, place, &["--events=1", "--time=0"])?.1;
    let mut ratios = (Vec::new(), Vec::new());
    let (mut ours, mut theirs) = (Vec::new(), Vec::new());
    for turn in 0..=options.turns {
        let mut pair = [None; 2];
        for which in if turn % 2 == 0 { [0, 1] } else { [1, 0] } {
            pair[which] = Some(match which {
                0 => run_ours(options, job, running, turn as u64)?,
                _ => run_sysbench(options, place, start)?,
            });
        }
        let [Some(our), Some(their)] = pair else { continue };
        if turn == 0 {
            // It warms the server's pool for both.
            continue;
        }
        ours.push(our);
        theirs.push(their);
        ratios.0.push(our.per_second / their.per_second);
        ratios.1.push(our.cpu_ns / their.cpu_ns);
    }
    let mean = |turns: &[Turn], of: fn(&Turn) -> f64| {
        turns.iter().map(of).sum::<f64>() / turns.len().max(1) as f64
    };
    let (speed, cpu) = (median(&mut ratios.0), median(&mut ratios.1));
    println!(
        "{} clients, {} turns of {} s, {places}; ratios are ours to sysbench's, median (95 %)",
        options.clients, options.turns, options.seconds
    );
    println!("{:<14} {:>9} {:>9}", "", "ours", "sysbench");
    for (what, of, ratio) in [
        ("queries/s", (|turn: &Turn| turn.per_second) as fn(&Turn) -> f64, speed),
        ("CPU ns/query", |turn: &Turn| turn.cpu_ns, cpu),
    ] {
        println!(
            "{what:<14} {:>9.0} {:>9.0}   {:.3} ({:.3} to {:.3})",
            mean(&ours, of),
            mean(&theirs, of),
            ratio.1,
            ratio.0,
            ratio.2
        );
    }
    // An interval that holds both outcomes settles nothing, and fewer turns have none of 95 %.
    let enough = options.turns >= TURNS_LEAST;
    let missed = enough && (speed.2 < SPEED_PROMISED || cpu.0 > CPU_PROMISED);
    let kept = enough && speed.0 >= SPEED_PROMISED && cpu.2 <= CPU_PROMISED;
    println!(
        "{}",
        match (kept, missed) {
            (true, _) => "kept",
            (false, true) => "NOT KEPT",
            (false, false) => "not settled: more --turns would say",
        }
    );
    Ok(!missed)
}

/// Puts us, and so all that we start, on the first processor, and the server on the others.
fn pin(running: &Running) -> Result<String, Error> {
    let all = sched_getaffinity(None)?;
    let cpus: Vec<usize> = (0..CpuSet::MAX_CPU).filter(|cpu| all.is_set(*cpu)).collect();
    let [first, others @ ..] = cpus.as_slice() else { return Err("no processor".into()) };
    if others.is_empty() {
        return Ok("all on one processor".to_owned());
    }
    let set_of = |cpus: &[usize]| {
        let mut set = CpuSet::new();
        cpus.iter().for_each(|cpu| set.set(*cpu));
        set
    };
    // Threads that it starts for new connections are where the thread is that starts them.
    let pid = running.pid().ok_or("the server is ours")?;
    for task in std::fs::read_dir(format!("/proc/{pid}/task"))? {
        let task: i32 = task?.file_name().to_string_lossy().parse()?;
        sched_setaffinity(Pid::from_raw(task), &set_of(others))?;
    }
    sched_setaffinity(None, &set_of(&[*first]))?;
    Ok(format!("clients on processor {first}, the server on {others:?}"))
}

fn run_ours(
    options: &Options,
    job: &DatabaseJob,
    running: &Running,
    seed: u64,
) -> Result<Turn, Error> {
    let spec = RunSpec {
        job,
        endpoint: &running.endpoint,
        clients: options.clients,
        rate: None,
        warmup: Nanos::from_millis(200),
        measure: Nanos::from_secs(options.seconds),
        seed,
    };
    let measured = database::run(&spec, &AtomicBool::new(false), &mut || {}, &mut |_| {})?;
    let operations = measured.operations() as f64;
    let cpu = (measured.generator.user + measured.generator.system).0 as f64;
    Ok(Turn { per_second: operations / measured.span.as_secs_f64(), cpu_ns: cpu / operations })
}

fn run_sysbench(options: &Options, place: &Place, start: f64) -> Result<Turn, Error> {
    let time = format!("--time={}", options.seconds);
    let (text, cpu) = sysbench(options, place, &[&time, "--events=0"])?;
    // "    transactions:                        12345  (6172.11 per sec.)"
    let line = text.lines().find(|line| line.trim_start().starts_with("transactions:"));
    let line = line.ok_or("sysbench tells no transactions")?;
    let mut words = line.split_whitespace().skip(1);
    let count: f64 = words.next().ok_or("no count")?.parse()?;
    let rate: f64 = words.next().ok_or("no rate")?.trim_start_matches('(').parse()?;
    if cpu <= start {
        return Err("sysbench's CPU time is less than /proc resolves: take longer --seconds".into());
    }
    Ok(Turn { per_second: rate, cpu_ns: (cpu - start) * 1e9 / count })
}

/// What sysbench prints, and its CPU time in seconds.
fn sysbench(options: &Options, place: &Place, words: &[&str]) -> Result<(String, f64), Error> {
    let before = children_cpu()?;
    let output = Command::new("sysbench")
        .arg("oltp_point_select")
        .arg(format!("--mysql-socket={}", socket(place)))
        .args(["--mysql-user=root", "--mysql-db=sbtest", "--rand-type=uniform"])
        .arg(format!("--tables={TABLES}"))
        .arg(format!("--table-size={ROWS}"))
        .arg(format!("--threads={}", options.clients))
        .args(words)
        .arg("run")
        .output()?;
    if !output.status.success() {
        return Err(String::from_utf8_lossy(&output.stdout).into_owned().into());
    }
    Ok((String::from_utf8(output.stdout)?, children_cpu()? - before))
}

fn socket(place: &Place) -> String {
    place.run.join("socket").display().to_string()
}

/// CPU time of ended children: fields 16 and 17 of proc_pid_stat(5), in ticks of 10 ms.
fn children_cpu() -> Result<f64, Error> {
    let stat = std::fs::read_to_string(Path::new("/proc/self/stat"))?;
    let (_, rest) = stat.rsplit_once(") ").ok_or("no name in /proc/self/stat")?;
    let fields: Vec<&str> = rest.split(' ').collect();
    Ok((fields[13].parse::<f64>()? + fields[14].parse::<f64>()?) / 100.0)
}

/// The median with its 95 % interval, from order statistics.
fn median(values: &mut [f64]) -> (f64, f64, f64) {
    values.sort_by(f64::total_cmp);
    let n = values.len();
    let reach = (1.96 * (n as f64).sqrt() / 2.0).ceil() as usize;
    let at = |place: usize| values[place.min(n - 1)];
    (at((n / 2).saturating_sub(reach)), at(n / 2), at(n / 2 + reach))
}

fn options() -> Result<Options, Error> {
    let mut options = Options {
        turns: 21,
        seconds: 2,
        clients: 1,
        folder: PathBuf::from("/var/tmp"),
        server: PrivateServer::MariaDb,
        program: None,
        unpinned: false,
        check: false,
    };
    let mut words = std::env::args().skip(1);
    while let Some(word) = words.next() {
        let mut value = || words.next().ok_or(format!("{word} needs a value"));
        match word.as_str() {
            "--turns" => options.turns = value()?.parse::<usize>()?.max(1),
            "--seconds" => options.seconds = value()?.parse::<u64>()?.max(1),
            "--clients" => options.clients = value()?.parse::<u32>()?.max(1),
            "--dir" => options.folder = value()?.into(),
            "--server" => {
                options.server = match value()?.as_str() {
                    "mariadb" => PrivateServer::MariaDb,
                    "mysql" => PrivateServer::MySql,
                    other => return Err(format!("sysbench runs on no {other} here").into()),
                }
            }
            "--server-program" => options.program = Some(value()?.into()),
            "--unpinned" => options.unpinned = true,
            "--check" => options.check = true,
            // Cargo says so to every bench.
            "--bench" => {}
            other => return Err(format!("{other} is not known").into()),
        }
    }
    Ok(options)
}
