//! What `spindle validate` shows: how far the simulated world agrees with the emulated one.

use crate::{Align, Table, words};
use units::Nanos;

/// A validation, as it is shown.
#[derive(Clone, Debug, Default)]
pub struct ShownValidation {
    /// The transports that were measured.
    pub transports: Vec<ShownTransport>,
    /// The cells.
    pub cells: Vec<ShownCell>,
    /// Cells without a valid emulated trial.
    pub without_trials: Vec<String>,
    /// The agreement, profile by profile, in each figure.
    pub agreement: Vec<ShownAgreement>,
    /// For what part of its spinning time the pacing thread's CPU was taken from it, percent: in the
    /// median cell, and at most.
    pub taken_percent: Option<(f64, f64)>,
    /// A ratio within so much of 1 agrees.
    pub tolerance: f64,
}

/// What lies between the kernel and the device's model.
#[derive(Clone, Debug, Default)]
pub struct ShownTransport {
    /// Profile, cells and pattern.
    pub label: String,
    /// To the device and back, at best.
    pub round_trip: Nanos,
    /// What comes on top by chance: the median.
    pub jitter_p50: Nanos,
    /// The 99th percentile of that.
    pub jitter_p99: Nanos,
    /// A client's time between a completion and its next request.
    pub turnaround: Nanos,
    /// The least time between two requests.
    pub gap: Nanos,
    /// What writes take in addition.
    pub write: Nanos,
}

/// A cell in both worlds.
#[derive(Clone, Debug, Default)]
pub struct ShownCell {
    /// Its profile.
    pub profile: String,
    /// Its label.
    pub label: String,
    /// Operations a second, emulated.
    pub emulated: f64,
    /// The standard error; none of a single trial.
    pub emulated_error: Option<f64>,
    /// Operations a second, simulated.
    pub simulated: f64,
    /// Throughput, median latency and p99 latency: simulated to emulated.
    pub ratios: [f64; 3],
    /// The 99th percentile, emulated, in milliseconds.
    pub p99_ms: f64,
    /// Its standard error.
    pub p99_error_ms: Option<f64>,
    /// 99th percentile of the lateness of completions, in microseconds.
    pub late_us: f64,
}

/// How far the worlds agree in one figure.
#[derive(Clone, Debug, Default)]
pub struct ShownAgreement {
    /// The profile, or what stands for all.
    pub profile: String,
    /// The figure.
    pub figure: String,
    /// Cells.
    pub cells: usize,
    /// The median of |ratio - 1|.
    pub median_error: f64,
    /// The share of cells within the tolerance.
    pub within: f64,
}

/// A validation for a terminal.
pub fn validation(shown: &ShownValidation, width: usize) -> String {
    let tolerance = format!("{:.0} %", 100.0 * shown.tolerance);
    let mut out = "Transport between the kernel and the device's model, as measured\n\n".to_owned();
    out += &transports(&shown.transports).text(width);
    let mut profile = None;
    for cell in &shown.cells {
        if profile != Some(&cell.profile) {
            profile = Some(&cell.profile);
            out += &format!("\n{}: simulated against emulated\n\n", cell.profile);
            let of_profile = shown.cells.iter().filter(|it| it.profile == cell.profile);
            out += &cells(of_profile, shown.tolerance).text(width);
        }
    }
    if !shown.cells.is_empty() {
        let legend = format!(
            "Operations/s and 99th percentiles (ms) with standard errors; ratios are simulated to \
             emulated; * is beyond {tolerance}; late: 99th percentile of how late the emulated device \
             completed, µs."
        );
        out += &format!("\n{}\n", words::wrap(&legend, width, 0));
        out += "\nAgreement\n\n";
        out += &agreement(&shown.agreement, &tolerance).text(width);
    }
    for cell in &shown.without_trials {
        let text = format!("{cell}: left out, because no emulated trial counts.");
        out += &format!("\n{}\n", words::wrap(&text, width, 0));
    }
    if let Some((median, max)) = shown.taken_percent {
        let text = format!(
            "Of the time that the pacing thread spun, its CPU was taken from it for {median:.1} % \
             (median cell; {max:.1} % at most)."
        );
        out += &format!("\n{}\n", words::wrap(&text, width, 0));
    }
    out
}

fn transports(all: &[ShownTransport]) -> Table {
    let figures = ["round trip", "jitter p50", "p99", "turnaround", "gap", "write"];
    let mut columns = vec![("cells", Align::Left)];
    columns.extend(figures.map(|name| (name, Align::Right)));
    let mut table = Table::new(&columns);
    for it in all {
        let times = [it.round_trip, it.jitter_p50, it.jitter_p99, it.turnaround, it.gap, it.write];
        table.row([it.label.clone()].into_iter().chain(times.map(|time| time.to_string())));
    }
    table
}

fn cells<'a>(all: impl Iterator<Item = &'a ShownCell>, tolerance: f64) -> Table {
    let figures = ["emulated", "simulated", "ratio", "p50", "p99, ms", "p99", "late"];
    let mut columns = vec![("cell", Align::Left)];
    columns.extend(figures.map(|name| (name, Align::Right)));
    let mut table = Table::new(&columns);
    for it in all {
        let ratio = |value: f64| match (value - 1.0).abs() <= tolerance {
            true => format!("{value:.2}"),
            false => format!("{value:.2}*"),
        };
        let [throughput, p50, p99] = it.ratios.map(ratio);
        table.row([
            it.label.clone(),
            with_error(it.emulated, it.emulated_error, 0),
            format!("{:.0}", it.simulated),
            throughput,
            p50,
            with_error(it.p99_ms, it.p99_error_ms, decimals(it.p99_ms)),
            p99,
            format!("{:.0}", it.late_us),
        ]);
    }
    table
}

fn agreement(all: &[ShownAgreement], tolerance: &str) -> Table {
    let within = format!("within {tolerance}");
    let mut table = Table::new(&[
        ("profile", Align::Left),
        ("figure", Align::Left),
        ("cells", Align::Right),
        ("median error", Align::Right),
        (&within, Align::Right),
    ]);
    for it in all {
        table.row([
            it.profile.clone(),
            it.figure.clone(),
            it.cells.to_string(),
            format!("{:.1} %", 100.0 * it.median_error),
            format!("{:.0} %", 100.0 * it.within),
        ]);
    }
    table
}

/// `443 ± 2`; a single trial has no error.
fn with_error(value: f64, error: Option<f64>, decimals: usize) -> String {
    match error {
        Some(error) => format!("{value:.decimals$} ± {error:.decimals$}"),
        None => format!("{value:.decimals$}"),
    }
}

/// Decimals that give a value three figures.
fn decimals(value: f64) -> usize {
    match value {
        small if small < 1.0 => 3,
        small if small < 10.0 => 2,
        middle if middle < 100.0 => 1,
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_fits_the_width_and_marks_what_is_beyond() {
        let cell = ShownCell {
            profile: "ssd-x25e".to_owned(),
            label: "outstanding: mq-deadline, randwrite, depth 256".to_owned(),
            emulated: 13_210.0,
            emulated_error: Some(42.0),
            simulated: 13_100.0,
            ratios: [0.99, 1.1, 0.87],
            p99_ms: 2230.0,
            p99_error_ms: Some(170.0),
            late_us: 1234.0,
        };
        let transport = ShownTransport {
            label: "raid10-8x15k-bbu, outstanding, randwrite".to_owned(),
            round_trip: Nanos::from_micros(19),
            ..ShownTransport::default()
        };
        let shown = ShownValidation {
            transports: vec![transport],
            cells: vec![cell],
            without_trials: vec!["hdd-15k, short: bfq, randread".to_owned()],
            agreement: vec![ShownAgreement {
                profile: "ssd-x25e".to_owned(),
                figure: "p99 latency".to_owned(),
                cells: 1,
                median_error: 0.13,
                within: 0.0,
            }],
            taken_percent: Some((0.14, 3.0)),
            tolerance: 0.1,
        };
        let text = validation(&shown, 80);
        assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
        assert!(text.contains("13210 ± 42") && text.contains("0.87*"), "{text}");
        assert!(!text.contains("0.99*") && text.contains("2230 ± 170"), "{text}");
        assert!(text.contains("13.0 %") && text.contains("for 0.1 %"), "{text}");
    }
}
