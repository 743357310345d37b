//! Formats, and what is counted of what is left out.

use super::{parsed, refused};
use trace::{
    BlockEvent, BlockStage, Format, How, TimeUnit, Trace, TraceError, TraceOp, read, write_event,
    write_lost,
};
use units::{Nanos, Sectors};

fn entries(trace: &Trace) -> Vec<(u64, TraceOp, u64, u64)> {
    trace.entries.iter().map(|e| (e.at.0 / 1000, e.op, e.start.0, e.count.0)).collect()
}

#[test]
fn what_follows_the_first_sums_is_read() {
    let text = "\
8,0 0 1 0.000000000 1 Q R 64 + 8 [a]
CPU0 (8,0):
 Reads Queued:           1,        4KiB	 Writes Queued:           0,        0KiB

Total (8,0):
 Reads Queued:           1,        4KiB
Throughput (R/W): 1KiB/s / 0KiB/s
Events (8,0): 13,206 entries
Skips: 0 forward (0 -   0.0%)
8,0 0 1 0.500000000 1 Q W 128 + 8 [a]
";
    let trace = parsed(text);
    assert_eq!(entries(&trace), [(0, TraceOp::Read, 64, 8), (500_000, TraceOp::Write, 128, 8)]);
    assert_eq!(trace.bad_lines, 0);
}

#[test]
fn commands_that_pass_through_are_counted_once_and_are_no_error() {
    let text = "\
8,0 0 1 0.000 7 I R 96 (12 00 00 00 60 00 ..) [udevd]
8,0 0 2 0.001 7 D R 96 (12 00 00 00 60 00 ..) [udevd]
8,0 0 3 0.002 0 C R (12 00 00 00 60 00 ..) [0]
8,0 0 4 0.003 7 D N 0 [kworker/0:1H]
8,0 0 5 0.004 7 C N 0 [0]
8,0 0 6 0.005 7 Q R 64 + 8 [a]
8,0 0 7 0.006 7 C R 64 + 8 [0]
8,0 0 8 0.007 7 Q WS [sync]
8,0 0 9 0.008 7 Q WBS [sync]
";
    let trace = parsed(text);
    let kinds: Vec<TraceOp> = trace.entries.iter().map(|entry| entry.op).collect();
    assert_eq!((kinds, trace.others), (vec![TraceOp::Read, TraceOp::Flush], 3));
}

#[test]
fn a_request_that_is_issued_again_is_one() {
    let text = "\
8,0 0 1 0.000 7 D R 64 + 8 [kworker/0:1H]
8,0 0 2 0.001 9 D R 64 + 8 [a]
8,0 0 3 0.002 0 C R 64 + 8 [0]
8,0 0 4 0.003 9 D R 64 + 8 [a]
8,0 0 5 0.004 0 C R 64 + 8 [0]
8,0 0 6 0.005 9 D D 0 + 2048 [fstrim]
8,0 0 7 0.006 0 D W 256 + 8 [swapper/0]
";
    let trace = parsed(text);
    assert_eq!((trace.entries.len(), trace.reissued, trace.others), (3, 1, 1));
    assert_eq!(trace.entries[0].service, Some(Nanos::from_millis(2)));
    // Who issues is a worker, an interrupt or the task itself: two processes, one of them unknown.
    assert_eq!(trace.processes, 2);
    // Without an end nothing says that the first was still open.
    let without: String =
        text.lines().filter(|line| !line.contains(" C ")).map(|line| format!("{line}\n")).collect();
    assert_eq!((parsed(&without).entries.len(), parsed(&without).reissued), (4, 0));
}

#[test]
fn partitions_lie_where_they_lie_and_other_devices_behind_one_another() {
    let lines = |devices: [&str; 2]| {
        let [a, b] = devices;
        format!("{a} 0 1 0.000 1 Q R 4096 + 8 [a]\n{b} 0 1 0.001 1 Q R 9000 + 8 [a]\n")
    };
    let starts = |devices| {
        let trace = parsed(&lines(devices));
        trace.entries.iter().map(|entry| entry.start.0).collect::<Vec<u64>>()
    };
    assert_eq!(starts(["8,1", "8,2"]), [4096, 9000]);
    assert_eq!(starts(["8,2", "8,0"]), [4096, 9000]);
    assert_eq!(starts(["8,1", "8,17"]), [4096, 6144 + 9000]);
    assert_eq!(starts(["253,0", "253,1"]), [4096, 6144 + 9000]);
}

#[test]
fn requests_of_a_disk_below_a_mapping_count_once() {
    let text = "\
253,0 0 1 0.000 1 Q W 100 + 8 [a]
8,0 0 2 0.001 1 A W 2148 + 8 <- (253,0) 100
8,0 0 3 0.002 1 Q W 2148 + 8 [a]
8,0 0 4 0.003 1 Q W 9000 + 8 [b]
";
    let trace = parsed(text);
    assert_eq!((trace.entries.len(), trace.below), (2, 1));
    // The disk alone: its requests are all there are.
    let below: String = text.lines().skip(1).map(|line| format!("{line}\n")).collect();
    assert_eq!((parsed(&below).entries.len(), parsed(&below).below), (2, 0));
}

#[test]
fn times_of_another_unit_are_refused_and_read_when_it_is_named() {
    let text: String =
        (0..8).map(|n| format!("{} 0 {} 8 1\n", n * 900_000_000u64, n * 8)).collect();
    let TraceError::Units { unit, other, instead, .. } = refused(&text) else { panic!() };
    assert_eq!((unit, other), (TimeUnit::Millis, TimeUnit::Nanos));
    assert_eq!(instead, Nanos(6_300_000_000));
    let message = refused(&text).to_string();
    assert!(message.contains("--replay-unit ns"), "{message}");
    let how = How { unit: Some(TimeUnit::Nanos), ..How::default() };
    let trace = read("t", text.as_bytes(), &how).unwrap();
    assert_eq!(trace.entries.last().unwrap().at, Nanos(6_300_000_000));
    let kept = How { unit: Some(TimeUnit::Millis), ..How::default() };
    assert!(read("t", text.as_bytes(), &kept).is_ok());
    let mqsim = How { format: Some(Format::Mqsim), ..How::default() };
    let trace = read("t", text.as_bytes(), &mqsim).unwrap();
    assert_eq!(trace.entries.last().unwrap().at, Nanos(6_300_000_000));
    // blkparse's times are seconds.
    let blkparse = "8,0 0 1 0.000 1 Q R 64 + 8 [a]\n";
    let error = read("t", blkparse.as_bytes(), &how).unwrap_err();
    assert!(matches!(error, TraceError::UnitIsKnown { .. }));
}

#[test]
fn alibaba_tencent_and_biosnoop() {
    let trace = parsed(
        "419,W,8792731648,16384,1577808144360767\n725,R,59110326272,360448,1577808144360813\n",
    );
    assert_eq!(trace.format, Format::Alibaba);
    assert_eq!((trace.entries[1].at, trace.entries[1].count), (Nanos(46_000), Sectors(704)));
    let trace = parsed("1538323200,12910952,128,0,1063\n1538323201,6338688,8,1,1627\n");
    assert_eq!(trace.format, Format::Tencent);
    assert_eq!(trace.entries[1].op, TraceOp::Write);
    assert_eq!(trace.entries[0].count, Sectors(128));
    let trace = parsed(
        "TIME(s)     COMM           PID    DISK    T SECTOR     BYTES  LAT(ms)\n\
         0.004000    my process     1950   sda     W 13192496   4096      0.26\n\
         0.009000    jbd2/sda1-8    1951   sda     R 13192504   8192      1.00\n",
    );
    assert_eq!((trace.format, trace.processes), (Format::Biosnoop, 2));
    assert_eq!(trace.entries[0].service, Some(Nanos(260_000)));
    assert_eq!(trace.entries[1].at, Nanos(8_000_000 - 3_740_000));
}

#[test]
fn block_events_of_perf_script_and_of_the_kernel() {
    let perf = "\
# cmdline : perf record -e block:*
        fio  1234 [000]  5121.481510: block:block_bio_queue: 8,0 WS 1000 + 8 [fio]
        fio  1234 [000]  5121.481516: block:block_rq_issue: 8,0 WS 4096 () 1000 + 8 [fio]
    swapper     0 [001]  5121.481916:       sched:sched_switch: x
    swapper     0 [001]  5121.482516: block:block_rq_complete: 8,0 WS () 1000 + 8 [0]
";
    let trace = parsed(perf);
    assert_eq!(trace.format, Format::Perf);
    assert_eq!(entries(&trace), [(0, TraceOp::Write, 1000, 8)]);
    assert_eq!(trace.entries[0].service, Some(Nanos(1_006_000)));
    let kernel = "\
# tracer: nop
             fio-1234    [000] d..1.  5121.481516: block_rq_issue: 8,0 R 4096 () 1000 + 8 none,0,0 [fio]
CPU:1 [LOST 5 EVENTS]
          <idle>-0       [001] d.h1.  5121.482516: block_rq_complete: 8,0 R () 1000 + 8 none,0,0 [0]
";
    let trace = parsed(kernel);
    assert_eq!((trace.format, trace.lost), (Format::Perf, 5));
    assert_eq!(trace.entries[0].service, Some(Nanos(1_000_000)));
}

#[test]
fn binary_events_say_the_same_as_their_text() {
    let text = "\
8,0 0 1 0.000000000 7 Q WS 1000 + 8 [a]
8,0 1 2 0.000100000 7 D WS 1000 + 8 [a]
8,0 1 3 0.000500000 0 C WS 1000 + 8 [0]
8,16 0 4 0.000600000 9 Q FWFSM 24 + 8 [b]
8,0 0 5 0.000700000 9 Q FN [b]
8,0 0 6 0.000800000 9 Q RA 5000 + 16 [b]
8,0 0 7 0.000900000 9 Q D 0 + 2048 [b]
8,16 0 8 0.001600000 0 C WFSM 24 + 8 [0]
8,16 0 9 0.005600000 0 C WFSM 24 [0]
";
    let mut bytes = Vec::new();
    for (place, line) in text.lines().enumerate() {
        let words: Vec<&str> = line.split_whitespace().collect();
        let (major, minor) = words[0].split_once(',').unwrap();
        let seconds: f64 = words[3].parse().unwrap();
        let has_range = words.get(8) == Some(&"+");
        let event = BlockEvent {
            stage: match words[5] {
                "Q" => BlockStage::Queued,
                "D" => BlockStage::Issued,
                _ => BlockStage::Completed,
            },
            at: Nanos((seconds * 1e9).round() as u64),
            cpu: words[1].parse().unwrap(),
            pid: words[4].parse().unwrap(),
            device: (major.parse().unwrap(), minor.parse().unwrap()),
            letters: words[6],
            sector: words.get(7).and_then(|word| word.parse().ok()).unwrap_or(0),
            sectors: if has_range { words[9].parse().unwrap() } else { 0 },
        };
        write_event(&mut bytes, place as u32 + 1, &event);
    }
    write_lost(&mut bytes, 10, Nanos(6_000_000), 12);
    let binary = read("t", &bytes, &How::default()).unwrap();
    let printed = parsed(text);
    assert_eq!((binary.format, binary.lost), (Format::Blktrace, 12));
    // Before a device without FUA such a write ends with the flush behind its data.
    assert_eq!(printed.entries[1].service, Some(Nanos(5_000_000)));
    assert_eq!(Trace { format: printed.format, lost: 0, ..binary }, printed);
    for end in 0..bytes.len() {
        let _ = read("t", &bytes[..end], &How::default());
    }
}

#[test]
fn a_request_beyond_every_device_is_a_broken_line() {
    let text = "8,0 0 1 0.0 1 Q R 64 + 8 [a]\n8,16 0 1 0.1 1 Q R 18446744073709551610 + 8 [a]\n";
    assert!(matches!(refused(text), TraceError::Line { line: 2, .. }), "{}", refused(text));
}

#[test]
fn packed_files_and_files_of_other_programs_are_known_by_name() {
    for (bytes, word) in [
        (&b"\x1f\x8b\x08\0\0\0\0"[..], "gunzip"),
        (b"\x28\xb5\x2f\xfd\0\0", "zstd"),
        (b"PERFILE2\0\0", "perf script"),
        (b"\x17\x08\x44tracing6\0", "trace-cmd report"),
    ] {
        let error = read("t", bytes, &How::default()).unwrap_err();
        assert!(matches!(error, TraceError::NotText { .. }) && error.to_string().contains(word));
    }
}
