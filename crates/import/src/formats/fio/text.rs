//! fio's normal output.

use super::{Job, pattern, pieces};
use crate::{
    Output, Piece,
    formats::{Format, Line, Reading},
    text::{bytes, field, number, number_with_unit, whole},
};
use record::{Doubt, ImportedFigure, Quantity};
use std::collections::BTreeMap;

/// `name: (g=0): rw=…`, `name: (groupid=0, jobs=1): err= 0: …`, `fio-3.33`; of a fragment a direction's first line.
pub(super) fn begins(line: &str) -> bool {
    let line = line.trim();
    let is_of_job = line.contains(": (g=") || line.contains(": (groupid=");
    version(line).is_some() || is_of_job || is_amounts(line)
}

/// `read: IOPS=20.5k, BW=80.2MiB/s (84.1MB/s)(768MiB/9568msec)`.
fn is_amounts(line: &str) -> bool {
    let rest = ["read:", "write:", "trim:"].iter().find_map(|name| line.strip_prefix(name));
    rest.is_some_and(|rest| rest.contains("IOPS=") && rest.contains("BW="))
}

fn version(line: &str) -> Option<&str> {
    let rest = line.strip_prefix("fio-").or_else(|| line.strip_prefix("fio "))?;
    let is_version = rest.starts_with(|c: char| c.is_ascii_digit()) && !rest.contains(' ');
    is_version.then_some(rest)
}

#[derive(Default)]
struct Asked {
    pattern: Option<workload::Pattern>,
    /// fio's own word for it.
    word: Option<String>,
    engine: Option<String>,
    block_size: Option<u64>,
    depth: Option<u64>,
    line: u64,
}

pub(super) fn read(lines: &[Line<'_>]) -> Reading {
    let mut reader = Reader::default();
    let mut used = 0;
    for line in lines {
        let text = line.text.trim();
        let is_other = !begins(text) && Format::ALL.iter().any(|format| format.begins(text));
        // After the sums of a run the next job's definition is of the next run.
        let is_next = reader.sums && (text.contains(": (g=") || version(text).is_some())
            || reader.is_fragment && (text.contains(": (g") || version(text).is_some());
        if used > 0 && (is_other || is_next) {
            break;
        }
        reader.line(line);
        used += 1;
    }
    let pieces = reader.finish(&lines[..used]);
    Reading { lines: used, pieces }
}

#[derive(Default)]
struct Reader {
    version: Option<String>,
    asked: BTreeMap<String, Asked>,
    jobs: Vec<Job>,
    /// How many reports have ended: with --status-interval jobs are printed again.
    reports: u64,
    /// The processes or threads of this report's jobs.
    processes: Vec<String>,
    /// What the lines are about: `read`, `write`, `trim`.
    subject: String,
    /// The unit of the percentiles that follow, in ns.
    percentile_unit: Option<f64>,
    /// The sums of all jobs have begun.
    sums: bool,
    disks: bool,
    /// The job's first line is missing.
    is_fragment: bool,
}

impl Reader {
    fn line(&mut self, line: &Line<'_>) {
        let text = line.text.trim();
        if let Some(found) = version(text) {
            self.version = Some(found.to_owned());
        } else if text.contains(": (g=") {
            self.definition(text, line.number);
        } else if text.contains(": (groupid=") {
            let process = text.split(" pid=").nth(1).and_then(|it| it.split(':').next());
            let process = process.unwrap_or_default().to_owned();
            if self.sums || self.processes.contains(&process) {
                (self.sums, self.disks) = (false, false);
                self.reports += 1;
                self.processes.clear();
            }
            self.processes.push(process);
            self.job(text, line);
        } else if text.starts_with("Run status group") {
            self.sums = true;
        } else if text.starts_with("Disk stats") {
            (self.sums, self.disks) = (true, true);
        } else if self.disks {
            self.disk(text, line.number);
        } else if text.starts_with("fio:") && self.jobs.is_empty() {
            // What went wrong before any job: told with the first.
        } else if self.jobs.is_empty() && is_amounts(text) {
            self.is_fragment = true;
            self.jobs.push(Job::of_fragment(line.number));
            self.of_job(text, line);
        } else if !self.sums && !self.jobs.is_empty() {
            self.of_job(text, line);
        }
    }

    /// `test: (g=0): rw=randwrite, bs=(R) 4096B-4096B, …, ioengine=libaio, iodepth=32`.
    fn definition(&mut self, text: &str, number: u64) {
        let Some((name, rest)) = text.split_once(": (g=") else { return };
        let value = |key: &str| {
            let at = rest.find(key)?;
            let before = rest[..at].chars().next_back();
            if before.is_some_and(|c| c.is_ascii_alphanumeric()) {
                return None;
            }
            rest[at + key.len()..].split([',', ' ']).find(|word| !word.is_empty())
        };
        let block = rest.find("bs=").map(|at| &rest[at + 3..]).and_then(|rest| {
            let rest = rest.strip_prefix("(R) ").unwrap_or(rest);
            let mut ends = rest.split([',', '/']).next()?.split('-');
            let (first, last) = (ends.next(), ends.next());
            // Of several sizes none is that of an operation.
            first.filter(|first| last.is_none_or(|last| last == *first)).and_then(bytes)
        });
        self.asked.insert(
            name.trim().to_owned(),
            Asked {
                pattern: value("rw=").and_then(|word| pattern(word, 50)),
                word: value("rw=").map(str::to_owned),
                engine: value("ioengine=").map(str::to_owned),
                block_size: block.map(|bytes| bytes as u64),
                depth: value("iodepth=").and_then(whole),
                line: number,
            },
        );
    }

    /// `test: (groupid=0, jobs=4): err= 0: pid=…`.
    fn job(&mut self, text: &str, line: &Line<'_>) {
        let Some((name, rest)) = text.split_once(": (groupid=") else { return };
        let mut output = Output::default();
        let name = name.trim();
        output.conditions.name = Some(name.to_owned());
        let jobs = rest.split("jobs=").nth(1).and_then(|it| it.split([')', ',']).next());
        output.conditions.clients = jobs.and_then(whole);
        let error = rest.split("err=").nth(1).and_then(|it| it.trim().split(':').next());
        if error
            .and_then(|it| number(it.split_whitespace().next()?))
            .is_some_and(|code| code != 0.0)
        {
            output.failure = Some(line.quoted());
        }
        let asked = self.asked.get(name).or_else(|| self.asked.values().next());
        let mut first = line.number;
        if let Some(asked) = asked {
            output.conditions.pattern = asked.pattern;
            output.conditions.block_size = asked.block_size;
            output.conditions.depth = asked.depth;
            output.conditions.benchmark = asked.word.clone().unwrap_or_default();
            output.conditions.others =
                asked.engine.iter().map(|engine| format!("ioengine={engine}")).collect();
            if self.jobs.is_empty() {
                first = asked.line;
            }
        }
        self.subject.clear();
        let group = rest.split([',', ')']).next().and_then(whole).unwrap_or_default();
        let (group, last) = ((self.reports, group), line.number);
        self.jobs.push(Job { output, group, bins: BTreeMap::new(), first, last });
    }

    fn of_job(&mut self, text: &str, line: &Line<'_>) {
        let Some(Job { output, last, .. }) = self.jobs.last_mut() else { return };
        let at = line.number;
        if text.starts_with('|') {
            let Some(unit) = self.percentile_unit else { return };
            for part in text.trim_start_matches('|').split(',') {
                let Some((name, value)) = part.split_once("th=") else { continue };
                let value = number(value.trim().trim_matches(['[', ']']).trim());
                if let (Some(percent), Some(value)) = (number(name.trim()), value)
                    && (0.0..=100.0).contains(&percent)
                {
                    let milli = (percent * 1000.0).round() as u32;
                    output.add(&self.subject, Quantity::Percentile(milli), value * unit, at);
                }
            }
            *last = at;
            return;
        }
        let Some((name, rest)) = field(text) else { return };
        match name {
            "read" | "write" | "trim" | "mixed" => {
                name.clone_into(&mut self.subject);
                amounts(output, name, rest, at);
            }
            _ if name.starts_with("clat percentiles") || name.starts_with("lat percentiles") => {
                // Both, where both are printed: the first is of completion.
                let seen = output.figures.iter().any(|figure| {
                    figure.subject == self.subject
                        && matches!(figure.quantity, Quantity::Percentile(_))
                });
                self.percentile_unit = if seen { None } else { unit_of(name) };
            }
            // `fsync/fdatasync/sync_file_range:` and its `sync percentiles (msec):`.
            "fsync/fdatasync/sync_file_range" => "fsync".clone_into(&mut self.subject),
            _ if name.starts_with("sync percentiles") => self.percentile_unit = unit_of(name),
            _ if name.contains("percentiles") => self.percentile_unit = None,
            _ if rest.contains("min=") && rest.contains("avg=") => {
                latencies(output, &self.subject, name, rest, at);
            }
            "IO depths" => {
                let shares = rest.split(',').filter_map(|part| {
                    number(part.split_once('=')?.1.trim().trim_end_matches('%'))
                });
                let percent: f64 = shares.sum();
                // A call of fsync counts as an operation there, and in no sum.
                let syncs = output.value("fsync", Quantity::LatencyMean).is_some();
                if percent > 101.0 && !syncs {
                    let what = "queue depths".to_owned();
                    output.doubts.push(Doubt::SharesAboveWhole { what, percent });
                }
            }
            "issued" | "issued rwt" | "issued rwts" => {
                let total = rest.split("total=").nth(1).and_then(|it| it.split_whitespace().next());
                // 2.x: `total=r=0/w=9374944/d=0`; 3.x: `total=0,9374944,0,0`.
                let parts = total.unwrap_or_default().split([',', '/']);
                let counts = parts.map(|it| it.trim_start_matches(|c: char| !c.is_ascii_digit()));
                for (subject, count) in ["read", "write"].into_iter().zip(counts) {
                    if let Some(count) = number(count).filter(|count| *count > 0.0) {
                        output.add(subject, Quantity::Count, count, at);
                    }
                }
            }
            _ => return,
        }
        *last = at;
    }

    /// `sda: ios=0/645585, merge=0/9682645, ticks=…, util=100.00%`.
    fn disk(&mut self, text: &str, at: u64) {
        let Some((device, rest)) = field(text) else { return };
        let Some(Job { output, last, .. }) = self.jobs.last_mut() else { return };
        let pair = |key: &str| {
            let value = rest.split(key).nth(1)?.split([',', ' ']).next()?;
            let (reads, writes) = value.split_once('/')?;
            Some((number(reads)?, number(writes)?))
        };
        let device = format!("disk {device}");
        for (key, names) in
            [("ios=", ["read ios", "write ios"]), ("merge=", ["read merges", "write merges"])]
        {
            if let Some((reads, writes)) = pair(key) {
                output.add(&device, Quantity::Column(names[0].to_owned()), reads, at);
                output.add(&device, Quantity::Column(names[1].to_owned()), writes, at);
            }
        }
        let util = rest.split("util=").nth(1).map(|it| it.trim_end_matches('%'));
        if let Some(util) = util.and_then(number) {
            output.add(&device, Quantity::Column("util".to_owned()), util, at);
            *last = at;
        }
    }

    fn finish(self, lines: &[Line<'_>]) -> Vec<Piece> {
        let tool = match &self.version {
            Some(version) => format!("fio {version}"),
            None => "fio".to_owned(),
        };
        let mut jobs = self.jobs;
        for Job { output, .. } in &mut jobs {
            let asked = &mut output.conditions;
            if let Some(pattern) = &mut asked.pattern {
                // The share of reads is printed nowhere.
                if (1..100).contains(&pattern.read_percent) {
                    pattern.read_percent = read_percent(&output.figures);
                }
                asked.benchmark = pattern.to_string();
            }
        }
        // Times have up to two decimals of their unit; counts above a thousand are cut to four digits.
        pieces(jobs, &tool, lines, 10_000.0)
    }
}

/// The share of reads among reads and writes, to the nearest five percent: a random draw comes near what was asked.
fn read_percent(figures: &[ImportedFigure]) -> u8 {
    let sum = |subject: &str| {
        let of = |quantity: Quantity| {
            figures.iter().find(|it| it.subject == subject && it.quantity == quantity)
        };
        of(Quantity::Count).or(of(Quantity::Rate)).map_or(0.0, |it| it.value)
    };
    let (reads, writes) = (sum("read"), sum("write"));
    if reads + writes > 0.0 { (20.0 * reads / (reads + writes)).round() as u8 * 5 } else { 50 }
}

/// `IOPS=15.6k, BW=61.0MiB/s (64.0MB/s)(35.8GiB/600008msec)`; 2.x: `io=37500272KB, bw=62499KB/s,
/// iops=15624, runtime=600008msec`.
fn amounts(output: &mut Output, subject: &str, rest: &str, at: u64) {
    let value = |keys: [&str; 2]| {
        keys.into_iter().find_map(|key| rest.split(key).nth(1)).map(|it| {
            it.split([',', '(', ' ', ';']).find(|word| !word.is_empty()).unwrap_or_default()
        })
    };
    if let Some(rate) = value(["IOPS=", "iops="]).and_then(thousands) {
        output.add(subject, Quantity::Rate, rate, at);
    }
    if let Some(bandwidth) = value(["BW=", "bw="]).and_then(bytes) {
        output.add(subject, Quantity::Bandwidth, bandwidth, at);
    }
    let (amount, time) = match rest.rsplit_once('(').and_then(|(_, last)| last.split_once('/')) {
        Some((amount, time)) if rest.contains("BW=") => (Some(amount), Some(time)),
        _ => (value(["io=", "io="]), value(["runtime=", "runt="])),
    };
    if let Some(amount) = amount.and_then(bytes) {
        output.add(subject, Quantity::Bytes, amount, at);
    }
    let time = time.and_then(|it| number_with_unit(it.split("msec").next()?.trim()));
    if let Some((milliseconds, _)) = time {
        let seconds = milliseconds / 1e3;
        output.seconds = Some(output.seconds.unwrap_or(0.0).max(seconds));
        output.add(subject, Quantity::Seconds, seconds, at);
    }
}

/// `clat (usec): min=964, max=261110, avg=8151.19, stdev=3262.83`.
fn latencies(output: &mut Output, subject: &str, name: &str, rest: &str, at: u64) {
    let kind = name.split_whitespace().next().unwrap_or_default();
    let Some(unit) = unit_of(name) else { return };
    let subject = match kind {
        "clat" => subject.to_owned(),
        "slat" | "lat" => format!("{subject} {kind}"),
        "sync" => "fsync".to_owned(),
        _ => return,
    };
    for part in rest.split(',') {
        let Some((key, value)) = part.split_once('=') else { continue };
        let Some(value) = thousands(value.trim()) else { continue };
        let quantity = match key.trim() {
            "min" => Quantity::LatencyMin,
            "max" => Quantity::LatencyMax,
            "avg" => Quantity::LatencyMean,
            "stdev" => Quantity::LatencyDeviation,
            _ => continue,
        };
        output.add(&subject, quantity, value * unit, at);
    }
}

/// The unit in parentheses, in ns.
fn unit_of(name: &str) -> Option<f64> {
    Some(match name.split('(').nth(1)?.split(')').next()? {
        "nsec" => 1.0,
        "usec" => 1e3,
        "msec" => 1e6,
        "sec" => 1e9,
        _ => return None,
    })
}

/// A number with fio's `k` and `m`, which are thousands here.
fn thousands(text: &str) -> Option<f64> {
    let (value, unit) = number_with_unit(text)?;
    Some(match unit {
        "" => value,
        "k" | "K" => value * 1e3,
        "m" | "M" => value * 1e6,
        _ => return None,
    })
}
