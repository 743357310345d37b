//! Doubts about what other programs printed.

use record::{CacheSign, Doubt, EditSign, Quoted};
use std::fmt::Write;

/// A doubt in a sentence, without a full stop.
pub(crate) fn doubt(doubt: &Doubt) -> String {
    match doubt {
        Doubt::Contradiction { what, stated, computed, at, against } => {
            let same = at == against;
            let place = match same {
                true => quote(at),
                false => format!("{} contradicts {}", quote(at), quote(against)),
            };
            format!("{what}: printed {}, computed {}; {place}", figure(*stated), figure(*computed))
        }
        Doubt::Misprint { stated, measured, at, against } => format!(
            "the text's own table is misprinted: it has {} where the output has {}; {} contradicts {}",
            figure(*stated),
            figure(*measured),
            quote(at),
            quote(against)
        ),
        Doubt::TooShort { length } => {
            format!("the run took {length}: far too short to say anything of steady work")
        }
        Doubt::Cache { sign: CacheSign::Latency { shortest }, at } => format!(
            "a cache answered, not the device: the shortest latency is {shortest}, and nothing asked \
             for direct I/O; {}",
            quote(at)
        ),
        Doubt::Cache { sign: CacheSign::FitsMemory { data, memory }, at } => format!(
            "a cache may have answered: {data} of data fit in {memory} of memory; {}",
            quote(at)
        ),
        Doubt::MixedLatencies { data, syncs } => format!(
            "latencies and \"events\" are of {data:.0} reads and writes and {syncs:.0} calls of fsync \
             together"
        ),
        Doubt::MoreSyncsThanWrites { syncs, writes } => format!(
            "there were more calls of fsync than writes ({} a second against {}): each round calls it \
             for every file",
            figure(*syncs),
            figure(*writes)
        ),
        Doubt::OnePercentile { percent } => format!(
            "of the distribution there is one percentile alone, the {percent}th: what is beyond it is \
             not known, and it is not comparable with another percentile"
        ),
        Doubt::NoPercentiles => {
            "there is a mean alone: nothing says how long the longest transactions took".to_owned()
        }
        Doubt::CoarsePercentiles => {
            "percentiles are the ends of wide buckets: they are approximate".to_owned()
        }
        Doubt::CappedLatency { at } => {
            format!("the program caps latencies at {at}: longer ones count as that")
        }
        Doubt::Impossible { what, at } => {
            format!("the {what} cannot have been measured and is left out; {}", quote(at))
        }
        Doubt::Edited { sign, at } => {
            let why = match sign {
                EditSign::GroupedDigits => "the program does not group digits",
                EditSign::TooExact => {
                    "mean latency and rate fit each other to the last digit, which measured ones do not"
                }
            };
            format!("this output was edited: {why}; {}", quote(at))
        }
        Doubt::JobsTogether { jobs, of_one } => {
            let percentiles = if *of_one {
                "; percentiles are those of one job alone (--group_reporting, or json+, has those of all)"
            } else {
                ""
            };
            format!("{jobs} jobs ran at the same time and are one run{percentiles}")
        }
        Doubt::TerseLines => "terse lines do not say whether they are of one run; what was run again is imported from a \
             file of its own"
            .to_owned(),
        Doubt::LatenciesOfOne { subject, percent } => {
            format!("latencies are those of {subject}s alone, {percent:.0} % of the operations")
        }
        Doubt::MixedGroup { mean, asked } => format!(
            "the figures are of jobs that were asked for different things: an operation moved {} on average, \
             and the job that is named was asked for {}",
            units::Bytes(mean.round() as u64),
            units::Bytes(*asked)
        ),
        Doubt::Cumulative { reports } => format!(
            "{reports} reports count from the beginning, not from the one before (fio \
             --status-interval): only the last is taken"
        ),
        Doubt::SinceBoot { at } => {
            format!(
                "the first report is taken for the mean since boot, as iostat prints it without -y, and is no sample; {}",
                quote(at)
            )
        }
        Doubt::Unsteady { low, high } => {
            format!("not steady: samples run from {} to {}", figure(*low), figure(*high))
        }
        Doubt::NotTpc => {
            "no tpmC of the TPC: think times and the limits of the specification are not checked"
                .to_owned()
        }
        Doubt::SmallScale { scale, clients } => format!(
            "scale {scale} with {clients} clients: they wait for one another's row of pgbench_branches, \
             not for storage"
        ),
        Doubt::Merged { operations, requests } => format!(
            "the device did {requests:.0} requests for {operations:.0} operations: neighbours were \
             merged, so that these are not random operations of this size"
        ),
        Doubt::DeviceTimeDiffers { measured, elapsed } => {
            format!("the device's figures cover {elapsed}, of which {measured} were measured")
        }
        Doubt::RepeatedName { name, times } => {
            format!("\"{name}\" stands {times} times in one object; the last one counts")
        }
        Doubt::SharesAboveWhole { what, percent } => {
            format!("shares of {what} add up to {percent:.2} %")
        }
        Doubt::FlushesCountedAsReads { device, flushes, queue } => format!(
            "the kernel counts each of the {flushes:.2} flushes a second of {device} as a read, too: its \
             reads are flushes, and its queue is {queue:.3} without counting them twice"
        ),
        Doubt::Stalls { device, queue, busy } => format!(
            "{device} has {queue:.2} requests waiting on average and is busy for {busy:.2} % of the \
             time: a few stalls of seconds, not load"
        ),
        Doubt::Errors { count, at } => {
            let what = if *count == 1 { "operation" } else { "operations" };
            format!("{count} {what} failed; {}", quote(at))
        }
        Doubt::MeanOfSamples { samples, left_out } => {
            let lines = if *samples == 1 { "line" } else { "lines" };
            let ending = match left_out {
                0 => String::new(),
                1 => "; one more is left out, when clients had begun to end".to_owned(),
                more => format!("; {more} more are left out, when clients had begun to end"),
            };
            format!(
                "the program's own totals are missing: the rate is the mean of {samples} interval {lines}{ending}"
            )
        }
        Doubt::Incomplete { missing } => {
            format!("{missing} is missing: the output is not complete")
        }
        Doubt::UnequalTimes { low, high } => format!(
            "kinds of transactions were counted over different times ({low:.1} to {high:.1} s): there \
             were few of them"
        ),
        Doubt::Unread { at } => format!("not read: {}", quote(at)),
    }
}

/// The line's number and its text, between marks that no output has.
fn quote(quoted: &Quoted) -> String {
    match quoted.text.is_empty() {
        true => format!("line {}", quoted.line),
        false => format!("line {} (`{}`)", quoted.line, quoted.text),
    }
}

/// As many digits as a figure of this size needs.
fn figure(value: f64) -> String {
    let mut text = String::new();
    let _ = match value.abs() {
        size if size >= 1e6 => write!(text, "{value:.0}"),
        size if size >= 10.0 => write!(text, "{value:.2}"),
        _ => write!(text, "{value:.3}"),
    };
    text
}
