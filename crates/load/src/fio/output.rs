//! What fio prints with `--output-format=json+`: one document a second with counts so far, the last
//! at the end.

use crate::bank::Tally;
use crate::error::FioProblem;
use crate::spec::LoadSpec;
use record::{
    ClientShare, GeneratorCost, Histogram, JobMeasurement, Measurement, OperationMeasurement,
    Second, SharePermille,
};
use serde::Deserialize;
use std::{
    collections::BTreeMap,
    io::{BufRead, BufReader, Read},
};
use units::{Bytes, Nanos};
use workload::Job;

/// One report.
#[derive(Debug, Deserialize)]
pub(crate) struct Document {
    jobs: Vec<Client>,
}

/// fio's "job": one of our clients.
#[derive(Debug, Deserialize)]
struct Client {
    jobname: String,
    error: i32,
    /// Milliseconds.
    job_runtime: u64,
    /// Percent of the runtime.
    usr_cpu: f64,
    sys_cpu: f64,
    read: Direction,
    write: Direction,
    sync: Syncs,
}

#[derive(Debug, Deserialize)]
struct Direction {
    io_bytes: u64,
    total_ios: u64,
    lat_ns: Latency,
}

#[derive(Debug, Deserialize)]
struct Syncs {
    lat_ns: Latency,
}

#[derive(Debug, Deserialize)]
struct Latency {
    #[serde(rename = "N")]
    count: u64,
    /// Nanoseconds (as text, as JSON's keys are) to count.
    #[serde(default)]
    bins: BTreeMap<String, u64>,
}

impl Latency {
    fn bins(&self) -> impl Iterator<Item = (Nanos, u64)> + '_ {
        self.bins.iter().filter_map(|(ns, count)| Some((Nanos(ns.parse().ok()?), *count)))
    }
}

/// Documents from a stream in which fio mixes them with remarks.
pub(crate) struct Reader<R>(std::io::Lines<BufReader<R>>);

impl<R: Read> Reader<R> {
    pub fn new(from: R) -> Self {
        Reader(BufReader::new(from).lines())
    }
}

impl<R: Read> Iterator for Reader<R> {
    type Item = Document;

    /// A document begins with a line `{` and ends with a line `}`; what does not parse is skipped.
    fn next(&mut self) -> Option<Document> {
        loop {
            let mut text = String::new();
            for line in self.0.by_ref() {
                let line = line.ok()?;
                if line == "{" {
                    text.clear();
                }
                text.push_str(&line);
                text.push('\n');
                if line == "}" {
                    break;
                }
            }
            if text.is_empty() {
                return None;
            }
            if let Ok(document) = serde_json::from_str(&text) {
                return Some(document);
            }
        }
    }
}

impl Document {
    fn clients<'a>(&'a self, role: &'a str) -> impl Iterator<Item = &'a Client> {
        self.jobs.iter().filter(move |client| client.jobname == role)
    }

    fn reads_and_writes(&self) -> (u64, u64) {
        self.clients("measured").fold((0, 0), |(reads, writes), client| {
            (reads + client.read.total_ios, writes + client.write.total_ios)
        })
    }

    /// The time that its counts speak of.
    pub fn runtime(&self) -> Nanos {
        let longest = self.clients("measured").map(|client| client.job_runtime).max();
        Nanos::from_millis(longest.unwrap_or(0))
    }

    fn tally(&self) -> Tally {
        let mut tally = Tally::new();
        for client in self.clients("measured") {
            for (latency, count) in client.read.lat_ns.bins().chain(client.write.lat_ns.bins()) {
                tally.record_n(latency, count);
            }
        }
        tally
    }

    /// What was done since `before`, a report from which this one counts on; `None` when no time
    /// has passed.
    pub fn second_since(&self, before: Option<&Document>) -> Option<Second> {
        let (reads, writes) = self.reads_and_writes();
        let (reads_before, writes_before) = before.map_or((0, 0), Document::reads_and_writes);
        let (reads, writes) =
            (reads.saturating_sub(reads_before), writes.saturating_sub(writes_before));
        let (from, to) = (before.map_or(Nanos::ZERO, Document::runtime), self.runtime());
        // The last report repeats the one before it, some milliseconds later.
        if to.saturating_sub(from) < Nanos::from_millis(50) {
            return None;
        }
        let bytes = |document: &Document| -> u64 {
            document.clients("measured").map(|c| c.read.io_bytes + c.write.io_bytes).sum()
        };
        let latency = match before {
            Some(before) => self.tally().since(&before.tally()),
            None => self.tally(),
        };
        Some(Second {
            at: to.as_secs_f64(),
            reads,
            writes,
            transactions: 0,
            bytes: Bytes(bytes(self).saturating_sub(before.map_or(0, bytes))),
            p50: latency.quantile(0.5),
            p99: latency.quantile(0.99),
            max: latency.quantile(1.0),
        })
    }

    /// What made fio give a job up.
    pub fn failure(&self) -> Option<FioProblem> {
        let failed = self.jobs.iter().find(|client| client.error != 0)?;
        Some(FioProblem::JobStopped { role: failed.jobname.clone(), errno: failed.error })
    }

    /// The last report as a measurement, or what is wrong with it.
    pub fn measurement(&self, spec: &LoadSpec) -> Result<Measurement, FioProblem> {
        if let Some(failure) = self.failure() {
            return Err(failure);
        }
        let job = measured_job(self.clients("measured"));
        if job.operations() == 0 {
            return Err(FioProblem::NoOperation);
        }
        refuse_short(&job, &spec.workload.job)?;
        let span = self.runtime();
        Ok(Measurement {
            span,
            job,
            background: spec
                .workload
                .background
                .as_ref()
                .map(|_| measured_job(self.clients("background"))),
            generator: self.cost(),
            ..Measurement::default()
        })
    }

    fn cost(&self) -> GeneratorCost {
        let mut cost = GeneratorCost { threads: self.jobs.len() as u32, ..Default::default() };
        for client in &self.jobs {
            let part =
                |percent: f64| Nanos::from_millis_f64(client.job_runtime as f64 * percent / 100.0);
            cost.user += part(client.usr_cpu);
            cost.system += part(client.sys_cpu);
            let share = SharePermille(((client.usr_cpu + client.sys_cpu) * 10.0).round() as u32);
            cost.busiest = cost.busiest.max(share);
        }
        cost
    }
}

/// fio counts a read that moved nothing, as beyond the end of a device that shrank or disappeared, as
/// an operation: seen with 3.33, half a million a second from a device that was gone. The few by which
/// its counts differ otherwise were in flight when the warm-up ended.
fn refuse_short(measured: &JobMeasurement, job: &Job) -> Result<(), FioProblem> {
    let whole = measured.bytes().0 / job.block_size.0;
    let in_flight = 2 * u64::from(job.clients) * u64::from(job.depth);
    match measured.operations().saturating_sub(whole) {
        short if short > in_flight => Err(FioProblem::Short { count: short }),
        _ => Ok(()),
    }
}

fn measured_job<'a>(clients: impl Iterator<Item = &'a Client>) -> JobMeasurement {
    let mut job = JobMeasurement::default();
    for client in clients {
        add(&mut job.reads, &client.read);
        add(&mut job.writes, &client.write);
        job.syncs.operations += client.sync.lat_ns.count;
        job.syncs.service.merge(&Histogram::from_buckets(client.sync.lat_ns.bins()));
        job.clients.push(ClientShare {
            operations: client.read.total_ios + client.write.total_ios,
            bytes: Bytes(client.read.io_bytes + client.write.io_bytes),
        });
    }
    job
}

fn add(to: &mut OperationMeasurement, direction: &Direction) {
    to.operations += direction.total_ios;
    to.bytes = to.bytes + Bytes(direction.io_bytes);
    to.service.merge(&Histogram::from_buckets(direction.lat_ns.bins()));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn documents_are_found_among_remarks() {
        let text = "note: something\n{\n\"jobs\": []\n}\nfio: more\n{\n\"jobs\": []\n}\n{\ncut";
        assert_eq!(Reader::new(text.as_bytes()).count(), 2);
    }
}
