//! Who else writes settings, beside a measurement.

use crate::machine::machine;
use host::{BackgroundWatch, Changes, Identity, Setting, pending};
use skipped::{Need, skip};
use std::{process::Command, sync::Arc};
use units::Bytes;

#[test]
fn other_processes_are_seen_and_own_writes_are_not() {
    let Some(mut machine) = machine() else { return };
    let device = machine.loop_device("disk", Bytes::from_mib(16)).number;
    let name = Identity::read(&machine.host, device).unwrap().name;
    let mut changes = Changes::begin_in(&machine.host, &machine.state(), "test").unwrap();
    let record = changes.record_processes().ok().map(Arc::new);
    let recorded = record.is_some();
    let watch = match BackgroundWatch::begin(&machine.host, &[device], record) {
        Ok(watch) => watch,
        Err(error) => return skip(Need::Kernel, &error.to_string()),
    };
    changes.set(device, &Setting::Scheduler, "mq-deadline").unwrap();
    changes.set(device, &Setting::Nomerges, "1").unwrap();
    assert_eq!(watch.who_moved(device, &Setting::Nomerges), None);
    let command = format!("echo none > /sys/block/{name}/queue/scheduler");
    let status = Command::new("sh").args(["-c", &command]).status().unwrap();
    assert!(status.success());
    let seen = watch.who_moved(device, &Setting::Scheduler).unwrap();
    assert_eq!((seen.setting.as_str(), seen.device), ("scheduler", device));
    if recorded {
        assert_eq!(seen.by.name.as_deref(), Some("sh"));
        assert!(!seen.by.parents.is_empty(), "{seen:?}");
    }
    // Another scheduler gives others their values.
    assert_eq!(watch.who_moved(device, &Setting::NrRequests), Some(seen));
    watch.forget();
    assert_eq!(watch.who_moved(device, &Setting::Scheduler), None);
    drop(watch);
    let report = changes.finish().unwrap();
    assert!(report.is_complete(), "{report:#?}");
    assert!(pending(&machine.state()).unwrap().is_empty());
}
