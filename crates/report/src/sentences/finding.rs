//! Findings: statement, evidence, and the check that could prove them wrong.

use analysis::{Evidence, Finding, FindingKind};
use record::Run;

/// A finding in words. `statement` is a sentence; `evidence` and `check` have no full stop.
pub(crate) struct FindingText {
    pub statement: String,
    pub evidence: String,
    pub check: String,
}

/// A finding in words.
pub(crate) fn finding(run: &Run, finding: &Finding) -> FindingText {
    let cells = list(&names(run, &finding.cells));
    FindingText {
        statement: statement(finding.kind, &cells),
        evidence: evidence(finding.evidence),
        check: check(finding.kind).to_owned(),
    }
}

fn statement(kind: FindingKind, cells: &str) -> String {
    match kind {
        FindingKind::Cache => format!(
            "Under {cells} a cache answered part of the operations: the figures are those of memory, \
             not of the device."
        ),
        FindingKind::CpuWait => format!(
            "Under {cells} clients waited for a CPU: latencies are longer than those of the storage."
        ),
        FindingKind::Generator => format!(
            "Under {cells} the load generator itself was near its limit: a faster setting may not \
             have shown."
        ),
        FindingKind::Merging => format!(
            "Under {cells} another share of the requests is merged than under the baseline, which \
             changes how many reach the device."
        ),
        FindingKind::NoFreeRequest => format!(
            "Under {cells} operations waited in io_uring's workers, most often for a free request \
             (nr_requests); such a wait can be long."
        ),
        FindingKind::ReadBeforeWrite => format!(
            "Under {cells} the device reads although the clients only write: blocks smaller than the \
             filesystem's are read before they are written, or metadata is fetched."
        ),
        FindingKind::StolenCpu => format!(
            "Under {cells} the hypervisor gave CPU time of this machine to others: latencies are \
             longer than those of the storage."
        ),
        FindingKind::Unsteady => format!(
            "Under {cells} trials had not settled when measuring began: the figures depend on how \
             long a trial lasts."
        ),
    }
}

fn evidence(evidence: Evidence) -> String {
    let percent = |share: f64| 100.0 * share;
    match evidence {
        Evidence::DeviceMoved { share } => format!(
            "the device moved as little as {:.0} % of the bytes that the clients asked for",
            percent(share)
        ),
        Evidence::CpuWait { waited_us, mean_latency_us } => format!(
            "up to {waited_us:.0} µs per operation ready to run without a CPU, out of a mean latency \
             of {mean_latency_us:.0} µs"
        ),
        Evidence::GeneratorBusy { share } => {
            format!("a generator thread was on a CPU for {:.0} % of the time", percent(share))
        }
        Evidence::Merged { cell, baseline } => format!(
            "merged requests (rrqm/s + wrqm/s): {:.0} %, baseline {:.0} %",
            percent(cell),
            percent(baseline)
        ),
        Evidence::Punted { share } => {
            format!("workers moved up to {:.0} % of the bytes", percent(share))
        }
        Evidence::ReadsPerWrite { ratio } => {
            format!("up to {ratio:.2} device reads for each write of a client")
        }
        Evidence::Stolen { percent } => {
            format!("up to {percent:.0} % of CPU time was stolen (%steal)")
        }
        Evidence::HalvesDiffer { change } => format!(
            "operations per second change by {:+.0} % from a trial's first half to its second",
            percent(change)
        ),
    }
}

fn check(kind: FindingKind) -> &'static str {
    match kind {
        FindingKind::Cache => {
            "repeat with --sync direct, a --size well above memory, or --page-cache: the share at the \
             device must rise to 100 %"
        }
        FindingKind::CpuWait => {
            "repeat with fewer --clients or a smaller --depths, or with less else on this machine: \
             latencies must fall by more than the storage's share"
        }
        FindingKind::Generator => {
            "repeat with more --clients at a smaller --depths: if throughput rises, the generator was \
             the limit"
        }
        FindingKind::Merging => {
            "repeat with merging off (queue/nomerges = 2) in both: a difference that stays has \
             another cause"
        }
        FindingKind::NoFreeRequest => {
            "repeat with a larger --queues, or with fewer operations outstanding (--clients times \
             --depths): the 99th percentile must fall"
        }
        FindingKind::ReadBeforeWrite => {
            "repeat with --block-sizes equal to the filesystem's block size, or --sync direct: the \
             reads must vanish"
        }
        FindingKind::StolenCpu => {
            "repeat at a quieter time, or on a machine of its own: latencies must fall"
        }
        FindingKind::Unsteady => "repeat with a longer --warmup: the change must shrink",
    }
}

/// The cells' labels, with their condition where there are several.
fn names(run: &Run, cells: &[usize]) -> Vec<String> {
    let plan = &run.plan;
    let (compared, conditions) = (plan.compared(), plan.conditions());
    cells
        .iter()
        .map(|&cell| {
            let cell = &plan.cells[cell];
            match (compared.is_empty(), conditions.is_empty()) {
                (true, _) => cell.label(&conditions),
                (false, true) => cell.label(&compared),
                (false, false) => {
                    format!("{} ({})", cell.label(&compared), cell.label(&conditions))
                }
            }
        })
        .collect()
}

/// `a`, `a and b`, `a, b and 3 more`.
fn list(names: &[String]) -> String {
    match names {
        [] => String::new(),
        [one] => one.clone(),
        [one, two] => format!("{one} and {two}"),
        [one, two, more @ ..] => format!("{one}, {two} and {} more", more.len()),
    }
}
