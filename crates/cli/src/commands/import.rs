//! `spindle import`.

use crate::{
    exit::{Exit, Usage},
    runs_folder, say,
};
use analysis::Analysis;
use anyhow::Context;
use clap::Args;
use import::{CellFile, ImportError, Source, Unplanned};
use record::{Run, RunState, Store};
use std::{
    io::Read,
    path::{Path, PathBuf},
    time::{SystemTime, UNIX_EPOCH},
};
use units::Bytes;

/// The flags of `import`.
#[derive(Debug, Args)]
pub struct ImportArgs {
    /// Files with what sysbench, fio, pgbench, go-tpc, tpcc-mysql, HammerDB, iostat -x or vmstat printed,
    /// each alone or in a long transcript; `-` is stdin. gzip is unpacked
    #[arg(value_name = "FILE", required_unless_present = "cells")]
    files: Vec<String>,
    /// A file and the cell it is of: a scheduler's name, FACTOR:LEVEL (several with commas), or a label
    #[arg(long = "cell", value_name = "NAME=FILE")]
    cells: Vec<String>,
    /// Write a plan file that measures the same properly, with repeats
    #[arg(long, value_name = "FILE")]
    plan: Option<PathBuf>,
    /// With --plan: where it is to be measured
    #[arg(long, value_name = "TARGET", requires = "plan", default_value = "/var/tmp")]
    target: String,
    /// Write the run file here instead of into the folder of runs
    #[arg(long = "output", short = 'o', value_name = "FILE")]
    output: Option<PathBuf>,
    /// Print the report as JSON
    #[arg(long, group = "format")]
    json: bool,
    /// Print the report as Markdown
    #[arg(long, group = "format")]
    markdown: bool,
    /// Print the report as CSV, a row for each cell
    #[arg(long, group = "format")]
    csv: bool,
}

/// The largest file that is read.
const MAX_FILE: Bytes = Bytes::from_mib(64);

impl ImportArgs {
    /// Reads, records, reports.
    pub fn run(self) -> anyhow::Result<Exit> {
        let files = self.named()?;
        let read: Vec<(String, Vec<u8>, Option<CellFile>)> = files
            .into_iter()
            .map(|(file, cell)| Ok((file.clone(), bytes(&file)?, cell)))
            .collect::<anyhow::Result<_>>()?;
        let sources: Vec<Source<'_>> = read
            .iter()
            .map(|(file, bytes, cell)| Source { file: file.clone(), bytes, cell: cell.clone() })
            .collect();
        let now = SystemTime::now().duration_since(UNIX_EPOCH)?.as_secs() as i64;
        let first = sources.first().map_or("import", |source| source.file.as_str());
        let name = report::run_name(now, first);
        let (run, asked) =
            import::import(&sources, &name, now, env!("CARGO_PKG_VERSION")).map_err(usage)?;
        let store = record(&run, self.output.as_deref())?;
        // As anybody reads it afterwards: what other programs printed passes the same door.
        let run = store.read()?;
        self.show(&run)?;
        if !self.json && !self.markdown && !self.csv {
            say::aside(&format!("\nRun file: {}\n", store.path().display()));
        }
        if let Some(file) = &self.plan {
            let proposal = import::proposal(&run, &asked, &self.target);
            write_plan(file, &proposal, first)?;
        }
        Ok(Exit::Done)
    }

    /// Files with the cells they are of.
    fn named(&self) -> anyhow::Result<Vec<(String, Option<CellFile>)>> {
        let mut all: Vec<(String, Option<CellFile>)> = Vec::new();
        for text in &self.cells {
            // A label may have the sign, and a file too: the shortest name whose file is there.
            let found = text.match_indices('=').find(|(at, _)| {
                let file = &text[at + 1..];
                file == "-" || Path::new(file).exists()
            });
            let Some((at, _)) = found.or_else(|| text.match_indices('=').next()) else {
                return Err(Usage(format!("--cell {text} is not of the form noop=FILE")).into());
            };
            let cell = CellFile::parse(&text[..at]).map_err(usage)?;
            all.push((text[at + 1..].to_owned(), Some(cell)));
        }
        all.extend(self.files.iter().map(|file| (file.clone(), None)));
        Ok(all)
    }

    fn show(&self, run: &Run) -> anyhow::Result<()> {
        let analysis = Analysis::of(run);
        if self.json {
            say::json(&report::json(run, &analysis))
        } else if self.markdown {
            say::result(&report::markdown(run, &analysis))
        } else if self.csv {
            say::result(&report::csv(run, &analysis))
        } else {
            say::result(&report::terminal(run, &analysis, crate::WIDTH))
        }
    }
}

/// What is wrong with the user's files is no failure of the program.
fn usage(error: ImportError) -> anyhow::Error {
    Usage(runner::with_sources(&error)).into()
}

fn bytes(file: &str) -> anyhow::Result<Vec<u8>> {
    let mut all = Vec::new();
    let limit = MAX_FILE.0 + 1;
    match file {
        "-" => std::io::stdin().lock().take(limit).read_to_end(&mut all),
        file => {
            std::fs::File::open(file).and_then(|opened| opened.take(limit).read_to_end(&mut all))
        }
    }
    .with_context(|| format!("cannot read {file}"))?;
    match all.len() as u64 >= limit {
        true => Err(Usage(format!(
            "{file} is longer than {MAX_FILE}: cut out the outputs and import those"
        ))
        .into()),
        false => Ok(all),
    }
}

fn record(run: &Run, file: Option<&Path>) -> anyhow::Result<Store> {
    let mut store =
        runs_folder::begin(file, &run.name, run.started_at, &run.environment, &run.plan)?;
    for trial in &run.trials {
        store.add_trial(trial)?;
    }
    store.set_state(RunState::Done)?;
    Ok(store)
}

fn write_plan(file: &Path, proposal: &import::Proposal, from: &str) -> anyhow::Result<()> {
    let mut text = format!("# Measures here what {from} says, with repeats in random order.\n");
    for entry in &proposal.left_out {
        text.push_str(&format!("# {}\n", left_out(entry)));
    }
    text.push_str(&toml::to_string(&written(&proposal.plan)?)?);
    let mut options = std::fs::OpenOptions::new();
    let written = options
        .write(true)
        .create_new(true)
        .open(file)
        .and_then(|mut opened| std::io::Write::write_all(&mut opened, text.as_bytes()));
    written.with_context(|| format!("cannot write the plan {}", file.display()))?;
    say::note(&format!(
        "wrote the plan {}: spindle compare --plan {} measures it",
        file.display(),
        file.display()
    ));
    Ok(())
}

/// The plan as people write it: times and sizes with their units, and nothing that says nothing.
fn written(plan: &plan::RawPlan) -> anyhow::Result<toml::Table> {
    let mut table = toml::Table::try_from(plan)?;
    if let Some(measure) = plan.measure {
        let milliseconds = measure.0 / 1_000_000;
        table.insert("measure".to_owned(), format!("{milliseconds}ms").into());
    }
    let size = |bytes: Bytes| match bytes.0.is_multiple_of(1024) {
        true => format!("{}k", bytes.0 / 1024),
        false => bytes.0.to_string(),
    };
    if let Some(bytes) = plan.size {
        table.insert("size".to_owned(), size(bytes).into());
    }
    let job = table.get_mut("job").and_then(toml::Value::as_table_mut);
    if let (Some(job), Some(bytes)) = (job, plan.job.block_size) {
        job.insert("block_size".to_owned(), size(bytes).into());
    }
    table.retain(|_, value| match value {
        toml::Value::Table(inner) => !inner.is_empty(),
        toml::Value::Array(inner) => !inner.is_empty(),
        _ => true,
    });
    Ok(table)
}

fn left_out(entry: &Unplanned) -> String {
    match entry {
        Unplanned::OldScheduler { name, successor } => format!(
            "{name} is of kernels before 5.0: {successor} took its place (simulated: runs {name} itself)"
        ),
        Unplanned::OtherBenchmark { name } => {
            format!(
                "left out: {name}; a plan has one workload, import its output alone for another"
            )
        }
        Unplanned::UnknownBenchmark { name } => {
            format!("what {name} does is not known: name the job or the workload here")
        }
        Unplanned::Label { name } => {
            format!("'{name}' is a label: say under [factors] what was set")
        }
        Unplanned::Option { text } => format!("left out: {text}, for which a plan has no word"),
        Unplanned::Smaller { was, is } => format!("the data were {was}; here they are {is}"),
    }
}
