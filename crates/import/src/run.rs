//! Outputs → one run: cells by what was set and asked for, repeats as rounds.

use crate::{
    DecodeError, DeviceReport, Format, ImportError, Output, Part, PieceKind, Source, Text, asked,
    decode,
    devices::Devices,
    line::Line,
    table::{self, Known},
    transcript, unknown,
};
use plan::{Cell, Factor, Level, Plan, Role, TRIAL_OVERHEAD, Timing};
use record::{
    Caveat, CounterSample, Doubt, Environment, Excerpt, Imported, ImportedRate, Measurement,
    Outcome, Quantity, Quoted, Run, RunState, Trial, TrialId, WorldKind,
};
use std::collections::BTreeMap;
use units::{Bytes, Nanos};
use workload::{EngineKind, Workload};

/// The most runs that one import takes: as many as a plan may have cells.
const MAX_RUNS: usize = 2000;

/// A trial before its cell has a place.
struct Found {
    levels: BTreeMap<Factor, Level>,
    imported: Imported,
    seconds: f64,
    failure: Option<Quoted>,
    counters: Vec<CounterSample>,
    asked: crate::Conditions,
    /// Which set-up of which file it is of.
    epoch: (usize, u64),
}

/// One run of all outputs in all files. `now` is in seconds since 1970.
pub fn import(
    sources: &[Source<'_>],
    name: &str,
    now: i64,
    version: &str,
) -> Result<(Run, Vec<crate::Conditions>), ImportError> {
    let mut found = Vec::new();
    let mut environment = environment(sources, version);
    let mut context = None;
    let mut seen = String::new();
    for (place, source) in sources.iter().enumerate() {
        let text = decode(source.bytes).map_err(|cause: DecodeError| ImportError::Decode {
            file: source.file.clone(),
            source: cause,
        })?;
        host(&mut environment, &text);
        let transcript = transcript::read(&text);
        if transcript.parts.iter().any(|it| matches!(it.piece.kind, PieceKind::Variables(_))) {
            context = Some("variables of a server");
        }
        let mut here = of_file(source, place, &transcript.parts, &transcript.lines);
        let known: Vec<Known<'_>> = here.iter().enumerate().map(known_of).collect();
        for (cell, doubt) in table::misprints(&transcript.prose, &transcript.lines, &known) {
            here[cell].imported.doubts.push(doubt);
        }
        if here.is_empty() && seen.is_empty() {
            seen = unknown::seen(&transcript.lines);
        }
        found.append(&mut here);
    }
    if found.is_empty() {
        let file = sources.first().map(|source| source.file.clone()).unwrap_or_default();
        return Err(match context {
            Some(what) => ImportError::ContextAlone { file, what },
            None => ImportError::NothingKnown { file, seen },
        });
    }
    if found.len() > MAX_RUNS {
        return Err(ImportError::TooMany { runs: found.len(), limit: MAX_RUNS });
    }
    let asked = found.iter().map(|it| it.asked.clone()).collect();
    label_files(&mut found);
    Ok((run_of(found, name, now, environment, sources), asked))
}

fn known_of((place, found): (usize, &Found)) -> Known<'_> {
    let names = found
        .levels
        .iter()
        .filter(|(factor, _)| factor.role() != Role::Condition)
        .map(|(_, level)| level.0.to_ascii_lowercase())
        .collect();
    Known {
        cell: place,
        names,
        benchmark: benchmark(&found.levels),
        figures: &found.imported.figures,
    }
}

fn benchmark(levels: &BTreeMap<Factor, Level>) -> String {
    levels.get(&Factor::Benchmark).map(|level| level.0.clone()).unwrap_or_default()
}

/// The trials of a file.
fn of_file(source: &Source<'_>, place: usize, parts: &[Part], lines: &[Line<'_>]) -> Vec<Found> {
    let mut found: Vec<Found> = Vec::new();
    let mut devices: Vec<&Part> = Vec::new();
    for part in parts {
        match &part.piece.kind {
            PieceKind::Run(output) => {
                let trial = trial(source, place, part, (**output).clone(), lines);
                if found.iter().any(|before| is_printed_again(before, &trial, part)) {
                    continue;
                }
                match found.last_mut().filter(|before| is_interval(before, &trial, part)) {
                    Some(before) => extend(before, trial),
                    None => found.push(trial),
                }
            }
            PieceKind::Devices(_) => devices.push(part),
            PieceKind::Variables(_) => {}
        }
    }
    let has_runs = !found.is_empty();
    for part in devices {
        let PieceKind::Devices(reports) = &part.piece.kind else { continue };
        // A report beside a run is of that run: of the nearest with the same set-up.
        let beside = found
            .iter_mut()
            .filter(|it| it.epoch == (place, part.epoch))
            .min_by_key(|it| it.imported.excerpt.first_line.abs_diff(part.piece.first));
        match beside {
            Some(trial) if has_runs => {
                let devices = Devices::of(reports, lines);
                trial.counters.extend(devices.counters());
                trial.imported.doubts.extend(devices.doubts);
            }
            _ => found.push(device_trial(source, place, part, reports, lines)),
        }
    }
    found
}

/// Whether this is the run before in fio's other form: `--output-format=json,normal` prints both, JSON first.
fn is_printed_again(before: &Found, next: &Found, part: &Part) -> bool {
    let rate = |found: &Found| found.imported.rate.map_or(0.0, |rate| rate.value);
    part.piece.format == Format::Fio
        && before.epoch == next.epoch
        && before.asked.name == next.asked.name
        // JSON has its options, and normal output after it the name alone.
        && !before.asked.benchmark.is_empty()
        && next.asked.benchmark == "job"
        && before.seconds == next.seconds
        && (rate(before) - rate(next)).abs() <= 0.03 * rate(before)
}

/// Whether an output of fio goes on where the one before stopped: `--status-interval` prints the sums from
/// the beginning each time.
fn is_interval(before: &Found, next: &Found, part: &Part) -> bool {
    part.piece.format == Format::Fio
        && before.epoch == next.epoch
        && before.levels == next.levels
        && before.asked.name == next.asked.name
        && next.seconds > before.seconds
        && {
            let bytes = |found: &Found| -> f64 {
                let all = found.imported.figures.iter();
                all.filter(|it| it.quantity == Quantity::Bytes).map(|it| it.value).sum()
            };
            // Runs that are repeated are as long as one another; these grow by an interval.
            bytes(next) > bytes(before) && before.seconds * 1.001 < next.seconds
        }
}

/// The later output counts, and says how many there were.
fn extend(before: &mut Found, mut next: Found) {
    let reports = before.imported.doubts.iter().find_map(|doubt| match doubt {
        Doubt::Cumulative { reports } => Some(*reports),
        _ => None,
    });
    next.imported.doubts.push(Doubt::Cumulative { reports: reports.unwrap_or(1) + 1 });
    next.imported.excerpt.first_line = before.imported.excerpt.first_line;
    *before = next;
}

fn trial(
    source: &Source<'_>,
    place: usize,
    part: &Part,
    mut output: Output,
    lines: &[Line<'_>],
) -> Found {
    asked::flags(&mut output, part, lines);
    let program = part.piece.tool.split(' ').next().unwrap_or_default();
    let mut levels = asked::settings(source, part);
    let mut condition = |factor: Factor, value: Option<String>| {
        if let Some(level) = value.and_then(|value| factor.level(&value).ok()) {
            levels.entry(factor).or_insert(level);
        }
    };
    let asked = &output.conditions;
    let words: Vec<&str> = [program, &asked.benchmark]
        .into_iter()
        .chain(asked.others.iter().map(String::as_str))
        .collect();
    condition(Factor::Benchmark, Some(words.join(" ")));
    condition(Factor::Clients, asked.clients.map(|it| it.to_string()));
    condition(Factor::BlockSize, asked.block_size.map(|it| it.to_string()));
    condition(Factor::Depth, asked.depth.map(|it| it.to_string()));
    Found {
        levels,
        seconds: output.seconds.unwrap_or(0.0),
        failure: output.failure,
        counters: Vec::new(),
        asked: output.conditions,
        epoch: (place, part.epoch),
        imported: Imported {
            tool: part.piece.tool.clone(),
            excerpt: excerpt(source, part),
            rate: output.rate,
            figures: output.figures,
            doubts: output.doubts,
        },
    }
}

fn excerpt(source: &Source<'_>, part: &Part) -> Excerpt {
    Excerpt { file: source.file.clone(), first_line: part.piece.first, last_line: part.piece.last }
}

/// Reports without a run beside them: what the busiest device did.
fn device_trial(
    source: &Source<'_>,
    place: usize,
    part: &Part,
    reports: &[DeviceReport],
    lines: &[Line<'_>],
) -> Found {
    let devices = Devices::of(reports, lines);
    let mut imported = Imported {
        tool: part.piece.tool.clone(),
        excerpt: excerpt(source, part),
        rate: devices.rate().map(|(value, unit, line)| ImportedRate { value, unit, line }),
        doubts: devices.doubts.clone(),
        ..Imported::default()
    };
    for report in reports {
        let subject = match report.report {
            0 => report.device.clone(),
            number => format!("{} report {number}", report.device),
        };
        for (name, value) in &report.columns {
            imported.figures.push(record::ImportedFigure {
                subject: subject.clone(),
                quantity: Quantity::Column(name.clone()),
                value: *value,
                line: report.line,
            });
        }
    }
    let mut levels = asked::settings(source, part);
    let what = match devices.device.as_str() {
        "" => part.piece.tool.clone(),
        device => match Devices::count(reports) {
            1 => format!("{} {device}", part.piece.tool),
            all => format!("{} {device} (busiest of {all})", part.piece.tool),
        },
    };
    if let Ok(level) = Factor::Benchmark.level(&what) {
        levels.insert(Factor::Benchmark, level);
    }
    Found {
        levels,
        seconds: devices.counted.len() as f64,
        failure: None,
        counters: devices.counters(),
        asked: crate::Conditions { benchmark: what, ..crate::Conditions::default() },
        epoch: (place, part.epoch),
        imported,
    }
}

/// Files that nothing else tells apart are cells of their names.
fn label_files(found: &mut [Found]) {
    let files: std::collections::BTreeSet<&str> =
        found.iter().map(|it| it.imported.excerpt.file.as_str()).collect();
    let is_choice = |factor: &Factor| factor.role() != Role::Condition;
    let is_named = found.iter().any(|it| it.levels.keys().any(is_choice));
    if files.len() < 2 || is_named {
        return;
    }
    for it in found {
        let file = it.imported.excerpt.file.rsplit('/').next().unwrap_or_default();
        if let Ok(level) = Factor::Label.level(file) {
            it.levels.insert(Factor::Label, level);
        }
    }
}

fn environment(sources: &[Source<'_>], version: &str) -> Environment {
    let files: Vec<String> = sources.iter().map(|source| source.file.clone()).collect();
    Environment {
        world: WorldKind::Imported,
        spindle_version: version.to_owned(),
        target: format!("imported:{}", files.first().cloned().unwrap_or_default()),
        device: files.join(", "),
        caveats: vec![Caveat::Imported { files }],
        ..Environment::default()
    }
}

/// What iostat's first line says of the host.
fn host(environment: &mut Environment, text: &Text) {
    let banner =
        text.lines.iter().find(|line| line.starts_with("Linux ") && line.ends_with("CPU)"));
    let Some(banner) = banner else { return };
    let mut words = banner.split_whitespace().skip(1);
    if environment.kernel.is_empty() {
        environment.kernel = words.next().unwrap_or_default().to_owned();
        let name = words.next().unwrap_or_default();
        environment.hostname = name.trim_matches(['(', ')']).to_owned();
        let cpus = banner.rsplit('(').next().and_then(|it| it.split(' ').next()?.parse().ok());
        environment.cpus = cpus.unwrap_or(0);
    }
}

/// Factors in the order of a table's columns: what is compared first.
fn factors(found: &[Found]) -> Vec<Factor> {
    let mut levels: BTreeMap<&Factor, Vec<Option<&Level>>> = BTreeMap::new();
    for factor in found.iter().flat_map(|it| it.levels.keys()) {
        levels
            .entry(factor)
            .or_insert_with(|| found.iter().map(|it| it.levels.get(factor)).collect());
    }
    let varies = |all: &Vec<Option<&Level>>| all.windows(2).any(|pair| pair[0] != pair[1]);
    let mut all: Vec<Factor> = levels
        .iter()
        .filter(|(factor, all)| varies(all) || factor.role() == Role::HostSetting)
        .map(|(factor, _)| (*factor).clone())
        .collect();
    all.sort_by_key(|factor| factor.role() == Role::Condition);
    all
}

fn run_of(
    found: Vec<Found>,
    name: &str,
    now: i64,
    environment: Environment,
    sources: &[Source<'_>],
) -> Run {
    let factors = factors(&found);
    let (cells, places) = cells(&found);
    let measure = found.iter().map(|it| it.seconds).fold(0.0, f64::max);
    let mut repeats: BTreeMap<usize, u32> = BTreeMap::new();
    let trials: Vec<Trial> = found
        .into_iter()
        .zip(places)
        .map(|(found, cell)| {
            let round = repeats.entry(cell).or_default();
            let id = TrialId { round: *round, cell, replica: 0 };
            *round += 1;
            trial_of(found, id, now)
        })
        .collect();
    let rounds = repeats.values().copied().max().unwrap_or(0);
    let plan = Plan {
        target: environment.target.clone(),
        own_loop: false,
        size: Bytes(sources.iter().map(|source| source.bytes.len() as u64).sum()),
        engine: EngineKind::default(),
        workload: Workload::default(),
        factors,
        cells,
        timing: Timing {
            warmup: Nanos::ZERO,
            measure: plan::TrialLength::Time(Nanos::from_secs_f64(measure)),
            rounds,
            budget: None,
            budget_clock: plan::BudgetClock::Wall,
            overhead: TRIAL_OVERHEAD,
            pilot: false,
            detect: None,
            trials: None,
        },
        preparation: Nanos::ZERO,
        margin: 0.03,
        page_cache: None,
        slow: Vec::new(),
        seed: 0,
        events: false,
        refused: Vec::new(),
        dropped: Vec::new(),
        published: Vec::new(),
        alternate: false,
        atomic_write: None,
        preset: None,
    };
    let name = name.to_owned();
    Run {
        name,
        started_at: now,
        environment,
        plan,
        state: RunState::Done,
        trials,
        events: Vec::new(),
        later: Vec::new(),
    }
}

fn trial_of(found: Found, id: TrialId, now: i64) -> Trial {
    let outcome = match &found.failure {
        Some(quoted) => Outcome::Failed {
            error: format!(
                "{} (line {} of {})",
                quoted.text, quoted.line, found.imported.excerpt.file
            ),
        },
        None => Outcome::Valid(Box::new(Measurement {
            span: Nanos::from_secs_f64(found.seconds),
            counters: found.counters,
            imported: Some(found.imported),
            ..Measurement::default()
        })),
    };
    Trial { id, started_at: now, applied: Vec::new(), outcome }
}

/// Cells, each once, a condition's baseline before the others; and the cell of each trial.
fn cells(found: &[Found]) -> (Vec<Cell>, Vec<usize>) {
    let condition = |levels: &BTreeMap<Factor, Level>| -> Vec<(Factor, Level)> {
        let all = levels.iter().filter(|(factor, _)| factor.role() == Role::Condition);
        all.map(|(factor, level)| (factor.clone(), level.clone())).collect()
    };
    let mut cells: Vec<Cell> = Vec::new();
    let mut baselines: Vec<(Vec<(Factor, Level)>, usize)> = Vec::new();
    let mut places = Vec::new();
    for it in found {
        if let Some(place) = cells.iter().position(|cell| cell.levels == it.levels) {
            places.push(place);
            continue;
        }
        let here = condition(&it.levels);
        let baseline = baselines.iter().find(|(other, _)| *other == here).map(|(_, place)| *place);
        if baseline.is_none() {
            baselines.push((here, cells.len()));
        }
        places.push(cells.len());
        cells.push(Cell { levels: it.levels.clone(), baseline });
    }
    (cells, places)
}
