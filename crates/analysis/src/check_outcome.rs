//! What the trials of a check say of a finding.

use crate::{
    Analysis, CheckPlan, Comparison, Expectation, Finding, FindingKind, Layout, Metric, Verdict,
    findings,
};
use record::Run;
use serde::Serialize;

/// What became of a finding.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "outcome", content = "why", rename_all = "snake_case")]
pub enum CheckOutcome {
    /// What must follow from it followed.
    Confirmed,
    /// What must follow from it did not.
    Refuted,
    /// The trials do not tell.
    Open(CheckOpen),
}

/// Why trials do not tell.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum CheckOpen {
    /// What the finding speaks of did not show again, so that nothing could vanish.
    NotShownAgain,
    /// The interval is too wide.
    TooWide,
    /// No trial of a cell counts.
    NotMeasured,
}

/// Judges a finding by the run of its [`CheckPlan`].
pub fn check_outcome(finding: &Finding, check: &CheckPlan, run: &Run) -> CheckOutcome {
    let judge = Judge { kind: finding.kind, run, analysis: Analysis::of(run) };
    let measured = |cell: usize| {
        run.trials.iter().any(|trial| trial.id.cell == cell && trial.measurement().is_some())
    };
    if !(0..run.plan.cells.len()).all(measured) {
        return CheckOutcome::Open(CheckOpen::NotMeasured);
    }
    match finding.check.expect {
        Expectation::EvidenceVanishes => judge.evidence(check, false),
        Expectation::EvidenceStays => judge.evidence(check, true),
        Expectation::DifferenceVanishes => judge.difference_vanishes(),
        Expectation::Improves(metric) => judge.figure(metric, |it| match it {
            Verdict::Better => Some(true),
            Verdict::Worse | Verdict::NoDifference => Some(false),
            Verdict::NotSettled => None,
        }),
        Expectation::Differs(metric) => judge.figure(metric, |it| match it {
            Verdict::Better | Verdict::Worse => Some(true),
            Verdict::NoDifference => Some(false),
            Verdict::NotSettled => None,
        }),
        Expectation::NotWorse(metric) => judge.figure(metric, |it| match it {
            Verdict::Better | Verdict::NoDifference => Some(true),
            Verdict::Worse => Some(false),
            Verdict::NotSettled => None,
        }),
        Expectation::Stays(metric) => judge.stays(metric),
    }
}

/// Beyond this, a figure has not stayed: fewer clients leave a device less to choose from, which costs
/// some of its throughput also where it serves one after another.
const STAYS: f64 = 0.2;

struct Judge<'a> {
    kind: FindingKind,
    run: &'a Run,
    analysis: Analysis,
}

impl Judge<'_> {
    fn shows(&self, cell: usize) -> bool {
        let all = findings(self.run, &self.analysis);
        all.iter().any(|it| it.kind == self.kind && it.cells.contains(&cell))
    }

    fn evidence(&self, check: &CheckPlan, must_stay: bool) -> CheckOutcome {
        // Only there the cell runs as it was, too.
        if check.layout == Layout::Changed && !self.shows(0) {
            return CheckOutcome::Open(CheckOpen::NotShownAgain);
        }
        match self.shows(check.subject) == must_stay {
            true => CheckOutcome::Confirmed,
            false => CheckOutcome::Refuted,
        }
    }

    fn comparison(&self, cell: usize, metric: Metric) -> Option<&Comparison> {
        let cells = self.analysis.groups.iter().flat_map(|group| &group.cells);
        let mut of_cell = cells.filter(|it| it.summary.cell == cell);
        of_cell.find_map(|it| it.comparison(metric))
    }

    fn figure(&self, metric: Metric, says: impl Fn(Verdict) -> Option<bool>) -> CheckOutcome {
        match self.comparison(1, metric).map(|it| says(it.verdict)) {
            Some(Some(true)) => CheckOutcome::Confirmed,
            Some(Some(false)) => CheckOutcome::Refuted,
            Some(None) => CheckOutcome::Open(CheckOpen::TooWide),
            None => CheckOutcome::Open(CheckOpen::NotMeasured),
        }
    }

    fn stays(&self, metric: Metric) -> CheckOutcome {
        let Some(it) = self.comparison(1, metric) else {
            return CheckOutcome::Open(CheckOpen::NotMeasured);
        };
        let (low, high) = (1.0 - STAYS, 1.0 + STAYS);
        if it.low >= low && it.high <= high {
            CheckOutcome::Confirmed
        } else if it.high < low || it.low > high {
            CheckOutcome::Refuted
        } else {
            CheckOutcome::Open(CheckOpen::TooWide)
        }
    }

    fn difference_vanishes(&self) -> CheckOutcome {
        let verdict = |cell| self.comparison(cell, Metric::Throughput).map(|it| it.verdict);
        let differs = |it| matches!(it, Some(Verdict::Better | Verdict::Worse));
        match (verdict(1), verdict(3)) {
            (before, _) if !differs(before) => CheckOutcome::Open(CheckOpen::NotShownAgain),
            (_, Some(Verdict::NoDifference)) => CheckOutcome::Confirmed,
            (before, after) if before == after => CheckOutcome::Refuted,
            // The other way round: what made the difference is gone.
            (_, after) if differs(after) => CheckOutcome::Confirmed,
            _ => CheckOutcome::Open(CheckOpen::TooWide),
        }
    }
}
