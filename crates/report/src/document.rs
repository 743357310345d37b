//! A run as one document: what the page shows and `report --json` prints. Its form is described by a JSON
//! schema, docs/reference/report.schema.json, from which the page's types are made.
//!
//! Times are milliseconds, rates a second, shares of 1, unless a name says otherwise. A figure that there is
//! none of is null.

mod cells;
mod course;
mod published;
mod together;

use crate::{imported, sentences, terminal, words};
use analysis::{Analysis, FindingKind, RunDiff, findings};
pub(crate) use cells::{Cell, Comparison, Condition};
use course::{Course, Requests, TrialPoint};
use published::Published;
use record::{EventLog, Run, RunState, WorldKind};
use serde::Serialize;
use std::collections::BTreeMap;
use together::Together;

/// The version of this form. It counts up when a field changes its meaning or goes.
pub const SCHEMA: u32 = 1;

/// What a page shows: one run, or two.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Pages {
    /// The runs.
    pub documents: Vec<Document>,
    /// What may be said of both; null of one.
    pub together: Option<Together>,
}

/// A run.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Document {
    /// [`SCHEMA`].
    pub schema: u32,
    /// Its name.
    pub name: String,
    /// When it started, in seconds since 1970.
    pub started_at: i64,
    /// The same in words.
    pub started: String,
    /// Whether all was done.
    pub complete: bool,
    /// `real`, `emulated`, `simulated` or `imported`.
    pub world: String,
    /// What the clients did, in one line.
    pub workload: String,
    /// How long and how often, in one line.
    pub timing: String,
    /// A ratio within 1 ± this counts as the same.
    pub margin: f64,
    /// What is counted as throughput: `operations` or `transactions`.
    pub unit: String,
    /// What to do, in sentences: one for all conditions whose answers are alike.
    pub answer: Vec<String>,
    /// The factors that vary.
    pub factors: Vec<Factor>,
    /// The conditions under which cells are compared.
    pub conditions: Vec<Condition>,
    /// All cells, in the order of the plan.
    pub cells: Vec<Cell>,
    /// Probable causes.
    pub findings: Vec<Finding>,
    /// What a reader must know of all figures.
    pub warnings: Vec<String>,
    /// What happened to the run as a whole.
    pub notes: Vec<String>,
    /// Where it was made: name and value.
    pub environment: Vec<(String, String)>,
    /// The device's settings before the run.
    pub settings: Vec<(String, String)>,
    /// What is known of the counters that cells and courses have.
    pub counters: BTreeMap<String, Counter>,
    /// Every trial, in the order in which they ran.
    pub trials: Vec<TrialPoint>,
    /// The course of one trial of each cell: that with the median throughput.
    pub courses: Vec<Course>,
    /// What others published, beside ours.
    pub published: Vec<Published>,
    /// Requests of simulated trials whose events were kept.
    pub requests: Vec<Requests>,
}

/// A factor.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Factor {
    /// Its name.
    pub name: String,
    /// `setting`, `choice` or `condition`.
    pub role: String,
    /// Its levels, in the order in which cells have them.
    pub levels: Vec<String>,
}

/// A probable cause.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Finding {
    /// The name of its page.
    pub id: String,
    /// The cells that show it.
    pub cells: Vec<usize>,
    /// A sentence.
    pub statement: String,
    /// The values that show it.
    pub evidence: String,
    /// What could prove it wrong.
    pub check: String,
    /// The counters in which it is seen.
    pub counters: Vec<String>,
}

/// What a counter counts.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Counter {
    /// The symbol of its unit.
    pub unit: String,
    /// What it counts.
    pub meaning: String,
}

/// What may be said of two runs, each with its analysis.
pub fn together(first: (&Run, &Analysis), second: (&Run, &Analysis)) -> Together {
    together::together(&RunDiff::of(first, second))
}

/// The document of a run; of one with several sessions, the first's.
pub fn document(run: &Run, analysis: &Analysis) -> Document {
    let environment = &run.environment;
    let shown = findings(run, analysis);
    let cells = cells::cells(run, analysis);
    let courses = course::courses(run);
    let mut counters: BTreeMap<String, Counter> = BTreeMap::new();
    let names = cells.iter().flat_map(|cell| cell.counters.keys());
    for name in names.chain(courses.iter().flat_map(|course| course.counters.keys())) {
        let known = counters::lookup(name).map(|(counter, _)| counter);
        counters.entry(name.clone()).or_insert_with(|| Counter {
            unit: known.map_or("", |it| it.unit.symbol()).to_owned(),
            meaning: known.map_or("counted by the server", |it| it.meaning).to_owned(),
        });
    }
    let transactions = analysis.groups.iter().any(|it| it.baseline.transactions.is_some());
    Document {
        schema: SCHEMA,
        name: run.name.clone(),
        started_at: run.started_at,
        started: words::date(run.started_at),
        complete: run.state == RunState::Done,
        world: environment.world.to_string(),
        workload: match environment.world {
            WorldKind::Imported => imported::workload(run),
            world => terminal::workload_line(&run.plan, world),
        },
        timing: match environment.world {
            WorldKind::Imported => imported::timing(run),
            _ => terminal::timing_line(&run.plan, run.rounds()),
        },
        margin: run.plan.margin,
        unit: if transactions { "transactions" } else { "operations" }.to_owned(),
        answer: answers(run, analysis),
        factors: factors(run),
        conditions: cells::conditions(run, analysis),
        findings: shown
            .iter()
            .map(|finding| {
                let text = sentences::finding(run, finding);
                Finding {
                    id: finding.kind.id().to_owned(),
                    cells: finding.cells.clone(),
                    statement: text.statement,
                    evidence: text.evidence,
                    check: text.check,
                    counters: seen_in(finding.kind),
                }
            })
            .collect(),
        cells,
        warnings: warnings(run),
        notes: notes(run),
        environment: place(run),
        settings: environment.settings.clone(),
        counters,
        trials: course::trials(run),
        courses,
        published: published::published(run, analysis),
        requests: Vec::new(),
    }
}

impl Document {
    /// With the requests of simulated trials, by cell: they are apart from the run, and large.
    pub fn with_requests(self, logs: &[(usize, EventLog)]) -> Document {
        let requests = logs.iter().map(|(cell, log)| course::requests(*cell, log)).collect();
        Document { requests, ..self }
    }
}

fn answers(run: &Run, analysis: &Analysis) -> Vec<String> {
    let screened = analysis.screening.iter().flat_map(|it| sentences::screening(&run.plan, it));
    screened.chain(sentences::answers(run, analysis).iter().map(|it| it.sentence())).collect()
}

fn factors(run: &Run) -> Vec<Factor> {
    let plan = &run.plan;
    let of = |factor: &plan::Factor| {
        let mut levels: Vec<String> = Vec::new();
        for cell in &plan.cells {
            let level = cell.level(factor).map(|level| level.0.clone());
            levels.extend(level.filter(|level| !levels.contains(level)));
        }
        let role = match factor.role() {
            plan::Role::HostSetting => "setting",
            plan::Role::Choice => "choice",
            plan::Role::Condition => "condition",
        };
        Factor { name: factor.to_string(), role: role.to_owned(), levels }
    };
    plan.factors.iter().map(of).collect()
}

fn warnings(run: &Run) -> Vec<String> {
    let caveats = run.environment.caveats.iter().map(sentences::caveat);
    caveats.chain(terminal::warnings(run)).chain(imported::doubts(run)).collect()
}

fn notes(run: &Run) -> Vec<String> {
    sentences::noted(&run.events).map(|event| sentences::event(&run.plan, event)).collect()
}

fn place(run: &Run) -> Vec<(String, String)> {
    let it = &run.environment;
    let mut all = vec![
        ("target".to_owned(), it.target.clone()),
        ("device".to_owned(), it.device.clone()),
        ("kernel".to_owned(), it.kernel.clone()),
    ];
    if it.world != WorldKind::Simulated {
        all.push(("host".to_owned(), it.hostname.clone()));
        all.push(("CPUs".to_owned(), format!("{} × {}", it.cpus, it.cpu)));
        all.push(("memory".to_owned(), units::Bytes(it.memory_bytes).to_string()));
    }
    all.push(("Spindle".to_owned(), it.spindle_version.clone()));
    all
}

/// The counters in which a finding is seen, for marks in their courses.
fn seen_in(kind: FindingKind) -> Vec<String> {
    let all: &[&counters::Counter] = match kind {
        FindingKind::BufferedDirect => {
            &[&counters::TARGET_CACHED, &counters::MEMORY_CACHED_GROWTH, &counters::CACHE_USED]
        }
        FindingKind::Cache => &[&counters::DEVICE_R_MB, &counters::DEVICE_W_MB],
        FindingKind::ColdDrives => &[&counters::SIM_BUSY_DRIVES, &counters::EMULATE_BUSY_DRIVES],
        FindingKind::CpuWait => &[&counters::CLIENTS_CPU_WAIT],
        FindingKind::FlushBound => &[&counters::DEVICE_F, &counters::DEVICE_F_AWAIT],
        FindingKind::HeldIdle => &[&counters::SIM_IDLE_WHILE_WAITING, &counters::EMULATE_DEPTH],
        FindingKind::LargerRequests => &[&counters::DEVICE_RAREQ_SZ, &counters::DEVICE_WAREQ_SZ],
        FindingKind::Merging => &[&counters::DEVICE_RRQM, &counters::DEVICE_WRQM],
        FindingKind::NoFreeRequest => &[&counters::URING_PUNTED, &counters::SIM_TIME_ASLEEP],
        FindingKind::ReadBeforeWrite => &[&counters::DEVICE_R],
        FindingKind::SchedulerCpu => &[&counters::CPU_SYSTEM, &counters::CPU_IDLE],
        FindingKind::Serialised => &[&counters::DEVICE_AQU_SZ],
        FindingKind::KeptTogether => &[&counters::SIM_SEQUENTIAL, &counters::ORDER_SEQUENTIAL],
        FindingKind::Sorting => &[&counters::SIM_SEEK, &counters::ORDER_SEEK],
        FindingKind::StolenCpu => &[&counters::CPU_STEAL],
        FindingKind::WritebackThrottled => &[&counters::WRITEBACK_THROTTLED],
        FindingKind::Drift
        | FindingKind::Generator
        | FindingKind::LatencyTrade
        | FindingKind::OrderEffect
        | FindingKind::RotationalFlag
        | FindingKind::StarvedClient
        | FindingKind::ThrottledHost
        | FindingKind::Unexplained
        | FindingKind::Unsteady => &[],
    };
    all.iter().map(|counter| counter.id.to_owned()).collect()
}

#[cfg(test)]
mod tests {
    /// The schema is a page of the reference, and what the page's types are made from.
    #[test]
    fn the_schema_is_as_the_document_is() {
        let schema = schemars::schema_for!(super::Pages);
        let text = format!("{}\n", serde_json::to_string_pretty(&schema).unwrap());
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/reference/report.schema.json");
        if std::env::var_os("SPINDLE_WRITE").is_some() {
            std::fs::write(path, &text).unwrap();
        }
        let written = std::fs::read_to_string(path).unwrap_or_default();
        assert!(written == text, "run SPINDLE_WRITE=1 cargo test -p report schema, then make page");
    }
}
