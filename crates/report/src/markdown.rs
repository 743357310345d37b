//! As Markdown, for a ticket or a page.

use crate::{
    Align, Table, imported, published, sentences, sessions, terminal, transactions, words,
};
use analysis::{Analysis, CellSummary, Group, Metric, SessionAnalysis, findings};
use counters::Counter;
use record::{Run, WorldKind};
use std::fmt::Write;

/// The columns of `iostat -x` that are shown.
const DEVICE_COLUMNS: [&Counter; 13] = [
    &counters::DEVICE_RRQM,
    &counters::DEVICE_WRQM,
    &counters::DEVICE_R,
    &counters::DEVICE_W,
    &counters::DEVICE_R_MB,
    &counters::DEVICE_W_MB,
    &counters::DEVICE_AREQ_SZ,
    &counters::DEVICE_AQU_SZ,
    &counters::DEVICE_AWAIT,
    &counters::DEVICE_SVCTM,
    &counters::DEVICE_UTIL,
    &counters::DEVICE_F,
    &counters::DEVICE_F_AWAIT,
];

/// The whole report: of each session, and of the sessions together.
pub fn markdown(run: &Run, analysis: &Analysis) -> String {
    let Some(together) = SessionAnalysis::of(run) else {
        return session(run, analysis, &run.name);
    };
    let mut out = String::new();
    for (place, of_session) in run.sessions().iter().enumerate() {
        let title = format!("{}, session {}", run.name, place + 1);
        out.push_str(&session(of_session, &Analysis::of(of_session), &title));
        out.push('\n');
    }
    let _ = writeln!(out, "# {}, sessions together\n", run.name);
    out.push_str(&sessions::list(&together).markdown());
    for group in &together.groups {
        let title = match group.condition.as_str() {
            "" => "Verdict",
            condition => condition,
        };
        let verdict = sentences::session_verdict(&together, group, &run.name);
        let _ = writeln!(out, "\n## {title}\n\n**{verdict}.**\n");
        if let Some(table) = sessions::changes(&together, group) {
            out.push_str(&table.markdown());
        }
        for note in sessions::notes(&together, group) {
            let _ = writeln!(out, "\n{note}");
        }
    }
    if let Some(table) = sessions::changed_table(&together) {
        let _ = writeln!(out, "\n## Also changed\n");
        out.push_str(&table.markdown());
    }
    out
}

/// The report of one session.
fn session(run: &Run, analysis: &Analysis, title: &str) -> String {
    if run.environment.world == WorldKind::Imported {
        return imported::markdown(run, analysis);
    }
    let environment = &run.environment;
    let mut out = format!("# {title}\n\n");
    let _ = writeln!(out, "- when: {}", words::date(run.started_at));
    let _ = writeln!(out, "- where: {} ({})", environment.device, environment.world);
    let _ = writeln!(
        out,
        "- host: Linux {}, {} × {}, {}",
        environment.kernel,
        environment.cpus,
        environment.cpu,
        units::Bytes(environment.memory_bytes)
    );
    let _ = writeln!(out, "- workload: {}", terminal::workload_line(&run.plan, environment.world));
    let _ = writeln!(
        out,
        "- {}, Spindle {}",
        terminal::timing_line(&run.plan, run.rounds()),
        environment.spindle_version
    );
    for text in terminal::preset(&run.plan) {
        let _ = writeln!(out, "- {text}");
    }
    for caveat in &environment.caveats {
        let _ = writeln!(out, "- beware: {}", sentences::caveat(caveat));
    }
    let _ = writeln!(out, "\n## Verdict\n");
    for text in analysis.screening.iter().flat_map(|it| sentences::screening(&run.plan, it)) {
        let _ = writeln!(out, "{text}\n");
    }
    for answer in sentences::answers(run, analysis) {
        let _ = writeln!(out, "**{}**\n", answer.sentence());
    }
    for group in &analysis.groups {
        if !group.condition.is_empty() {
            let _ = writeln!(out, "\n## {}\n", group.condition);
        }
        out.push_str(&terminal::figures(group, true).markdown());
        if !group.cells.is_empty() {
            out.push('\n');
            out.push_str(&verdicts(group).markdown());
        }
        let device = device(group);
        if let Some(table) = device {
            let _ = writeln!(out, "\nAt the device, mean over all measured seconds:\n");
            out.push_str(&table.markdown());
        }
        for table in [transactions::types(group), transactions::costs(group)].into_iter().flatten()
        {
            out.push('\n');
            out.push_str(&table.markdown());
        }
        for note in terminal::notes(group, run) {
            let _ = writeln!(out, "\n{note}");
        }
    }
    if let Some(table) = published::differences(run, analysis) {
        let _ = writeln!(out, "\n## What makes the difference\n");
        let _ = writeln!(
            out,
            "Throughput of a cell over that of its baseline, with every mechanism and with one \
             switched off: where the ratio goes to 1, that one made the difference.\n"
        );
        out.push_str(&table.markdown());
    }
    if let Some(table) = published::published(run, analysis) {
        let _ = writeln!(out, "\n## Beside what was published\n");
        out.push_str(&table.markdown());
        for source in published::sources(run) {
            let _ = writeln!(out, "\nPublished: {source}.");
        }
    }
    let findings = findings(run, analysis);
    if !findings.is_empty() {
        out.push_str("\n## Findings\n\n");
    }
    for finding in &findings {
        let text = sentences::finding(run, finding);
        let _ = writeln!(
            out,
            "- **{}**: {} Evidence: {}. To check: {}.",
            finding.kind.id(),
            text.statement,
            text.evidence,
            text.check
        );
    }
    for warning in terminal::warnings(run) {
        let _ = writeln!(out, "\nWarning: {warning}");
    }
    out
}

fn verdicts(group: &Group) -> Table {
    use Align::{Left, Right};
    let mut table = Table::new(&[
        (&*format!("against {}", group.baseline.label), Left),
        ("throughput", Right),
        ("verdict", Left),
        ("p99 latency", Right),
        ("verdict", Left),
        ("rounds", Right),
    ]);
    for cell in &group.cells {
        let mut row = vec![cell.summary.label.clone()];
        for metric in [Metric::Throughput, Metric::P99] {
            let comparison = cell.comparison(metric);
            row.push(comparison.map_or("-".to_owned(), words::change));
            row.push(comparison.map_or("", |c| words::verdict_word(c.verdict)).to_owned());
        }
        let rounds = cell.comparison(Metric::Throughput).map_or(0, |c| c.rounds);
        row.push(rounds.to_string());
        table.row(row);
    }
    table
}

/// The iostat columns of each cell; none where the target has no device.
pub(crate) fn device(group: &Group) -> Option<Table> {
    let shown: Vec<&Counter> = DEVICE_COLUMNS
        .into_iter()
        .filter(|counter| group.baseline.counters.contains_key(counter.id))
        .collect();
    if shown.is_empty() {
        return None;
    }
    // As iostat prints them.
    let heading = |counter: &Counter| counter.id.split_once('.').map_or(counter.id, |(_, it)| it);
    let columns: Vec<(&str, Align)> = std::iter::once(("", Align::Left))
        .chain(shown.iter().map(|counter| (heading(counter), Align::Right)))
        .collect();
    let mut table = Table::new(&columns);
    let mut row = |summary: &CellSummary| {
        let figures = shown.iter().map(|counter| {
            let value = summary.counters.get(counter.id).copied();
            format!("{:.2}", value.unwrap_or(f64::NAN))
        });
        table.row(std::iter::once(summary.label.clone()).chain(figures));
    };
    row(&group.baseline);
    for cell in &group.cells {
        row(&cell.summary);
    }
    Some(table)
}
