//! `spindle profiles`: the storage devices that can be emulated and simulated.

use crate::exit::{Exit, Usage};
use crate::say;
use anyhow::Context;
use clap::{Args, Subcommand};
use device::disksim::{TraceEntry, parse_trace};
use device::profile::{self, Kind, Profile};
use device::{DriveFiles, DriveFormat};
use report::{Align, Table};
use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
};
use units::Nanos;

/// The flags of `profiles`.
#[derive(Debug, Args)]
pub struct ProfilesArgs {
    #[command(subcommand)]
    verb: Option<Verb>,
    /// Print as JSON
    #[arg(long, global = true)]
    json: bool,
}

#[derive(Debug, Subcommand)]
enum Verb {
    /// List the profiles that come with the program
    List,
    /// Show what a device does: capacity, sequential rates, random operations by depth
    Show {
        /// A profile's name, or a file that ends in .toml
        profile: String,
        /// Seed of all random streams
        #[arg(long, default_value_t = 1)]
        seed: u64,
    },
    /// Make a profile of a drive that is described in DiskSim's files (.diskspecs, .model, .layout,
    /// .seek, .parv)
    Import {
        /// The folder with the drive's files
        folder: PathBuf,
        /// Which drive, where the folder describes several: its name or that of its file
        #[arg(long, value_name = "NAME")]
        drive: Option<String>,
        /// Write the profile here instead of to standard output
        #[arg(short, long, value_name = "FILE")]
        output: Option<PathBuf>,
    },
    /// Replay a trace on a device alone, one request outstanding, and compare its times with those
    /// that the trace records
    Replay {
        /// A profile's name, or a file that ends in .toml
        profile: String,
        /// Lines of: R|W flag LBN count service_us think_us
        trace: PathBuf,
        /// Seed of all random streams
        #[arg(long, default_value_t = 1)]
        seed: u64,
    },
}

impl ProfilesArgs {
    /// Does what the word after `profiles` says; lists without one.
    pub fn run(self) -> anyhow::Result<Exit> {
        match self.verb.unwrap_or(Verb::List) {
            Verb::List => list(self.json)?,
            Verb::Show { profile, seed } => show(&profile, seed, self.json)?,
            Verb::Import { folder, drive, output } => {
                import_drive(&folder, drive.as_deref(), output.as_deref())?;
            }
            Verb::Replay { profile, trace, seed } => replay(&profile, &trace, seed, self.json)?,
        }
        Ok(Exit::Done)
    }
}

/// What somebody wrote wrong: exit code 2.
fn usage(error: impl std::fmt::Display) -> anyhow::Error {
    Usage(error.to_string()).into()
}

fn list(json: bool) -> anyhow::Result<()> {
    let profiles = profile::builtin_names().map(profile::find).collect::<Result<Vec<_>, _>>()?;
    if json {
        let all: Vec<_> = profiles
            .iter()
            .map(|p| serde_json::json!({"name": p.name, "kind": p.kind_name(), "title": p.title}))
            .collect();
        say::json(&all)?;
        return Ok(());
    }
    for profile in &profiles {
        say::line(&format!("{:<18}{}", profile.name, profile.kind_name()))?;
        say::line(&format!("    {}", report::wrap(&profile.title, crate::WIDTH - 4, 4)))?;
    }
    Ok(())
}

fn show(name: &str, seed: u64, json: bool) -> anyhow::Result<()> {
    let profile = profile::load(name).map_err(usage)?;
    let sheet = profile::measure(&profile, seed).map_err(usage)?;
    if json {
        say::json(&sheet)?;
        return Ok(());
    }
    for line in sheet.to_string().lines() {
        match line.chars().count() > crate::WIDTH {
            true => say::line(&report::wrap(line, crate::WIDTH, 2))?,
            false => say::line(line)?,
        }
    }
    for note in &profile.notes {
        say::line(&format!("\n{}", report::wrap(&format!("Note: {note}"), crate::WIDTH, 2)))?;
    }
    say::line("\nWhere its numbers come from")?;
    for (field, source) in &profile.sources {
        say::line(&format!(
            "  {}",
            report::wrap(&format!("{field}: {source}"), crate::WIDTH - 2, 4)
        ))?;
    }
    Ok(())
}

fn read(path: &Path) -> anyhow::Result<String> {
    let bytes =
        std::fs::read(path).map_err(|error| usage(format!("{}: {error}", path.display())))?;
    // Old drives' files have the odd byte beyond ASCII in their comments.
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// The message for a folder without a file of any format.
fn no_description(folder: &Path) -> String {
    let formats: Vec<String> = DriveFormat::ALL
        .iter()
        .map(|format| format.spec())
        .map(|spec| format!("{} (.{})", spec.title, spec.endings.join(", .")))
        .collect();
    format!("{}: no file that describes a drive; read are {}", folder.display(), formats.join("; "))
}

fn import_drive(folder: &Path, drive: Option<&str>, output: Option<&Path>) -> anyhow::Result<()> {
    let entries = std::fs::read_dir(folder)
        .map_err(|error| usage(format!("{}: {error}", folder.display())))?;
    let mut found: Vec<(DriveFormat, PathBuf)> = Vec::new();
    for entry in entries {
        let path = entry?.path();
        let ending = path.extension().unwrap_or_default().to_string_lossy().into_owned();
        if let Some(format) = DriveFormat::of_ending(&ending).filter(|_| path.is_file()) {
            found.push((format, path));
        }
    }
    found.sort_by(|(_, one), (_, other)| one.cmp(other));
    let format = DriveFormat::ALL.iter().find(|format| found.iter().any(|(it, _)| it == *format));
    let format = *format.ok_or_else(|| usage(no_description(folder)))?;
    let mut files = DriveFiles::default();
    for (_, path) in found.iter().filter(|(it, _)| *it == format) {
        files.files.push((path.display().to_string(), read(path)?));
    }
    let imported = format.import(&files, drive).map_err(usage)?;
    let folder = folder.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let source =
        format!("imported from the {} files of {} in {folder}", format.spec().title, imported.name);
    let title = format!("{} (imported)", drive.unwrap_or(&folder));
    let sources = BTreeMap::from([("disk".to_owned(), source)]);
    let toml = Profile::toml(&title, Vec::new(), sources, &Kind::Disk(imported.spec))?;
    for note in &imported.notes {
        say::note(note);
    }
    match output {
        None => say::result(&toml)?,
        Some(path) => {
            std::fs::write(path, &toml).with_context(|| path.display().to_string())?;
            say::note(&format!("wrote {}", path.display()));
        }
    }
    Ok(())
}

fn replay(name: &str, trace: &Path, seed: u64, json: bool) -> anyhow::Result<()> {
    let profile = profile::load(name).map_err(usage)?;
    let entries: Vec<TraceEntry> =
        parse_trace(&trace.display().to_string(), &read(trace)?).map_err(usage)?;
    let mut device = profile.build(seed).map_err(usage)?;
    let result = device::replay(&mut *device, &entries);
    let measured: Vec<Nanos> = entries.iter().map(|entry| entry.service).collect();
    let demerit_ms = device::demerit_ms(&measured, &result.service);
    let (recorded, simulated) = (Summary::of(&measured), Summary::of(&result.service));
    if json {
        let value = serde_json::json!({
            "profile": profile.name, "requests": entries.len(), "demerit_ms": demerit_ms,
            "from_cache": result.from_cache, "out_of_range": result.out_of_range,
            "recorded_ms": recorded.json(), "simulated_ms": simulated.json(),
        });
        say::json(&value)?;
        return Ok(());
    }
    say::line(&format!("{}: {} requests replayed (simulated)", profile.name, entries.len()))?;
    let mut table = Table::new(&[
        ("service time", Align::Left),
        ("mean", Align::Right),
        ("p50", Align::Right),
        ("p95", Align::Right),
        ("p99", Align::Right),
        ("max", Align::Right),
    ]);
    table.row(recorded.row("as the trace records it"));
    table.row(simulated.row("on the model"));
    say::result(&table.text(crate::WIDTH))?;
    say::line(&format!(
        "Demerit figure {demerit_ms:.3} ms ({:.1} % of the recorded mean); {} from the cache.",
        100.0 * demerit_ms / recorded.mean.as_millis_f64().max(1e-9),
        result.from_cache
    ))?;
    if result.out_of_range > 0 {
        say::line(&format!(
            "{} requests lie beyond the device's end and were refused: is this its trace?",
            result.out_of_range
        ))?;
    }
    Ok(())
}

struct Summary {
    mean: Nanos,
    quantiles: [Nanos; 4],
}

impl Summary {
    fn of(times: &[Nanos]) -> Self {
        let mut sorted = times.to_vec();
        sorted.sort_unstable();
        let count = sorted.len().max(1);
        let at = |share: f64| {
            let index = (share * count as f64).ceil() as usize;
            sorted.get(index.clamp(1, count) - 1).copied().unwrap_or_default()
        };
        let total: u64 = sorted.iter().map(|time| time.0).sum();
        let quantiles = [at(0.5), at(0.95), at(0.99), at(1.0)];
        Summary { mean: Nanos(total / count as u64), quantiles }
    }

    fn row(&self, name: &str) -> [String; 6] {
        let [p50, p95, p99, max] = self.quantiles.map(|time| time.to_string());
        [name.to_owned(), self.mean.to_string(), p50, p95, p99, max]
    }

    fn json(&self) -> serde_json::Value {
        let [p50, p95, p99, max] = self.quantiles.map(Nanos::as_millis_f64);
        serde_json::json!({
            "mean": self.mean.as_millis_f64(), "p50": p50, "p95": p95, "p99": p99, "max": max,
        })
    }
}
