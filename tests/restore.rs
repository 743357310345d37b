//! Whatever ends a comparison, `spindle undo` puts everything back.

use crate::machine::{Place, has_loop_devices, kills, moment};
use std::{
    path::{Path, PathBuf},
    process::Stdio,
    time::{Duration, Instant},
};

#[test]
fn killed_at_random_moments_everything_is_put_back() {
    if !has_loop_devices() {
        return;
    }
    let place = Place::new();
    let device = place.loop_device("disk", 16);
    // Settings of the user's own, none of them the kernel's default.
    device.set("scheduler", "mq-deadline");
    device.set("nr_requests", "77");
    device.set("iosched/fifo_batch", "5");
    device.set("iosched/read_expire", "321");
    device.set("wbt_lat_usec", "12345");
    device.set("read_ahead_kb", "64");
    let before = device.settings();
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
        "--tunable",
        "mq-deadline.fifo_batch=1,32",
        "--tunable",
        "bfq.low_latency=0",
        "--wbt",
        "0,2000",
        "--engine",
        "null",
        "--size",
        "1M",
        "--rounds",
        "100",
        "--measure",
        "100ms",
        "--warmup",
        "0s",
        "--quiet",
    ];
    // How long it takes here until something is changed: the moments are spread around that.
    let begun = Instant::now();
    let mut child =
        place.spindle(&words).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    while device.settings() == before && child.try_wait().unwrap().is_none() {
        std::thread::sleep(Duration::from_millis(5));
    }
    let first = begun.elapsed();
    child.kill().unwrap();
    child.wait().unwrap();
    place.run(&["undo"]).expect(0);
    let mut stream = random::Stream::new(1, "moments of killing");
    let mut changed = 0;
    for kill in 0..kills() {
        let mut child =
            place.spindle(&words).stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
        std::thread::sleep(moment(kill, 3 * first, &mut stream));
        if let Some(status) = child.try_wait().unwrap() {
            let ended = crate::machine::Ended::of(child.wait_with_output().unwrap());
            panic!("kill {kill}: it ended by itself, {status}: {}", ended.err);
        }
        child.kill().unwrap();
        child.wait().unwrap();
        changed += u32::from(device.settings() != before);
        let undone = place.run(&["undo"]).expect(0);
        assert_eq!(device.settings(), before, "kill {kill}:\n{}", undone.out);
    }
    println!("killed {} times, {changed} of them with settings changed", kills());
    assert!(changed > kills() / 4, "too few kills met changed settings: {changed}");
    let nothing = place.run(&["undo"]).expect(0);
    assert!(nothing.out.contains("nothing"), "{}", nothing.out);
}

#[test]
fn a_new_comparison_does_not_begin_on_what_a_dead_one_left() {
    if !has_loop_devices() {
        return;
    }
    let place = Place::new();
    let folder = place.scratch();
    let target = folder.to_str().unwrap();
    let words = ["compare", target, "--loop", "--size", "16M", "--rounds", "50", "--measure", "1s"];
    let mut child =
        place.spindle(&words).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let scratch = || std::fs::read_dir(&folder).unwrap().count();
    for _ in 0..200 {
        if scratch() > 0 {
            break;
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    std::thread::sleep(Duration::from_millis(1500));
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(scratch() > 0, "a dead program cannot clean up");
    place.run(&words).expect(1).complains_of(&["spindle undo"]);
    place.run(&["undo"]).expect(0);
    assert_eq!(scratch(), 0, "the scratch file and its loop device are gone");
}

/// A loop device of its own number: what its last user did to it is not there.
struct NewDevice {
    changes: host::Changes,
    node: String,
    queue: PathBuf,
    /// The file that it stands on.
    file: String,
}

impl NewDevice {
    fn of(place: &Place) -> NewDevice {
        let file = place.path().join("disk");
        std::fs::File::create(&file).unwrap().set_len(16 << 20).unwrap();
        let state = place.path().join("devices");
        let mut changes = host::Changes::begin_in(&host::Host::here(), &state, "test").unwrap();
        let added = host::LoopOptions { added: true, ..host::LoopOptions::default() };
        let node = changes.attach(&file, added).unwrap().node;
        let name = node.file_name().unwrap().to_string_lossy().into_owned();
        let queue = Path::new("/sys/block").join(name).join("queue");
        let [node, file] = [node, file].map(|path| path.display().to_string());
        NewDevice { changes, node, queue, file }
    }

    fn set(&self, name: &str, value: &str) {
        std::fs::write(self.queue.join(name), value).unwrap();
    }

    /// What bfq switches off by itself, unless somebody has written it.
    fn throttling_under(&self, scheduler: &str) -> String {
        self.set("scheduler", scheduler);
        std::fs::read_to_string(self.queue.join("wbt_lat_usec")).unwrap().trim().to_owned()
    }

    fn detach(self) {
        assert!(self.changes.finish().unwrap().is_complete());
    }
}

/// The first write of wbt_lat_usec makes it count as set by hand, and bfq then leaves it on: what nobody named is not
/// written, so that bfq switches it off after a comparison as before.
#[test]
fn write_back_throttling_stays_automatic_where_nobody_names_it() {
    if !has_loop_devices() {
        return;
    }
    let place = Place::new();
    let device = NewDevice::of(&place);
    let wbt = |under: &str| device.throttling_under(under);
    assert_eq!(wbt("bfq"), "0");
    assert_ne!(wbt("mq-deadline"), "0");
    let words = ["compare", &device.node, "--confirm", &device.file];
    let brief = ["--engine", "null", "--size", "1M", "--rounds", "2", "--measure", "100ms"];
    let words = [&words[..], &["--schedulers", "all", "--warmup", "0s"], &brief].concat();
    place.run(&words).expect(0);
    assert_ne!(wbt("mq-deadline"), "0");
    assert_eq!(wbt("bfq"), "0", "it counts as set by hand now");
    wbt("mq-deadline");
    let planned = place.run(&[&["plan"], &words[1..], &["--wbt", "0,2000"]].concat()).expect(0);
    let text = planned.out.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(text.contains("counted as set by hand"), "{text}");
    device.detach();
}

/// Of how many comparisons: five, or what SPINDLE_COMPARISONS says.
fn comparisons() -> u32 {
    std::env::var("SPINDLE_COMPARISONS").map_or(5, |it| it.parse().unwrap())
}

/// Every file of a queue that can be read, and of its scheduler.
fn whole_queue(queue: &Path) -> Vec<(String, String)> {
    let files = |folder: PathBuf| std::fs::read_dir(folder).into_iter().flatten().flatten();
    let all = files(queue.to_owned()).chain(files(queue.join("iosched")));
    let read = |entry: std::fs::DirEntry| {
        let value = std::fs::read_to_string(entry.path()).ok()?;
        let name = entry.path().strip_prefix(queue).unwrap().display().to_string();
        Some((name, value.trim().to_owned()))
    };
    let mut all: Vec<(String, String)> = all.filter_map(read).collect();
    all.sort();
    all
}

/// Random settings are compared on a device with random settings: all of its queue is as before, and what the kernel hides
/// is, too, or `plan` has said so.
#[test]
fn after_random_comparisons_a_device_is_as_before() {
    if !has_loop_devices() {
        return;
    }
    let place = Place::new();
    let mut stream = random::Stream::new(11, "comparisons");
    let (mut announced, mut refused) = (0, 0);
    for number in 0..comparisons() {
        let device = NewDevice::of(&place);
        let mut one = |of: &[&'static str]| of[stream.below(of.len() as u64) as usize];
        device.set("scheduler", one(&["none", "mq-deadline", "kyber", "bfq"]));
        device.set("nr_requests", one(&["4", "64", "77", "128"]));
        device.set("nomerges", one(&["0", "1", "2"]));
        let by_user = one(&["yes", "no"]) == "yes";
        if by_user {
            device.set("wbt_lat_usec", one(&["0", "12345"]));
        }
        device.set("read_ahead_kb", one(&["0", "64", "4096"]));
        let factors = [
            ("--schedulers", one(&["", "all", "bfq,none", "mq-deadline,kyber"])),
            ("--queues", one(&["", "4,128", "32"])),
            ("--read-ahead", one(&["", "0,512"])),
            ("--nomerges", one(&["", "0,2"])),
            ("--rq-affinity", one(&["", "0,2"])),
            ("--tunable", one(&["", "bfq.slice_idle=0,4", "mq-deadline.read_expire=4,100"])),
            ("--wbt", one(&["", "", "0", "2000", "0,75000"])),
            // At least one is compared.
            ("--sync", "direct,direct+fdatasync"),
        ];
        let named = factors.iter().filter(|(_, value)| !value.is_empty());
        let named: Vec<&str> = named.flat_map(|(name, value)| [*name, *value]).collect();
        let times = ["--size", "1M", "--rounds", "1", "--measure", "100ms", "--warmup", "0s"];
        let target =
            [&[&*device.node, "--confirm", &device.file, "--engine", "null"], &times[..]].concat();
        let before = whole_queue(&device.queue);
        let planned = place.run(&[&["plan"], &target[..], &named].concat());
        if planned.code == Some(2) {
            // A tunable of a scheduler that is not compared.
            refused += 1;
            place.run(&[&["compare"], &target[..], &named].concat()).expect(2);
            assert_eq!(whole_queue(&device.queue), before, "comparison {number}: {named:?}");
            device.detach();
            continue;
        }
        let planned = planned.expect(0);
        let said = planned.out.split_whitespace().collect::<Vec<_>>().join(" ");
        place.run(&[&["compare"], &target[..], &named, &["--quiet"]].concat()).expect(0);
        assert_eq!(whole_queue(&device.queue), before, "comparison {number}: {named:?}");
        let is_automatic =
            device.throttling_under("bfq") == "0" && device.throttling_under("none") != "0";
        let is_said = said.contains("counted as set by hand");
        announced += u32::from(!by_user && !is_automatic);
        assert!(by_user || is_automatic || is_said, "comparison {number}: {named:?}: {said}");
        device.detach();
    }
    let all = comparisons();
    println!("{all} comparisons, {refused} refused, {announced} left what plan had announced");
    assert!(refused < all, "none was possible");
}
