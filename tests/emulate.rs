//! Emulated devices: up and down, real data, several at once, killed servers and programs, hosts that
//! cannot.

use crate::machine::{Ended, Place, aligned, can_emulate, kills, moment};
use skipped::{Need, skip};
use std::{
    fs::{File, OpenOptions},
    io::{Read, Write},
    os::unix::{
        fs::{FileExt, OpenOptionsExt},
        process::CommandExt,
    },
    path::{Path, PathBuf},
    process::{Command, Stdio},
    time::{Duration, Instant},
};

/// Whether FUSE may go over io_uring here.
const FUSE_URING: &str = "/sys/module/fuse/parameters/enable_uring";

/// The transports that this host can have. It takes the first by itself.
fn transports() -> Vec<&'static str> {
    let there = [("ublk", "/dev/ublk-control"), ("fuse", "/dev/fuse"), ("fuse-uring", FUSE_URING)];
    let (there, missing): (Vec<_>, Vec<_>) =
        there.into_iter().partition(|(_, path)| Path::new(path).exists());
    for (transport, path) in missing {
        skip(Need::Kernel, &format!("{path}, for the transport {transport}"));
    }
    there.into_iter().map(|(transport, _)| transport).collect()
}

/// A device of a detached program; stopped in the end, whatever became of the test.
pub struct Device {
    pub node: PathBuf,
    state: PathBuf,
    /// Where tests mount it.
    pub point: PathBuf,
}

impl Drop for Device {
    fn drop(&mut self) {
        // Not by its node: that may be another test's by now.
        let _ = Command::new("umount").arg("--quiet").arg(&self.point).output();
        let _ = Command::new(env!("CARGO_BIN_EXE_spindle"))
            .args(["emulate", "stop", &self.name()])
            .env("SPINDLE_STATE", &self.state)
            .output();
    }
}

impl Device {
    pub fn up(place: &Place, words: &[&str]) -> Device {
        let words: Vec<&str> = [&["emulate"], words, &["--detach"]].concat();
        let ended = place.run(&words).expect(0);
        Device::of(place, &ended.out)
    }

    /// From the line that says its name.
    pub fn of(place: &Place, line: &str) -> Device {
        let node = PathBuf::from(line.trim());
        Device { node, state: place.state(), point: place.path().join("mounted") }
    }

    fn name(&self) -> String {
        self.node.file_name().unwrap().to_string_lossy().into_owned()
    }

    pub fn setting(&self, name: &str) -> String {
        let path = format!("/sys/block/{}/queue/{name}", self.name());
        std::fs::read_to_string(path).unwrap().trim().to_owned()
    }

    fn open(&self) -> File {
        let direct = i32::try_from(rustix::fs::OFlags::DIRECT.bits()).unwrap();
        OpenOptions::new().read(true).write(true).custom_flags(direct).open(&self.node).unwrap()
    }

    /// A number of its record.
    pub fn number(&self, place: &Place, what: &str) -> i32 {
        self.record(place)[what].as_i64().unwrap().try_into().unwrap()
    }

    fn record(&self, place: &Place) -> serde_json::Value {
        let list = place.run(&["emulate", "list", "--json"]).expect(0);
        let list: serde_json::Value = serde_json::from_str(&list.out).unwrap();
        let ours =
            list.as_array().unwrap().iter().find(|it| it["node"] == self.node.to_str().unwrap());
        ours.unwrap().clone()
    }
}

/// A block that O_DIRECT takes.
#[repr(align(4096))]
struct Block([u8; 4096]);

/// The largest request.
const LARGEST: usize = 1 << 20;

/// Kills a process and waits until it holds nothing any more: on a busy machine dying takes time.
#[track_caller]
fn kill(pid: i32) {
    let killed = rustix::process::Pid::from_raw(pid).unwrap();
    rustix::process::kill_process(killed, rustix::process::Signal::KILL).unwrap();
    until("dying", || {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        stat.rsplit_once(") ").is_none_or(|(_, rest)| rest.starts_with(['Z', 'X']))
    });
}

/// Nothing of ours is left: no process, mount, loop device, scratch file.
#[track_caller]
fn nothing_is_left(place: &Place) {
    let state = place.state().to_string_lossy().into_owned();
    let mounts = std::fs::read_to_string("/proc/self/mountinfo").unwrap();
    assert!(!mounts.contains(&state), "mounted:\n{mounts}");
    for entry in std::fs::read_dir("/sys/block").unwrap().flatten() {
        let file = std::fs::read_to_string(entry.path().join("loop/backing_file"));
        let file = file.unwrap_or_default();
        assert!(!file.contains(&state), "{:?} is on {file}", entry.file_name());
    }
    let left: Vec<_> = std::fs::read_dir(place.state())
        .map(|it| it.flatten().map(|entry| entry.file_name()).collect())
        .unwrap_or_default();
    let ours = |name: &std::ffi::OsString| {
        let name = name.to_string_lossy().into_owned();
        name.starts_with("spindle-scratch-") || name.ends_with(".journal")
    };
    assert!(!left.iter().any(ours), "left: {left:?}");
}

/// Until something holds, within ten seconds.
#[track_caller]
fn until(what: &str, holds: impl Fn() -> bool) {
    let begun = Instant::now();
    while !holds() {
        assert!(begun.elapsed() < Duration::from_secs(10), "{what} takes more than ten seconds");
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn several_devices_hold_their_own_data_and_go_when_stopped() {
    if !can_emulate() {
        return;
    }
    let place = Place::new();
    let disk = Device::up(&place, &["hdd-15k"]);
    let flash = Device::up(&place, &["ssd-sata-2018", "--size", "1G", "--data", "memory"]);
    assert_eq!(disk.setting("rotational"), "1");
    assert_eq!(flash.setting("rotational"), "0");
    assert!(disk.setting("scheduler").contains("[mq-deadline]"));
    assert_eq!(disk.setting("nr_requests"), "128", "twice the disk's 64 tags");
    for (device, byte) in [(&disk, 7), (&flash, 9)] {
        let file = device.open();
        let mut block = Block([0; 4096]);
        file.read_exact_at(&mut block.0, 0).unwrap();
        assert!(block.0.iter().all(|it| *it == 0), "never written");
        let far = 900 << 20;
        file.write_all_at(&Block([byte; 4096]).0, far).unwrap();
        file.sync_all().unwrap();
        file.read_exact_at(&mut block.0, far).unwrap();
        assert!(block.0.iter().all(|it| *it == byte));
    }
    for device in [&disk, &flash] {
        let transport = device.record(&place)["transport"].as_str().unwrap().to_owned();
        assert_eq!(transport.trim_end_matches("+loop"), transports()[0]);
    }
    let list = place.run(&["emulate", "list"]).expect(0);
    assert!(list.out.contains(&disk.name()) && list.out.contains(&flash.name()), "{}", list.out);
    place.run(&["emulate", "stop"]).expect(2).complains_of(&["which one", &disk.name()]);
    place.run(&["emulate", "stop", "loop99999"]).expect(2).complains_of(&["no emulated device"]);
    place.run(&["emulate", "stop", &disk.name()]).expect(0);
    place.run(&["emulate", "stop", "all"]).expect(0);
    assert!(!Path::new("/sys/block").join(flash.name()).exists(), "the device itself is gone");
    nothing_is_left(&place);
}

#[test]
fn every_transport_moves_small_and_large_requests_and_all_at_once() {
    if !can_emulate() {
        return;
    }
    let place = Place::new();
    let folder = place.path().to_str().unwrap().to_owned();
    for transport in transports() {
        for data in ["memory", &folder] {
            let words = ["ssd-sata-2018", "--size", "256M", "--data", data];
            let device = Device::up(&place, &[&words[..], &["--transport", transport]].concat());
            let file = device.open();
            let (mut written, mut read) = (Vec::new(), Vec::new());
            let large = aligned(&mut written, LARGEST);
            for (index, byte) in large.iter_mut().enumerate() {
                *byte = (index / 512) as u8;
            }
            let at = (200 << 20) + 4096;
            file.write_all_at(large, at).unwrap();
            let mut small = Block([0; 4096]);
            file.read_exact_at(&mut small.0, at + 8192).unwrap();
            assert!(small.0 == large[8192..12288], "{transport}, {data}: a part of it");
            file.write_all_at(&Block([9; 4096]).0, at + 4096).unwrap();
            large[4096..8192].fill(9);
            let read = aligned(&mut read, LARGEST);
            file.read_exact_at(read, at).unwrap();
            assert!(read == large, "{transport}, {data}: with a small one in it");
            drop(file);
            let checked = Command::new("fio")
                .args(["--name=v", "--rw=randwrite", "--bsrange=4k-512k", "--size=64M"])
                .args(["--ioengine=libaio", "--iodepth=64", "--direct=1", "--numjobs=2"])
                .args(["--offset_increment=64M", "--verify=crc32c", "--verify_fatal=1"])
                .arg("--verify_state_save=0")
                .arg(format!("--filename={}", device.node.display()))
                .output()
                .unwrap();
            assert!(checked.status.success(), "{transport}, {data}: {checked:?}");
        }
    }
    place.run(&["emulate", "stop", "all"]).expect(0);
    nothing_is_left(&place);
}

#[test]
fn discarded_room_comes_back_and_a_users_file_is_kept() {
    if !can_emulate() {
        return;
    }
    for transport in transports() {
        discarded_room_comes_back_and_a_users_file_is_kept_over(transport);
    }
}

fn discarded_room_comes_back_and_a_users_file_is_kept_over(transport: &str) {
    let place = Place::new();
    let path = place.path().join("image");
    let image = path.to_str().unwrap();
    let words = ["ssd-sata-2018", "--size", "64M", "--data", image, "--transport", transport];
    let device = Device::up(&place, &words);
    let taken = || std::os::unix::fs::MetadataExt::blocks(&std::fs::metadata(&path).unwrap()) * 512;
    let mut file = OpenOptions::new().write(true).open(&device.node).unwrap();
    file.write_all(&vec![3; 16 << 20]).unwrap();
    file.sync_all().unwrap();
    drop(file);
    assert!(taken() >= 16 << 20);
    let mut again: Vec<&str> = ["emulate"].into();
    again.extend(words);
    place.run(&again).expect(1).complains_of(&["another emulated device"]);
    let discard = Command::new("blkdiscard")
        .args(["--offset", "4194304", "--length", "12582912"])
        .arg(&device.node)
        .output()
        .unwrap();
    assert!(discard.status.success(), "{}", String::from_utf8_lossy(&discard.stderr));
    assert!(taken() < 5 << 20, "{} are still taken", taken());
    place.run(&["emulate", "stop"]).expect(0);
    let mut kept = Vec::new();
    File::open(&path).unwrap().take(8 << 20).read_to_end(&mut kept).unwrap();
    assert!(kept[..4 << 20].iter().all(|byte| *byte == 3), "the user's file keeps its data");
    assert!(kept[4 << 20..].iter().all(|byte| *byte == 0));
    nothing_is_left(&place);
}

#[test]
fn a_device_with_a_filesystem_is_not_taken_away() {
    if !can_emulate() {
        return;
    }
    let place = Place::new();
    let device = Device::up(&place, &["ssd-sata-2018", "--size", "64M", "--data", "memory"]);
    let point = mounted(&device, "ext4");
    std::fs::write(point.join("precious"), "data").unwrap();
    place.run(&["emulate", "stop"]).expect(1).complains_of(&["umount"]);
    // Its program is killed; its server goes on, and undoing does not end it under a mount.
    kill(device.number(&place, "pid"));
    place.run(&["undo"]).expect(1);
    assert_eq!(std::fs::read_to_string(point.join("precious")).unwrap(), "data");
    crate::machine::unmount(point.to_str().unwrap());
    place.run(&["undo"]).expect(0);
    nothing_is_left(&place);
}

/// A filesystem made on a device and mounted.
fn mounted(device: &Device, kind: &str) -> PathBuf {
    let point = device.point.clone();
    std::fs::create_dir_all(&point).unwrap();
    let made = Command::new(format!("mkfs.{kind}")).arg("-q").arg(&device.node).output().unwrap();
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    let output = Command::new("mount").arg(&device.node).arg(&point).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    point
}

#[test]
fn a_killed_server_hangs_nothing_and_all_is_cleared() {
    if !can_emulate() {
        return;
    }
    let kinds = ["ext4", "xfs"];
    for (kind, transport) in
        kinds.into_iter().flat_map(|kind| transports().into_iter().map(move |it| (kind, it)))
    {
        let place = Place::new();
        let words = ["hdd-15k", "--size", "2G", "--data", "memory", "--transport", transport];
        let device = Device::up(&place, &words);
        let point = mounted(&device, kind);
        let (server, pid) = (device.number(&place, "server"), device.number(&place, "pid"));
        let mut writer = Command::new("fio")
            .args(["--name=w", "--rw=randwrite", "--bs=4k", "--size=64M", "--iodepth=32"])
            .args([
                "--ioengine=libaio",
                "--direct=1",
                "--time_based",
                "--runtime=60",
                "--numjobs=2",
            ])
            .arg(format!("--directory={}", point.display()))
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        std::thread::sleep(Duration::from_secs(4));
        assert!(writer.try_wait().unwrap().is_none(), "{kind}, {transport}: it writes");
        // Both at once: nobody is left to clear up.
        kill(pid);
        kill(server);
        let begun = Instant::now();
        while writer.try_wait().unwrap().is_none() {
            assert!(
                begun.elapsed() < Duration::from_secs(20),
                "{kind}, {transport}: the writer hangs"
            );
            std::thread::sleep(Duration::from_millis(50));
        }
        let undone = place.run(&["undo"]).expect(0);
        let mounts = std::fs::read_to_string("/proc/self/mountinfo").unwrap();
        assert!(!mounts.contains(point.to_str().unwrap()), "{kind}, {transport}: {}", undone.out);
        nothing_is_left(&place);
    }
}

#[test]
fn a_program_whose_server_dies_clears_up_itself() {
    if !can_emulate() {
        return;
    }
    for transport in transports() {
        let place = Place::new();
        let words = ["hdd-15k", "--data", "memory", "--transport", transport];
        let device = Device::up(&place, &words);
        let (server, pid) = (device.number(&place, "server"), device.number(&place, "pid"));
        kill(server);
        until("the program's end", || !Path::new(&format!("/proc/{pid}")).exists());
        nothing_is_left(&place);
    }
}

/// A quick comparison in the emulated world.
const COMPARISON: [&str; 10] = [
    "--rounds",
    "5",
    "--measure",
    "500ms",
    "--warmup",
    "0s",
    "--patterns",
    "randwrite",
    "--seed",
    "7",
];

#[test]
fn comparing_records_the_profile_and_the_pacing() {
    if !can_emulate() {
        return;
    }
    let place = Place::alone();
    let mut words =
        vec!["compare", "emulated:hdd-15k,data=memory", "--schedulers", "all", "--json"];
    words.extend(["--queues", "64,2048", "--depths", "32", "--quiet"]);
    words.extend(COMPARISON);
    let ended = place.run_in_time(&words).expect(0);
    let report: serde_json::Value = serde_json::from_str(&ended.out).unwrap();
    let environment = &report["environment"];
    assert_eq!(environment["world"], "emulated");
    assert!(environment["inspection"]["text"].as_str().unwrap().contains("15,000"));
    let cells = report["analysis"]["groups"][0]["cells"].as_array().unwrap();
    assert_eq!(cells.len(), 7, "none has no queue of 2048: {cells:?}");
    for cell in cells {
        let counters = &cell["summary"]["counters"];
        let late = counters["emulate.late_p99_us"].as_f64().unwrap();
        assert!(late > 0.0, "{counters}");
        let most = counters["emulate.depth_max"].as_f64().unwrap();
        assert!((1.0..=64.0).contains(&most), "the disk has 64 tags: {most}");
        // A 15,000 rpm disk, whatever the host: seeks and rotation.
        let iops = counters["device.w/s"].as_f64().unwrap();
        assert!((100.0..700.0).contains(&iops), "{iops}");
    }
    nothing_is_left(&place);
}

#[test]
fn write_back_throttling_is_left_to_the_kernel_where_nobody_names_it() {
    if !can_emulate() {
        return;
    }
    let place = Place::alone();
    // A device that nobody has set: the kernel's own latency of flash, which bfq switches off.
    let mut words = vec!["compare", "emulated:ssd-sata-2018,data=memory", "--size", "64M"];
    words.extend(["--schedulers", "mq-deadline,bfq", "--depths", "1"]);
    words.extend(COMPARISON);
    let ended = place.run_in_time(&words).expect(0);
    let all = ended.out + &ended.err;
    assert!(!all.contains("the kernel made") && !all.contains("by hand"), "{all}");
    words.extend(["--sync", "buffered", "--patterns", "randwrite"]);
    words[0] = "plan";
    let planned = place.run(&words).expect(0);
    let text = planned.out.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(text.contains("bfq as it is: it switches write-back throttling off"), "{text}");
    nothing_is_left(&place);
}

#[test]
fn filesystems_are_compared_on_an_emulated_device() {
    if !can_emulate() {
        return;
    }
    let place = Place::alone();
    let mut words = vec!["compare", "emulated:hdd-15k,data=memory", "--filesystems", "ext4,xfs"];
    words.extend(["--size", "16M", "--schedulers", "none,mq-deadline", "--quiet"]);
    words.extend(COMPARISON);
    words.push("--json");
    let ended = place.run_in_time(&words).expect(0);
    let run: serde_json::Value = serde_json::from_str(&ended.out).unwrap();
    let trials = run["document"]["trials"].as_array().unwrap();
    let filesystem = |trial: &serde_json::Value| {
        let cell = trial["cell"].as_u64().unwrap() as usize;
        run["plan"]["cells"][cell]["levels"]["filesystem"].as_str().unwrap().to_owned()
    };
    let filesystems: Vec<String> = trials.iter().map(filesystem).collect();
    // Each round changes it once; where one ends, the next may begin.
    let changes = filesystems.windows(2).filter(|pair| pair[0] != pair[1]).count();
    assert!((5..=7).contains(&changes), "{filesystems:?}");
    nothing_is_left(&place);
}

#[test]
fn killed_comparisons_leave_nothing_that_undo_does_not_clear() {
    if !can_emulate() {
        return;
    }
    let place = Place::new();
    let mut words = vec!["compare", "emulated:hdd-15k,data=memory", "--filesystems", "ext4,xfs"];
    words.extend(["--size", "16M", "--rounds", "50", "--measure", "500ms", "--quiet"]);
    let switched = || std::fs::read_to_string(FUSE_URING).unwrap_or_default();
    let before = switched();
    let mut stream = random::Stream::new(2, "moments of killing");
    for kill in 0..kills() {
        let mut child =
            place.spindle(&words).stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
        std::thread::sleep(moment(kill, Duration::from_secs(3), &mut stream));
        if let Some(status) = child.try_wait().unwrap() {
            let ended = Ended::of(child.wait_with_output().unwrap());
            panic!("kill {kill}: it ended by itself, {status}: {}", ended.err);
        }
        child.kill().unwrap();
        child.wait().unwrap();
        place.run(&["undo"]).expect(0);
        nothing_is_left(&place);
    }
    // Other tests have it switched on for a moment, too.
    until("FUSE's io_uring being as it was", || switched() == before);
}

#[test]
fn hosts_and_words_that_cannot_be_are_told_so() {
    let place = Place::new();
    if rustix::process::getuid().is_root() {
        let mut user = place.spindle(&["emulate", "hdd-15k"]);
        let ended = Ended::of(user.uid(65534).output().unwrap());
        // Nobody may be unable to run a program in a folder of root's.
        ended.expect(1).complains_of(&["only root", "simulated:PROFILE"]);
    }
    if !can_emulate() {
        return;
    }
    place.run(&["emulate", "hdd-16k"]).expect(2).complains_of(&["did you mean hdd-15k"]);
    place.run(&["emulate", "hdd-15k", "loop7"]).expect(2).complains_of(&["loop7"]);
    place
        .run(&["emulate", "hdd-15k", "--size", "2T"])
        .expect(2)
        .complains_of(&["2 TiB is more than", "its capacity"]);
    place.run(&["emulate", "hdd-15k", "--size", "100"]).expect(2).complains_of(&["4 KiB"]);
    place.run(&["emulate", "hdd-15k", "--data", "/dev/null"]).expect(2).complains_of(&["regular"]);
    place.run(&["compare", "emulated:hdd-16k"]).expect(2).complains_of(&["did you mean hdd-15k"]);
    place.run(&["compare", "emulated:hdd-15k,x=1"]).expect(2).complains_of(&["data=memory"]);
    let maybe = "emulated:hdd-15k,pauses=maybe";
    place.run(&["compare", maybe]).expect(2).complains_of(&["pauses=maybe", "pauses=yes (or no)"]);
    let maybe = ["emulate", "hdd-15k", "--pauses", "maybe"];
    place.run(&maybe).expect(2).complains_of(&["maybe", "boolean", "--pauses <yes|no>"]);
    place.run(&["compare", "emulated:hdd-15k", "--loop"]).expect(2).complains_of(&["--loop"]);
    place
        .run(&["emulate", "hdd-15k", "--transport", "nbd"])
        .expect(2)
        .complains_of(&["ublk, fuse or fuse-uring"]);
    let word = "emulated:hdd-15k,data=memory,transport=nbd";
    place.run(&["compare", word]).expect(2).complains_of(&["ublk, fuse or fuse-uring"]);
    if !Path::new("/dev/ublk-control").exists() {
        let ublk = ["emulate", "hdd-15k", "--transport", "ublk"];
        place.run(&ublk).expect(1).complains_of(&["ublk_drv", "leave --transport out"]);
    }
    // Without the devices: in a mount namespace whose /dev is empty, or has /dev/fuse alone.
    for (fuse, missing) in
        [("true", "/dev/fuse"), ("mknod /dev/fuse c 10 229", "/dev/loop-control")]
    {
        let script = format!("mount -t tmpfs none /dev && {fuse} && exec \"$0\" emulate hdd-15k");
        let output = Command::new("unshare")
            .args(["--mount", "sh", "-c", &script, env!("CARGO_BIN_EXE_spindle")])
            .env("SPINDLE_STATE", place.state())
            .stdin(Stdio::null())
            .output()
            .unwrap();
        Ended::of(output).expect(1).complains_of(&[missing, "modprobe"]);
    }
    nothing_is_left(&place);
}

#[test]
fn data_that_do_not_fit_are_told_so() {
    if !can_emulate() {
        return;
    }
    let place = Place::new();
    // ext2 with blocks of 1 KiB has no files above 16 GiB; and one that is full has no room at all.
    let device = place.loop_device("small", 256);
    let point = place.path().join("small-mounted");
    std::fs::create_dir(&point).unwrap();
    let made = Command::new("mkfs.ext2").args(["-q", "-b", "1024"]).arg(&device.node).status();
    assert!(made.unwrap().success());
    assert!(Command::new("mount").arg(&device.node).arg(&point).status().unwrap().success());
    let folder = point.to_str().unwrap();
    let large = place.run(&["emulate", "hdd-15k", "--data", folder]);
    let file = point.join("image");
    let named = place.run(&["emulate", "hdd-15k", "--data", file.to_str().unwrap()]);
    let _ = std::fs::remove_file(&file);
    std::fs::write(point.join("filler"), vec![1; 200 << 20]).unwrap();
    let full = place.run(&["emulate", "hdd-15k", "--size", "1G", "--data", folder]);
    crate::machine::unmount(folder);
    large.expect(1).complains_of(&["no files that large"]);
    named.expect(2).complains_of(&["may not support files that large"]);
    full.expect(1).complains_of(&["are free there"]);
    nothing_is_left(&place);
}
