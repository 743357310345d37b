//! Events of a run.

use super::trouble;
use plan::Plan;
use record::{DropCause, Event, EventKind};

/// An event in a sentence, without a full stop.
pub fn event(plan: &Plan, event: &Event) -> String {
    let label = |cell: usize| plan.cells[cell].label(&plan.factors);
    match &event.kind {
        EventKind::Dropped { cell, cause } => {
            let why = match cause {
                DropCause::Worse { rounds } => format!("clearly worse after {rounds} rounds"),
                DropCause::NeverValid { rounds, last } => format!(
                    "no trial counted in {rounds} rounds: {}",
                    trouble::outcome(last).unwrap_or_default()
                ),
                DropCause::Recorded { text } => text.clone(),
            };
            format!("{}: {why}", label(*cell))
        }
        EventKind::Settled { rounds } => format!("every verdict was settled after {rounds} rounds"),
        EventKind::BudgetUsed { rounds } => format!("the budget was used up after {rounds} rounds"),
        EventKind::Interrupted => "interrupted by the user".to_owned(),
        EventKind::Resumed { trials } => format!("resumed after {trials} trials"),
        EventKind::Recorded { cell: Some(cell), text } => format!("{}: {text}", label(*cell)),
        EventKind::Recorded { cell: None, text } => text.clone(),
    }
}
