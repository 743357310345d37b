//! `spindle inspect DIRECTORY --sync`: its figures beside what the models of emulated devices must take, what it
//! concludes, what it refuses, and that it leaves nothing behind.

use crate::{
    emulate::Device,
    machine::{Place, can_emulate, unmount},
};
use host::{
    CacheEvidence, DurableBy, Medium, NoFsyncVerdict, PowerLossVerdict, SyncCard, SyncMethod,
    SyncOutcome, SyncPlace,
};
use skipped::{Need, skip};
use std::{
    path::Path,
    process::{Command, Stdio},
    time::{Duration, Instant},
};
use units::{Bytes, Nanos};

const HDD: &str = include_str!("../profiles/hdd-15k.toml");
const BATTERY: &str = include_str!("../profiles/raid10-8x15k-bbu.toml");
const PAGE: Bytes = Bytes::from_kib(4);

/// A value of a profile, such as `disk.rotation`.
fn value(profile: &str, path: &str) -> String {
    let table: toml::Table = profile.parse().unwrap();
    let mut found = &toml::Value::Table(table);
    for key in path.split('.') {
        found = &found[key];
    }
    found.as_str().unwrap().to_owned()
}

fn time(profile: &str, path: &str) -> Nanos {
    value(profile, path).parse().unwrap()
}

/// A turn of the disk.
fn turn() -> Nanos {
    let per_minute: f64 =
        value(HDD, "disk.rotation").strip_suffix(" rpm").unwrap().parse().unwrap();
    Nanos::from_secs_f64(60.0 / per_minute)
}

/// The same disk without its write cache.
fn without_write_cache() -> String {
    let (rest, _) = HDD.split_once("[disk.write_cache]").unwrap();
    let lines: Vec<&str> = rest.lines().filter(|line| !line.starts_with("write_cache =")).collect();
    lines.join("\n")
}

/// The card of a folder on a filesystem on an emulated device.
fn card_of(place: &Place, profile: &str) -> SyncCard {
    let device = Device::up(place, &[profile, "--data", "memory", "--size", "1G"]);
    let node = device.node.to_str().unwrap();
    let made = Command::new("mkfs.ext4")
        .args(["-q", "-E", "lazy_itable_init=0,lazy_journal_init=0,nodiscard", node])
        .status();
    assert!(made.unwrap().success());
    std::fs::create_dir_all(&device.point).unwrap();
    let point = device.point.to_str().unwrap();
    assert!(Command::new("mount").args([node, point]).status().unwrap().success());
    let ended = place.run(&["inspect", point, "--sync", "--sync-time", "3s", "--json"]);
    let left: Vec<_> =
        std::fs::read_dir(point).unwrap().map(|it| it.unwrap().file_name()).collect();
    assert_eq!(left, ["lost+found"], "scratch files are removed");
    unmount(point);
    serde_json::from_str(&ended.expect(0).out).unwrap()
}

/// The median of one writer of 4 KiB.
#[track_caller]
fn median(card: &SyncCard, method: SyncMethod, place: SyncPlace) -> Nanos {
    let found = card.figures(method, place, PAGE, 1);
    found.and_then(|figures| figures.p50).unwrap_or_else(|| panic!("{method:?}: {found:?}"))
}

#[track_caller]
fn within(what: &str, found: Nanos, least: Nanos, most: Nanos) {
    assert!(least <= found && found <= most, "{what}: {found}, not {least} to {most}");
}

/// Each device in the way that it must answer. A log overwritten block after block meets the next sector
/// when it has just gone by, so each write that reaches the medium waits about one turn; half a turn is allowed
/// for what comes late, on either side.
#[test]
fn figures_are_the_models_times() {
    if !can_emulate() {
        return;
    }
    let place = Place::alone();
    let (direct, durable) = (SyncMethod::Direct, SyncMethod::DirectOdsync);
    let (half, late) = (turn() / 2, turn() + turn() / 2);
    let quarter = turn() / 4;

    let path = place.path().join("no-cache.toml");
    std::fs::write(&path, without_write_cache()).unwrap();
    let card = card_of(&place, path.to_str().unwrap());
    assert_eq!(card.probe.as_ref().unwrap().medium, Medium::Disk);
    within("without cache, direct", median(&card, direct, SyncPlace::InPlace), half, late);
    within("without cache, durable", median(&card, durable, SyncPlace::InPlace), half, late);
    // Data, journal and its commit block: at least two visits to the medium.
    let grown = card.figures(SyncMethod::Fdatasync, SyncPlace::Appended, PAGE, 1).unwrap();
    let mean = Nanos::from_secs_f64(1.0 / grown.per_second);
    within("without cache, appended", mean, turn(), turn() * 10);
    assert_eq!(card.power_loss.verdict, PowerLossVerdict::LooksProtected, "{card:#?}");
    assert!(card.power_loss.evidence.contains(&CacheEvidence::WritesReachTheMedium));

    let card = card_of(&place, "hdd-15k");
    let command = time(HDD, "disk.overhead.command");
    within("with cache, direct", median(&card, direct, SyncPlace::InPlace), command, quarter);
    within("with cache, durable", median(&card, durable, SyncPlace::InPlace), half, late);
    assert_eq!(card.durable_by, DurableBy::Flush, "a loop device has no FUA");
    assert_eq!(card.power_loss.verdict, PowerLossVerdict::LooksUnprotected, "{card:#?}");
    assert_eq!(card.no_fsync.verdict, NoFsyncVerdict::NotSafe);

    let card = card_of(&place, "raid10-8x15k-bbu");
    let controller = time(BATTERY, "array.overhead");
    within("battery, direct", median(&card, direct, SyncPlace::InPlace), controller, quarter);
    // The flush costs the controller's time once more.
    let durable = median(&card, durable, SyncPlace::InPlace);
    within("battery, durable", durable, controller * 2, quarter);
    assert_eq!(card.power_loss.verdict, PowerLossVerdict::LooksProtected, "{card:#?}");
    assert!(card.power_loss.evidence.contains(&CacheEvidence::FasterThanTheMedium));
}

#[test]
fn the_card_of_this_machine_s_disk_fits_a_screen() {
    let place = Place::new();
    let folder = place.scratch();
    let folder = folder.to_str().unwrap();
    let text = place.run(&["inspect", folder, "--sync", "--sync-time", "3s"]).expect(0).out;
    for words in [
        "Sync card of",
        "1 fdatasync",
        "4 direct+O_DSYNC",
        "innodb_flush_log_at_trx_commit=1",
        "Power loss:",
        "InnoDB page (16 KiB)",
        "PostgreSQL page (8 KiB)",
        "O_DIRECT_NO_FSYNC",
    ] {
        assert!(text.contains(words), "no '{words}' in:\n{text}");
    }
    assert!(text.lines().count() <= 48, "{} lines:\n{text}", text.lines().count());
    for line in text.lines().filter(|line| line.chars().count() > 80) {
        assert!(line.trim().split(' ').count() == 1, "too long: {line}");
    }
    assert!(std::fs::read_dir(folder).unwrap().next().is_none(), "nothing is left");
}

#[test]
fn every_figure_is_in_the_json() {
    let place = Place::new();
    let folder = place.scratch();
    let words = ["inspect", folder.to_str().unwrap(), "--sync", "--sync-time", "3s", "--json"];
    let card: SyncCard = serde_json::from_str(&place.run(&words).expect(0).out).unwrap();
    let measured = |outcome: &SyncOutcome| matches!(outcome, SyncOutcome::Measured(_));
    assert!(card.cells.iter().filter(|cell| measured(&cell.outcome)).count() >= 40);
    let buffered = card.figures(SyncMethod::Buffered, SyncPlace::InPlace, PAGE, 1).unwrap();
    let synced = card.figures(SyncMethod::Fsync, SyncPlace::InPlace, PAGE, 1).unwrap();
    assert!(buffered.writes > 100 && buffered.p99.is_some(), "{buffered:?}");
    assert!(buffered.p50.unwrap() < synced.p50.unwrap(), "{buffered:?} {synced:?}");
    assert_eq!(card.commit.in_place_1.is_some(), synced.writes > 0);
}

#[test]
fn what_cannot_have_a_card_is_refused_with_what_to_do() {
    let place = Place::new();
    let folder = place.scratch();
    let folder = folder.to_str().unwrap();
    place.run(&["inspect", "--sync"]).expect(2).complains_of(&["DIRECTORY"]);
    place.run(&["inspect", folder, "--sync-time", "9s"]).expect(2).complains_of(&["--sync"]);
    for time in ["1s", "1h"] {
        let words = ["inspect", folder, "--sync", "--sync-time", time];
        place.run(&words).expect(2).complains_of(&["3.00 s", "10 min"]);
    }
    place.run(&["inspect", "/no/such/place", "--sync"]).expect(1).complains_of(&["/no/such/place"]);
    let Some(device) = Path::new("/dev/loop0").exists().then_some("/dev/loop0") else {
        skip(Need::Loop, "/dev/loop0");
        return;
    };
    let words = ["inspect", device, "--sync", "--no-probe"];
    place.run(&words).expect(2).complains_of(&["block device", "mount", "spindle compare"]);
}

#[test]
fn an_interrupted_card_leaves_nothing() {
    let place = Place::new();
    let folder = place.scratch();
    let child = place
        .spindle(&["inspect", folder.to_str().unwrap(), "--sync", "--no-probe"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let files = || std::fs::read_dir(&folder).unwrap().count();
    let begun = Instant::now();
    while files() == 0 {
        assert!(begun.elapsed() < Duration::from_secs(20), "no scratch folder after 20 s");
        std::thread::sleep(Duration::from_millis(20));
    }
    let pid = rustix::process::Pid::from_raw(i32::try_from(child.id()).unwrap()).unwrap();
    rustix::process::kill_process(pid, rustix::process::Signal::INT).unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(130), "{}", String::from_utf8_lossy(&output.stderr));
    assert_eq!(files(), 0, "the scratch folder is gone");
    place.run(&["undo"]).expect(0);
}
