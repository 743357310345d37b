//! Traces that people posted, with the numbers that their folders name.

use super::{parsed, refused};
use skipped::Need;
use std::{collections::BTreeMap, path::Path};
use trace::{Format, LineError, TraceError, TraceOp};
use units::{Nanos, Sectors};

/// A file beside the project.
fn field(name: &str) -> Option<String> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data/field").join(name);
    let text = std::fs::read_to_string(&path).ok();
    if text.is_none() {
        skipped::skip(Need::Data, &format!("{} is not there", path.display()));
    }
    text
}

/// How many of each operation.
fn operations(trace: &trace::Trace) -> (usize, usize, usize) {
    let count = |op| trace.entries.iter().filter(|entry| entry.op == op).count();
    (count(TraceOp::Read), count(TraceOp::Write), count(TraceOp::Flush))
}

fn length(trace: &trace::Trace) -> Nanos {
    trace.entries.last().unwrap().at - trace.entries[0].at
}

#[test]
fn a_sync_that_only_flushes() {
    let Some(text) = field("02-blkparse-sync-flush-only/trace.txt") else { return };
    let trace = parsed(&text);
    assert_eq!(operations(&trace), (0, 0, 1));
    assert_eq!(trace.entries[0].service, Some(Nanos(69_466)));
    assert!(matches!(trace.check_replayable("t"), Err(TraceError::FlushesAlone { .. })));
    // What the device saw of it alone: from its issue to its end.
    let issued: String = text
        .lines()
        .filter(|line| line.contains(" D ") || line.contains("C  FN"))
        .map(|line| format!("{line}\n"))
        .collect();
    let trace = parsed(&issued);
    assert_eq!((operations(&trace), trace.entries[0].service), ((0, 0, 1), Some(Nanos(64_618))));
}

#[test]
fn flushes_of_zfs_are_no_reads() {
    let Some(text) = field("05-blkparse-zfs-flush/trace.txt") else { return };
    let trace = parsed(&text);
    assert_eq!((operations(&trace), length(&trace)), ((0, 0, 2), Nanos(183_306_105)));
    assert!(trace.check_replayable("t").is_err());
}

#[test]
fn read_ahead_of_2006() {
    let Some(text) = field("07-blkparse-2006-readahead/trace.txt") else { return };
    let trace = parsed(&text);
    assert_eq!(operations(&trace), (8, 0, 0));
    assert!(trace.entries.iter().all(|entry| entry.count == Sectors(8)));
    assert_eq!((length(&trace), trace.processes), (Nanos(11_647_468), 1));
    // The four that were merged into one request end with it.
    let ended = trace.entries.iter().filter(|entry| entry.service.is_some()).count();
    assert_eq!(ended, 4);
    assert_eq!((trace.bad_lines, trace.others), (0, 0));
}

#[test]
fn an_offset_that_is_no_sector() {
    let Some(text) = field("10-iolog-v3-without-add/trace.log") else { return };
    let error = refused(&text);
    assert!(matches!(&error, TraceError::Line { line: 2, .. }));
    assert!(error.to_string().contains("offset of 1000 bytes is not a multiple of 512"), "{error}");
}

#[test]
fn an_iolog_written_by_hand() {
    let Some(text) = field("12-iolog-v3-spdk/iolog1.txt") else { return };
    let trace = parsed(&text);
    assert_eq!((trace.format, operations(&trace)), (Format::Fio, (0, 3, 0)));
    let times: Vec<u64> = trace.entries.iter().map(|entry| entry.at.0 / 1000).collect();
    assert_eq!(times, [0, 10, 13]);
    assert!(trace.entries.iter().all(|entry| entry.count.bytes().0 == 16384));
}

#[test]
fn msr_and_a_derivative_with_other_columns() {
    let Some(text) = field("13-msr-hm0/hm_0-head.csv") else { return };
    let trace = parsed(&text);
    assert_eq!((trace.format, operations(&trace)), (Format::Msr, (4, 26, 0)));
    assert_eq!(length(&trace), Nanos(43_244_479_500));
    let services: Vec<Nanos> = trace.entries.iter().map(|entry| entry.service.unwrap()).collect();
    let (shortest, longest) = (services.iter().min().unwrap(), services.iter().max().unwrap());
    assert_eq!((*shortest, *longest), (Nanos(88_300), Nanos(6_614_100)));
    assert_eq!(trace.doubled, 4);

    let Some(text) = field("13-msr-hm0/with-datetime-column.csv") else { return };
    let trace = parsed(&text);
    assert_eq!((trace.format, operations(&trace)), (Format::Msr, (3, 0, 0)));
    assert_eq!(length(&trace).0 / 10_000_000, 1_433_997);
    // Without the names nothing says what the columns are.
    let without: String = text.lines().skip(1).map(|line| format!("{line}\n")).collect();
    let error = refused(&without).to_string();
    assert!(error.contains("looks like msr") && error.contains("found 8 columns"), "{error}");
}

#[test]
fn persistent_memory_with_comments() {
    let Some(text) = field("15-blkparse-pmem-bio/trace.txt") else { return };
    let trace = parsed(&text);
    assert_eq!((trace.format, operations(&trace)), (Format::Blkparse, (1, 12, 0)));
    assert_eq!((length(&trace), trace.processes), (Nanos(35_721_331_385), 3));
    let forced = trace.entries.iter().filter(|entry| entry.preflush && entry.fua).count();
    assert_eq!(forced, 1);
}

#[test]
fn raid_5_of_md() {
    let Some(text) = field("16-blkparse-md-raid5/trace.txt") else { return };
    let trace = parsed(&text);
    assert_eq!(operations(&trace), (0, 8, 0));
    assert_eq!((length(&trace), trace.processes), (Nanos(15_114_498_414), 1));
    let forced = trace.entries.iter().filter(|entry| entry.preflush && entry.fua).count();
    assert_eq!((forced, trace.below), (2, 0));
}

#[test]
fn spc_with_the_misprint_of_its_specification() {
    let Some(text) = field("37-spc-financial/example.spc") else { return };
    let TraceError::Line { line, source, .. } = refused(&text) else { panic!() };
    assert_eq!(line, 9);
    assert!(matches!(&source, LineError::Value { found, .. } if found == "2 448003"), "{source}");
    let how = trace::How { skip_bad: true, ..trace::How::default() };
    let trace = trace::read("t", text.as_bytes(), &how).unwrap();
    assert_eq!((trace.format, trace.entries.len(), trace.bad_lines), (Format::Spc, 10, 1));
    assert_eq!(operations(&trace), (2, 8, 0));
    assert_eq!(trace.entries[3].count, Sectors(31));
}

#[test]
fn systor_17_is_not_taken_for_msr() {
    let Some(text) = field("39-systor17/2016022207-LUN0.csv") else { return };
    let trace = parsed(&text);
    assert_eq!((trace.format, operations(&trace), trace.others), (Format::Systor17, (2, 1, 0), 1));
    assert_eq!(trace.entries[0].service, Some(Nanos(806_000)));
    assert_eq!(trace.entries[0].count, Sectors(256));
}

#[test]
fn variants_of_blkparse() {
    let Some(text) = field("41-blkparse-xen-and-t-option/xen.txt") else { return };
    let trace = parsed(&text);
    assert_eq!((operations(&trace), trace.entries[0].count), ((0, 1, 0), Sectors(80)));
    let Some(text) = field("41-blkparse-xen-and-t-option/wired-t.txt") else { return };
    let trace = parsed(&text);
    assert_eq!((operations(&trace), trace.entries[0].count), ((0, 1, 0), Sectors(512)));
    let Some(text) = field("41-blkparse-xen-and-t-option/diskplorer.txt") else { return };
    let trace = parsed(&text);
    assert_eq!(
        (operations(&trace), trace.processes, length(&trace)),
        ((3, 1, 0), 2, Nanos(39_571))
    );
    let mut sizes: BTreeMap<u64, usize> = BTreeMap::new();
    trace.entries.iter().for_each(|entry| *sizes.entry(entry.count.0).or_default() += 1);
    assert_eq!(sizes, BTreeMap::from([(1, 3), (256, 1)]));
    assert!(trace.entries.iter().all(|entry| entry.service.is_none()));
}
