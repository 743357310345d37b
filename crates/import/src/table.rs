//! Tables that a text makes of its outputs: a figure that differs from the output's is a misprint.

use crate::line::Line;
use record::{Doubt, ImportedFigure, Quantity};
use std::collections::BTreeMap;

/// A cell's figures, and the words by which a table may call it.
pub(crate) struct Known<'a> {
    /// Its place among the cells.
    pub cell: usize,
    /// Its levels.
    pub names: Vec<String>,
    /// Which benchmark they are of.
    pub benchmark: String,
    /// What its outputs say.
    pub figures: &'a [ImportedFigure],
}

/// A number of a table.
struct Entry {
    name: String,
    /// The column, or the row where the names are columns.
    place: u64,
    value: f64,
    /// Half of its last digit.
    half: f64,
    line: usize,
}

/// What a number of a table was found to be.
type Kind = (String, String, Quantity);

/// Misprints, with the cell whose output says otherwise.
pub(crate) fn misprints(
    prose: &[Line<'_>],
    lines: &[Line<'_>],
    known: &[Known<'_>],
) -> Vec<(usize, Doubt)> {
    let mut all = Vec::new();
    for block in blocks(prose) {
        let entries = entries(block, known);
        // One row alone is a sentence.
        if entries.len() < 4 {
            continue;
        }
        let found: Vec<Option<Kind>> = entries.iter().map(|entry| matching(entry, known)).collect();
        let matched = found.iter().flatten().count();
        if matched * 2 < entries.len() {
            continue;
        }
        let kinds = kinds_of_places(&entries, &found);
        for (entry, _) in entries.iter().zip(&found).filter(|(_, kind)| kind.is_none()) {
            let Some(kind) = kinds.get(&entry.place) else { continue };
            let of_cell = known.iter().find(|it| {
                it.benchmark == kind.0
                    && it.names.contains(&entry.name)
                    && of_kind(it, kind).is_some()
            });
            let Some((cell, figure)) = of_cell.and_then(|it| Some((it.cell, of_kind(it, kind)?)))
            else {
                continue;
            };
            all.push((
                cell,
                Doubt::Misprint {
                    stated: entry.value,
                    measured: scaled(figure),
                    at: block[entry.line].quoted(),
                    against: crate::line::quoted(lines, figure.line),
                },
            ));
        }
    }
    all
}

/// Lines that follow one another, blank ones and rules of tables between them.
fn blocks<'a, 'b>(prose: &'a [Line<'b>]) -> Vec<&'a [Line<'b>]> {
    prose.chunk_by(|a, b| b.number <= a.number + 2).collect()
}

fn entries(block: &[Line<'_>], known: &[Known<'_>]) -> Vec<Entry> {
    let mut all = Vec::new();
    let mut columns: Vec<String> = Vec::new();
    for (place, line) in block.iter().enumerate() {
        let names = names_in(line.text, known);
        let numbers = numbers_in(line.text);
        match names.len() {
            1 if numbers.len() >= 2 => {
                for (column, (value, half)) in numbers.into_iter().enumerate() {
                    let name = names[0].clone();
                    all.push(Entry { name, place: column as u64, value, half, line: place });
                }
            }
            0 if numbers.len() == columns.len() && !columns.is_empty() => {
                for (name, (value, half)) in columns.iter().zip(numbers) {
                    let row = 1000 + place as u64;
                    all.push(Entry { name: name.clone(), place: row, value, half, line: place });
                }
            }
            _ if names.len() >= 2 && numbers.is_empty() => columns = names,
            _ => {}
        }
    }
    all
}

/// Names of cells in a line, each once, in their order.
fn names_in(text: &str, known: &[Known<'_>]) -> Vec<String> {
    let mut found: Vec<String> = Vec::new();
    for word in text.split(|c: char| !(c.is_alphanumeric() || c == '-' || c == '_')) {
        let is_name =
            known.iter().flat_map(|it| &it.names).any(|name| name.eq_ignore_ascii_case(word));
        let word = word.to_ascii_lowercase();
        if is_name && !found.contains(&word) {
            found.push(word);
        }
    }
    found
}

/// Numbers with a decimal point, which counts of threads and sizes do not have; and half of their last digits.
fn numbers_in(text: &str) -> Vec<(f64, f64)> {
    text.split(|c: char| !(c.is_ascii_digit() || c == '.' || c == ','))
        .filter_map(|word| {
            let word = word.trim_matches(['.', ',']).replace(',', "");
            let (_, decimals) = word.split_once('.')?;
            let value: f64 = word.parse().ok()?;
            (value >= 1.0).then(|| (value, 0.51 * 0.1f64.powi(decimals.len() as i32)))
        })
        .collect()
}

/// A figure as a table prints it: bandwidths in MiB/s, latencies in ms.
fn scaled(figure: &ImportedFigure) -> f64 {
    match figure.quantity {
        Quantity::Bandwidth => figure.value / f64::from(1 << 20),
        Quantity::LatencyMin
        | Quantity::LatencyMean
        | Quantity::LatencyMax
        | Quantity::LatencyDeviation
        | Quantity::Percentile(_) => figure.value / 1e6,
        _ => figure.value,
    }
}

fn matching(entry: &Entry, known: &[Known<'_>]) -> Option<Kind> {
    known.iter().filter(|it| it.names.contains(&entry.name)).find_map(|it| {
        let figure =
            it.figures.iter().find(|figure| (scaled(figure) - entry.value).abs() <= entry.half)?;
        Some((it.benchmark.clone(), figure.subject.clone(), figure.quantity.clone()))
    })
}

/// What the numbers of each column were mostly found to be.
fn kinds_of_places(entries: &[Entry], found: &[Option<Kind>]) -> BTreeMap<u64, Kind> {
    let mut counts: BTreeMap<u64, BTreeMap<&Kind, usize>> = BTreeMap::new();
    for (entry, kind) in entries.iter().zip(found) {
        if let Some(kind) = kind {
            *counts.entry(entry.place).or_default().entry(kind).or_default() += 1;
        }
    }
    let most = |kinds: BTreeMap<&Kind, usize>| {
        kinds.into_iter().max_by_key(|(_, count)| *count).map(|(kind, _)| kind.clone())
    };
    counts.into_iter().filter_map(|(place, kinds)| Some((place, most(kinds)?))).collect()
}

fn of_kind<'a>(known: &Known<'a>, kind: &Kind) -> Option<&'a ImportedFigure> {
    known.figures.iter().find(|it| it.subject == kind.1 && it.quantity == kind.2)
}
