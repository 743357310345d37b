//! Whatever ends a comparison, `spindle undo` puts everything back.

use crate::machine::{Place, has_loop_devices, kills, moment};
use std::{
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

/// The first write of wbt_lat_usec makes it count as set by hand, and bfq then leaves it on: what nobody named is not
/// written, so that bfq switches it off after a comparison as before.
#[test]
fn write_back_throttling_stays_automatic_where_nobody_names_it() {
    if !has_loop_devices() {
        return;
    }
    let place = Place::new();
    let file = place.path().join("disk");
    std::fs::File::create(&file).unwrap().set_len(16 << 20).unwrap();
    // A device of its own number: nobody has written the setting before.
    let state = place.path().join("devices");
    let mut changes = host::Changes::begin_in(&host::Host::here(), &state, "test").unwrap();
    let added = host::LoopOptions { added: true, ..host::LoopOptions::default() };
    let device = changes.attach(&file, added).unwrap();
    let name = device.node.file_name().unwrap().to_string_lossy().into_owned();
    let queue = std::path::Path::new("/sys/block").join(name).join("queue");
    let wbt = |under: &str| {
        std::fs::write(queue.join("scheduler"), under).unwrap();
        std::fs::read_to_string(queue.join("wbt_lat_usec")).unwrap().trim().to_owned()
    };
    assert_eq!(wbt("bfq"), "0");
    assert_ne!(wbt("mq-deadline"), "0");
    let words = ["compare", device.node.to_str().unwrap(), "--confirm", file.to_str().unwrap()];
    let brief = ["--engine", "null", "--size", "1M", "--rounds", "2", "--measure", "100ms"];
    let words = [&words[..], &["--schedulers", "all", "--warmup", "0s"], &brief].concat();
    place.run(&words).expect(0);
    assert_ne!(wbt("mq-deadline"), "0");
    assert_eq!(wbt("bfq"), "0", "it counts as set by hand now");
    wbt("mq-deadline");
    let planned = place.run(&[&["plan"], &words[1..], &["--wbt", "0,2000"]].concat()).expect(0);
    let text = planned.out.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(text.contains("counted as set by hand"), "{text}");
    assert!(changes.finish().unwrap().is_complete());
}
