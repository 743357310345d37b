//! For a terminal.

use crate::{Align, Table, imported, published, sentences, sessions, transactions, words};
use analysis::{
    Analysis, CellSummary, ComparedCell, Group, MIN_VERDICT_ROUNDS, Metric, SessionAnalysis,
    findings,
};
use plan::{BudgetClock, Cell, Factor, Intention, MIN_ROUNDS, Plan, Refusal};
use record::{Caveat, Run, RunState, Warning, WorldKind};
use std::fmt::Write;
use units::Nanos;
use workload::{ClientKind, Replay, ReplayMode};

/// The whole report in `width` columns: of each session, and of the sessions together.
pub fn terminal(run: &Run, analysis: &Analysis, width: usize) -> String {
    let Some(together) = SessionAnalysis::of(run) else { return session(run, analysis, width) };
    let mut out = String::new();
    for (place, of_session) in run.sessions().iter().enumerate() {
        let _ = writeln!(out, "SESSION {} of {}\n", place + 1, run.name);
        out.push_str(&session(of_session, &Analysis::of(of_session), width));
        out.push('\n');
    }
    out.push_str("SESSIONS TOGETHER\n\n");
    out.push_str(&sessions::list(&together).text(width));
    for group in &together.groups {
        out.push('\n');
        if !group.condition.is_empty() {
            let _ = writeln!(out, "With {}:\n", group.condition);
        }
        if let Some(table) = sessions::changes(&together, group) {
            out.push_str(&table.text(width));
        }
        for note in sessions::notes(&together, group) {
            let _ = writeln!(out, "{}", words::wrap(&note, width, 2));
        }
    }
    let changed = sessions::changed_lines(&together);
    if !changed.is_empty() {
        out.push_str("\nAlso changed, against the first session:\n");
    }
    for line in changed {
        let _ = writeln!(out, "  {}", words::wrap(&line, width - 2, 4));
    }
    out.push('\n');
    for group in &together.groups {
        let with = match group.condition.as_str() {
            "" => String::new(),
            condition => format!(" with {condition}"),
        };
        let verdict = sentences::session_verdict(&together, group, &run.name);
        let text = format!("Verdict on the {}{with}: {verdict}.", together.factor);
        let _ = writeln!(out, "{}", words::wrap(&text, width, 2));
    }
    out
}

/// The report of one session.
fn session(run: &Run, analysis: &Analysis, width: usize) -> String {
    if run.environment.world == WorldKind::Imported {
        return imported::terminal(run, analysis, width);
    }
    let mut out = String::new();
    heading(&mut out, run, width);
    for group in &analysis.groups {
        out.push('\n');
        if !group.condition.is_empty() {
            let _ = writeln!(out, "With {}:\n", group.condition);
        }
        out.push_str(&figures(group, false).text(width));
        if !group.cells.is_empty() {
            out.push('\n');
            out.push_str(&changes(group).text(width));
        }
        for table in [transactions::types(group), transactions::costs(group)].into_iter().flatten()
        {
            out.push('\n');
            out.push_str(&table.text(width));
        }
        for note in notes(group, run) {
            let _ = writeln!(out, "{}", words::wrap(&note, width, 2));
        }
    }
    beside(&mut out, run, analysis, width);
    let findings = findings(run, analysis);
    for finding in &findings {
        let text = sentences::finding(run, finding);
        let statement = format!("{} ({}).", text.statement.trim_end_matches('.'), text.evidence);
        let _ = writeln!(out, "\n{}", words::wrap(&statement, width, 2));
        let check =
            format!("To check: {}. More: spindle explain {}", text.check, finding.kind.id());
        let _ = writeln!(out, "  {}", words::wrap(&check, width - 2, 2));
    }
    if !findings.is_empty() {
        let text = format!("spindle check {} runs such checks.", run.name);
        let _ = writeln!(out, "\n{}", words::wrap(&text, width, 2));
    }
    for event in sentences::noted(&run.events) {
        let text = format!("Note: {}.", sentences::event(&run.plan, event));
        let _ = writeln!(out, "\n{}", words::wrap(&text, width, 2));
    }
    for warning in warnings(run) {
        let _ = writeln!(out, "\n{}", words::wrap(&format!("Warning: {warning}"), width, 2));
    }
    out.push('\n');
    for text in analysis.screening.iter().flat_map(|it| sentences::screening(&run.plan, it)) {
        let _ = writeln!(out, "{}", words::wrap(&text, width, 2));
    }
    for answer in sentences::answers(run, analysis) {
        let _ = writeln!(out, "{}", words::wrap(&answer.after("Verdict"), width, 2));
    }
    if run.state != RunState::Done {
        let text = format!("The run is not complete: spindle resume {} goes on.", run.name);
        let _ = writeln!(out, "{}", words::wrap(&text, width, 2));
    }
    out
}

/// What others published, and what makes the difference.
fn beside(out: &mut String, run: &Run, analysis: &Analysis, width: usize) {
    if let Some(table) = published::differences(run, analysis) {
        let _ = writeln!(out, "\n{}", table.text(width));
        let text = "Throughput of a cell over that of its baseline, with every mechanism and with one \
                    switched off: where the ratio goes to 1, that one made the difference.";
        let _ = writeln!(out, "{}", words::wrap(text, width, 2));
    }
    if let Some(table) = published::published(run, analysis) {
        let _ = writeln!(out, "\n{}", table.text(width));
        for source in published::sources(run) {
            let _ = writeln!(out, "{}", words::wrap(&format!("Published: {source}."), width, 2));
        }
    }
}

fn heading(out: &mut String, run: &Run, width: usize) {
    let environment = &run.environment;
    let world = match environment.world {
        WorldKind::Real => String::new(),
        other => format!(" ({other})"),
    };
    let lines = [
        format!("{}{world}, {}", run.name, words::date(run.started_at)),
        format!("{} on Linux {}", environment.device, environment.kernel),
        format!(
            "{}; {}",
            workload_line(&run.plan, environment.world),
            timing_line(&run.plan, run.rounds())
        ),
    ];
    for line in lines {
        let _ = writeln!(out, "{}", words::wrap(&line, width, 2));
    }
    for text in preset(&run.plan) {
        let _ = writeln!(out, "{}", words::wrap(&text, width, 2));
    }
    for caveat in &environment.caveats {
        let _ = writeln!(
            out,
            "{}",
            words::wrap(&format!("Beware: {}", sentences::caveat(caveat)), width, 2)
        );
    }
}

/// The preset, and what the names of variables that are set together stand for.
pub(crate) fn preset(plan: &Plan) -> Vec<String> {
    let used = plan.preset.as_ref().map(sentences::preset::of_report);
    used.into_iter().flatten().chain(sentences::preset::names(plan, false)).collect()
}

/// What the clients do, in one line; what varies is shown with the cells instead.
pub(crate) fn workload_line(plan: &Plan, world: WorldKind) -> String {
    if plan.is_of_databases() {
        return database_line(plan);
    }
    if let Some(replay) = &plan.workload.replay {
        return replay_line(plan, replay);
    }
    let job = &plan.workload.job;
    let some = |shown: bool, text: String| shown.then_some(text);
    let plural = if job.clients == 1 { "" } else { "s" };
    let background = plan.workload.background.as_ref();
    let parts = [
        (Factor::Pattern, Some(job.pattern.to_string())),
        (Factor::BlockSize, Some(job.block_size.to_string())),
        (Factor::Sync, Some(job.sync.to_string())),
        (Factor::Clients, Some(format!("{} client{plural}", job.clients))),
        (Factor::Depth, some(job.depth > 1, format!("depth {}", job.depth))),
        (Factor::Rate, job.rate.map(|rate| format!("{rate} offered"))),
        (Factor::IoPriority, job.io_priority.map(|priority| format!("I/O priority {priority}"))),
        (Factor::Background, background.map(|background| format!("beside {background}"))),
    ];
    let fixed = |factor: &Factor| !plan.factors.contains(factor);
    let mut words: Vec<String> = parts
        .into_iter()
        .filter(|(factor, _)| fixed(factor))
        .filter_map(|(_, text)| text)
        .collect();
    if job.client_kind == ClientKind::Processes {
        words.push("clients are processes".to_owned());
    }
    words.extend(plan.page_cache.map(|limit| format!("page cache of {limit}")));
    // Simulated clients need no engine.
    let engine = match fixed(&Factor::Engine) && world != WorldKind::Simulated {
        true => format!(" by {}", plan.engine),
        false => String::new(),
    };
    words.push(format!("over {}{engine}", plan.size));
    words.join(", ")
}

/// The same of a trace.
fn replay_line(plan: &Plan, replay: &Replay) -> String {
    let job = &plan.workload.job;
    let mut line = format!("replay of {}", replay.file);
    match replay.mode {
        ReplayMode::Open => line.push_str(" at the recorded times"),
        ReplayMode::Closed => line.push_str(", each process waiting for its own requests"),
        ReplayMode::Asap => {
            let outstanding = u64::from(job.clients) * u64::from(job.depth);
            line.push_str(&format!(" as fast as possible, {outstanding} outstanding"));
        }
    }
    if replay.skip_bad {
        line.push_str(", broken lines left out");
    }
    line
}

/// The same of a database's clients.
fn database_line(plan: &Plan) -> String {
    let fixed = |factor: &Factor| !plan.factors.contains(factor);
    let mut words = Vec::new();
    for database in plan.databases() {
        let mut said = workload::DatabaseJob { clients: None, rate: None, ..database.clone() };
        let distribution = match said.kind.is_oltp() && fixed(&Factor::Workload) {
            true => format!(" with {} keys", said.distribution),
            false => String::new(),
        };
        if fixed(&Factor::Workload) {
            said.distribution = workload::Distribution::default();
            let server = match said.server.is_private() {
                true => format!("a private {}", said.server),
                false => said.server.to_string(),
            };
            said.server = workload::Server::default();
            let text = format!("{said}{distribution} on {server}");
            // Levels of clients are told apart by the tables.
            if !words.contains(&text) {
                words.push(text);
            }
        }
    }
    let clients = plan.workload.clients();
    if fixed(&Factor::Clients) && fixed(&Factor::Workload) {
        words.push(format!("{clients} client{}", if clients == 1 { "" } else { "s" }));
    }
    if fixed(&Factor::Rate) && fixed(&Factor::Workload) {
        words.extend(plan.workload.rate().map(|rate| format!("{rate} offered")));
    }
    let beside = plan.workload.background.iter().filter(|_| fixed(&Factor::Background));
    words.extend(beside.map(|job| format!("beside {job}")));
    let variables = plan.workload.variables.iter();
    words.extend(variables.map(|(name, value)| format!("{name} {value}")));
    words.extend(plan.page_cache.map(|limit| format!("page cache of {limit}")));
    if words.is_empty() { "databases".to_owned() } else { words.join(", ") }
}

pub(crate) fn timing_line(plan: &Plan, rounds: u32) -> String {
    let plural = if rounds == 1 { "" } else { "s" };
    let (slots, measure, seed) = (plan.slots(), plan.timing.measure, plan.seed);
    let length = match plan.workload.replay {
        Some(_) => String::new(),
        None => format!(" of {measure}"),
    };
    match plan.timing.trials {
        Some(most) => {
            format!(
                "screened in {rounds} round{plural}, at most {most} trials{length}, seed {seed}"
            )
        }
        None => format!("{rounds} round{plural} of {slots} trials{length}, seed {seed}"),
    }
}

/// What each cell did.
pub(crate) fn figures(group: &Group, long: bool) -> Table {
    use Align::{Left, Right};
    let several = group.baseline.fairness.is_some();
    let is_of_databases = std::iter::once(&group.baseline)
        .chain(group.cells.iter().map(|cell| &cell.summary))
        .any(|summary| summary.transactions.is_some());
    let (rate, amount) = match is_of_databases {
        true => ("trans/s", "queries/s"),
        false => ("IOPS", "MiB/s"),
    };
    let mut columns = vec![
        ("", Left),
        (rate, Right),
        ("±", Right),
        (amount, Right),
        ("p50", Right),
        ("p99", Right),
    ];
    if long {
        columns.push(("p99.9", Right));
    }
    columns.push(("max", Right));
    if several {
        columns.push(("fair", Right));
    }
    let mut table = Table::new(&columns);
    let spelled = |time: units::Nanos| time.to_string();
    let mut row = |summary: &CellSummary, mark: &str| {
        let mut cells = vec![format!("{mark}{}", summary.label)];
        match (&summary.throughput, &summary.latency) {
            (Some(throughput), latency) => {
                cells.push(words::count(throughput.mean));
                let spread = throughput.half_width(0.05) / throughput.mean.max(f64::MIN_POSITIVE);
                cells.push(match spread {
                    spread if !spread.is_finite() => "-".to_owned(),
                    // A column wide enough for words would be too wide for a terminal.
                    spread if spread > 1.0 => ">100 %".to_owned(),
                    spread => words::share(spread),
                });
                cells.push(words::count(match &summary.transactions {
                    Some(transactions) => transactions.queries_per_second,
                    None => summary.bytes_per_second / f64::from(1 << 20),
                }));
                let places = if long { 4 } else { 3 };
                match latency {
                    Some(l) if long => cells.extend([l.p50, l.p99, l.p999, l.max].map(spelled)),
                    Some(l) => cells.extend([l.p50, l.p99, l.max].map(spelled)),
                    None => cells.extend(std::iter::repeat_n("-".to_owned(), places)),
                }
                if let Some(fairness) = summary.fairness {
                    cells.push(format!("{fairness:.2}"));
                }
            }
            (None, _) => cells.push("no data".to_owned()),
        }
        table.row(cells);
    };
    row(&group.baseline, "* ");
    for cell in looked_at(group) {
        row(&cell.summary, "  ");
    }
    table
}

/// The cells that have a trial: a screening does not look at all.
fn looked_at(group: &Group) -> impl Iterator<Item = &ComparedCell> {
    group.cells.iter().filter(|it| it.summary.valid > 0 || !it.summary.lost.is_empty())
}

/// Each cell against the baseline.
pub(crate) fn changes(group: &Group) -> Table {
    use Align::{Left, Right};
    let mut table = Table::new(&[
        (&*format!("against * {}", group.baseline.label), Left),
        ("throughput", Right),
        ("", Left),
        ("p99 latency", Right),
        ("", Left),
    ]);
    for cell in looked_at(group) {
        let mut cells = vec![format!("  {}", cell.summary.label)];
        for metric in [Metric::Throughput, Metric::P99] {
            match cell.comparison(metric) {
                Some(comparison) => {
                    cells.push(words::change(comparison));
                    cells.push(words::verdict_word(comparison.verdict).to_owned());
                }
                None => cells.extend(["-".to_owned(), String::new()]),
            }
        }
        table.row(cells);
    }
    table
}

/// The noise floor, fairness, and trials that do not count.
pub(crate) fn notes(group: &Group, run: &Run) -> Vec<String> {
    let mut notes = Vec::new();
    let floor = |wanted: Metric| {
        group.noise.iter().find(|(metric, _)| *metric == wanted).map(|(_, noise)| {
            format!(
                "{} {} (noise of a trial {})",
                words::metric_name(wanted),
                words::share(noise.detectable),
                words::share(noise.trial)
            )
        })
    };
    let floors: Vec<String> =
        [Metric::Throughput, Metric::P99].into_iter().filter_map(floor).collect();
    if !floors.is_empty() {
        notes.push(format!(
            "Smallest detectable difference (the baseline against itself): {}. \"same\": within \
             ±{}; \"open\": too wide to say; intervals hold at 95 % for all cells together.",
            floors.join(", "),
            words::share(run.plan.margin)
        ));
    }
    // Nothing in a model's time makes one round like the next.
    if run.environment.world != WorldKind::Simulated {
        notes.extend(sentences::if_rounds_are_alike(group));
    }
    for cell in &group.cells {
        if let Some(fairness) = cell.comparison(Metric::Fairness)
            && matches!(fairness.verdict, analysis::Verdict::Better | analysis::Verdict::Worse)
        {
            notes.push(format!(
                "Fairness among clients under {} is {}: Jain's index {}.",
                cell.summary.label,
                words::verdict_word(fairness.verdict),
                words::change(fairness)
            ));
        }
    }
    let all =
        || std::iter::once(&group.baseline).chain(group.cells.iter().map(|cell| &cell.summary));
    // A p99 of zero (a page cache took the writes) is no lack of operations.
    let no_p99 = |cell: &analysis::ComparedCell| {
        cell.comparison(Metric::P99).is_none()
            && cell.comparison(Metric::Throughput).is_some()
            && cell.summary.latency.is_none_or(|latency| latency.p99 > Nanos::ZERO)
    };
    if group.cells.iter().any(no_p99) {
        notes.push(format!(
            "p99 latency is not compared where a cell has fewer than {} operations in all; longer \
             trials (--measure) would have more.",
            analysis::MIN_OPERATIONS_TO_COMPARE_P99
        ));
    }
    notes.extend(transactions::retries(group));
    let beside: Vec<String> = all()
        .filter_map(|summary| {
            let rate = summary.background?.bytes_per_second / f64::from(1 << 20);
            Some(format!("{}: {} MiB/s", summary.label, words::count(rate)))
        })
        .collect();
    if !beside.is_empty() {
        notes.push(format!("Throughput of the background job: {}.", beside.join("; ")));
    }
    let cells = all().map(|summary| (summary.label.clone(), summary.losses.clone()));
    notes.extend(sentences::risks(cells.collect()).iter().map(|risk| format!("{risk}.")));
    for summary in all().filter(|summary| !summary.lost.is_empty()) {
        notes.push(format!(
            "{}: {} trial{} not counted; {}.",
            summary.label,
            summary.lost.len(),
            if summary.lost.len() == 1 { "" } else { "s" },
            sentences::lost(&summary.lost[0])
        ));
    }
    notes
}

/// Each kind of warning once, in the figures of the first trial that has it, and how many have it.
pub(crate) fn warnings(run: &Run) -> Vec<String> {
    let mut counted: Vec<(&Warning, usize)> = Vec::new();
    let all = run.trials.iter().filter_map(|trial| trial.measurement()).flat_map(|measurement| {
        let span = measurement.span;
        measurement.warnings.iter().filter(move |warning| warning.is_worth_telling(span))
    });
    for warning in all {
        match counted.iter_mut().find(|(first, _)| first.same_kind(warning)) {
            Some((_, count)) => *count += 1,
            None => counted.push((warning, 1)),
        }
    }
    counted
        .into_iter()
        .map(|(warning, count)| {
            format!("{} ({count} of {} trials)", sentences::warning(warning), run.trials.len())
        })
        .collect()
}

/// Each reason once, with what it is about: the cells, or where there are many, the levels that they share.
fn refusals(plan: &Plan) -> Vec<String> {
    let mut by_reason: Vec<(&Refusal, Vec<&Cell>)> = Vec::new();
    for refused in &plan.refused {
        match by_reason.iter_mut().find(|(reason, _)| **reason == refused.reason) {
            Some((_, cells)) => cells.push(&refused.cell),
            None => by_reason.push((&refused.reason, vec![&refused.cell])),
        }
    }
    let text = |(reason, cells): (&Refusal, Vec<&Cell>)| {
        let shared: Vec<Factor> = plan
            .factors
            .iter()
            .filter(|factor| cells.iter().all(|it| it.level(factor) == cells[0].level(factor)))
            .cloned()
            .collect();
        match cells.len() {
            1 => format!("{}: {reason}", cells[0].label(&plan.factors)),
            count if shared.is_empty() => format!("{count} cells: {reason}"),
            count => format!("{} ({count} cells): {reason}", cells[0].label(&shared)),
        }
    };
    by_reason.into_iter().map(text).collect()
}

/// What the settings of each cell can lose.
fn risks(plan: &Plan) -> Vec<String> {
    let compared = plan.compared();
    let cells = plan.cells.iter().map(|cell| (cell.label(&compared), plan.losses(cell, None)));
    sentences::risks(cells.collect())
}

/// How long and how often a plan measures, and when it ends.
fn time_line(plan: &Plan, world: WorldKind, intentions: &[Intention]) -> String {
    let timing = &plan.timing;
    let Some(total) = plan.total().filter(|_| plan.workload.replay.is_none()) else {
        let trials = u64::from(timing.rounds) * plan.slots() as u64;
        let most = timing.measure.time();
        let length = intentions.iter().find_map(|it| match it {
            Intention::Replay { length, .. } => {
                Some(most.map_or(*length, |most| most.min(*length)))
            }
            _ => None,
        });
        let total = length.map(|length| {
            let total = Nanos(length.0.saturating_mul(trials));
            match plan.workload.replay.as_ref().map(|it| it.mode) {
                Some(ReplayMode::Open) => {
                    format!(": {total} in all, where the device keeps up with it")
                }
                _ => format!("; at the pace of the trace it would be {total} in all"),
            }
        });
        return format!(
            "Time: {} rounds of {} trials, each as long as the trace takes{}{}",
            timing.rounds,
            plan.slots(),
            most.map_or(String::new(), |time| format!(", {time} at the most")),
            total.unwrap_or_default()
        );
    };
    if let Some(trials) = timing.trials {
        return screening_line(plan, (trials, total), world);
    }
    let alternative = plan.alternative().map_or(String::new(), |time| {
        format!(". Screening (--screen) would take {time} at the most")
    });
    let trials = format!(
        "{} rounds of {} trials, each {} of warm-up and {} measured",
        timing.rounds,
        plan.slots(),
        timing.warmup,
        timing.measure
    );
    let verdicts = match timing.rounds {
        0..MIN_VERDICT_ROUNDS => {
            format!(". No verdict is given on fewer than {MIN_VERDICT_ROUNDS} rounds")
        }
        MIN_VERDICT_ROUNDS..MIN_ROUNDS => {
            ". So few rounds settle only large differences".to_owned()
        }
        _ => String::new(),
    };
    if timing.pilot {
        let time = match (timing.detect, timing.budget) {
            (Some(share), _) => format!(
                "as long as it takes to detect {:.1} % of throughput, a day at most",
                100.0 * share
            ),
            (None, budget) => format!("at most {}", budget.unwrap_or(total)),
        };
        return format!(
            "Time: {time}; a pilot of short visits to the cells chooses how long trials and warm-up \
             last, and how many rounds of {} trials there are",
            plan.slots()
        );
    }
    match (world, timing.budget, timing.budget_clock) {
        (WorldKind::Simulated, Some(budget), BudgetClock::Wall) => format!(
            "Time: until every verdict is settled or {budget} are over; at most {trials} in the \
             simulation{verdicts}{alternative}"
        ),
        (WorldKind::Simulated, ..) => {
            format!("Time: at most {trials}: {total} in the simulation{verdicts}{alternative}")
        }
        _ => format!("Time: at most {trials}: {total}{verdicts}{alternative}"),
    }
}

/// What a screening does and takes, and what every cell would.
fn screening_line(plan: &Plan, (trials, total): (u64, Nanos), world: WorldKind) -> String {
    let timing = &plan.timing;
    let simulated = if world == WorldKind::Simulated { " in the simulation" } else { "" };
    let conditions = match plan.baselines().len() {
        1 => String::new(),
        several => format!(" over all {several} conditions"),
    };
    let every_cell = plan.alternative().map_or(String::new(), |time| {
        let too_long = timing.budget.is_some_and(|budget| simulated.is_empty() && time > budget);
        let why = if too_long { ", which the budget does not allow" } else { "" };
        format!(". Every cell in 12 rounds (--screen=false) would take {time}{simulated}{why}")
    });
    format!(
        "Time: screening: {} of {} cells first, then the settings that could win in throughput{conditions}; at \
         most {trials} trials, each {} of warm-up and {} measured: {}{simulated}{every_cell}",
        plan.fraction().len(),
        plan.cells.len(),
        timing.warmup,
        timing.measure,
        total
    )
}

/// What a comparison will do, before it does it.
pub fn plan_text(
    plan: &Plan,
    world: WorldKind,
    (intentions, caveats): (&[Intention], &[Caveat]),
    width: usize,
) -> String {
    let mut out = String::new();
    let mut line = |text: String| {
        let _ = writeln!(out, "{}", words::wrap(&text, width, 2));
    };
    line(format!("Target: {}", plan.target));
    line(format!("Workload: {}", workload_line(plan, world)));
    for dropped in &plan.dropped {
        line(format!("Dropped: {}: {}", dropped.factor, dropped.reason));
    }
    if let Some(used) = &plan.preset {
        out.push_str(&sentences::preset::of_plan(used, width));
    }
    let mut line = |text: String| {
        let _ = writeln!(out, "{}", words::wrap(&text, width, 2));
    };
    line(format!(
        "Cells: {}, {} baseline{} (*) run {} a round",
        plan.cells.len(),
        plan.baselines().len(),
        if plan.baselines().len() == 1 { "" } else { "s" },
        if plan.screens() { "once" } else { "twice" }
    ));
    for cell in &plan.cells {
        let mark = if cell.baseline.is_none() { '*' } else { ' ' };
        let _ = writeln!(out, "  {mark} {}", cell.label(&plan.factors));
    }
    if plan.cells.iter().all(|cell| cell.baseline.is_none()) {
        let _ = writeln!(out, "Nothing is compared: name levels, such as --schedulers all");
    }
    for text in sentences::preset::names(plan, true) {
        let _ = writeln!(out, "{}", words::wrap_after("    ", &text, width, 6));
    }
    for risk in risks(plan) {
        let _ = writeln!(out, "{}", words::wrap(&risk, width, 2));
    }
    let mut line = |text: String| {
        let _ = writeln!(out, "{}", words::wrap(&text, width, 2));
    };
    for text in refusals(plan) {
        line(format!("Refused: {text}"));
    }
    for intention in intentions {
        line(format!("Will {}", sentences::intention(intention)));
    }
    for caveat in caveats {
        line(format!("Note: {}", sentences::caveat(caveat)));
    }
    for factor in &plan.slow {
        line(format!(
            "Order: each change of {factor} lays the files out anew, so that a round runs all trials with one \
             {factor} before those with the next"
        ));
    }
    line(time_line(plan, world, intentions));
    out
}
