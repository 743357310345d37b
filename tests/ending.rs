//! Whatever ends the program, but SIGKILL and somebody who presses Ctrl-C again, it puts everything
//! back first: closed terminals, `timeout`, signals in any number, output that nobody reads.

use crate::{
    apply::{self, FACTORS},
    emulate::Device,
    machine::{Ended, Loop, Place, can_emulate, has_loop_devices},
    terminal::{Terminal, children, is_there},
};
use rustix::process::{Pid, Signal, kill_process, kill_process_group};
use skipped::{Need, skip};
use std::{
    io::{BufRead, BufReader},
    os::unix::process::CommandExt,
    path::Path,
    process::{Child, Command, Stdio},
    time::{Duration, Instant},
};

/// How many closed terminals, and how many ends by timeout(1): `SPINDLE_ENDINGS` says another
/// number.
const ENDINGS: u32 = 5;

fn endings() -> u32 {
    std::env::var("SPINDLE_ENDINGS").map_or(ENDINGS, |text| text.parse().unwrap())
}

/// A command that changes settings of a device, and the time in which it is ended.
struct Case {
    words: Vec<String>,
    within: Duration,
    /// What it set stays for a second.
    stays: bool,
}

/// A place with a device that has settings of its user, and commands that change them.
struct Scene {
    place: Place,
    device: Loop,
    before: Vec<(String, String)>,
    cases: Vec<Case>,
}

/// A comparison of so many settings that it is always about to change one.
fn comparison(place: &Place, device: &Loop) -> Vec<String> {
    let file = place.path().join("disk");
    let words = [
        "compare",
        device.node.to_str().unwrap(),
        "--confirm",
        file.to_str().unwrap(),
        "--schedulers",
        "all",
        "--queues",
        "32,64",
        "--wbt",
        "0,2000",
        "--size",
        "1M",
        "--rounds",
        "100",
        "--measure",
        "100ms",
        "--warmup",
        "0s",
    ];
    words.map(str::to_owned).into()
}

impl Scene {
    fn set() -> Option<Scene> {
        if !has_loop_devices() {
            return None;
        }
        let place = Place::new();
        let device = place.loop_device("disk", 1 << 10);
        device.set("scheduler", "mq-deadline");
        device.set("nr_requests", "77");
        device.set("iosched/fifo_batch", "5");
        device.set("wbt_lat_usec", "12345");
        device.set("read_ahead_kb", "64");
        let before = device.settings();
        Some(Scene { place, device, before, cases: Vec::new() })
    }

    fn with_cases() -> Option<Scene> {
        let mut scene = Scene::set()?;
        apply::run_file(&scene.place, &scene.device, &FACTORS, apply::BEST);
        let compare =
            [&comparison(&scene.place, &scene.device)[..], &["--engine".into(), "null".into()]];
        let compare = compare.concat();
        let within = Duration::from_millis(800);
        let case = |words: &[String], within, stays| Case { words: words.to_vec(), within, stays };
        let words = |all: &[&str]| all.iter().map(|it| (*it).to_owned()).collect::<Vec<_>>();
        let node = scene.device.node.to_str().unwrap();
        scene.cases = vec![
            case(&compare, within, false),
            case(&words(&["apply", "doctored", "--for", "1s"]), Duration::from_millis(120), true),
            case(&[&compare[..], &["--live".into()]].concat(), within, false),
            case(&words(&["fit", node]), within, false),
        ];
        Some(scene)
    }

    fn spindle(&self, words: &[String]) -> Command {
        self.place.spindle(&words.iter().map(String::as_str).collect::<Vec<_>>())
    }

    fn is_changed(&self) -> bool {
        self.device.settings() != self.before
    }

    /// Journals of any kind.
    fn journals(&self) -> Vec<String> {
        let all = std::fs::read_dir(self.place.state()).into_iter().flatten().flatten();
        let names = all.map(|it| it.file_name().to_string_lossy().into_owned());
        let endings = [".journal", ".draft", ".applied", ".kept"];
        names.filter(|it| endings.iter().any(|ending| it.ends_with(ending))).collect()
    }

    /// Nothing is changed and no journal is left.
    #[track_caller]
    fn expect_all_back(&self, stays: bool, what: &str) {
        let begun = Instant::now();
        // A journal goes after the last setting.
        while stays && (self.is_changed() || !self.journals().is_empty()) {
            assert!(begun.elapsed() < Duration::from_secs(20), "{what}: {:?}", self.journals());
            std::thread::sleep(Duration::from_millis(20));
        }
        assert_eq!(self.device.settings(), self.before, "{what}");
        assert_eq!(self.journals(), Vec::<String>::new(), "{what}");
    }

    /// Once it has changed a setting.
    fn wait_for_a_change(&self, child: &mut Child) {
        let begun = Instant::now();
        while !self.is_changed() {
            assert_eq!(child.try_wait().unwrap(), None, "it ended by itself");
            assert!(begun.elapsed() < Duration::from_secs(60), "nothing is changed");
            std::thread::sleep(Duration::from_millis(2));
        }
    }
}

#[track_caller]
fn wait_until_gone(process: Pid, what: &str) {
    let begun = Instant::now();
    while is_there(process) {
        assert!(begun.elapsed() < Duration::from_secs(60), "{what}: process {process:?} stays");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// In an interactive shell on a terminal of its own, which is closed at some moment: the shell
/// sends SIGHUP to its jobs, and the kernel to the foreground.
#[test]
fn closed_terminals() {
    let Some(scene) = Scene::with_cases() else { return };
    let mut stream = random::Stream::new(1, "moments of closing a terminal");
    let (mut changed, begun) = (0, Instant::now());
    for ending in 0..endings() {
        let case = &scene.cases[ending as usize % scene.cases.len()];
        let what = format!("terminal {ending}, {:?}", case.words);
        let mut terminal = Terminal::open();
        let mut shell = terminal.shell(&scene.place);
        let program = scene.spindle(&case.words).get_program().to_string_lossy().into_owned();
        terminal.type_line(&format!("trap - HUP; {program} {}", case.words.join(" ")));
        let process = terminal.await_child(&shell, &what);
        let pages = |process| {
            if case.words.contains(&"--live".to_owned()) { children(process) } else { Vec::new() }
        };
        let longest = u64::try_from(case.within.as_micros()).unwrap();
        terminal.show_for(Duration::from_micros(stream.below(longest)));
        changed += u32::from(scene.is_changed());
        let page = pages(process);
        drop(terminal);
        wait_until_gone(process, &what);
        page.into_iter().for_each(|page| wait_until_gone(page, &what));
        shell.wait().unwrap();
        scene.expect_all_back(case.stays, &what);
    }
    println!("{} terminals, {changed} with settings changed: {:?}", endings(), begun.elapsed());
    assert!(changed > 0 || endings() < 20, "no terminal was closed in the middle");
}

/// timeout(1) sends its signal to the program and to its group, which is the program again; with
/// --foreground to the program alone.
#[test]
fn ends_by_timeout() {
    let Some(scene) = Scene::with_cases() else { return };
    let mut stream = random::Stream::new(1, "moments of timeouts");
    let (mut met, begun) = (0, Instant::now());
    for ending in 0..endings() {
        let case = &scene.cases[ending as usize % scene.cases.len()];
        let longest = u64::try_from(case.within.as_micros()).unwrap();
        let time = Duration::from_micros(stream.below(longest) + 1);
        let what = format!("timeout {ending} of {time:?}, {:?}", case.words);
        let mut command = Command::new("timeout");
        command.args((stream.below(2) == 0).then_some("--foreground"));
        let signal = ["--signal=TERM", "--signal=HUP"][stream.below(2) as usize];
        command.arg(signal).arg(format!("{:.6}", time.as_secs_f64()));
        let spindle = scene.spindle(&case.words);
        command.arg(spindle.get_program()).args(spindle.get_args());
        command.env("SPINDLE_STATE", scene.place.state()).stdin(Stdio::null());
        let ended = Ended::of(command.output().unwrap());
        met += u32::from(ended.code == Some(124));
        assert!(matches!(ended.code, Some(124 | 0)), "{what}: {ended:?}");
        scene.expect_all_back(case.stays, &what);
    }
    println!("{} timeouts, {met} before the end: {:?}", endings(), begun.elapsed());
    assert!(met > 0, "all ended before");
}

#[test]
fn signals_in_any_number_end_a_comparison_in_good_order() {
    let Some(scene) = Scene::set() else { return };
    let words = [&comparison(&scene.place, &scene.device)[..], &["--engine".into(), "null".into()]]
        .concat();
    let all = [
        (Signal::HUP, 20),
        (Signal::QUIT, 20),
        (Signal::TERM, 20),
        (Signal::USR1, 20),
        // Nobody who means it presses twice in a moment: a terminal's group gets it with the
        // program.
        (Signal::INT, 2),
    ];
    for (signal, times) in all {
        let mut child =
            scene.spindle(&words).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        scene.wait_for_a_change(&mut child);
        for _ in 0..times {
            let _ended_already = kill_process(Pid::from_child(&child), signal);
            std::thread::sleep(Duration::from_millis(1));
        }
        assert_eq!(child.wait().unwrap().code(), Some(130), "{signal:?}");
        scene.expect_all_back(false, &format!("{signal:?}"));
    }
}

/// What we start is in a group of its own: a signal to ours finds nobody else.
#[test]
fn a_signal_to_the_whole_group_leaves_children_to_us() {
    let Some(scene) = Scene::set() else { return };
    let has_fio = Command::new("fio").arg("--version").output().is_ok();
    if !has_fio {
        skip(Need::Fio, "signals while it runs");
    }
    for more in [vec!["--processes"], vec!["--engine", "fio"]] {
        if more.contains(&"fio") && !has_fio {
            continue;
        }
        let mut words = comparison(&scene.place, &scene.device);
        let at = words.iter().position(|it| it == "100ms").unwrap();
        words[at] = "2s".to_owned();
        words.extend(more.iter().map(|it| (*it).to_owned()));
        let mut command = scene.spindle(&words);
        command.process_group(0).stdout(Stdio::null()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        scene.wait_for_a_change(&mut child);
        let own = Pid::from_child(&child);
        let begun = Instant::now();
        while children(own).is_empty() {
            assert!(begun.elapsed() < Duration::from_secs(60), "no client is started");
            std::thread::sleep(Duration::from_millis(2));
        }
        for signal in [Signal::HUP, Signal::TERM, Signal::INT, Signal::INT] {
            let _ended_already = kill_process_group(own, signal);
        }
        let ended = Ended::of(child.wait_with_output().unwrap()).expect(130);
        assert!(!ended.err.contains("failed"), "{more:?}: {}", ended.err);
        scene.expect_all_back(false, &format!("{more:?}"));
    }
}

#[test]
fn other_verbs_end_in_good_order_too() {
    let Some(scene) = Scene::set() else { return };
    let folder = scene.place.scratch();
    let folder = folder.to_str().unwrap();
    let node = scene.device.node.to_str().unwrap();
    let trace = scene.place.path().join("trace");
    let mut all = vec![
        (vec!["inspect", folder, "--sync", "--no-probe"], 130),
        (vec!["fit", node], 130),
        (vec!["record", node, "--for", "1m", "-o", trace.to_str().unwrap()], 130),
    ];
    if Path::new("/dev/fuse").exists() {
        all.push((vec!["emulate", "ssd-sata-2018", "--size", "64M", "--transport", "fuse"], 0));
    }
    for (words, code) in all {
        let mut command = scene.place.spindle(&words);
        let mut child = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
        let begun = Instant::now();
        while scene.journals().is_empty() {
            if child.try_wait().unwrap().is_some() || begun.elapsed() > Duration::from_secs(30) {
                break;
            }
            std::thread::sleep(Duration::from_millis(2));
        }
        // Somewhere in its work.
        std::thread::sleep(Duration::from_millis(100));
        for _ in 0..3 {
            let _ended_already = kill_process(Pid::from_child(&child), Signal::TERM);
        }
        let ended = Ended::of(child.wait_with_output().unwrap());
        if ended.err.contains("tracing") && ended.code == Some(1) {
            skip(Need::Kernel, "tracing of block devices");
            continue;
        }
        assert_eq!(ended.code, Some(code), "{words:?}: {}", ended.err);
        scene.expect_all_back(false, &format!("{words:?}"));
        let left = std::fs::read_dir(folder).unwrap().count();
        assert_eq!(left, 0, "{words:?}: {folder} is not empty");
    }
}

#[test]
fn output_that_nobody_reads_stops_nothing() {
    let Some(scene) = Scene::set() else { return };
    let mut words = comparison(&scene.place, &scene.device);
    let at = words.iter().position(|it| it == "100").unwrap();
    words[at] = "2".to_owned();
    words.extend(["--engine".to_owned(), "null".to_owned()]);
    // Pipes whose readers have gone: EPIPE, and no SIGPIPE.
    let mut child =
        scene.spindle(&words).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    drop((child.stdout.take(), child.stderr.take()));
    assert_eq!(child.wait().unwrap().code(), Some(0));
    scene.expect_all_back(false, "closed pipes");
    // A terminal that is closed under a program that was told to live on: EIO.
    let terminal = Terminal::open();
    let spindle = scene.spindle(&words);
    let mut child = Command::new("sh")
        .args(["-c", "trap '' HUP; exec \"$@\"", "sh"])
        .arg(spindle.get_program())
        .args(spindle.get_args())
        .env("SPINDLE_STATE", scene.place.state())
        .stdin(terminal.end())
        .stdout(terminal.end())
        .stderr(terminal.end())
        .spawn()
        .unwrap();
    scene.wait_for_a_change(&mut child);
    drop(terminal);
    // It is not for the terminal alone that SIGHUP is ignored.
    kill_process(Pid::from_child(&child), Signal::HUP).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(0));
    scene.expect_all_back(false, "a closed terminal");
}

#[test]
fn a_file_that_may_not_grow_is_an_error_and_no_end() {
    let Some(scene) = Scene::set() else { return };
    let folder = scene.place.scratch();
    let script = "ulimit -f 8192; exec \"$@\"";
    let spindle = scene.place.spindle(&[
        "compare",
        folder.to_str().unwrap(),
        "--size",
        "64M",
        "--rounds",
        "2",
    ]);
    let ended = Command::new("sh")
        .args(["-c", script, "sh"])
        .arg(spindle.get_program())
        .args(spindle.get_args())
        .env("SPINDLE_STATE", scene.place.state())
        .output()
        .unwrap();
    Ended::of(ended).expect(1).complains_of(&["too large"]);
    scene.expect_all_back(false, "ulimit -f");
    assert_eq!(std::fs::read_dir(&folder).unwrap().count(), 0);
}

#[test]
fn ctrl_c_again_a_second_later_ends_at_once() {
    if !can_emulate() {
        return;
    }
    let place = Place::new();
    let mut child = place
        .spindle(&["emulate", "ssd-sata-2018", "--size", "64M", "--transport", "fuse"])
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
    let device = Device::of(&place, &line);
    let made = Command::new("mkfs.ext4").args(["-q", "-F"]).arg(&device.node).status().unwrap();
    assert!(made.success());
    std::fs::create_dir(&device.point).unwrap();
    let mounted = Command::new("mount").arg(&device.node).arg(&device.point).status().unwrap();
    assert!(mounted.success());
    // While it is mounted it is not taken away: the end takes as long as somebody likes.
    let own = Pid::from_child(&child);
    for signal in [Signal::TERM, Signal::INT, Signal::INT, Signal::TERM, Signal::HUP] {
        kill_process(own, signal).unwrap();
        std::thread::sleep(Duration::from_millis(50));
    }
    std::thread::sleep(Duration::from_millis(1200));
    kill_process(own, Signal::TERM).unwrap();
    std::thread::sleep(Duration::from_millis(50));
    assert_eq!(child.try_wait().unwrap(), None, "nothing but Ctrl-C cuts it short");
    kill_process(own, Signal::INT).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(130));
    crate::machine::unmount(device.point.to_str().unwrap());
    place.run(&["undo"]).expect(0);
}
