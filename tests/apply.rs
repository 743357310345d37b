//! What a run recommends, set and taken back: `spindle apply`, `status`, `undo`.

use crate::{
    database::has_mariadb,
    emulate::Device,
    machine::{Ended, Loop, Place, can_emulate, has_loop_devices, kills, moment},
};
use record::{Environment, JobMeasurement, Measurement, Outcome, Run, Store, WorldKind};
use serde_json::json;
use skipped::{Need, skip};
use std::{
    path::{Path, PathBuf},
    process::{Command, Stdio},
    time::{Duration, Instant},
};
use units::Nanos;

/// A device with settings of the user's own, none of them the kernel's default.
pub fn device(place: &Place) -> Loop {
    let device = place.loop_device("disk", 16);
    device.set("scheduler", "mq-deadline");
    device.set("nr_requests", "77");
    device.set("iosched/fifo_batch", "5");
    device.set("wbt_lat_usec", "12345");
    device.set("read_ahead_kb", "64");
    device
}

/// A place with such a device; none where this machine has no loop devices.
pub fn ready() -> Option<(Place, Loop)> {
    has_loop_devices().then(Place::new).map(|place| {
        let device = device(&place);
        (place, device)
    })
}

/// A run on the device, in the folder of runs, in which `best` is better than all others by a third:
/// made by the program on this host, with other figures written in.
pub fn run_file(place: &Place, device: &Loop, factors: &[&str], best: &str) -> PathBuf {
    let file = place.path().join("disk");
    let measured = place.path().join("measured.spindle");
    let (node, confirm) = (device.node.to_str().unwrap(), file.to_str().unwrap());
    let fixed = [
        "compare",
        node,
        "--confirm",
        confirm,
        "--engine",
        "null",
        "--size",
        "1M",
        "--rounds",
        "5",
        "--measure",
        "100ms",
        "--warmup",
        "0s",
        "--quiet",
        "--output",
        measured.to_str().unwrap(),
    ];
    place.run(&[&fixed[..], factors].concat()).expect(0);
    let mut run = Store::open(&measured).unwrap().read().unwrap();
    for trial in &mut run.trials {
        let label = run.plan.cells[trial.id.cell].label(&run.plan.factors);
        let rate = if label == best { 4000.0 } else { 3000.0 };
        trial.outcome = Outcome::Valid(Box::new(measurement(rate + f64::from(trial.id.round))));
    }
    write(place, "doctored", &run)
}

fn measurement(rate: f64) -> Measurement {
    let mut job = JobMeasurement::default();
    job.reads.operations = rate as u64;
    job.reads.service.record_n(Nanos::from_millis(1), job.reads.operations);
    Measurement { span: Nanos::from_secs(1), job, ..Measurement::default() }
}

/// Writes a run into the folder of runs.
pub fn write(place: &Place, name: &str, run: &Run) -> PathBuf {
    let path = place.state().join("runs").join(format!("{name}.spindle"));
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    let mut store =
        Store::create(&path, name, run.started_at, &run.environment, &run.plan).unwrap();
    for trial in &run.trials {
        store.add_trial(trial).unwrap();
    }
    store.set_state(run.state).unwrap();
    path
}

/// The same run as if it had been made elsewhere.
fn elsewhere(place: &Place, file: &Path, name: &str, change: impl FnOnce(&mut Environment)) {
    let mut run = Store::open(file).unwrap().read().unwrap();
    change(&mut run.environment);
    write(place, name, &run);
}

pub const FACTORS: [&str; 4] = ["--schedulers", "mq-deadline,bfq", "--queues", "77,64"];
pub const BEST: &str = "bfq, queue 64";

pub fn setting(device: &Loop, name: &str) -> String {
    device.settings().into_iter().find(|(it, _)| it == name).unwrap().1
}

pub fn json(ended: &Ended) -> serde_json::Value {
    serde_json::from_str(&ended.out).unwrap()
}

#[test]
fn applied_shown_and_taken_back() {
    let Some((place, device)) = ready() else { return };
    let before = device.settings();
    run_file(&place, &device, &FACTORS, BEST);
    assert_eq!(device.settings(), before);
    let nothing = place.run(&["status"]).expect(0);
    assert!(nothing.out.contains("Nothing is applied"), "{}", nothing.out);

    let dry = place.run(&["apply", "doctored", "--dry-run"]).expect(0);
    for part in ["scheduler", "mq-deadline", "→", "bfq", "nr_requests", "77", "64"] {
        assert!(dry.out.contains(part), "no '{part}' in:\n{}", dry.out);
    }
    let planned = json(&place.run(&["apply", "doctored", "--dry-run", "--json"]).expect(0));
    assert_eq!((&planned["outcome"], &planned["run"]), (&"would_apply".into(), &"doctored".into()));
    let scheduler = planned["changes"].as_array().unwrap().iter();
    let scheduler = scheduler.clone().find(|it| it["setting"] == "scheduler").unwrap();
    assert_eq!((&scheduler["now"], &scheduler["then"]), (&"mq-deadline".into(), &"bfq".into()));
    assert_eq!(device.settings(), before, "a dry run changes nothing");

    let applied = place.run(&["apply", "doctored", "--json"]).expect(0);
    assert!(applied.err.contains("read back"), "{}", applied.err);
    assert_eq!(json(&applied)["outcome"], "applied");
    assert_eq!(json(&applied)["changes"], planned["changes"]);
    assert!(setting(&device, "scheduler").contains("[bfq]"));
    assert_eq!(setting(&device, "nr_requests"), "64");
    assert_eq!(setting(&device, "wbt_lat_usec"), "12345", "bfq switches it off unseen");

    let status = place.run(&["status"]).expect(0);
    assert!(status.out.contains("in force") && !status.out.contains("CHANGED"), "{}", status.out);
    let status = json(&place.run(&["status", "--json"]).expect(0));
    assert_eq!(status[0]["run"], "doctored");
    let metrics = place.run(&["status", "--prometheus"]).expect(0).out;
    assert!(metrics.contains("spindle_drift{run=\"doctored\"} 0"), "{metrics}");
    let line = format!("device=\"{}\",setting=\"scheduler\",value=\"bfq\"}} 1", device.name);
    assert!(metrics.contains(&line), "{metrics}");

    let pruned = place.run(&["runs", "--keep", "0", "--dry-run"]).expect(0);
    assert!(pruned.err.contains("doctored is kept: it is applied"), "{}", pruned.err);
    let again = place.run(&["apply", "doctored"]).expect(0);
    assert!(again.out.contains("set already"), "{}", again.out);
    let again = json(&place.run(&["apply", "doctored", "--dry-run", "--json"]).expect(0));
    assert_eq!((&again["outcome"], &again["changes"]), (&"already_set".into(), &json!([])));
    // Another comparison may go on: what is applied is no leftover.
    place.run(&["undo", "--interrupted"]).expect(0);
    assert_eq!(setting(&device, "nr_requests"), "64");

    device.set("nr_requests", "50");
    let drifted = place.run(&["status"]).expect(3);
    assert!(drifted.out.contains("CHANGED") && drifted.out.contains("50"), "{}", drifted.out);
    place.run(&["apply", "doctored"]).expect(2).complains_of(&["applied already", "undo"]);
    let metrics = place.run(&["status", "--prometheus"]).expect(3).out;
    assert!(metrics.contains("spindle_drift{run=\"doctored\"} 1"), "{metrics}");

    place.run(&["undo"]).expect(0);
    assert_eq!(device.settings(), before);
    assert!(place.run(&["undo"]).expect(0).out.contains("nothing"));
    place.run(&["status"]).expect(0);
}

#[test]
fn a_run_made_elsewhere_is_refused_with_the_reason() {
    let Some((place, device)) = ready() else { return };
    let before = device.settings();
    let file = run_file(&place, &device, &FACTORS, BEST);
    elsewhere(&place, &file, "host", |it| it.hostname = "other".to_owned());
    elsewhere(&place, &file, "kernel", |it| it.kernel = "4.19.0".to_owned());
    elsewhere(&place, &file, "simulated", |it| it.world = WorldKind::Simulated);
    elsewhere(&place, &file, "gone", |it| {
        let text = it.inspection.to_string();
        let other = place.path().join("disk").display().to_string();
        it.inspection = serde_json::from_str(&text.replace(&other, "/no/such/file")).unwrap();
    });
    let refused = |name: &str, words: &[&str]| {
        place.run(&["apply", name]).expect(2).complains_of(words);
        assert_eq!(device.settings(), before, "{name}");
    };
    refused("host", &["other", "--anyway"]);
    refused("kernel", &["4.19.0", "--anyway"]);
    refused("simulated", &["simulated", "--device"]);
    refused("gone", &["not on this host", "--device"]);
    let node = device.node.to_str().unwrap();
    let words = ["apply", "gone", "--device", node];
    place.run(&words).expect(2).complains_of(&["another device", "--anyway"]);
    place.run(&["apply", "simulated", "--device", "/proc", "--anyway"]).expect(2);
    place.run(&["apply", "kernel", "--anyway"]).expect(0);
    assert_eq!(setting(&device, "nr_requests"), "64");
    place.run(&["undo"]).expect(0);
    let words = ["apply", "simulated", "--device", node, "--anyway"];
    place.run(&words).expect(0);
    assert_eq!(setting(&device, "nr_requests"), "64");
    place.run(&["undo"]).expect(0);
    assert_eq!(device.settings(), before);
}

#[test]
fn what_recommends_nothing_or_no_setting_is_not_applied() {
    let Some((place, device)) = ready() else { return };
    run_file(&place, &device, &FACTORS, "none of them");
    let keep = place.run(&["apply", "doctored"]).expect(0);
    assert!(keep.out.contains("nothing to apply"), "{}", keep.out);
    let keep = json(&place.run(&["apply", "doctored", "--json"]).expect(0));
    assert_eq!((&keep["outcome"], &keep["label"]), (&"nothing_to_apply".into(), &json!(null)));
    place.run(&["apply"]).expect(2);
    place.run(&["apply", "doctored", "--emit", "chef"]).expect(2).complains_of(&["ansible"]);
    place.run(&["apply", "doctored", "--for", "soon"]).expect(2).complains_of(&["soon"]);
    let both = ["apply", "doctored", "--for", "1h", "--persist"];
    place.run(&both).expect(2).complains_of(&["cannot be used with"]);
    place.run(&["apply", "--confirm"]).expect(2).complains_of(&["nothing waits"]);
}

#[test]
fn for_a_time_alone_unless_it_is_confirmed() {
    let Some((place, device)) = ready() else { return };
    let before = device.settings();
    run_file(&place, &device, &FACTORS, BEST);
    place.run(&["apply", "doctored", "--for", "1s"]).expect(0);
    let begun = Instant::now();
    while device.settings() != before {
        assert!(begun.elapsed() < Duration::from_secs(30), "{:?}", device.settings());
        std::thread::sleep(Duration::from_millis(50));
    }
    // The journal goes after the last setting, and what is said of it comes then.
    let says = |text: &str| place.run(&["status"]).expect(0).out.contains(text);
    while !says("Nothing is applied") || !says("was taken back") {
        assert!(begun.elapsed() < Duration::from_secs(30));
    }
    place.run(&["apply", "doctored", "--for", "2s"]).expect(0);
    let waiting = place.run(&["status"]).expect(0);
    assert!(waiting.out.contains("unless confirmed"), "{}", waiting.out);
    assert!(!waiting.out.contains("was taken back"), "{}", waiting.out);
    place.run(&["apply", "--confirm"]).expect(0);
    std::thread::sleep(Duration::from_millis(2500));
    assert_eq!(setting(&device, "nr_requests"), "64", "what was confirmed stays");
    // What waits goes with an undo.
    place.run(&["undo"]).expect(0);
    place.run(&["apply", "doctored", "--for", "1h"]).expect(0);
    let undone = place.run(&["undo"]).expect(0);
    assert!(undone.out.contains("takes settings back") || undone.out.contains("timer"));
    assert_eq!(device.settings(), before);
}

#[test]
fn settings_in_the_forms_in_which_hosts_are_configured() {
    let Some((place, device)) = ready() else { return };
    let before = device.settings();
    run_file(&place, &device, &FACTORS, BEST);
    let emit = |form: &str| place.run(&["apply", "doctored", "--emit", form]).expect(0).out;
    let rule = emit("udev");
    let key = format!("ATTR{{loop/backing_file}}==\"{}\"", place.path().join("disk").display());
    for part in [&key, "ATTR{queue/scheduler}=\"bfq\"", "ATTR{queue/nr_requests}=\"64\""] {
        assert!(rule.contains(part), "no {part} in:\n{rule}");
    }
    assert!(!rule.contains("KERNEL=="), "never by name:\n{rule}");
    verify(&place, &rule);
    assert!(rule.contains("`spindle undo` does not know of it"), "{rule}");
    let emitted = place.run(&["apply", "doctored", "--emit", "tuned"]).expect(0);
    assert!(emitted.err.contains(&format!("{} nr_requests 64", device.name)), "{}", emitted.err);
    let profile = emitted.out;
    assert!(profile.contains("include=") && profile.contains("elevator=bfq"), "{profile}");
    assert!(!profile.contains("nr_requests"), "tuned has no such option:\n{profile}");
    let tasks = emit("ansible");
    assert!(tasks.contains("ansible.builtin.copy") && tasks.contains(&key), "{tasks}");
    let event = "udevadm trigger --action=change --settle \"$disk\"";
    assert!(tasks.contains(event) && !tasks.contains("--subsystem-match"), "{tasks}");
    let sysfs = emit("sysfs");
    assert!(sysfs.contains(&format!("block/{}/queue/scheduler = bfq", device.name)), "{sysfs}");
    assert_eq!(device.settings(), before);
    // The script does what it says.
    let script = emit("shell");
    let ran = Command::new("sh").arg("-c").arg(&script).status().unwrap();
    assert!(ran.success(), "{script}");
    assert_eq!(setting(&device, "nr_requests"), "64");
}

/// Checked by udev's own program.
fn verify(place: &Place, rule: &str) {
    let path = place.path().join("99-check.rules");
    std::fs::write(&path, rule).unwrap();
    match Command::new("udevadm").arg("verify").arg(&path).output() {
        Ok(output) if !String::from_utf8_lossy(&output.stderr).contains("Unknown command") => {
            assert!(output.status.success(), "{rule}{}", String::from_utf8_lossy(&output.stderr));
        }
        _ => skip(Need::Program, "udevadm verify"),
    }
}

#[test]
fn a_rule_that_lasts_is_written_told_and_taken_back() {
    let Some((place, device)) = ready() else { return };
    let before = device.settings();
    run_file(&place, &device, &FACTORS, BEST);
    let folder = place.path().join("rules.d");
    let rules = || {
        let all = std::fs::read_dir(&folder).into_iter().flatten().flatten();
        all.map(|entry| entry.path()).collect::<Vec<_>>()
    };
    let persist = || {
        let folder = folder.to_str().unwrap();
        let words = ["apply", "doctored", "--persist", "--rules-folder", folder];
        place.run(&[&words[..], &["--watch-time", "1s"]].concat()).expect(0)
    };
    let told = persist();
    let [path] = &rules()[..] else { panic!("{:?}", rules()) };
    assert!(path.file_name().unwrap().to_string_lossy().starts_with("99-spindle-"));
    let rule = std::fs::read_to_string(path).unwrap();
    assert!(rule.contains("ATTR{queue/scheduler}=\"bfq\""), "{rule}");
    verify(&place, &rule);
    let text = told.out.split_whitespace().collect::<Vec<_>>().join(" ");
    // Nothing in a folder of its own is read by a udev that may run here.
    assert!(text.contains("Not proven") && text.contains("Nobody set it back"), "{}", told.out);
    assert_eq!(setting(&device, "nr_requests"), "64");
    let status = place.run(&["status"]).expect(0);
    let spaced = status.out.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(spaced.contains("rules.d"), "{}", status.out);

    place.run(&["undo"]).expect(0);
    assert_eq!(rules(), Vec::<PathBuf>::new());
    assert_eq!(device.settings(), before);

    // A rule that somebody edited is theirs.
    persist();
    let [path] = &rules()[..] else { panic!() };
    std::fs::write(path, "# mine\n").unwrap();
    let status = place.run(&["status"]).expect(3);
    assert!(status.out.contains("edited"), "{}", status.out);
    let undone = place.run(&["undo"]).expect(1);
    assert!(undone.out.contains("edited"), "{}", undone.out);
    assert_eq!(std::fs::read_to_string(path).unwrap(), "# mine\n");
    assert_eq!(device.settings(), before);
}

#[test]
fn killed_at_random_moments_it_is_as_before_or_as_announced() {
    let Some((place, device)) = ready() else { return };
    let before = device.settings();
    run_file(&place, &device, &FACTORS, BEST);
    let folder = place.path().join("rules.d");
    let words = ["apply", "doctored", "--persist", "--watch-time", "0s", "--rules-folder"];
    let words = [&words[..], &[folder.to_str().unwrap()]].concat();
    let applied = || {
        let mut names = std::fs::read_dir(place.state()).unwrap().flatten();
        names.any(|it| it.path().extension().is_some_and(|it| it == "applied"))
    };
    // How long it takes here, undisturbed: the moments are spread over that.
    let begun = Instant::now();
    place.run(&words).expect(0);
    let whole = begun.elapsed();
    let announced = device.settings();
    place.run(&["undo"]).expect(0);
    let mut stream = random::Stream::new(1, "moments of killing an apply");
    let (mut changed, mut done) = (0, 0);
    for kill in 0..kills() {
        let mut child =
            place.spindle(&words).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        std::thread::sleep(moment(kill, whole * 5 / 4, &mut stream));
        child.kill().unwrap();
        child.wait().unwrap();
        if applied() {
            done += 1;
            assert_eq!(device.settings(), announced, "kill {kill}");
            place.run(&["status"]).expect(0);
        }
        changed += u32::from(device.settings() != before);
        let undone = place.run(&["undo"]).expect(0);
        assert_eq!(device.settings(), before, "kill {kill}:\n{}", undone.out);
        let left: Vec<_> = std::fs::read_dir(&folder).into_iter().flatten().flatten().collect();
        assert!(left.is_empty(), "kill {kill}: {left:?}");
    }
    println!("killed {} times: {changed} with settings changed, {done} when it was done", kills());
    assert!(changed > done, "no kill met it in the middle: {changed} changed, {done} done");
}

/// A disk of 15,000 turns a minute with a queue that is too short for a drive that sorts what it holds, and its settings.
fn short_queue(place: &Place) -> (Device, PathBuf) {
    let device = Device::up(place, &["hdd-15k", "--size", "2G"]);
    let queue = Path::new("/sys/block").join(device.node.file_name().unwrap()).join("queue");
    std::fs::write(queue.join("scheduler"), "mq-deadline").unwrap();
    std::fs::write(queue.join("nr_requests"), "4").unwrap();
    (device, queue)
}

fn value(queue: &Path, name: &str) -> String {
    std::fs::read_to_string(queue.join(name)).unwrap().trim().to_owned()
}

#[test]
fn the_whole_way_with_a_database_on_an_emulated_disk() {
    if !can_emulate() || !has_mariadb() {
        return;
    }
    let place = Place::alone();
    let (device, queue) = short_queue(&place);
    let made = Command::new("mkfs.ext4").args(["-q", "-F"]).arg(&device.node).status().unwrap();
    assert!(made.success());
    std::fs::create_dir(&device.point).unwrap();
    let mounted = Command::new("mount").arg(&device.node).arg(&device.point).status().unwrap();
    assert!(mounted.success());
    let folder = device.point.to_str().unwrap();
    place.run(&["inspect", folder, "--no-probe"]).expect(0);

    // Several times the server's own cache, read a row at a time.
    let workload = "oltp_point_select,tables=2,rows=50k,clients=64,buffer_pool=6M";
    let words = ["compare", folder, "--workload", workload, "--queues", "4,128"];
    let times = ["--rounds", "4", "--measure", "3s", "--warmup", "500ms", "--quiet"];
    place.run_in_time(&[&words[..], &times].concat()).expect(0);
    assert_eq!(value(&queue, "nr_requests"), "4", "as it was");

    let advice = json(&place.run(&["recommend", "last", "--json"]).expect(0));
    assert_eq!(advice["settings"][0]["factor"], "nr_requests", "{advice}");
    assert_eq!(advice["settings"][0]["to"], "128", "{advice}");
    let reason = advice["text"]["reason"].to_string();
    assert!(reason.contains("of the queue's 4 requests were in flight"), "{reason}");

    place.run(&["apply", "last"]).expect(0);
    assert_eq!(value(&queue, "nr_requests"), "128");
    let status = place.run(&["status"]).expect(0);
    assert!(status.out.contains("in force"), "{}", status.out);
    place.run(&["undo"]).expect(0);
    assert_eq!(value(&queue, "nr_requests"), "4", "as it was");
}

#[test]
fn the_whole_way_on_an_emulated_disk() {
    if !can_emulate() {
        return;
    }
    let place = Place::alone();
    let (device, queue) = short_queue(&place);
    let node = device.node.to_str().unwrap();
    let name = device.node.file_name().unwrap().to_string_lossy().into_owned();
    let read = |name: &str| value(&queue, name);
    let inspected = place.run(&["inspect", node, "--no-probe"]).expect(0);
    assert!(inspected.out.contains(&name), "{}", inspected.out);

    let before = (read("scheduler"), read("nr_requests"));
    let shown = json(&place.run(&["inspect", node, "--no-probe", "--json"]).expect(0));
    let shown = &shown["chain"]["layers"][0]["what"]["device"];
    let size: u64 =
        std::fs::read_to_string(format!("/sys/block/{name}/size")).unwrap().trim().parse().unwrap();
    let known = shown["serial"].as_str().or(shown["kind"]["loop"]["backing_file"].as_str());
    let serial = known.map_or((size * 512).to_string(), str::to_owned);
    let words = [
        "compare",
        node,
        "--confirm",
        &serial,
        "--queues",
        "4,128",
        "--patterns",
        "randread",
        "--bs",
        "4k",
        "--clients",
        "64",
        "--size",
        "1G",
        "--rounds",
        "5",
        "--measure",
        "3s",
        "--warmup",
        "500ms",
        "--quiet",
    ];
    place.run_in_time(&words).expect(0);
    assert_eq!((read("scheduler"), read("nr_requests")), before);
    let advice = json(&place.run(&["recommend", "last", "--json"]).expect(0));
    assert_eq!(advice["settings"][0]["factor"], "nr_requests", "{advice}");
    assert_eq!(advice["settings"][0]["to"], "128", "{advice}");

    let folder = place.path().join("rules.d");
    let persist = ["--persist", "--watch-time", "1s", "--rules-folder", folder.to_str().unwrap()];
    let applied = place.run(&[&["apply", "last"], &persist[..]].concat());
    match name.starts_with("loop") {
        true => {
            applied.expect(0);
        }
        // A ublk device has nothing that a rule could know it by.
        false => {
            applied.expect(1).complains_of(&["neither a world-wide name nor a serial"]);
            assert_eq!((read("scheduler"), read("nr_requests")), before);
            place.run(&["apply", "last"]).expect(0);
        }
    }
    assert_eq!(read("nr_requests"), "128");
    place.run(&["status"]).expect(0);
    place.run(&["undo"]).expect(0);
    assert_eq!((read("scheduler"), read("nr_requests")), before);
}
