//! What a text looks like that has no output which is read: the program, and what to give instead.

use crate::line::Line;

/// A mark of an output, its program, and what to give.
const KNOWN: &[(&str, &str)] = &[
    (
        "records out",
        "dd, which times one stream and no single write: fio with the same block size and sync=1 or direct=1 prints latencies",
    ),
    (
        "Compare file sync methods",
        "pg_test_fsync: spindle inspect FOLDER --sync measures the same, and says what it means",
    ),
    (
        "min/avg/max/mdev",
        "ioping: fio with rw=randread, iodepth=1 and --output-format=json prints what can be compared",
    ),
    (
        "Average number of seconds to run all queries",
        "mysqlslap, which prints times even where no query ran: sysbench prints what can be compared",
    ),
    ("Sequential Output", "bonnie++: fio prints what can be compared"),
    (
        "Run status group",
        "the sums at the end of fio's output: give the jobs' own lines, which stand above them",
    ),
    (
        "fsync/fdatasync/sync_file_range",
        "a part of fio's output: give all of it, from the job's first line",
    ),
    (
        "block_rq_issue",
        "a trace of block requests: spindle compare TARGET --replay FILE replays it",
    ),
    (
        "block_bio_queue",
        "a trace of block requests: spindle compare TARGET --replay FILE replays it",
    ),
    ("iolog", "a trace of fio: spindle compare TARGET --replay FILE replays it"),
];

/// `: line 3 looks like dd, …`; nothing where no line is known.
pub(crate) fn seen(lines: &[Line<'_>]) -> String {
    let found = lines.iter().find_map(|line| {
        let (_, what) = KNOWN.iter().find(|(mark, _)| line.text.contains(mark))?;
        Some(format!("; line {} looks like {what}", line.number))
    });
    found.unwrap_or_default()
}
