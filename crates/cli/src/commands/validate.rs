//! `spindle validate`: the simulated world beside the emulated one.

use crate::{
    exit::{Exit, Usage},
    interrupt,
    pending::settle_pending,
    progress::Progress,
    say,
};
use ::validate::{
    Agreement, CellResult, Cells, MeasuredTransport, Observer, Settings, Step, TOLERANCE,
    ValidateError, Validation,
};
use anyhow::Context;
use clap::{Args, builder::PossibleValuesParser, builder::TypedValueParser};
use emulate::Transport;
use plan::Plan;
use report::{ShownAgreement, ShownCell, ShownTransport, ShownValidation};
use runner::Watcher;
use std::{path::PathBuf, time::Duration};
use units::Nanos;

/// The flags of `validate`.
#[derive(Debug, Args)]
pub struct ValidateArgs {
    /// Profiles' names, or files that end in .toml; without any, hdd-15k, raid10-8x15k (that with a
    /// battery, without its cache), raid10-8x15k-bbu, ssd-x25e and ssd-sata-2018
    #[arg(value_name = "PROFILE")]
    profiles: Vec<String>,
    /// Which cells: a short set with short trials, the full set, or one part of it
    #[arg(
        long,
        value_name = "CELLS",
        default_value = "short",
        value_parser = PossibleValuesParser::new(Cells::names()).try_map(|name| name.parse::<Cells>())
    )]
    cells: Cells,
    /// Only these schedulers (and the baseline)
    #[arg(long, value_delimiter = ',', value_name = "LIST")]
    schedulers: Vec<String>,
    /// Write the figures into this folder: CSV files and a manifest, as in data/validation
    #[arg(long, short = 'o', value_name = "FOLDER")]
    output: Option<PathBuf>,
    /// Keep the run files of the emulated runs in this folder, and take those that are there in place
    /// of measuring again
    #[arg(long, value_name = "FOLDER")]
    keep: Option<PathBuf>,
    /// Rounds of emulated trials
    #[arg(long, default_value_t = Settings::default().rounds)]
    rounds: u32,
    /// Time measured in each trial, in place of what suits the profile: disks 4 s, arrays 2 s, flash
    /// 1 s; 700 ms for the short cells
    #[arg(long, value_name = "TIME")]
    measure: Option<Nanos>,
    /// Time measured in each trial that measures the transport to emulated devices
    #[arg(long, value_name = "TIME", default_value = "2s")]
    transport_measure: Nanos,
    /// How requests reach emulated devices; the published figures are of `fuse`
    #[arg(long, value_name = "ublk|fuse|fuse-uring", default_value = "fuse")]
    transport: Transport,
    /// Print all as JSON
    #[arg(long)]
    json: bool,
}

impl ValidateArgs {
    /// Runs the cells in both worlds and shows how far they agree.
    pub fn run(self) -> anyhow::Result<Exit> {
        let stop = interrupt::flag()?;
        // A host without emulated devices says so before anything is made.
        Transport::choose(Some(self.transport))?;
        settle_pending(&stop)?;
        if let Some(folder) = &self.output {
            ::validate::check_output(folder).map_err(explain)?;
        }
        let settings = self.settings();
        let validation = match ::validate::validate(&settings, &stop, &mut Shown) {
            Ok(validation) => validation,
            Err(ValidateError::Interrupted) => {
                say::note(match self.keep {
                    Some(_) => "interrupted; the same command goes on with the runs that are kept",
                    None => "interrupted; with --keep FOLDER, runs that are complete are kept",
                });
                return Ok(Exit::Interrupted);
            }
            Err(error) => return Err(explain(error)),
        };
        if self.json {
            say::json(&serde_json::json!({
                "validation": validation,
                "agreement": agreement(&validation)
                    .map(|(profile, all)| serde_json::json!({ "profile": profile, "figures": all }))
                    .collect::<Vec<_>>(),
            }))?;
        } else {
            say::result(&report::validation(&shown(&validation), crate::WIDTH))?;
        }
        if let Some(folder) = &self.output {
            let files = ::validate::write(&validation, &settings.command, folder)
                .map_err(explain)
                .context("the figures above are not written")?;
            for file in files {
                say::note(&format!("wrote {}", file.display()));
            }
        }
        Ok(Exit::Done)
    }

    fn settings(&self) -> Settings {
        let default = Settings::default();
        let words = std::env::args().skip(1);
        Settings {
            profiles: match self.profiles.is_empty() {
                true => default.profiles,
                false => self.profiles.clone(),
            },
            cells: self.cells,
            schedulers: self.schedulers.clone(),
            rounds: self.rounds,
            measure: self.measure,
            transport_measure: self.transport_measure,
            transport: self.transport,
            keep: self.keep.clone(),
            command: ["spindle".to_owned()].into_iter().chain(words).collect::<Vec<_>>().join(" "),
        }
    }
}

/// As what `exit::of_error` tells apart.
fn explain(error: ValidateError) -> anyhow::Error {
    match error {
        ValidateError::World(error) => error.into(),
        ValidateError::Run(error) => error.into(),
        ValidateError::Plan(error) => Usage(error.to_string()).into(),
        ValidateError::Profile(error) => Usage(error.to_string()).into(),
        ValidateError::Exists { .. } => Usage(error.to_string()).into(),
        other => other.into(),
    }
}

/// Shows on stderr what runs.
struct Shown;

impl Observer for Shown {
    fn begins(&mut self, step: &Step, plan: &Plan) -> Box<dyn Watcher> {
        match step {
            // Short, and many.
            Step::Simulated { .. } => Box::new(Silent),
            Step::Transport { .. } | Step::Gap { .. } | Step::Emulated { .. } => {
                let about = plan.total().map(|total| format!(" (about {total})"));
                say::note(&format!("{step}{}", about.unwrap_or_default()));
                Box::new(Progress::new(plan, record::WorldKind::Emulated, 0, false))
            }
        }
    }

    fn busy(&mut self, step: &Step, pause: Duration) {
        say::note(&format!(
            "{step}: the host was too busy to keep the model's time; trying again in {} s",
            pause.as_secs()
        ));
    }
}

/// Watches nothing.
struct Silent;

impl Watcher for Silent {}

/// What stands for all profiles.
const ALL: &str = "all";

/// The agreement of each profile, and of all where there are several.
fn agreement(validation: &Validation) -> impl Iterator<Item = (&str, Vec<Agreement>)> {
    let profiles = validation.profiles();
    let all = (profiles.len() > 1).then(|| (ALL, validation.agreement(None)));
    profiles.into_iter().map(|profile| (profile, validation.agreement(Some(profile)))).chain(all)
}

fn shown(validation: &Validation) -> ShownValidation {
    let row = |profile: &str, it: &Agreement| ShownAgreement {
        profile: profile.to_owned(),
        figure: it.figure.title().to_owned(),
        cells: it.cells,
        median_error: it.median_error,
        within: it.within,
    };
    ShownValidation {
        transports: validation.transports.iter().map(shown_transport).collect(),
        cells: validation.cells.iter().map(shown_cell).collect(),
        without_trials: validation.without_trials.clone(),
        agreement: agreement(validation)
            .flat_map(|(profile, all)| all.iter().map(|it| row(profile, it)).collect::<Vec<_>>())
            .collect(),
        taken_percent: validation.taken_percent(),
        tolerance: TOLERANCE,
    }
}

fn shown_transport(measured: &MeasuredTransport) -> ShownTransport {
    let MeasuredTransport { profile, set, pattern, figures, .. } = measured;
    ShownTransport {
        label: format!("{profile}, {set}, {pattern}"),
        round_trip: figures.round_trip,
        jitter_p50: figures.jitter_at(0.5),
        jitter_p99: figures.jitter_at(0.99),
        turnaround: figures.turnaround,
        gap: figures.gap,
        write: figures.write,
    }
}

fn shown_cell(cell: &CellResult) -> ShownCell {
    let emulated = &cell.emulated;
    ShownCell {
        profile: cell.profile.clone(),
        label: cell.cell.clone(),
        emulated: emulated.throughput,
        emulated_error: emulated.throughput_error,
        simulated: cell.simulated.throughput,
        ratios: cell.ratios(),
        p99_ms: emulated.p99.as_millis_f64(),
        p99_error_ms: emulated.p99_error_ns.map(|ns| ns / 1e6),
        late_us: emulated.late_p99_us,
    }
}
