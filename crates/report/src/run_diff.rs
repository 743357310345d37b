//! Two runs side by side, for a terminal and as JSON.

use crate::{Align, Table, sentences, words};
use analysis::{Agreement, Comparison, DiffGroup, Metric, PlanPart, RunDiff, Shift, ShiftStanding};
use serde_json::{Value, json};
use std::fmt::Write;

/// For a terminal; `names` are the runs'.
pub fn run_diff(diff: &RunDiff, names: (&str, &str), width: usize) -> String {
    let mut out = format!("A: {}\nB: {}\n", names.0, names.1);
    let differences = lines(diff);
    out.push_str("\nWhat differs:\n");
    if differences.is_empty() {
        out.push_str("  nothing that was recorded\n");
    }
    for line in &differences {
        let _ = writeln!(out, "{}", words::wrap_after("  ", line, width, 4));
    }
    for group in &diff.groups {
        out.push('\n');
        if !group.condition.is_empty() {
            let _ = writeln!(out, "With {}:\n", group.condition);
        }
        out.push_str(&figures(group).text(width));
        if group.same_baseline && group.cells.len() > 1 {
            out.push('\n');
            out.push_str(&verdicts(group).text(width));
        }
        for note in notes(group) {
            let _ = writeln!(out, "{}", words::wrap(&note, width, 2));
        }
    }
    if diff.groups.is_empty() {
        out.push_str("\nThey have no cell in common: nothing can be compared.\n");
    }
    for (name, labels) in [("A", &diff.only_first), ("B", &diff.only_second)] {
        if !labels.is_empty() {
            let text = format!("Only in {name}: {}.", labels.join("; "));
            let _ = writeln!(out, "\n{}", words::wrap(&text, width, 2));
        }
    }
    out
}

/// As JSON.
pub fn run_diff_json(diff: &RunDiff, names: (&str, &str)) -> Value {
    let notes: Vec<_> = diff.groups.iter().map(notes).collect();
    json!({
        "runs": [names.0, names.1],
        "diff": diff,
        "text": { "differences": lines(diff), "notes": notes },
    })
}

/// What differs in plan and environment, a line each.
fn lines(diff: &RunDiff) -> Vec<String> {
    differences(diff).into_iter().map(|(what, was, is)| format!("{what}: {was} → {is}")).collect()
}

/// The same: what, in the first, in the second.
pub(crate) fn differences(diff: &RunDiff) -> Vec<(String, String, String)> {
    let part = |part: PlanPart| match part {
        PlanPart::World => "world",
        PlanPart::Target => "target",
        PlanPart::Workload => "workload",
        PlanPart::Engine => "engine",
        PlanPart::Size => "size",
        PlanPart::PageCache => "bound of the page cache",
        PlanPart::Trial => "warm-up and measured time",
        PlanPart::Rounds => "rounds",
        PlanPart::Seed => "seed",
    };
    let said = |value: &Option<String>| match value.as_deref() {
        None => "none".to_owned(),
        Some("") => "empty".to_owned(),
        Some(value) => value.to_owned(),
    };
    let of_plan =
        diff.plan.iter().map(|it| (part(it.part).to_owned(), it.was.clone(), it.is.clone()));
    let of_environment = diff
        .environment
        .iter()
        .map(|it| (sentences::changed_thing(it), said(&it.was), said(&it.is)));
    of_plan.chain(of_environment).collect()
}

/// The figures of B over those of A.
fn figures(group: &DiffGroup) -> Table {
    use Align::{Left, Right};
    let mut table = Table::new(&[
        ("figures, B over A", Left),
        ("throughput", Right),
        ("", Left),
        ("p99 latency", Right),
        ("", Left),
    ]);
    for cell in &group.cells {
        let mut row = vec![format!("  {}", cell.label)];
        for metric in [Metric::Throughput, Metric::P99] {
            match cell.figure(metric).and_then(|it| it.shift) {
                Some(shift) => row.extend([change(&shift), standing(&shift).to_owned()]),
                None => row.extend(["-".to_owned(), String::new()]),
            }
        }
        table.row(row);
    }
    table
}

/// The verdicts of both, on throughput and then on latency.
fn verdicts(group: &DiffGroup) -> Table {
    use Align::{Left, Right};
    let mut table = Table::new(&[
        ("against the baseline", Left),
        ("A", Right),
        ("", Left),
        ("B", Right),
        ("", Left),
        ("verdicts", Left),
    ]);
    for metric in [Metric::Throughput, Metric::P99] {
        for cell in &group.cells {
            let Some(figure) = cell.figure(metric) else { continue };
            let Some(agreement) = figure.agreement() else { continue };
            let of = |comparison: Option<Comparison>| match comparison {
                Some(it) => [words::percent(it.ratio), words::verdict_word(it.verdict).to_owned()],
                None => ["-".to_owned(), String::new()],
            };
            let name = words::metric_name(metric);
            let mut row = vec![format!("  {}, {name}", cell.label)];
            row.extend(of(figure.first));
            row.extend(of(figure.second));
            row.push(word(agreement).to_owned());
            table.row(row);
        }
    }
    table
}

fn word(agreement: Agreement) -> &'static str {
    match agreement {
        Agreement::Agree => "agree",
        Agreement::Contradict => "CONTRADICT",
        Agreement::OneAlone => "one sees it",
        Agreement::Open => "open",
    }
}

pub(crate) fn standing(shift: &Shift) -> &'static str {
    match shift.standing {
        ShiftStanding::Same => "same",
        ShiftStanding::Differs => "differs",
        ShiftStanding::Open => "open",
    }
}

fn change(shift: &Shift) -> String {
    match shift.high.is_finite() && shift.low > 0.0 {
        true => words::change_within(shift.ratio, shift.low, shift.high),
        false => words::percent(shift.ratio),
    }
}

/// What a reader must know.
pub(crate) fn notes(group: &DiffGroup) -> Vec<String> {
    let mut notes = Vec::new();
    let floors: Vec<String> = group
        .floor
        .iter()
        .filter(|(metric, _)| *metric != Metric::Fairness)
        .map(|(metric, floor)| format!("{} {}", words::metric_name(*metric), words::share(*floor)))
        .collect();
    notes.push(match floors.is_empty() {
        true => "Cross-run noise floor: not known, because a run has fewer than three rounds.".to_owned(),
        false => format!(
            "Cross-run noise floor (how far the rounds of the baselines scatter): {}. A difference of \
             figures below it is noise. One above it shows that the runs differ, and not why: each run is \
             one observation of its boot, its day and the state of its device, and all that is listed \
             above is in it.",
            floors.join(", ")
        ),
    });
    notes.push(match group.same_baseline {
        true => "Verdicts compare within each run, where cells take turns: whether they agree is safer to \
                 tell than whether the figures do."
            .to_owned(),
        false => "The runs compare with different baselines: their verdicts are about different things, \
                  and only the figures stand side by side."
            .to_owned(),
    });
    let moved: Vec<&str> = group
        .cells
        .iter()
        .filter(|cell| {
            [Metric::Throughput, Metric::P99].into_iter().any(|metric| {
                cell.figure(metric)
                    .and_then(|it| it.effect)
                    .is_some_and(|it| it.standing == ShiftStanding::Differs)
            })
        })
        .map(|cell| cell.label.as_str())
        .collect();
    if !moved.is_empty() {
        notes.push(format!(
            "The difference from the baseline is another in B for {}: what changed between the runs \
             changes what these settings do.",
            moved.join("; ")
        ));
    }
    notes
}
