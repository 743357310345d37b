//! Events of a run.

use super::trouble;
use plan::Plan;
use record::{AsideCause, DropCause, Event, EventKind};
use units::Nanos;

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
        EventKind::SetAside { cells, cause } => {
            let all = plan.settings();
            let count =
                all.iter().filter(|it| it.cells.iter().flatten().any(|it| cells.contains(it)));
            let settings = match count.count() {
                1 => "1 setting runs".to_owned(),
                count => format!("{count} settings run"),
            };
            let why = match cause {
                AsideCause::Worse => "worse than the leader by their trials",
                AsideCause::PredictedWorse => {
                    "worse than the leader by the effects of their levels"
                }
                AsideCause::NoTime => {
                    "for lack of time beside what is more likely to win; not shown to be worse"
                }
            };
            format!("{settings} no more after round {}: {why}", event.round + 1)
        }
        EventKind::Settled { rounds } if plan.screens() => {
            format!("the winner was decided after {rounds} rounds")
        }
        EventKind::Settled { rounds } => format!("every verdict was settled after {rounds} rounds"),
        EventKind::BudgetUsed { rounds } => format!("the budget was used up after {rounds} rounds"),
        EventKind::Piloted { visits, took, detectable, settled } => {
            piloted(plan, (*visits, *took), *detectable, *settled)
        }
        EventKind::Extended { rounds, detectable } => format!(
            "{rounds} rounds could have shown {:.1} % of throughput: more rounds follow",
            100.0 * detectable
        ),
        EventKind::Interrupted => "interrupted by the user".to_owned(),
        EventKind::Resumed { trials } => format!("resumed after {trials} trials"),
        EventKind::Recorded { cell: Some(cell), text } => format!("{}: {text}", label(*cell)),
        EventKind::Recorded { cell: None, text } => text.clone(),
    }
}

/// The events that a reader is to know of: an interruption after which the run went on is none.
pub fn noted(events: &[Event]) -> impl Iterator<Item = &Event> {
    let resumed = |it: &Event| matches!(it.kind, EventKind::Resumed { .. });
    let last = events.iter().rposition(resumed);
    let over = move |place: usize, it: &Event| match it.kind {
        EventKind::Interrupted => last.is_some_and(|last| place < last),
        _ => resumed(it),
    };
    events.iter().enumerate().filter(move |(place, it)| !over(*place, it)).map(|(_, it)| it)
}

/// What a pilot chose, and what may be expected of it.
fn piloted(plan: &Plan, (visits, took): (u32, Nanos), detectable: f64, settled: bool) -> String {
    let timing = &plan.timing;
    // Only jobs have a pilot, and those have a length.
    let all = timing.total(plan.slots(), Nanos::ZERO).unwrap_or_default();
    let percent = |share: f64| format!("{:.1} %", 100.0 * share);
    let unsettled = match settled {
        true => "",
        false => "; throughput had not settled even after the longest warm-up tried",
    };
    format!(
        "a pilot of {visits} visits ({took}) chose trials of {} after {} of warm-up: expected to detect \
         {} of throughput in {all} ({} rounds), half of that in four times as long{unsettled}",
        timing.measure,
        timing.warmup,
        percent(detectable),
        timing.rounds,
    )
}
