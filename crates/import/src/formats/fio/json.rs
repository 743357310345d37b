//! fio's JSON and JSON+.

use super::{Job, pattern, pieces};
use crate::{
    Conditions, Output, Piece, PieceKind,
    formats::{Format, Line, Reading, quoted},
    json::{self, Json},
    text::{bytes, whole},
};
use record::{Doubt, Quantity};
use std::collections::BTreeMap;
use units::Nanos;

/// What every object of fio has.
const VERSION: &str = "\"fio version\"";

/// An object alone on a line; what it is of is seen when it is read.
pub(super) fn begins(line: &str) -> bool {
    let line = line.trim();
    line == "{" || line.starts_with("{\"fio version\"") || line.starts_with("{ \"fio version\"")
}

pub(super) fn read(lines: &[Line<'_>]) -> Reading {
    let nothing = |lines| Reading { lines, pieces: Vec::new() };
    // Objects of other programs begin in the same way.
    if !lines.iter().take(4).any(|line| line.text.contains(VERSION)) {
        return nothing(1);
    }
    // What begins anew ends an object that was cut.
    let next = lines.iter().skip(4).position(|line| line.text.contains(VERSION));
    let end = next.map_or(lines.len(), |place| place + 3);
    let Some((object, used)) = json::object(&lines[..end]) else {
        return Reading { lines: end, pieces: vec![broken(lines[0])] };
    };
    let version = object.get("fio version").and_then(Json::text).unwrap_or_default();
    let Some(Json::List(jobs)) = object.get("jobs").or_else(|| object.get("client_stats")) else {
        return nothing(used);
    };
    let begins = lines[..used]
        .iter()
        .filter(|line| line.text.contains("\"jobname\""))
        .map(|line| line.number)
        .collect();
    let part = Part { lines: &lines[..used], object: &object, version, begins };
    let jobs = jobs
        .iter()
        .enumerate()
        // With --client there is one of all clients together, which counts every job again.
        .filter(|(_, job)| job.get("jobname").and_then(Json::text) != Some("All clients"))
        .map(|(place, job)| part.job(place, job, jobs))
        .collect();
    let tool = format!("fio {}", version.trim_start_matches("fio-"));
    Reading { lines: used, pieces: pieces(jobs, tool.trim(), &lines[..used], 10.0) }
}

/// An object that ends in the middle.
fn broken(line: Line<'_>) -> Piece {
    let mut output = Output::default();
    output.conditions.benchmark = "job".to_owned();
    output.doubts.push(Doubt::Incomplete { missing: "the end of the JSON object".to_owned() });
    output.failure = Some(line.quoted());
    let kind = PieceKind::Run(Box::new(output));
    let (first, last) = (line.number, line.number);
    Piece { format: Format::Fio, tool: "fio".to_owned(), first, last, kind }
}

struct Part<'a> {
    lines: &'a [Line<'a>],
    object: &'a Json,
    version: &'a str,
    /// The lines on which jobs begin.
    begins: Vec<u64>,
}

/// Fewer samples of the bandwidth have a mean in name only.
const MIN_BANDWIDTH_SAMPLES: f64 = 10.0;

impl Part<'_> {
    /// fio 2 has KiB and µs without saying so; fio 3 says.
    fn is_old(&self) -> bool {
        self.version.trim_start_matches("fio-").starts_with(['1', '2'])
    }

    /// `all` are the jobs of the object.
    fn job(&self, place: usize, job: &Json, all: &[Json]) -> Job {
        let mut output = Output { conditions: self.conditions(job), ..Output::default() };
        let is_alone = all.len() == 1;
        // Each of several of a name is one; a single one stands for all with group_reporting.
        let same = |other: &&Json| {
            ["jobname", "groupid", "hostname"].iter().all(|name| job.get(name) == other.get(name))
        };
        if all.iter().filter(same).count() > 1 {
            output.conditions.clients = Some(1);
        }
        let mut bins = BTreeMap::new();
        let begin = self.begins.get(place).copied().unwrap_or(self.lines[0].number);
        if let Some(code) = job.number("error").filter(|code| *code != 0.0) {
            let at = self.line_after(begin, "\"error\"", 0);
            let mut quoted = quoted(self.lines, at);
            quoted.text.push_str(&format!(" ({code})"));
            output.failure = Some(quoted);
        }
        for subject in ["read", "write", "trim", "mixed"] {
            if let Some(group) = job.get(subject) {
                let at = self.line_after(begin, &format!("\"{subject}\""), 0);
                self.group(&mut output, subject, group, at, is_alone);
                bins.extend(bins_of(subject, group));
            }
        }
        if let Some(sync) = job.get("sync") {
            let at = self.line_after(begin, "\"sync\"", 0);
            if let Some(count) = sync.number("total_ios").filter(|count| *count > 0.0) {
                output.add("fsync", Quantity::Count, count, at);
            }
            if let Some(values) = sync.get("lat_ns") {
                latency(&mut output, "fsync", values, 1.0, at);
            }
        }
        self.doubts(&mut output, job, begin);
        let first = self.lines.first().map_or(0, |line| line.number);
        let last = self.lines.last().map_or(0, |line| line.number);
        let group = job.number("groupid").unwrap_or_default() as u64;
        Job { output, group: (0, group), bins, first, last }
    }

    fn conditions(&self, job: &Json) -> Conditions {
        let option = |name: &str| {
            [job.get("job options"), self.object.get("global options")]
                .into_iter()
                .flatten()
                .find_map(|options| options.get(name)?.text())
        };
        let read_percent = option("rwmixread").and_then(whole).unwrap_or(50).min(100) as u8;
        let word = option("rw").or(option("readwrite"));
        let pattern = word.and_then(|it| pattern(it, read_percent));
        let named = pattern.map(|pattern| pattern.to_string()).or(word.map(str::to_owned));
        // Of several sizes none is that of an operation.
        let one_size = |it: &str| !it.contains(['-', ':', '/', ',']);
        let size = option("bs").or(option("blocksize")).filter(|it| one_size(it));
        let is_direct = match option("buffered") {
            Some(word) => Some(word == "0"),
            // fio's default, where it lists what was asked for.
            None => match option("direct") {
                Some(word) => Some(word != "0"),
                None => job.get("job options").map(|_| false),
            },
        };
        let mut others = vec![format!("ioengine={}", option("ioengine").unwrap_or("psync"))];
        others.extend(is_direct.filter(|is| *is).map(|_| "direct=1".to_owned()));
        for name in OTHERS {
            let said = option(name).filter(|value| !matches!(*value, "0" | "none"));
            others.extend(said.map(|value| format!("{name}={value}")));
        }
        Conditions {
            benchmark: named.unwrap_or_default(),
            clients: option("numjobs").and_then(whole),
            block_size: size.and_then(bytes).map(|it| it as u64),
            depth: option("iodepth").and_then(whole),
            direct: is_direct,
            others,
            size: option("size").and_then(bytes).map(|it| it as u64),
            pattern,
            name: job.get("jobname").and_then(Json::text).map(str::to_owned),
            ..Conditions::default()
        }
    }

    fn group(&self, output: &mut Output, subject: &str, group: &Json, at: u64, is_alone: bool) {
        let operations = group.number("total_ios").unwrap_or(0.0);
        let rate = group.number("iops").unwrap_or(0.0);
        if operations == 0.0 && rate == 0.0 {
            return;
        }
        let at_key = |name: &str| self.line_after(at, &format!("\"{name}\""), 0);
        output.add(subject, Quantity::Count, operations, at_key("total_ios"));
        output.add(subject, Quantity::Rate, rate, at_key("iops"));
        let unit = if self.is_old() { 1024.0 } else { 1.0 };
        if let Some(amount) = group.number("io_bytes") {
            output.add(subject, Quantity::Bytes, amount * unit, at_key("io_bytes"));
        }
        if let Some(bandwidth) = group.number("bw") {
            output.add(subject, Quantity::Bandwidth, bandwidth * 1024.0, at_key("bw"));
        }
        if let Some(runtime) = group.number("runtime") {
            output.seconds = Some(output.seconds.unwrap_or(0.0).max(runtime / 1e3));
            output.add(subject, Quantity::Seconds, runtime / 1e3, at_key("runtime"));
        }
        for (name, subject) in [
            ("clat", subject.to_owned()),
            ("slat", format!("{subject} slat")),
            ("lat", format!("{subject} lat")),
        ] {
            let line = at_key(name);
            if let Some(values) = group.get(&format!("{name}_ns")) {
                latency(
                    output,
                    &subject,
                    values,
                    1.0,
                    self.line_after(at, &format!("\"{name}_ns\""), 0),
                );
            } else if let Some(values) = group.get(name) {
                latency(output, &subject, values, 1e3, line);
            }
        }
        self.bandwidths(output, subject, group, at, is_alone);
    }

    /// Means of samples against the whole.
    fn bandwidths(
        &self,
        output: &mut Output,
        subject: &str,
        group: &Json,
        at: u64,
        is_alone: bool,
    ) {
        let Some(bandwidth) = output.figure(subject, &Quantity::Bandwidth).cloned() else { return };
        let line = |name: &str| self.line_after(at, &format!("\"{name}\""), 0);
        let kib = bandwidth.value / 1024.0;
        // fio takes a sample each half second: the mean of a few says nothing against the whole.
        if group.number("bw_samples").is_some_and(|samples| samples < MIN_BANDWIDTH_SAMPLES) {
            return;
        }
        if let Some(mean) = group.number("bw_mean")
            && mean > 0.0
            // Samples of the last second may be missing.
            && (mean / kib - 1.0).abs() > 0.2
        {
            output.doubts.push(Doubt::Contradiction {
                what: format!("bw_mean of {subject}s (KiB/s)"),
                stated: mean,
                computed: kib,
                at: quoted(self.lines, line("bw_mean")),
                against: quoted(self.lines, bandwidth.line),
            });
        }
        // Of several jobs each has a share of its group's.
        if let Some(share) = group.number("bw_agg").filter(|_| is_alone)
            && share > 0.0
            && !(80.0..=120.0).contains(&share)
        {
            output.doubts.push(Doubt::Contradiction {
                what: format!("bw_agg of {subject}s (percent of the group's bandwidth)"),
                stated: share,
                computed: 100.0,
                at: quoted(self.lines, line("bw_agg")),
                against: quoted(self.lines, bandwidth.line),
            });
        }
    }

    fn doubts(&self, output: &mut Output, job: &Json, begin: u64) {
        let mut repeated = Vec::new();
        job.repeated(&mut repeated);
        repeated.sort_by_key(|(_, times)| std::cmp::Reverse(*times));
        if let Some((name, times)) = repeated.into_iter().next() {
            output.doubts.push(Doubt::RepeatedName { name, times });
        }
        // A call of fsync counts as an operation there, and in no sum.
        let syncs = output.value("fsync", Quantity::Count).is_some()
            || output.conditions.others.iter().any(|it| it.contains("sync="));
        if let Some(Json::Object(levels)) = job.get("iodepth_level").filter(|_| !syncs) {
            let percent: f64 = levels.iter().filter_map(|(_, share)| share.as_number()).sum();
            if percent > 101.0 {
                let what = "iodepth_level".to_owned();
                output.doubts.push(Doubt::SharesAboveWhole { what, percent });
            }
        }
        if let (Some(elapsed), Some(seconds)) = (job.number("elapsed"), output.seconds)
            && elapsed > seconds * 1.02 + 2.0
            && self.object.get("disk_util").is_some()
        {
            output.doubts.push(Doubt::DeviceTimeDiffers {
                measured: Nanos::from_secs_f64(seconds),
                elapsed: Nanos::from_secs_f64(elapsed),
            });
        }
        self.disks(output, begin);
    }

    fn disks(&self, output: &mut Output, begin: u64) {
        let Some(Json::List(disks)) = self.object.get("disk_util") else { return };
        let mut requests: f64 = 0.0;
        for (place, disk) in disks.iter().enumerate() {
            let Some(name) = disk.get("name").and_then(Json::text) else { continue };
            let at = self.line_after(self.line_after(begin, "\"disk_util\"", 0), "\"name\"", place);
            let subject = format!("disk {name}");
            for column in ["read_ios", "write_ios", "read_merges", "write_merges", "util"] {
                if let Some(value) = disk.number(column) {
                    let quantity = Quantity::Column(column.replace('_', " "));
                    output.add(&subject, quantity, value, at);
                }
            }
            let ios =
                disk.number("read_ios").unwrap_or(0.0) + disk.number("write_ios").unwrap_or(0.0);
            requests = requests.max(ios);
        }
        let count = |subject| output.value(subject, Quantity::Count);
        let operations =
            count("mixed").unwrap_or_else(|| ["read", "write"].into_iter().filter_map(count).sum());
        if requests > 0.0 && operations > requests * 2.0 {
            output.doubts.push(Doubt::Merged { operations, requests });
        }
    }

    /// The line of the `skip`th place after line `from` where a name stands; `from` where there is none.
    fn line_after(&self, from: u64, name: &str, skip: usize) -> u64 {
        let begin = self.lines.partition_point(|line| line.number < from);
        let mut found = self.lines[begin..]
            .iter()
            .filter(|line| line.text.contains(name))
            .map(|line| line.number);
        found.nth(skip).unwrap_or(from)
    }
}

/// Options beside those that are conditions of their own, which change what is measured.
const OTHERS: [&str; 15] = [
    "sync",
    "fsync",
    "fdatasync",
    "sync_file_range",
    "end_fsync",
    "rate",
    "rate_iops",
    "rate_process",
    "thinktime",
    "latency_target",
    "hipri",
    "atomic",
    "percentage_random",
    "random_distribution",
    "zonemode",
];

/// How often each latency was seen: json+ has it.
fn bins_of(subject: &str, group: &Json) -> Option<(String, BTreeMap<u64, u64>)> {
    let Json::Object(bins) = group.get("clat_ns")?.get("bins")? else { return None };
    let bins = bins
        .iter()
        .filter_map(|(latency, count)| Some((latency.parse().ok()?, count.as_number()? as u64)));
    Some((subject.to_owned(), bins.collect()))
}

fn latency(output: &mut Output, subject: &str, values: &Json, unit: f64, line: u64) {
    // With gtod_reduce, disable_clat and the like none was measured, and all are printed as 0.
    let all_zero = || {
        let zero = |name: &str| values.number(name).is_none_or(|value| value == 0.0);
        ["max", "mean"].iter().all(|name| zero(name))
    };
    if values.number("N").map_or_else(all_zero, |count| count == 0.0) {
        return;
    }
    for (name, quantity) in [
        ("min", Quantity::LatencyMin),
        ("max", Quantity::LatencyMax),
        ("mean", Quantity::LatencyMean),
        ("stddev", Quantity::LatencyDeviation),
    ] {
        if let Some(value) = values.number(name) {
            output.add(subject, quantity, value * unit, line);
        }
    }
    let Some(Json::Object(percentiles)) = values.get("percentile") else { return };
    for (name, value) in percentiles {
        // Places that are not used are called 0.00.
        let percent = name.parse().ok().filter(|percent: &f64| *percent > 0.0 && *percent <= 100.0);
        if let (Some(percent), Some(value)) = (percent, value.as_number()) {
            let milli = (percent * 1000.0).round() as u32;
            output.add(subject, Quantity::Percentile(milli), value * unit, line);
        }
    }
}
