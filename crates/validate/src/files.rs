//! The figures in files, in the form of data/validation: CSV, and a manifest that says where they come
//! from.

use crate::{Agreement, CellResult, Figure, MeasuredTransport, ValidateError, Validation};
use documents::data::{Manifest, TableEntry};
use simulate::CHANCES;
use std::path::{Path, PathBuf};
use units::Nanos;

/// The commit that this program is built from.
const COMMIT: &str = env!("SPINDLE_COMMIT");

/// The file beside the tables.
const MANIFEST: &str = "manifest.toml";

/// A table: its file, title, and columns with the headings that pages give them.
struct Table {
    file: &'static str,
    title: &'static str,
    columns: Vec<(String, String)>,
    rows: Vec<Vec<String>>,
}

const FILES: [&str; 3] = ["agreement.csv", "cells.csv", "measured-transport.csv"];

/// Whether the files can be written into a folder, which is made where it is not there. What is there is
/// never overwritten.
pub fn check_output(folder: &Path) -> Result<(), ValidateError> {
    std::fs::create_dir_all(folder).map_err(|cause| ValidateError::write(folder, cause))?;
    match FILES.into_iter().chain([MANIFEST]).map(|file| folder.join(file)).find(|it| it.exists()) {
        Some(path) => Err(ValidateError::Exists { path }),
        None => Ok(()),
    }
}

/// Writes the figures and the manifest, and returns the files.
pub fn write(
    validation: &Validation,
    command: &str,
    folder: &Path,
) -> Result<Vec<PathBuf>, ValidateError> {
    check_output(folder)?;
    let mut files = Vec::new();
    let mut manifest = Manifest { table: Vec::new() };
    for table in tables(validation) {
        let path = folder.join(table.file);
        write_csv(&path, &table).map_err(|cause| ValidateError::write(&path, cause))?;
        files.push(path);
        manifest.table.push(TableEntry {
            file: table.file.to_owned(),
            title: table.title.to_owned(),
            commit: COMMIT.to_owned(),
            kernel: validation.kernel.clone(),
            cpu: validation.cpu.clone(),
            date: jiff::Timestamp::now().strftime("%Y-%m-%d").to_string(),
            command: command.to_owned(),
            columns: table.columns,
        });
    }
    let path = folder.join(MANIFEST);
    let text = toml::to_string(&manifest).map_err(|cause| ValidateError::write(&path, cause))?;
    std::fs::write(&path, text).map_err(|cause| ValidateError::write(&path, cause))?;
    files.push(path);
    Ok(files)
}

fn write_csv(path: &Path, table: &Table) -> Result<(), csv::Error> {
    let mut writer = csv::Writer::from_path(path)?;
    writer.write_record(table.columns.iter().map(|(id, _)| id))?;
    for row in &table.rows {
        writer.write_record(row)?;
    }
    writer.flush()?;
    Ok(())
}

fn tables(validation: &Validation) -> [Table; 3] {
    let agreement = validation.profiles().into_iter().map(|profile| {
        let cells = validation.cells.iter().filter(|cell| cell.profile == profile).count();
        agreement_row(profile, cells, &validation.agreement(Some(profile)))
    });
    let [agreement_file, cells_file, transport_file] = FILES;
    [
        Table {
            file: agreement_file,
            title: "Simulated against emulated: median error, and share of cells within 10 %",
            columns: columns(&[
                ("profile", "device"),
                ("cells", "cells"),
                ("throughput_error", "throughput: median error, %"),
                ("throughput_within", "cells within 10 %"),
                ("median_error", "median latency: median error, %"),
                ("median_within", "cells within 10 %"),
                ("p99_error", "99th percentile: median error, %"),
                ("p99_within", "cells within 10 %"),
            ]),
            rows: agreement.collect(),
        },
        Table {
            file: cells_file,
            title: "Simulated against emulated, cell by cell",
            columns: columns(&[
                ("profile", "device"),
                ("cell", "cell"),
                ("emulated", "emulated, operations/s"),
                ("emulated_error", "standard error"),
                ("simulated", "simulated, operations/s"),
                ("throughput_ratio", "throughput, ratio"),
                ("median_ratio", "median latency, ratio"),
                ("p99_emulated_ms", "99th percentile emulated, ms"),
                ("p99_error_ms", "standard error, ms"),
                ("p99_ratio", "99th percentile, ratio"),
                ("late_p99_us", "late, 99th percentile, µs"),
                ("late_kept_p99_us", "late without taken time, µs"),
                ("beyond", "beyond 10 %"),
                ("why", "cause"),
            ]),
            rows: validation.cells.iter().map(cell_row).collect(),
        },
        Table {
            file: transport_file,
            title: "What lies between the kernel and an emulated device's model",
            columns: transport_columns(),
            rows: validation.transports.iter().map(transport_row).collect(),
        },
    ]
}

fn columns(all: &[(&str, &str)]) -> Vec<(String, String)> {
    all.iter().map(|(id, heading)| ((*id).to_owned(), (*heading).to_owned())).collect()
}

fn agreement_row(profile: &str, cells: usize, agreement: &[Agreement]) -> Vec<String> {
    let figures = agreement.iter().flat_map(|it| {
        [format!("{:.1}", 100.0 * it.median_error), format!("{:.0}", 100.0 * it.within)]
    });
    [profile.to_owned(), cells.to_string()].into_iter().chain(figures).collect()
}

/// A row of cells.csv. Why a figure is beyond is for people to find out.
fn cell_row(cell: &CellResult) -> Vec<String> {
    let (emulated, [throughput, median, p99]) = (&cell.emulated, cell.ratios());
    let beyond: Vec<&str> = cell.beyond().into_iter().map(Figure::name).collect();
    let whole = |value: f64| format!("{value:.0}");
    let ratio = |value: f64| format!("{value:.2}");
    vec![
        cell.profile.clone(),
        cell.cell.clone(),
        whole(emulated.throughput),
        emulated.throughput_error.map(whole).unwrap_or_default(),
        whole(cell.simulated.throughput),
        ratio(throughput),
        ratio(median),
        significant(emulated.p99.as_millis_f64(), 3),
        emulated.p99_error_ns.map(|ns| significant(ns / 1e6, 2)).unwrap_or_default(),
        ratio(p99),
        whole(emulated.late_p99_us),
        whole(emulated.late_kept_p99_us),
        beyond.join(" "),
        String::new(),
    ]
}

fn transport_columns() -> Vec<(String, String)> {
    let mut all = columns(&[
        ("profile", "device"),
        ("set", "cells"),
        ("pattern", "pattern"),
        ("block_size", "block size"),
        ("clients", "clients"),
        ("round_trip_us", "round trip at best, µs"),
        ("turnaround_us", "client between two operations, µs"),
        ("every_us", "requests apart, µs"),
        ("gap_us", "smallest gap, µs"),
        ("write_us", "writes in addition, µs"),
    ]);
    all.extend(CHANCES.map(|chance| {
        (format!("jitter_{chance}_us"), format!("by chance, quantile {chance}, µs"))
    }));
    all
}

fn transport_row(measured: &MeasuredTransport) -> Vec<String> {
    let micros = |time: Nanos| format!("{:.1}", time.as_micros_f64());
    let figures = &measured.figures;
    let mut row = vec![
        measured.profile.clone(),
        measured.set.clone(),
        measured.pattern.clone(),
        measured.block_size.clone(),
        measured.clients.to_string(),
        micros(figures.round_trip),
        micros(figures.turnaround),
        micros(figures.every),
        micros(figures.gap),
        micros(figures.write),
    ];
    row.extend(figures.jitter.map(micros));
    row
}

/// A value with so many significant digits, without an exponent.
fn significant(value: f64, digits: i32) -> String {
    if value == 0.0 || !value.is_finite() {
        return "0".to_owned();
    }
    let place = value.abs().log10().floor() as i32;
    let unit = 10f64.powi(place - digits + 1);
    let decimals = usize::try_from(digits - 1 - place).unwrap_or(0);
    let text = format!("{:.decimals$}", (value / unit).round() * unit);
    match text.contains('.') {
        true => text.trim_end_matches('0').trim_end_matches('.').to_owned(),
        false => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn significant_digits() {
        let all =
            [(10.234, 3, "10.2"), (1150.4, 3, "1150"), (2234.0, 2, "2200"), (0.098, 2, "0.098")];
        for (value, digits, text) in all {
            assert_eq!(significant(value, digits), text);
        }
        assert_eq!(significant(331.0, 3), "331");
        assert_eq!(significant(0.0, 2), "0");
        assert_eq!(significant(5.0, 2), "5");
    }

    /// What is written can take the place of what the documents show.
    #[test]
    fn the_tables_are_those_of_the_documents() {
        let data = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../data/validation");
        let manifest = documents::data::manifest(&data).unwrap();
        for table in &tables(&Validation::default())[..2] {
            let known = manifest.table.iter().find(|entry| entry.file == table.file).unwrap();
            assert_eq!(known.columns, table.columns, "{}", table.file);
            assert_eq!(known.title, table.title, "{}", table.file);
        }
    }

    #[test]
    fn what_is_written_is_read_back() {
        let folder = crate::session::scratch().unwrap();
        let files = write(&Validation::default(), "spindle validate", folder.path()).unwrap();
        assert_eq!(files.len(), FILES.len() + 1);
        let table = documents::data::table(&folder.path().join("cells.csv")).unwrap();
        assert_eq!(table.entry.command, "spindle validate");
        let again = write(&Validation::default(), "spindle validate", folder.path());
        assert!(matches!(again, Err(ValidateError::Exists { .. })), "{again:?}");
    }
}
