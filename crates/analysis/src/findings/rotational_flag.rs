//! Linux takes the device for another kind than it is, and chooses by that.

use super::{Change, Check, Evidence, Expectation, Found, summaries};
use crate::Analysis;
use record::{Caveat, Run};

/// The trap that says so.
const TRAP: &str = "rotational-flag";

pub fn find(run: &Run, analysis: &Analysis) -> Option<Found> {
    let is_wrong = |caveat: &Caveat| matches!(caveat, Caveat::Trap { id, .. } if id == TRAP);
    run.environment.caveats.iter().any(is_wrong).then(|| Found {
        cells: summaries(analysis).map(|summary| summary.cell).collect(),
        evidence: Evidence::FlagIsWrong,
        check: Check { change: Change::RightFlag, expect: Expectation::EvidenceVanishes },
    })
}
