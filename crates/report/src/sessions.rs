//! The sessions of a run, beside one another.

use crate::{Align, Table, sentences, words};
use analysis::{Metric, SessionAnalysis, SessionComparison, SessionGroup};
use record::EnvironmentChange;

/// Which sessions there are.
pub(crate) fn list(analysis: &SessionAnalysis) -> Table {
    use Align::{Left, Right};
    let factor = analysis.factor.to_string();
    let mut table =
        Table::new(&[("session", Right), (&*factor, Left), ("started", Left), ("rounds", Right)]);
    for (place, session) in analysis.sessions.iter().enumerate() {
        table.row([
            (place + 1).to_string(),
            analysis.levels[session.level].name.clone(),
            words::date(session.started_at),
            session.rounds.to_string(),
        ]);
    }
    table
}

/// Each cell under each level, against the first.
pub(crate) fn changes(analysis: &SessionAnalysis, group: &SessionGroup) -> Option<Table> {
    use Align::{Left, Right};
    if analysis.levels.len() < 2 {
        return None;
    }
    let against = format!("against {} {}", analysis.factor, analysis.levels[0].name);
    let mut table = Table::new(&[
        (&*against, Left),
        ("throughput", Right),
        ("", Left),
        ("p99 latency", Right),
        ("", Left),
    ]);
    for (place, level) in analysis.levels.iter().enumerate().skip(1) {
        for (at, cell) in group.cells.iter().enumerate() {
            let mark = if at == 0 { "* " } else { "  " };
            let mut row = vec![format!("{mark}{}, {}", level.name, cell.label)];
            for metric in [Metric::Throughput, Metric::P99] {
                match cell.comparison(place, metric) {
                    Some(comparison) => {
                        row.push(change(comparison));
                        row.push(words::verdict_word(comparison.verdict).to_owned());
                    }
                    None => row.extend(["-".to_owned(), String::new()]),
                }
            }
            table.row(row);
        }
    }
    Some(table)
}

fn change(comparison: &SessionComparison) -> String {
    let SessionComparison { ratio, low, high, .. } = *comparison;
    match high.is_finite() {
        true => words::change_within(ratio, low, high),
        // One session of each has no interval at all.
        false => words::percent(ratio),
    }
}

/// What else changed, each change once with the sessions that have it.
fn also_changed(analysis: &SessionAnalysis) -> Vec<(&EnvironmentChange, Vec<usize>)> {
    let mut all: Vec<(&EnvironmentChange, Vec<usize>)> = Vec::new();
    for (place, session) in analysis.sessions.iter().enumerate() {
        for change in &session.also_changed {
            match all.iter_mut().find(|(known, _)| *known == change) {
                Some((_, places)) => places.push(place + 1),
                None => all.push((change, vec![place + 1])),
            }
        }
    }
    all
}

/// What a value is called that is not there, or is nothing.
fn said(value: Option<&String>) -> &str {
    match value.map(String::as_str) {
        None => "none",
        Some("") => "empty",
        Some(value) => value,
    }
}

fn numbers(places: &[usize]) -> String {
    places.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
}

/// What else changed, a line each.
pub(crate) fn changed_lines(analysis: &SessionAnalysis) -> Vec<String> {
    also_changed(analysis)
        .into_iter()
        .map(|(change, places)| {
            let plural = if places.len() == 1 { "" } else { "s" };
            let (was, is) = (said(change.was.as_ref()), said(change.is.as_ref()));
            let thing = sentences::changed_thing(change);
            format!("{thing}: {was} → {is} (session{plural} {})", numbers(&places))
        })
        .collect()
}

/// The same as a table; none where nothing else changed.
pub(crate) fn changed_table(analysis: &SessionAnalysis) -> Option<Table> {
    use Align::Left;
    let all = also_changed(analysis);
    let mut table =
        Table::new(&[("what", Left), ("in the first", Left), ("then", Left), ("sessions", Left)]);
    for (change, places) in &all {
        let (was, is) = (said(change.was.as_ref()), said(change.is.as_ref()));
        table.row([sentences::changed_thing(change), was.into(), is.into(), numbers(places)]);
    }
    (!all.is_empty()).then_some(table)
}

/// Notes and verdict of a group.
pub(crate) fn notes(analysis: &SessionAnalysis, group: &SessionGroup) -> Vec<String> {
    let mut notes = vec![sentences::session_floor(analysis, group)];
    notes.extend(sentences::session_caveats(analysis));
    notes
}
