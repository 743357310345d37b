//! A plan that would measure here what an imported run claims: with repeats, in random order, and past the
//! page cache where the run was.

use crate::{Conditions, settings::scheduler_named};
use plan::{Factor, RawJob, RawLevel, RawPlan};
use record::Run;
use std::collections::BTreeMap;
use units::{Bytes, Nanos};
use workload::{DatabaseJob, SyncMode};

/// The largest scratch file that is proposed unasked.
const MAX_SIZE: Bytes = Bytes::from_gib(20);

/// A plan, and what of the run it leaves out.
#[derive(Clone, Debug, PartialEq)]
pub struct Proposal {
    /// The plan.
    pub plan: RawPlan,
    /// What it does not have.
    pub left_out: Vec<Unplanned>,
}

/// Why something of an imported run is not in its plan.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Unplanned {
    /// The kernels that have a scheduler are old; the level stands for its successor.
    OldScheduler {
        /// Its name.
        name: String,
        /// Today's.
        successor: String,
    },
    /// There are several benchmarks; a plan has one.
    OtherBenchmark {
        /// Its name.
        name: String,
    },
    /// Nothing says what the benchmark does.
    UnknownBenchmark {
        /// Its name.
        name: String,
    },
    /// A label says nothing that could be set.
    Label {
        /// It.
        name: String,
    },
    /// An option of the program that a plan has no word for.
    Option {
        /// As it was given.
        text: String,
    },
    /// The data are smaller than in the run.
    Smaller {
        /// In the run.
        was: Bytes,
        /// In the plan.
        is: Bytes,
    },
}

/// The plan of a run; `asked` is what was asked of its trials, in their order. `target` is where it would be
/// measured.
pub fn proposal(run: &Run, asked: &[Conditions], target: &str) -> Proposal {
    let mut left_out = Vec::new();
    let mut plan = RawPlan {
        target: Some(target.to_owned()),
        rounds: Some(8),
        measure: Some(measure(run)),
        ..RawPlan::default()
    };
    if let Some(first) = asked.first() {
        for other in asked.iter().filter(|it| it.benchmark != first.benchmark) {
            let name = other.benchmark.clone();
            let entry = Unplanned::OtherBenchmark { name };
            if !left_out.contains(&entry) {
                left_out.push(entry);
            }
        }
        work(&mut plan, first, &mut left_out);
    }
    plan.factors = factors(run, &mut left_out);
    Proposal { plan, left_out }
}

/// Repeats tell more than length: trials of half a minute at most.
fn measure(run: &Run) -> Nanos {
    run.plan.timing.measure.limit().min(Nanos::from_secs(30)).max(Nanos::from_secs(5))
}

fn work(plan: &mut RawPlan, asked: &Conditions, left_out: &mut Vec<Unplanned>) {
    let clients = asked.clients.map(|it| it.min(4096) as u32);
    if let Some(pattern) = asked.pattern {
        plan.job = RawJob {
            pattern: Some(pattern),
            block_size: asked.block_size.map(Bytes),
            clients,
            depth: asked.depth.map(|it| it.min(1024) as u32),
            ..RawJob::default()
        };
        options(&mut plan.job, asked, left_out);
        if let Some(was) = asked.size.map(Bytes) {
            let is = was.min(MAX_SIZE);
            if is < was {
                left_out.push(Unplanned::Smaller { was, is });
            }
            plan.size = Some(is);
        }
        return;
    }
    match database(asked) {
        Some(job) => {
            plan.job.clients = clients;
            plan.workload = Some(job);
        }
        None => {
            left_out.push(Unplanned::UnknownBenchmark { name: asked.benchmark.clone() });
        }
    }
}

/// Options of fio that a job has, too.
fn options(job: &mut RawJob, asked: &Conditions, left_out: &mut Vec<Unplanned>) {
    let mut sync: Vec<String> = Vec::new();
    sync.extend(asked.direct.filter(|direct| *direct).map(|_| "direct".to_owned()));
    for text in &asked.others {
        let known = match text.split_once('=') {
            // Spindle's own clients make the same calls.
            Some(("ioengine", "psync" | "sync" | "libaio" | "io_uring") | ("direct", _)) => true,
            Some((name @ ("fsync" | "fdatasync"), every)) => {
                sync.push(match every {
                    "1" => name.to_owned(),
                    every => format!("{name}:{every}"),
                });
                true
            }
            Some(("sync", "1" | "sync")) => {
                sync.push("osync".to_owned());
                true
            }
            Some(("sync", "dsync")) => {
                sync.push("odsync".to_owned());
                true
            }
            // Of each job; ours is of all.
            Some(("rate_iops", rate)) => {
                let of_all =
                    rate.parse::<f64>().ok().map(|it| it * asked.clients.unwrap_or(1) as f64);
                let rate = of_all.and_then(|rate| format!("fixed:{rate}").parse().ok());
                job.rate = rate;
                rate.is_some()
            }
            _ => false,
        };
        if !known {
            left_out.push(Unplanned::Option { text: text.clone() });
        }
    }
    job.sync = match sync.is_empty() {
        true => asked.direct.map(|_| SyncMode::BUFFERED),
        false => sync.join("+").parse().ok(),
    };
    if !sync.is_empty() && job.sync.is_none() {
        left_out.push(Unplanned::Option { text: sync.join(" and ") });
    }
}

/// The workload that does what a program's database test does.
fn database(asked: &Conditions) -> Option<DatabaseJob> {
    let words: Vec<&str> = asked.benchmark.split_whitespace().collect();
    let word = match words[..] {
        ["oltp_read_only"] | ["oltp", .., "read-only"] => "oltp_read_only".to_owned(),
        ["oltp_write_only"] => "oltp_write_only".to_owned(),
        ["oltp_read_write"] | ["oltp"] | ["database", "test"] | ["complex"] => {
            "oltp_read_write".to_owned()
        }
        ["TPC-C"] | ["TPROC-C"] => {
            let warehouses = asked.scale.unwrap_or(10).clamp(1, 1000);
            format!("tpcc,warehouses={warehouses}")
        }
        _ => return None,
    };
    let word = match asked.tables {
        Some((tables, rows)) if word.starts_with("oltp") => {
            format!("{word},tables={tables},rows={rows}")
        }
        _ => word,
    };
    word.parse().ok()
}

fn factors(run: &Run, left_out: &mut Vec<Unplanned>) -> BTreeMap<String, Vec<RawLevel>> {
    let mut factors = BTreeMap::new();
    for factor in run.plan.compared() {
        let mut levels: Vec<RawLevel> = Vec::new();
        for cell in &run.plan.cells {
            let Some(level) = cell.level(&factor) else { continue };
            let text = match &factor {
                Factor::Label => {
                    left_out.push(Unplanned::Label { name: level.0.clone() });
                    continue;
                }
                Factor::Scheduler => today(&level.0, left_out),
                _ => level.0.clone(),
            };
            let level = text.parse().map_or(RawLevel::Word(text), RawLevel::Number);
            if !levels.contains(&level) {
                levels.push(level);
            }
        }
        if !levels.is_empty() {
            factors.insert(factor.to_string(), levels);
        }
    }
    factors
}

/// The scheduler of today's kernels that took a scheduler's place.
fn today(name: &str, left_out: &mut Vec<Unplanned>) -> String {
    let successor = scheduler_named(name).and_then(|kind| kind.spec().successor);
    let Some(successor) = successor else { return name.to_owned() };
    let successor = successor.to_string();
    let entry = Unplanned::OldScheduler { name: name.to_owned(), successor: successor.clone() };
    if !left_out.contains(&entry) {
        left_out.push(entry);
    }
    successor
}
