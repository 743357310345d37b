use super::*;
use units::{Nanos, Sectors};

/// As blkparse prints a busy moment: queued, plugged, issued, completed, a flush, a discard, sums.
const BLKPARSE: &str = "\
  8,0    0        1     0.000000000   697  Q   W 1000 + 8 [kjournald]
  8,0    0        2     0.000001829   697  G   W 1000 + 8 [kjournald]
  8,0    0        3     0.000002829   697  P   N [kjournald]
  8,0    1        1     0.000500000   812  Q  RA 5000 + 16 [mariadbd]
  8,0    0        4     0.000700000   697  D   W 1000 + 8 [kjournald]
  8,0    0        5     0.002000000     0  C   W 1000 + 8 [0]
  8,0    1        2     0.003000000   812  C  RA 5000 + 16 [0]
  8,0    0        6     0.004000000   697  Q FWS [kjournald]
  8,16   0        7     0.005000000   697  Q FWFSM 24 + 8 [kjournald]
  8,0    0        8     0.006000000   900  Q   D 0 + 2048 [fstrim]
  8,0    0        0     0.006100000     0  m   N cfq812S put_queue
CPU0 (8,0):
 Reads Queued:           1,        8KiB
";

fn read(text: &str) -> Trace {
    parse("t", text, None, false).unwrap()
}

fn entry(at_us: u64, op: TraceOp, start: u64, count: u64) -> (u64, TraceOp, u64, u64) {
    (at_us * 1000, op, start, count)
}

fn entries(trace: &Trace) -> Vec<(u64, TraceOp, u64, u64)> {
    trace.entries.iter().map(|e| (e.at.0, e.op, e.start.0, e.count.0)).collect()
}

#[test]
fn blkparse_gives_requests_as_they_were_queued() {
    let trace = read(BLKPARSE);
    assert_eq!(trace.format, Format::Blkparse);
    assert_eq!(
        entries(&trace),
        [
            entry(0, TraceOp::Write, 1000, 8),
            entry(500, TraceOp::Read, 5000, 16),
            entry(4000, TraceOp::Flush, 0, 0),
            // The second device lies behind the first, which needs 5016 sectors.
            entry(5000, TraceOp::Write, 6144 + 24, 8),
        ]
    );
    assert_eq!(trace.entries[0].service, Some(Nanos::from_millis(2)));
    assert_eq!(trace.entries[1].service, Some(Nanos::from_micros(2500)));
    assert_eq!(trace.entries[3].service, None);
    let flags: Vec<_> = trace.entries.iter().map(|entry| (entry.preflush, entry.fua)).collect();
    assert_eq!(flags, [(false, false), (false, false), (false, false), (true, true)]);
    assert_eq!((trace.processes, trace.others, trace.span), (2, 1, Sectors(6144 + 2048)));
}

#[test]
fn blkparse_without_queueing_gives_requests_as_they_were_issued() {
    let issued: String = BLKPARSE
        .lines()
        .filter(|line| line.contains(" D   W ") || line.contains(" C "))
        .map(|line| format!("{line}\n"))
        .collect();
    let trace = read(&issued);
    assert_eq!(entries(&trace), [entry(0, TraceOp::Write, 1000, 8)]);
    assert_eq!(trace.entries[0].service, Some(Nanos::from_micros(1300)));
}

#[test]
fn blkparse_letters_say_what_is_flushed_and_when() {
    let kinds = [
        ("W", false, false),
        ("WFS", false, true),
        ("FWS", true, false),
        ("FWFS", true, true),
        ("WBS", true, true),
        ("R", false, false),
    ];
    for (letters, preflush, fua) in kinds {
        let entry = read(&format!("8,0 0 1 0.0 1 Q {letters} 64 + 8 [a]\n")).entries[0];
        assert_eq!((entry.preflush, entry.fua), (preflush, fua), "{letters}");
        assert_eq!((entry.start.0, entry.count.0), (64, 8));
    }
    for letters in ["F", "FN", "FWS", "FF", "FFS"] {
        let text = format!("8,0 0 1 0.0 1 Q {letters} [a]\n8,0 0 2 0.25 0 C {letters} 0 [0]\n");
        let entry = read(&text).entries[0];
        assert_eq!((entry.op, entry.preflush, entry.fua), (TraceOp::Flush, false, false));
        assert_eq!(entry.service, Some(Nanos::from_millis(250)), "{letters}");
    }
}

#[test]
fn blkparse_completions_without_sectors_and_requests_that_are_issued_again() {
    let text = "\
# a comment
8,0 0 1 0.000 1 D W 64 + 8 [a]
8,0 0 2 0.001 1 R W 64 + 8 [0]
8,0 0 3 0.002 1 D W 64 + 8 [a]
8,0 0 4 0.003 0 C W 64 [0]
8,0 0 5 0.004 1 D W 64 + 8 [a]
";
    let trace = read(text);
    assert_eq!(trace.format, Format::Blkparse);
    assert_eq!(
        entries(&trace),
        [entry(0, TraceOp::Write, 64, 8), entry(4000, TraceOp::Write, 64, 8)]
    );
    assert_eq!(trace.entries[0].service, Some(Nanos::from_millis(3)));
}

#[test]
fn a_comment_decides_no_format() {
    let text = "# collected on Monday\n\nfio version 3 iolog\n16 /a add\n141 /a read 4096 4096\n";
    assert_eq!(read(text).format, Format::Fio);
}

#[test]
fn a_clock_that_was_set_is_counted_and_leaves_no_gap() {
    let text = "5.0 0 100 8 1\n1e11 0 200 8 1\n7.0 0 300 8 1\n";
    let trace = read(text);
    assert_eq!((trace.clock_steps, trace.entries.last().unwrap().at), (1, Nanos::from_millis(2)));
    assert_eq!(read(BLKPARSE).clock_steps, 0);
}

#[test]
fn fio_has_the_time_in_waits_or_in_timestamps() {
    let two = "fio version 2 iolog\n/a add\n/a open\n/a read 4096 8192\n/a wait 50 0\n\
               /a wait 2000 0\n/a write 0 512\n/a datasync 0 0\n/a trim 0 4096\n/a close\n";
    let trace = read(two);
    assert_eq!(
        entries(&trace),
        [
            entry(0, TraceOp::Read, 8, 16),
            entry(2000, TraceOp::Write, 0, 1),
            entry(2000, TraceOp::Flush, 0, 0),
        ]
    );
    assert_eq!(trace.others, 1);
    let three = "fio version 3 iolog\n16 /a add\n135 /a open\n141 /a read 249856 4096\n\
                 2658 /b write 0 4096\n2700 /a close\n";
    let trace = read(three);
    let second = 496u64.next_multiple_of(2048);
    assert_eq!(
        entries(&trace),
        [entry(0, TraceOp::Read, 488, 8), entry(2517, TraceOp::Write, second, 8)]
    );
}

#[test]
fn msr_and_disksim() {
    let msr = "128166372003061629,hm,1,Read,383496192,32768,413\n\
               128166372016382155,hm,1,Write,2822144,4096,1000\n";
    let trace = read(msr);
    assert_eq!(trace.format, Format::Msr);
    let (first, second) = (trace.entries[0], trace.entries[1]);
    assert_eq!((first.start, first.count), (Sectors(749_016), Sectors(64)));
    assert_eq!((first.op, second.op), (TraceOp::Read, TraceOp::Write));
    assert_eq!(second.at, Nanos(13_320_526 * 100));
    assert_eq!(second.service, Some(Nanos::from_micros(100)));

    let trace = read("0.5 0 100 8 1\n1.75 0 300 16 0\n2.0 1 5 1 3\n");
    assert_eq!(trace.format, Format::DiskSim);
    assert_eq!(
        entries(&trace),
        [
            entry(0, TraceOp::Read, 100, 8),
            entry(1250, TraceOp::Write, 300, 16),
            entry(1500, TraceOp::Read, 2048 + 5, 1),
        ]
    );
}

#[test]
fn a_broken_line_is_an_error_or_skipped_and_counted() {
    for (text, line, what) in [
        (format!("{BLKPARSE}x\n").replacen("1000 + 8", "1000 - 8", 1), 1, "sector + sectors"),
        ("fio version 2 iolog\n/a read 100 4096\n".to_owned(), 2, "multiple of 512"),
        ("fio version 3 iolog\nsoon /a read 0 4096\n".to_owned(), 2, "'soon'"),
        ("1,hm,1,Read,0,512,5\n2,hm,1,Erase,0,512,5\n".to_owned(), 2, "'erase'"),
        ("0.5 0 100 8 1\n0.6 0 100 8\n".to_owned(), 2, "found 4"),
        ("what is this\n".to_owned(), 1, "no trace format"),
        ("fio version 3 iolog\n16 /a add\n".to_owned(), 2, "no requests"),
    ] {
        let error = parse("t.trace", &text, None, false).unwrap_err().to_string();
        let place = format!("t.trace, line {line}: ");
        assert!(error.starts_with(&place) && error.contains(what), "{error}");
    }
    let text = "0.5 0 100 8 1\n0.6 0 100 8\n0.7 0 x 8 1\n0.8 0 200 8 0\n";
    let trace = parse("t", text, None, true).unwrap();
    assert_eq!((trace.entries.len(), trace.bad_lines), (2, 2));
    assert!(parse("t", text, Some(Format::Msr), true).is_err());
    assert!("pcap".parse::<Format>().unwrap_err().to_string().contains("blkparse"));
}

#[test]
fn a_trace_cut_anywhere_is_read_or_refused() {
    for end in 0..BLKPARSE.len() {
        let _ = parse("t", &BLKPARSE[..end], None, false);
    }
}

#[test]
fn more_lost_events_than_can_be_counted_are_the_most_that_can() {
    let event = "fio 1 [000] 1.0: block:block_bio_queue: 8,0 WS 1000 + 8 [fio]\n";
    let lost = format!("CPU:1 [LOST {} EVENTS]\n", u64::MAX);
    let trace = parse("t", &format!("{event}{lost}{lost}"), None, false).unwrap();
    assert_eq!(trace.lost, u64::MAX);
}
