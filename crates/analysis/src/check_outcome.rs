//! What the trials of a check say of a finding.

use crate::{
    Analysis, CheckPlan, Comparison, Estimate, Evidence, Expectation, Finding, FindingKind, Layout,
    Metric, Verdict, findings, findings::unsteady,
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
        Expectation::Improves(metric) => judge.figure(metric, &[Verdict::Better]),
        Expectation::Worsens(metric) => judge.figure(metric, &[Verdict::Worse]),
        Expectation::Differs(metric) => judge.figure(metric, &[Verdict::Better, Verdict::Worse]),
        Expectation::LossVanishes(metric) => judge.loss_vanishes(metric, finding.evidence),
        Expectation::ImprovesEither => judge.improves_either(),
        Expectation::Stays(metric) => match judge.comparison(1, metric) {
            Some(it) => stays((it.low, it.high)),
            None => CheckOutcome::Open(CheckOpen::NotMeasured),
        },
        // Trials of a few seconds have no halves to compare.
        Expectation::StaysInTrials => match judge.course(check.subject) {
            Some(interval) => stays(interval),
            None => CheckOutcome::Open(CheckOpen::TooWide),
        },
    }
}

/// Beyond this, a figure has not stayed: fewer clients leave a device less to choose from, which costs
/// some of its throughput also where it serves one after another.
const STAYS: f64 = 0.2;

/// The error of the interval within which a course stays.
const ALPHA: f64 = 0.05;

/// Of a difference whose cause is taken away, more than this is not left: the logarithm's share, so that ten times and a
/// tenth are as far.
const LEFT: f64 = 0.5;

/// Whether an interval of a ratio lies within what counts as the same.
fn stays((least, most): (f64, f64)) -> CheckOutcome {
    let (low, high) = (1.0 - STAYS, 1.0 + STAYS);
    if least >= low && most <= high {
        CheckOutcome::Confirmed
    } else if most < low || least > high {
        CheckOutcome::Refuted
    } else {
        CheckOutcome::Open(CheckOpen::TooWide)
    }
}

/// What is left of a difference, as a share of its logarithm: below zero where it is the other way round.
fn left(before: f64, after: &Comparison) -> CheckOutcome {
    let before = before.ln();
    let (one, other) = (after.low.ln() / before, after.high.ln() / before);
    if after.verdict == Verdict::NoDifference || one.max(other) < LEFT {
        CheckOutcome::Confirmed
    } else if one.min(other) > LEFT {
        CheckOutcome::Refuted
    } else {
        CheckOutcome::Open(CheckOpen::TooWide)
    }
}

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

    /// Confirmed by each of the `right` verdicts on the first cell, and refuted by the others that are settled.
    fn figure(&self, metric: Metric, right: &[Verdict]) -> CheckOutcome {
        match self.comparison(1, metric).map(|it| it.verdict) {
            Some(Verdict::NotSettled) => CheckOutcome::Open(CheckOpen::TooWide),
            Some(verdict) if right.contains(&verdict) => CheckOutcome::Confirmed,
            Some(_) => CheckOutcome::Refuted,
            None => CheckOutcome::Open(CheckOpen::NotMeasured),
        }
    }

    fn improves_either(&self) -> CheckOutcome {
        let verdict = |metric| self.comparison(1, metric).map(|it| it.verdict);
        let both = [verdict(Metric::Throughput), verdict(Metric::P99)];
        let right = |it: &Option<Verdict>| matches!(it, Some(Verdict::Better));
        let wrong =
            |it: &Option<Verdict>| matches!(it, Some(Verdict::Worse | Verdict::NoDifference));
        if both.iter().any(right) {
            CheckOutcome::Confirmed
        } else if both.iter().all(wrong) {
            CheckOutcome::Refuted
        } else {
            CheckOutcome::Open(CheckOpen::TooWide)
        }
    }

    /// The interval of the second half's throughput over the first's.
    fn course(&self, cell: usize) -> Option<(f64, f64)> {
        let estimate = Estimate::of(&unsteady::changes(self.run, cell))?;
        let half = estimate.half_width(ALPHA);
        Some(((estimate.mean - half).exp(), (estimate.mean + half).exp()))
    }

    fn difference_vanishes(&self) -> CheckOutcome {
        let comparison = |cell| self.comparison(cell, Metric::Throughput);
        let differs = |it: &&Comparison| matches!(it.verdict, Verdict::Better | Verdict::Worse);
        let Some(before) = comparison(1).filter(differs) else {
            return CheckOutcome::Open(CheckOpen::NotShownAgain);
        };
        let Some(after) = comparison(3) else { return CheckOutcome::Open(CheckOpen::NotMeasured) };
        left(before.ratio, after)
    }

    fn loss_vanishes(&self, metric: Metric, evidence: Evidence) -> CheckOutcome {
        match (self.comparison(1, metric), evidence) {
            (Some(after), Evidence::Traded { p99, .. }) => left(p99, after),
            _ => CheckOutcome::Open(CheckOpen::NotMeasured),
        }
    }
}
