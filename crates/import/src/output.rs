//! What a format's reader gives.

use crate::Format;
use record::{Doubt, ImportedFigure, ImportedRate, Quantity, Quoted, RateUnit};
use workload::Pattern;

/// A part of a text that a program printed.
#[derive(Clone, Debug, PartialEq)]
pub struct Piece {
    /// Its format.
    pub format: Format,
    /// The program, with its version where the output has it.
    pub tool: String,
    /// Its first line, from 1.
    pub first: u64,
    /// Its last line.
    pub last: u64,
    /// What it says.
    pub kind: PieceKind,
}

/// What an output says.
#[derive(Clone, Debug, PartialEq)]
pub enum PieceKind {
    /// A run and its figures.
    Run(Box<Output>),
    /// What a host's devices did meanwhile.
    Devices(Vec<DeviceReport>),
    /// Variables of a server: names and values.
    Variables(Vec<(String, String)>),
}

/// A run and its figures.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Output {
    /// What was asked of the program.
    pub conditions: Conditions,
    /// What it printed.
    pub figures: Vec<ImportedFigure>,
    /// The figure on which it is compared.
    pub rate: Option<ImportedRate>,
    /// How long it measured, in seconds.
    pub seconds: Option<f64>,
    /// Figures in between: seconds from the beginning, and the rate.
    pub samples: Vec<(f64, f64)>,
    /// The run failed: what the program said.
    pub failure: Option<Quoted>,
    /// What its reader found wrong.
    pub doubts: Vec<Doubt>,
}

/// What was asked of a program, as far as it is said.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Conditions {
    /// The program's benchmark, in its own words: `fileio rndwr`, `oltp_read_only`, `TPC-B`.
    pub benchmark: String,
    /// Clients or threads.
    pub clients: Option<u64>,
    /// Bytes an operation.
    pub block_size: Option<u64>,
    /// Operations outstanding a client.
    pub depth: Option<u64>,
    /// Whether the page cache is bypassed.
    pub direct: Option<bool>,
    /// Bytes of data.
    pub size: Option<u64>,
    /// Where operations go.
    pub pattern: Option<Pattern>,
    /// The program's scale: warehouses, pgbench's scaling factor.
    pub scale: Option<u64>,
    /// Tables and rows a table.
    pub tables: Option<(u64, u64)>,
    /// The job's name.
    pub name: Option<String>,
    /// What else changes what is measured, in the program's words: `fsync=1`, `rate_iops=500`.
    pub others: Vec<String>,
}

/// A report of a device's counters.
#[derive(Clone, Debug, PartialEq)]
pub struct DeviceReport {
    /// The device; empty for a whole host.
    pub device: String,
    /// The line it stands on, from 1.
    pub line: u64,
    /// Which report of the output, from 0.
    pub report: u64,
    /// Whether it counts since boot.
    pub since_boot: bool,
    /// Headings and values.
    pub columns: Vec<(String, f64)>,
}

impl DeviceReport {
    /// A column by its heading.
    pub fn column(&self, name: &str) -> Option<f64> {
        self.columns.iter().find(|(heading, _)| heading == name).map(|(_, value)| *value)
    }
}

impl Output {
    /// Adds a figure.
    pub(crate) fn add(&mut self, subject: &str, quantity: Quantity, value: f64, line: u64) {
        if value.is_finite() {
            self.figures.push(ImportedFigure {
                subject: subject.to_owned(),
                quantity,
                value,
                line,
            });
        }
    }

    /// Takes the mean of the transactions a second of samples, where the program's own total is missing.
    pub(crate) fn rate_of_samples(&mut self, line: u64, left_out: u64) {
        let samples = self.samples.len() as u64;
        if samples == 0 || self.rate.is_some() {
            return;
        }
        let value = self.samples.iter().map(|(_, rate)| rate).sum::<f64>() / samples as f64;
        let unit = RateUnit::TransactionsPerSecond;
        self.rate = Some(ImportedRate { value, unit, line });
        self.doubts.push(Doubt::MeanOfSamples { samples, left_out });
    }

    /// A figure, if it was printed.
    pub(crate) fn figure(&self, subject: &str, quantity: &Quantity) -> Option<&ImportedFigure> {
        let wanted = |it: &&ImportedFigure| it.subject == subject && it.quantity == *quantity;
        self.figures.iter().find(wanted)
    }

    /// Its value.
    pub(crate) fn value(&self, subject: &str, quantity: Quantity) -> Option<f64> {
        self.figure(subject, &quantity).map(|it| it.value)
    }
}
