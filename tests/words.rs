//! Bad input: a clear error, exit code 2 or 1, nothing changed.

use crate::machine::{Loop, Nobody, Place, has_loop_devices};
use skipped::{Need, skip};
use std::process::Command;

#[test]
fn paths_that_cannot_be_measured() {
    let place = Place::new();
    place.run(&["compare", "/no/such/path"]).expect(2).complains_of(&["/no/such/path"]);
    place.run(&["compare"]).expect(2).complains_of(&["no target"]);
    place.run(&["compare", "/dev/null"]).expect(2).complains_of(&["neither file"]);
}

#[test]
fn levels_that_the_device_does_not_have() {
    if !has_loop_devices() {
        return;
    }
    let place = Place::new();
    let folder = place.scratch();
    let target = folder.to_str().unwrap();
    let plan = |words: &[&str]| {
        let all: Vec<&str> = ["plan", target, "--loop"].iter().chain(words).copied().collect();
        place.run(&all)
    };
    plan(&["--schedulers", "cfq"]).expect(2).complains_of(&["cfq", "mq-deadline", "5.0"]);
    plan(&["--schedulers", "bqf"]).expect(2).complains_of(&["bqf", "bfq"]);
    let none = ["--schedulers", "mq-deadline", "--queues", "100000"];
    plan(&none).expect(2).complains_of(&["100000", "2048"]);
    plan(&["--queues", "2"]).expect(2).complains_of(&["would make it", "4"]);
    let tunable = ["--schedulers", "bfq", "--tunable", "bfq.fifo_batch=1"];
    plan(&tunable).expect(2).complains_of(&["fifo_batch", "low_latency"]);
    let baseline = ["--schedulers", "all", "--baseline", "scheduler=cfq"];
    plan(&baseline).expect(2).complains_of(&["cfq", "mq-deadline"]);
    let other = ["--tunable", "bfq.low_latency=0,1"];
    plan(&other).expect(2).complains_of(&["tunable of bfq", "--schedulers bfq"]);
    plan(&["--sync", "sometimes"]).expect(2).complains_of(&["sometimes", "fdatasync"]);
    plan(&["--bs", "1000"]).expect(2).complains_of(&["512"]);
    plan(&["--budget", "5"]).expect(2).complains_of(&["unit"]);
    plan(&["--budget", "3s"]).expect(2).complains_of(&["too short"]);
    plan(&["--page-cache", "1M"]).expect(2).complains_of(&["16 MiB"]);
    let free = rustix::fs::statvfs(&folder).unwrap();
    let third = format!("{}M", (free.f_bavail * free.f_frsize / 3) >> 20);
    let room = ["--filesystems", "ext2,ext3,ext4", "--size", &third];
    plan(&room).expect(2).complains_of(&["each", "together", "--size"]);
    plan(&["--size", "90T"]).expect(2).complains_of(&["does not fit", "--size"]);
}

#[test]
fn an_impossible_cell_is_refused_and_the_others_stay() {
    if !has_loop_devices() {
        return;
    }
    let place = Place::new();
    let folder = place.scratch();
    let words =
        ["plan", folder.to_str().unwrap(), "--loop", "--schedulers", "all", "--queues", "64,2048"];
    let ended = place.run(&words).expect(0);
    assert!(ended.out.contains("Refused: none, queue 2048"), "{}", ended.out);
    assert!(ended.out.contains("bfq, queue 2048"), "{}", ended.out);
}

#[test]
fn a_small_device_is_used_whole() {
    if !has_loop_devices() {
        return;
    }
    let place = Place::new();
    let device = place.loop_device("disk", 48);
    let node = device.node.to_str().unwrap();
    let ended = place.run(&["plan", node]).expect(0);
    assert!(ended.out.contains("OVERWRITE the first 48 MiB"), "{}", ended.out);
    let ended = place.run(&["plan", node, "--loop"]).expect(2);
    ended.complains_of(&["--loop", "block device"]);
}

#[test]
fn a_block_smaller_than_the_devices_is_no_direct_cell() {
    if !has_loop_devices() {
        return;
    }
    let place = Place::new();
    let file = place.path().join("disk");
    std::fs::File::create(&file).unwrap().set_len(32 << 20).unwrap();
    let device = Loop::attach(&file, &["--sector-size", "4096"]);
    let node = device.node.to_str().unwrap();
    let words = ["plan", node, "--bs", "1k,4k", "--patterns", "randread", "--size", "16M"];
    let ended = place.run(&words).expect(2);
    ended.complains_of(&["1KiB", "multiples of 4 KiB"]);
}

#[test]
fn a_read_only_and_a_full_filesystem() {
    if !has_loop_devices() {
        return;
    }
    let place = Place::new();
    let device = place.loop_device("disk", 128);
    let node = device.node.to_str().unwrap();
    let point = place.path().join("point");
    std::fs::create_dir(&point).unwrap();
    let command = |program: &str, words: &[&str]| {
        let status = Command::new(program).args(words).arg(node).arg(&point).status().unwrap();
        assert!(status.success(), "{program}");
    };
    assert!(Command::new("mkfs.ext4").args(["-q", node]).status().unwrap().success());
    command("mount", &[]);
    let target = point.to_str().unwrap();
    let unmount = || crate::machine::unmount(target);
    let full = place.run(&["compare", target, "--size", "100M"]);
    // Unmounted before anything is asserted, so that a failure leaves no mount.
    unmount();
    command("mount", &["-o", "ro"]);
    let read_only = place.run(&["compare", target, "--size", "16M"]);
    unmount();
    full.expect(2).complains_of(&["does not fit", "free"]);
    read_only.expect(2).complains_of(&["read-only"]);
}

#[test]
fn plan_files() {
    let place = Place::new();
    let file = place.path().join("plan.toml");
    let write = |text: &str| std::fs::write(&file, text).unwrap();
    let path = file.to_str().unwrap();
    let target = place.scratch();
    let target = target.to_str().unwrap();
    place
        .run(&["plan", target, "--plan", "/no/plan.toml"])
        .expect(2)
        .complains_of(&["/no/plan.toml"]);
    write("rounds = 3\n[job]\npattern = 'sideways'\n");
    place.run(&["plan", target, "--plan", path]).expect(2).complains_of(&["line 3", "sideways"]);
    write("[job]\ncolour = 3\n");
    place.run(&["plan", target, "--plan", path]).expect(2).complains_of(&["line 2", "colour"]);
    write("[factors]\nclients = [1, 4]\n[job]\npattern = 'randread'\nblock_size = '4k'\n");
    let ended = place.run(&["plan", target, "--plan", path, "--rounds", "7"]).expect(0);
    assert!(
        ended.out.contains("randread, 4 KiB") && ended.out.contains("7 rounds"),
        "{}",
        ended.out
    );
}

#[test]
fn a_forgotten_sudo_is_refused_before_anything_is_measured() {
    let Some(nobody) = Nobody::new() else { return };
    let folder = nobody.folder().to_str().unwrap();
    let short = ["--size", "16M", "--rounds", "3", "--measure", "200ms", "--warmup", "0s"];
    let schedulers = ["--schedulers", "all"];
    let two = ["--schedulers", "all", "--sync", "direct,fdatasync"];
    let three = ["--queues", "64,128", "--read-ahead", "128,256", "--clients", "1,2"];
    for (named, unset) in [
        (&schedulers[..], &["scheduler"][..]),
        (&two, &["scheduler"]),
        (&three, &["nr_requests", "read_ahead_kb"]),
        (&["--schedulers", "all", "--settled"], &["scheduler"]),
        (&[], &["schedulers", "--sync direct,fdatasync"]),
    ] {
        let refused = |verb: &str| {
            let named = named.iter().filter(|word| verb != "plan" || **word != "--settled");
            let words: Vec<&str> =
                [verb, folder].into_iter().chain(named.copied()).chain(short).collect();
            let ended = nobody.run(&words).expect(2).complains_of(unset);
            ended.complains_of(&["sudo"])
        };
        refused("plan");
        let ended = refused("compare");
        assert!(!ended.out.contains("IOPS"), "{}", ended.out);
    }
    let left = nobody.runs();
    assert!(left.is_empty(), "nothing was begun: {left:?}");
    // What needs no root is compared.
    let words: Vec<&str> =
        ["compare", folder, "--sync", "direct,fdatasync"].into_iter().chain(short).collect();
    assert!(nobody.run(&words).expect(0).out.contains("fdatasync"));
}

#[test]
fn run_files_that_are_none() {
    let place = Place::new();
    let file = place.path().join("x.spindle");
    let path = file.to_str().unwrap();
    place.run(&["report", path]).expect(1).complains_of(&["does not exist"]);
    std::fs::write(&file, "a shopping list, long enough to be taken for a database header")
        .unwrap();
    place.run(&["report", path]).expect(1).complains_of(&["not a run file"]);
    place.run(&["report", "yesterday"]).expect(2).complains_of(&["no run is called 'yesterday'"]);
    place.run(&["report", "last"]).expect(1).complains_of(&["no runs yet"]);
    place.run(&["explain", "everything"]).expect(2).complains_of(&["cache"]);
}

#[test]
fn dontcache_is_refused_where_it_is_not_taken() {
    let place = Place::new();
    let plan = |target: &str, sync: &str| place.run(&["plan", target, "--sync", sync]);
    // Memory never takes it.
    if std::path::Path::new("/dev/shm").is_dir() {
        let ended = plan("/dev/shm", "buffered,dontcache").expect(2);
        ended.complains_of(&["/dev/shm does not take", "6.14", "--sync buffered"]);
    } else {
        skip(Need::Kernel, "a tmpfs at /dev/shm");
    }
    // Bare block devices of this kernel, or a kernel without it.
    if has_loop_devices() {
        let folder = place.scratch();
        let words = ["plan", folder.to_str().unwrap(), "--loop", "--sync", "buffered,dontcache"];
        let ended = place.run(&words);
        match ended.code {
            Some(2) => drop(ended.complains_of(&["a loop device does not take", "6.14"])),
            _ => drop(ended.expect(0)),
        }
    }
    plan("simulated:hdd-15k", "buffered,dontcache").expect(2).complains_of(&["not modelled"]);
    let both = plan("simulated:hdd-15k", "direct+dontcache").expect(2);
    both.complains_of(&["direct+dontcache", "page cache"]);
}
