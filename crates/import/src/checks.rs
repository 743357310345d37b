//! What can be computed again is: figures of one output against one another.

use crate::{
    Output,
    line::{Line, quoted},
};
use record::{CacheSign, Doubt, ImportedFigure, Quantity};
use std::collections::BTreeSet;
use units::Nanos;

/// Two figures that differ by less are rounded differently, or were counted at slightly different moments.
const TOLERANCE: f64 = 0.01;

/// A measured part that is shorter says nothing of steady work, in seconds.
const TOO_SHORT_S: f64 = 5.0;

/// No storage device answers in less, in nanoseconds: persistent memory behind the block layer takes 1 to
/// 3 µs, the fastest flash 8 µs. sysbench prints what is shorter than 5 µs as 0.00 ms.
const SHORTEST_NS: f64 = 5_000.0;

/// Says that a figure contradicts what follows from another line, if it does. `rounding` is half of the last
/// digit that the program prints.
pub(crate) fn expect(
    output: &mut Output,
    lines: &[Line<'_>],
    what: &str,
    stated: &ImportedFigure,
    (computed, against): (f64, u64),
    rounding: f64,
) {
    let difference = (stated.value - computed).abs();
    let size = stated.value.abs().max(computed.abs());
    if computed.is_finite() && difference > size * TOLERANCE + rounding {
        output.doubts.push(Doubt::Contradiction {
            what: what.to_owned(),
            stated: stated.value,
            computed,
            at: quoted(lines, stated.line),
            against: quoted(lines, against),
        });
    }
}

/// The length of the run.
pub(crate) fn length(output: &mut Output) {
    if output.failure.is_none()
        && let Some(seconds) = output.seconds
        && seconds < TOO_SHORT_S
    {
        output.doubts.push(Doubt::TooShort { length: Nanos::from_secs_f64(seconds) });
    }
}

/// Latencies of every subject: the shortest, the mean, percentiles and the longest bound one another.
pub(crate) fn latencies(output: &mut Output, lines: &[Line<'_>], rounding: f64) {
    let subjects: BTreeSet<String> =
        output.figures.iter().map(|figure| figure.subject.clone()).collect();
    for subject in &subjects {
        let of = |quantity: Quantity| output.figure(subject, &quantity).cloned();
        let (min, mean, max) =
            (of(Quantity::LatencyMin), of(Quantity::LatencyMean), of(Quantity::LatencyMax));
        let mut percentiles: Vec<(u32, ImportedFigure)> = output
            .figures
            .iter()
            .filter(|figure| figure.subject == *subject)
            .filter_map(|figure| match figure.quantity {
                Quantity::Percentile(milli) => Some((milli, figure.clone())),
                _ => None,
            })
            .collect();
        percentiles.sort_by_key(|(milli, _)| *milli);
        let mut order = |what: &str, lower: &ImportedFigure, upper: &ImportedFigure| {
            // Buckets of percentiles are up to a few percent wide.
            if lower.value > upper.value * 1.05 + 2.0 * rounding {
                output.doubts.push(Doubt::Contradiction {
                    what: what.to_owned(),
                    stated: lower.value / 1e6,
                    computed: upper.value / 1e6,
                    at: quoted(lines, lower.line),
                    against: quoted(lines, upper.line),
                });
            }
        };
        if let (Some(min), Some(mean)) = (&min, &mean) {
            order("the shortest latency is above the mean (ms)", min, mean);
        }
        if let (Some(mean), Some(max)) = (&mean, &max) {
            order("the mean latency is above the longest (ms)", mean, max);
        }
        let falls = |pair: &&[(u32, ImportedFigure)]| {
            pair[0].1.value > pair[1].1.value * 1.05 + 2.0 * rounding
        };
        if let Some(pair) = percentiles.windows(2).find(falls) {
            order("a percentile is above a higher one (ms)", &pair[0].1, &pair[1].1);
        }
        let highest = percentiles.last();
        if let (Some((_, highest)), Some(max)) = (highest, &max) {
            order("a percentile is above the longest latency (ms)", highest, max);
        }
        let Some(mean) = mean else { continue };
        // What is not below a percentile is at least as long as it, and what is not above it at most as long. The one
        // that bounds the mean most speaks for all.
        let share_above = |milli: u32| 1.0 - f64::from(milli) / 100_000.0;
        let least = percentiles.iter().map(|(milli, percentile)| {
            let value = share_above(*milli) * percentile.value;
            ImportedFigure { value, ..percentile.clone() }
        });
        if let Some(least) = least.max_by(|a, b| a.value.total_cmp(&b.value)) {
            order("the mean latency is below what a percentile allows (ms)", &least, &mean);
        }
        let Some(max) = &max else { continue };
        let most = percentiles.iter().map(|(milli, percentile)| {
            let above = share_above(*milli);
            let value = (1.0 - above) * percentile.value + above * max.value;
            ImportedFigure { value, ..percentile.clone() }
        });
        if let Some(most) = most.min_by(|a, b| a.value.total_cmp(&b.value)) {
            order("the mean latency is above what a percentile allows (ms)", &mean, &most);
        }
    }
}

/// One percentile alone.
pub(crate) fn percentiles(output: &mut Output) {
    let all: BTreeSet<u32> = output
        .figures
        .iter()
        .filter_map(|figure| match figure.quantity {
            Quantity::Percentile(milli) => Some(milli),
            _ => None,
        })
        .collect();
    if let [milli] = all.into_iter().collect::<Vec<_>>()[..] {
        output.doubts.push(Doubt::OnePercentile { percent: f64::from(milli) / 1000.0 });
    }
}

/// Samples in between: lows and highs that are far apart.
pub(crate) fn steadiness(output: &mut Output) {
    let rates: Vec<f64> = output.samples.iter().map(|(_, rate)| *rate).collect();
    if rates.len() < 3 {
        return;
    }
    let (low, high) = rates
        .iter()
        .fold((f64::INFINITY, 0.0f64), |(low, high), rate| (low.min(*rate), high.max(*rate)));
    if high > low * 1.5 {
        output.doubts.push(Doubt::Unsteady { low, high });
    }
}

/// The sum of latencies, and the mean that it gives.
pub(crate) fn mean_of_sum(output: &mut Output, lines: &[Line<'_>], subject: &str, rounding: f64) {
    let of = |quantity: Quantity| output.figure(subject, &quantity).cloned();
    if let (Some(mean), Some(sum), Some(count)) =
        (of(Quantity::LatencyMean), of(Quantity::LatencySum), of(Quantity::Count))
        && count.value > 0.0
    {
        let computed = (sum.value / count.value / 1e6, sum.line);
        let mean = ImportedFigure { value: mean.value / 1e6, ..mean };
        expect(output, lines, "mean latency (ms)", &mean, computed, rounding / 1e6);
    }
}

/// A rate, and the count in the time of the run. Where that is the time that was asked for, the run may have
/// lasted longer by up to `late` seconds: clients see the end between two transactions.
pub(crate) fn rate_of_count(
    output: &mut Output,
    lines: &[Line<'_>],
    (subject, what): (&str, &str),
    late: f64,
) {
    let (Some(rate), Some(count), Some(seconds)) = (
        output.figure(subject, &Quantity::Rate).cloned(),
        output.figure(subject, &Quantity::Count).cloned(),
        output.seconds.filter(|seconds| *seconds > 0.0),
    ) else {
        return;
    };
    // `clamp` would panic if a text's figures made the bounds cross.
    let (least, most) = (count.value / (seconds + late), count.value / seconds);
    let computed = rate.value.max(least).min(most);
    expect(output, lines, what, &rate, (computed, count.line), 0.005);
}

/// A bandwidth in MiB/s, and the rate with the block size.
pub(crate) fn bandwidth_of_rate(output: &mut Output, lines: &[Line<'_>], subject: &str) {
    let (Some(bandwidth), Some(rate), Some(block)) = (
        output.figure(subject, &Quantity::Bandwidth).cloned(),
        output.figure(subject, &Quantity::Rate).cloned(),
        output.conditions.block_size,
    ) else {
        return;
    };
    let mib = f64::from(1 << 20);
    let stated = ImportedFigure { value: bandwidth.value / mib, ..bandwidth };
    let what = format!("MiB/s of {subject}s");
    let computed = rate.value * block as f64 / mib;
    expect(output, lines, &what, &stated, (computed, rate.line), 0.005);
}

/// All that can be said of an output of sysbench. `old`: its percentiles are of coarse buckets.
pub(crate) fn sysbench(output: &mut Output, lines: &[Line<'_>], old: bool) {
    length(output);
    for (subject, what) in [
        ("transactions", "transactions a second"),
        ("queries", "queries a second"),
        ("read/write requests", "read/write requests a second"),
        ("other operations", "other operations a second"),
        ("events", "events a second"),
    ] {
        rate_of_count(output, lines, (subject, what), 0.0);
    }
    for subject in ["read", "write"] {
        bandwidth_of_rate(output, lines, subject);
    }
    // 5 µs is half of the last digit of 0.01 ms.
    mean_of_sum(output, lines, "events", 5_000.0);
    events_of_threads(output, lines);
    old_requests(output, lines);
    queries(output, lines);
    latencies(output, lines, 5_000.0);
    let approximate = lines.iter().any(|line| line.text.trim().starts_with("approx."));
    if old || approximate {
        output.doubts.push(Doubt::CoarsePercentiles);
    }
    percentiles(output);
    sysbench_events(output);
    sysbench_cache(output, lines);
    steadiness(output);
}

fn events_of_threads(output: &mut Output, lines: &[Line<'_>]) {
    let (Some(events), Some(per_thread), Some(threads)) = (
        output.figure("events", &Quantity::Count).cloned(),
        output.figure("events", &Quantity::PerThread).cloned(),
        output.conditions.clients,
    ) else {
        return;
    };
    let computed = (per_thread.value * threads as f64, per_thread.line);
    expect(output, lines, "events of all threads", &events, computed, 0.5);
}

/// `Requests/sec` of versions before 1.0 against reads, writes and time.
fn old_requests(output: &mut Output, lines: &[Line<'_>]) {
    let count = |subject| output.figure(subject, &Quantity::Count).cloned();
    if let (Some(rate), Some(reads), Some(writes), Some(seconds)) = (
        output.figure("all", &Quantity::Rate).cloned(),
        count("read"),
        count("write"),
        output.seconds.filter(|seconds| *seconds > 0.0),
    ) {
        let computed = ((reads.value + writes.value) / seconds, reads.line);
        expect(output, lines, "requests a second", &rate, computed, 0.005);
    }
}

/// The sum of queries.
fn queries(output: &mut Output, lines: &[Line<'_>]) {
    let count = |subject| output.figure(subject, &Quantity::Count).cloned();
    if let (Some(all), Some(reads), Some(writes), Some(others)) =
        (count("queries"), count("queries read"), count("queries write"), count("queries other"))
    {
        let sum = reads.value + writes.value + others.value;
        expect(output, lines, "queries in all", &all, (sum, reads.line), 0.5);
    }
}

/// What sysbench's events are: 1.0 counts calls of fsync among them where there are few writes a call.
fn sysbench_events(output: &mut Output) {
    let rate = |subject| output.value(subject, Quantity::Rate);
    let (Some(reads), Some(writes), Some(syncs)) = (rate("read"), rate("write"), rate("fsync"))
    else {
        return;
    };
    if syncs > writes && writes > 0.0 {
        output.doubts.push(Doubt::MoreSyncsThanWrites { syncs, writes });
    }
    let events = output.value("events", Quantity::Count);
    if let (Some(events), Some(seconds)) = (events, output.seconds) {
        let near = |rate: f64| (rate * seconds / events - 1.0).abs() < TOLERANCE;
        if syncs > 0.0 && near(reads + writes + syncs) && !near(reads + writes) {
            let data = (reads + writes) * seconds;
            output.doubts.push(Doubt::MixedLatencies { data, syncs: syncs * seconds });
        }
    }
}

fn sysbench_cache(output: &mut Output, lines: &[Line<'_>]) {
    let is_file = output.conditions.benchmark.starts_with("fileio");
    let min = output.figure("events", &Quantity::LatencyMin);
    if let Some(min) = min
        && is_file
        && min.value < SHORTEST_NS
        && output.conditions.direct != Some(true)
        && output.value("events", Quantity::Count).is_some_and(|count| count > 0.0)
    {
        let sign = CacheSign::Latency { shortest: Nanos(min.value as u64) };
        let at = quoted(lines, min.line);
        output.doubts.push(Doubt::Cache { sign, at });
    }
}

/// A rate of fio: the bytes in the time, with its block size. Its normal output prints three digits.
pub(crate) fn rate_of_bytes(output: &mut Output, lines: &[Line<'_>], subject: &str) {
    let of = |quantity: Quantity| output.figure(subject, &quantity).cloned();
    let (Some(rate), Some(seconds)) = (of(Quantity::Rate), of(Quantity::Seconds)) else { return };
    let rate_and_time = rate.value > 0.0 && seconds.value > 0.0;
    if let Some(count) = of(Quantity::Count).filter(|count| rate_and_time && count.value > 0.0) {
        let computed = (count.value / seconds.value, count.line);
        expect(output, lines, &format!("{subject}s a second"), &rate, computed, 0.5);
    } else if let (Some(amount), Some(block)) = (of(Quantity::Bytes), output.conditions.block_size)
        && rate_and_time
    {
        let computed = (amount.value / block as f64 / seconds.value, amount.line);
        expect(output, lines, &format!("{subject}s a second"), &rate, computed, 1.0);
    }
}

/// A bandwidth of fio: the bytes in the time.
pub(crate) fn bandwidth_of_bytes(output: &mut Output, lines: &[Line<'_>], subject: &str) {
    let of = |quantity: Quantity| output.figure(subject, &quantity).cloned();
    if let (Some(bandwidth), Some(amount), Some(seconds)) =
        (of(Quantity::Bandwidth), of(Quantity::Bytes), of(Quantity::Seconds))
        && seconds.value > 0.0
    {
        let mib = f64::from(1 << 20);
        let stated = ImportedFigure { value: bandwidth.value / mib, ..bandwidth };
        let computed = (amount.value / seconds.value / mib, amount.line);
        expect(output, lines, &format!("MiB/s of {subject}s"), &stated, computed, 0.05);
    }
}

/// fio's total latency is that of submission and of completion.
pub(crate) fn latency_sum(output: &mut Output, lines: &[Line<'_>], subject: &str) {
    let mean = |subject: String| output.figure(&subject, &Quantity::LatencyMean).cloned();
    if let (Some(total), Some(submission), Some(completion)) =
        (mean(format!("{subject} lat")), mean(format!("{subject} slat")), mean(subject.to_owned()))
    {
        // What completes cannot take longer than the whole.
        if completion.value > 1.5 * total.value + 1e3 {
            let what = format!("completion latency of {subject}s");
            let at = quoted(lines, completion.line);
            output.doubts.push(Doubt::Impossible { what, at });
            let whole = format!("{subject} lat");
            output.figures.retain(|it| it.subject != subject || !it.quantity.is_latency());
            let totals: Vec<ImportedFigure> = output
                .figures
                .iter()
                .filter(|it| it.subject == whole && it.quantity.is_latency())
                .map(|it| ImportedFigure { subject: subject.to_owned(), ..it.clone() })
                .collect();
            output.figures.extend(totals);
            return;
        }
        let micros = |value: f64| value / 1e3;
        let stated = ImportedFigure { value: micros(total.value), ..total };
        let computed = (micros(submission.value + completion.value), completion.line);
        let what = format!("mean latency of {subject}s (µs)");
        expect(output, lines, &what, &stated, computed, 1.0);
    }
}

/// Where fio's histogram ends, in ns: the middle of its last bucket, which is 2²⁷ ns wide and ends at 2³⁴ ns; in 2.x
/// 2¹⁷ µs and 2²⁴ µs.
const ENDS_OF_FIO: [f64; 2] = [17_112_760_320.0, 16_711_680_000.0];

/// Percentiles of fio that are the end of its histogram, and no figures, are left out.
pub(crate) fn capped(output: &mut Output, subject: &str) {
    let max = output.value(subject, Quantity::LatencyMax);
    let end_of = |figure: &ImportedFigure| {
        let is_end = |end: &&f64| {
            // The last digit of milliseconds.
            (figure.value - **end).abs() < 1e6 && max.is_none_or(|max| max > **end + 1e6)
        };
        let is_of = figure.subject == subject && matches!(figure.quantity, Quantity::Percentile(_));
        ENDS_OF_FIO.iter().find(is_end).filter(|_| is_of)
    };
    if let Some(end) = output.figures.iter().find_map(end_of) {
        output.doubts.push(Doubt::CappedLatency { at: Nanos(*end as u64) });
        output.figures.retain(|figure| end_of(figure).is_none());
    }
}
