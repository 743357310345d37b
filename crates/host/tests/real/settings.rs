//! Reading, refusing, setting and putting back.

use crate::machine::{async_depth, machine};
use host::{
    Chain, Changes, DeviceNumber, Host, Identity, QueueFolder, Refusal, Setting, TargetKind,
    pending,
};
use skipped::{Need, skip};
use units::Bytes;

fn tunable(name: &str) -> Setting {
    Setting::Tunable(name.to_owned())
}

fn all(host: &Host, number: DeviceNumber) -> std::collections::BTreeMap<Setting, String> {
    QueueFolder::of(host, number).unwrap().read_all()
}

#[test]
fn everything_that_was_set_is_put_back() {
    let Some(mut machine) = machine() else { return };
    let device = machine.loop_device("disk", Bytes::from_mib(16)).number;
    let before = all(&machine.host, device);
    let mut changes = Changes::begin_in(&machine.host, &machine.state(), "test").unwrap();
    let mut set =
        |setting: Setting, value: &str| changes.set(device, &setting, value).unwrap().took;
    assert_eq!(set(Setting::Scheduler, "deadline"), "mq-deadline", "the kernel's alias");
    assert_eq!(set(Setting::NrRequests, "2048"), "2048");
    assert_eq!(set(tunable("fifo_batch"), "64"), "64");
    assert_eq!(set(Setting::WbtLatUsec, "0"), "0");
    assert_eq!(set(Setting::ReadAheadKb, "64"), "64");
    assert_eq!(set(Setting::Scheduler, "bfq"), "bfq");
    assert_eq!(set(tunable("slice_idle"), "0"), "0");
    assert_eq!(set(Setting::NrRequests, "1"), "4", "the kernel raises it without a word");
    assert_eq!(changes.verify(), []);
    let report = changes.finish().unwrap();
    assert!(report.is_complete(), "{report:#?}");
    assert_eq!(all(&machine.host, device), before);
    assert!(pending(&machine.state()).unwrap().is_empty());
}

/// A comparison sets the same few values for hours.
#[test]
fn values_that_the_journal_has_add_nothing_to_it() {
    let Some(mut machine) = machine() else { return };
    let device = machine.loop_device("disk", Bytes::from_mib(16)).number;
    let before = all(&machine.host, device);
    let mut changes = Changes::begin_in(&machine.host, &machine.state(), "test").unwrap();
    let alternate = |changes: &mut Changes| {
        for scheduler in ["bfq", "none", "mq-deadline", "none"] {
            changes.set(device, &Setting::Scheduler, scheduler).unwrap();
        }
        std::fs::metadata(changes.journal()).unwrap().len()
    };
    let once = alternate(&mut changes);
    assert_eq!(alternate(&mut changes), once);
    changes.restore(device).unwrap();
    let restored = std::fs::metadata(changes.journal()).unwrap().len();
    assert!(alternate(&mut changes) > restored, "after that they are changes again");
    assert!(changes.finish().unwrap().is_complete());
    assert_eq!(all(&machine.host, device), before);
}

/// What others move is put back although nobody set it: mq-deadline's async_depth, which nr_requests
/// rescales, and read-ahead, which the queue's limits may raise.
#[test]
fn what_moves_with_a_change_is_put_back_with_it() {
    let Some(mut machine) = machine() else { return };
    let device = machine.loop_device("disk", Bytes::from_mib(16)).number;
    let depth = async_depth(&machine.host, device);
    for (setting, value) in [
        (Setting::Scheduler, "mq-deadline"),
        (Setting::NrRequests, "256"),
        (depth, "3"),
        (Setting::ReadAheadKb, "64"),
    ] {
        machine.changes.set(device, &setting, value).unwrap();
    }
    let before = all(&machine.host, device);
    for words in [
        &[(Setting::NrRequests, "2"), (Setting::NrRequests, "256")][..],
        &[(Setting::NrRequests, "64")],
        &[(Setting::Scheduler, "bfq")],
        &[(Setting::Scheduler, "none"), (Setting::NrRequests, "16")],
        &[(Setting::Scheduler, "kyber"), (Setting::Scheduler, "mq-deadline")],
        &[(Setting::MaxSectorsKb, "128")],
        &[(Setting::Rotational, "1"), (Setting::Rotational, "0")],
    ] {
        let mut changes = Changes::begin_in(&machine.host, &machine.state(), "test").unwrap();
        for (setting, value) in words {
            changes.set(device, setting, value).unwrap();
        }
        let report = changes.finish().unwrap();
        assert!(report.is_complete(), "{words:?}: {report:#?}");
        assert_eq!(all(&machine.host, device), before, "{words:?}: {report:#?}");
    }
}

/// Whatever this kernel moves when a setting is written, [`Setting::is_moved_by`] knows.
#[test]
fn what_this_kernel_moves_is_known() {
    let Some(mut machine) = machine() else { return };
    let device = machine.loop_device("disk", Bytes::from_mib(16)).number;
    let depth = async_depth(&machine.host, device);
    let schedulers = ["none", "mq-deadline", "kyber", "bfq"];
    for scheduler in schedulers {
        let mut values: Vec<(Setting, String)> = schedulers
            .iter()
            .map(|other| (Setting::Scheduler, (*other).to_owned()))
            .chain(["4", "64", "100"].map(|value| (Setting::NrRequests, value.to_owned())))
            .collect();
        let mut add = |setting, value: &str| values.push((setting, value.to_owned()));
        add(Setting::WbtLatUsec, "5000");
        add(Setting::MaxSectorsKb, "128");
        add(Setting::Rotational, "1");
        add(Setting::Rotational, "0");
        add(Setting::Nomerges, "1");
        add(Setting::RqAffinity, "2");
        add(Setting::ReadAheadKb, "32");
        let mut changes = Changes::begin_in(&machine.host, &machine.state(), "test").unwrap();
        for (written, value) in values {
            changes.set(device, &Setting::Scheduler, scheduler).unwrap();
            // Values that no default gives, so that a default shows.
            for (setting, value) in [(&depth, "3"), (&Setting::ReadAheadKb, "64")] {
                // Not under every scheduler.
                let _ = changes.set(device, setting, value);
            }
            let before = all(&machine.host, device);
            if changes.set(device, &written, &value).is_err() {
                continue;
            }
            let after = all(&machine.host, device);
            for (setting, was) in &before {
                let known = *setting == written || setting.is_moved_by(&written);
                let now = after.get(setting);
                assert!(
                    now == Some(was) || known,
                    "{written} {value} under {scheduler} moved {setting}: {was}, {now:?}"
                );
            }
            assert_eq!(changes.verify(), [], "what moved is not expected to be as it was set");
        }
    }
}

#[test]
fn dropping_puts_back_as_well() {
    let Some(mut machine) = machine() else { return };
    let device = machine.loop_device("disk", Bytes::from_mib(16)).number;
    let before = all(&machine.host, device);
    let mut changes = Changes::begin_in(&machine.host, &machine.state(), "test").unwrap();
    changes.set(device, &Setting::Scheduler, "kyber").unwrap();
    drop(changes);
    assert_eq!(all(&machine.host, device), before);
}

#[test]
fn a_setting_that_moves_is_seen() {
    let Some(mut machine) = machine() else { return };
    let device = machine.loop_device("disk", Bytes::from_mib(16)).number;
    let mut changes = Changes::begin_in(&machine.host, &machine.state(), "test").unwrap();
    changes.set(device, &Setting::Scheduler, "mq-deadline").unwrap();
    changes.set(device, &tunable("fifo_batch"), "32").unwrap();
    let name = Identity::read(&machine.host, device).unwrap().name;
    std::fs::write(format!("/sys/block/{name}/queue/iosched/fifo_batch"), "8").unwrap();
    let drift = changes.verify();
    assert_eq!(drift.len(), 1, "{drift:?}");
    assert_eq!((drift[0].set_to.as_str(), drift[0].reads.as_str()), ("32", "8"));
}

#[test]
fn what_the_kernel_would_not_take_is_refused_with_the_reason() {
    let Some(mut machine) = machine() else { return };
    let device = machine.loop_device("disk", Bytes::from_mib(16)).number;
    let folder = QueueFolder::of(&machine.host, device).unwrap();
    let refusal = |setting: &Setting, value: &str, under: Option<&str>| {
        folder.check(setting, value, under).unwrap_err().to_string()
    };
    let text = refusal(&Setting::Scheduler, "kiber", None);
    assert!(text.contains("none, mq-deadline, kyber, bfq"), "{text}");
    assert!(text.contains("did you mean kyber?"), "{text}");
    let text = refusal(&Setting::Scheduler, "cfq", None);
    assert!(text.contains("5.0") && text.contains("bfq"), "{text}");
    let text = refusal(&Setting::NrRequests, "100000", Some("mq-deadline"));
    assert!(text.contains("2048") && text.contains("tags of its own"), "{text}");
    let text = refusal(&Setting::NrRequests, "256", Some("none"));
    assert!(text.contains("128") && text.contains("hardware tags"), "{text}");
    let text = refusal(&tunable("fifo_bach"), "1", Some("mq-deadline"));
    assert!(text.contains("did you mean fifo_batch?"), "{text}");
    let text = refusal(&tunable("fifo_batch"), "1", Some("none"));
    assert!(text.contains("none at all"), "{text}");
    let text = refusal(&Setting::AsyncDepth, "3", Some("none"));
    let reason = match folder.read(&Setting::AsyncDepth) {
        Ok(_) => "under a scheduler only",
        Err(_) => "since 7.0",
    };
    assert!(text.contains(reason), "{text}");
    let text = refusal(&Setting::NrRequests, "-1", None);
    assert!(text.contains("whole number"), "{text}");
    assert_eq!(folder.check(&Setting::NrRequests, "2", None).unwrap(), "4");
    assert_eq!(folder.check(&Setting::NrRequests, "2048", Some("bfq")).unwrap(), "2048");
    assert!(matches!(
        folder.check(&Setting::Scheduler, "noop", None),
        Err(Refusal::UnknownScheduler { .. })
    ));
    // The limits that the refusals name are those of this kernel.
    let mut changes = Changes::begin_in(&machine.host, &machine.state(), "test").unwrap();
    for (scheduler, most) in [("none", "128"), ("mq-deadline", "2048")] {
        changes.set(device, &Setting::Scheduler, scheduler).unwrap();
        assert_eq!(changes.set(device, &Setting::NrRequests, most).unwrap().took, most);
        let path = format!("/sys/dev/block/{device}/queue/nr_requests");
        let over = (most.parse::<u32>().unwrap() + 1).to_string();
        assert!(std::fs::write(&path, over).is_err(), "the kernel takes more under {scheduler}");
    }
}

#[test]
fn the_chain_goes_through_a_loop_device_to_the_disk_below() {
    let Some(mut machine) = machine() else { return };
    let device = machine.loop_device("disk", Bytes::from_mib(16));
    let chain = Chain::of(&machine.host, &device.node).unwrap();
    assert_eq!(chain.kind, TargetKind::BlockDevice);
    assert_eq!(chain.scheduled.first(), Some(&device.number));
    let state = chain.devices().next().unwrap().loop_state().unwrap();
    assert_eq!(state.backing_file.as_deref(), Some(device.file.as_path()));
    assert!(state.direct_io);
    // The file's filesystem and its device come below.
    assert_eq!(chain.filesystems().count(), 1, "{chain:#?}");
    assert!(chain.devices().count() >= 2, "{chain:#?}");
    // The same by a link, as in /dev/disk/by-id.
    let link = machine.folder.path().join("by-id");
    std::os::unix::fs::symlink(&device.node, &link).unwrap();
    let linked = Chain::of(&machine.host, &link).unwrap();
    assert_eq!((&linked.target, &linked.scheduled), (&chain.target, &chain.scheduled));
    // Not the filesystem, whose free space others change meanwhile.
    assert!(linked.devices().eq(chain.devices()), "{linked:#?}");
}

#[test]
fn memory_has_no_device() {
    let shm = std::path::Path::new("/dev/shm");
    let chain = Chain::of(&Host::here(), shm).unwrap();
    let Some(no_device) = chain.no_device else {
        skip(Need::Kernel, "a tmpfs at /dev/shm");
        return;
    };
    assert_eq!(no_device.filesystem, "tmpfs");
    assert!(no_device.reason.contains("memory"), "{}", no_device.reason);
}

/// What is said beforehand of a value is what the kernel does: it keeps what was said, or refuses or changes what was
/// refused.
#[test]
fn the_kernel_keeps_of_a_value_what_was_said() {
    let Some(mut machine) = machine() else { return };
    let device = machine.loop_device("disk", Bytes::from_mib(16)).number;
    let folder = QueueFolder::of(&machine.host, device).unwrap();
    let name = Identity::read(&machine.host, device).unwrap().name;
    let path = |setting: &Setting| format!("/sys/block/{name}/queue/{setting}");
    let numbers = [0, 1, 2, 3, 4, 5, 64, 125, 126, 513, 4294, 4295, 4_294_967, 4_294_968];
    let edges = [i32::MAX as u64, 1 << 31, u64::from(u32::MAX), 1 << 32, u64::MAX];
    let mut values: Vec<String> = numbers.iter().chain(&edges).map(u64::to_string).collect();
    values.extend(["-1", "18446744073709551616"].map(str::to_owned));
    let mut wrong = Vec::new();
    let mut asked = 0;
    for scheduler in ["none", "mq-deadline", "kyber", "bfq"] {
        std::fs::write(path(&Setting::Scheduler), scheduler).unwrap();
        for (setting, before) in folder.read_all() {
            // A discard or a size of requests is none of the factors.
            let skipped = [Setting::Scheduler, Setting::MaxSectorsKb, Setting::Rotational];
            if skipped.contains(&setting) {
                continue;
            }
            for value in &values {
                let said = folder.check(&setting, value, Some(scheduler));
                let wrote = std::fs::write(path(&setting), value).is_ok();
                let kept = wrote.then(|| folder.read(&setting).unwrap());
                let right = match (&said, &kept) {
                    (Ok(said), kept) => kept.as_ref() == Some(said),
                    (Err(_), None) => true,
                    // A negative number has no meaning, and writes_starved takes it.
                    (Err(_), Some(kept)) => kept != value || value.starts_with('-'),
                };
                asked += 1;
                if !right {
                    wrong.push(format!("{scheduler}: {setting} {value}: {said:?}, kept {kept:?}"));
                }
                std::fs::write(path(&setting), &before).unwrap();
            }
        }
    }
    assert!(asked > 300, "{asked}");
    assert!(wrong.is_empty(), "{} of {asked}:\n{}", wrong.len(), wrong.join("\n"));
}

/// Every attribute is written, with its own value and with another, and all others are read: what then moves is what is
/// known to.
#[test]
fn a_write_moves_what_is_known_to_be_moved() {
    let Some(mut machine) = machine() else { return };
    let device = machine.loop_device("disk", Bytes::from_mib(16)).number;
    let name = Identity::read(&machine.host, device).unwrap().name;
    let queue = std::path::PathBuf::from(format!("/sys/block/{name}/queue"));
    let folder = QueueFolder::of(&machine.host, device).unwrap();
    let write = |name: &str, value: &str| std::fs::write(queue.join(name), value).is_ok();
    let unlike = |name: &str, now: &str| -> String {
        let other = match name {
            "scheduler" if now == "bfq" => "kyber",
            "scheduler" => "bfq",
            "nr_requests" | "async_depth" | "max_sectors_kb" => "64",
            "write_cache" if now == "write back" => "write through",
            "write_cache" => "write back",
            _ if now == "0" => "1",
            _ => "0",
        };
        other.to_owned()
    };
    let limits =
        ["iostats", "add_random", "rotational", "stable_writes", "write_cache", "max_sectors_kb"];
    let queue_settings = ["scheduler", "nr_requests", "async_depth", "wbt_lat_usec", "nomerges"];
    let mut wrong = Vec::new();
    let mut seen = std::collections::BTreeSet::new();
    for scheduler in ["none", "mq-deadline", "kyber", "bfq"] {
        let others = ["read_ahead_kb", "rq_affinity"];
        let of_scheduler = folder.read_all().into_keys().map(|it| it.to_string());
        let mut all: Vec<String> =
            limits.iter().chain(&queue_settings).chain(&others).map(|it| it.to_string()).collect();
        all.extend(of_scheduler.filter(|it| it.starts_with("iosched/")));
        for attribute in all {
            if !queue.join(&attribute).exists() {
                continue;
            }
            for same in [true, false] {
                write("scheduler", scheduler);
                write("rotational", "0");
                write("read_ahead_kb", "4");
                let before = folder.read_all();
                let Ok(now) = std::fs::read_to_string(queue.join(&attribute)) else { continue };
                let choice = now.split(['[', ']']).nth(1).unwrap_or(&now).trim().to_owned();
                let value = if same { choice.clone() } else { unlike(&attribute, &choice) };
                if !write(&attribute, &value) {
                    continue;
                }
                for (setting, value) in folder.read_all() {
                    let moved = before.get(&setting).is_some_and(|before| *before != value);
                    if !moved || setting.to_string() == attribute {
                        continue;
                    }
                    seen.insert((attribute.clone(), setting.to_string()));
                    let known = match attribute.parse::<Setting>() {
                        Ok(written) => setting.is_moved_by(&written),
                        Err(_) => {
                            setting == Setting::ReadAheadKb && limits.contains(&attribute.as_str())
                        }
                    };
                    // slice_idle and slice_idle_us are one value in two units.
                    let one = attribute.starts_with("iosched/slice_idle")
                        && setting.to_string().starts_with("iosched/slice_idle");
                    if !known && !one {
                        wrong.push(format!("{scheduler}: {attribute} moved {setting} to {value}"));
                    }
                }
                if attribute == "write_cache" || attribute == "stable_writes" {
                    write(&attribute, &choice);
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    // And what is known does move: otherwise the list says too much of this kernel.
    for attribute in ["iostats", "add_random", "write_cache"] {
        let pair = (attribute.to_owned(), "read_ahead_kb".to_owned());
        assert!(seen.contains(&pair), "{attribute}: {seen:?}");
    }
}
