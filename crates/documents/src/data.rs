//! Tables of data/: a CSV file, and a manifest beside it that says where its figures come from and
//! what its columns are called in a page.

use crate::DocumentError;
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};

/// `data/FOLDER/manifest.toml`.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Manifest {
    /// One entry for each CSV file of the folder.
    pub table: Vec<TableEntry>,
}

/// Where a table's figures come from, and its columns. What is not known is written as `unknown`.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct TableEntry {
    /// The CSV file, beside the manifest.
    pub file: String,
    /// What the table shows.
    pub title: String,
    /// The commit that produced the figures.
    pub commit: String,
    /// The kernel they were measured on.
    pub kernel: String,
    /// The processors they were measured on.
    pub cpu: String,
    /// When they were measured.
    pub date: String,
    /// The command that prints or measures them.
    pub command: String,
    /// Column id in the CSV file, and its heading in a page.
    pub columns: Vec<(String, String)>,
}

/// A CSV file with its manifest entry.
#[derive(Clone, Debug)]
pub struct DataTable {
    /// Where its figures come from, and its columns.
    pub entry: TableEntry,
    /// The rows, each with one value for each column.
    pub rows: Vec<Vec<String>>,
}

/// Which columns and rows of a table a page shows.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Selection {
    /// Ids of the columns, in order; empty: all.
    pub columns: Vec<String>,
    /// Conditions that a row must meet.
    pub conditions: Vec<Condition>,
}

/// A condition on one column.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Condition {
    /// The column's id.
    pub column: String,
    /// The value compared with.
    pub value: String,
    /// Whether the row must have this value, or must not.
    pub equal: bool,
}

/// A selection names a column that the table does not have.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("there is no column '{column}'")]
pub struct UnknownColumn {
    /// The column's id.
    pub column: String,
}

/// Reads the manifest of a folder of data/.
pub fn manifest(folder: &Path) -> Result<Manifest, DocumentError> {
    let path = folder.join("manifest.toml");
    let text = read(&path)?;
    toml::from_str(&text)
        .map_err(|source| DocumentError::Manifest { path, source: Box::new(source) })
}

/// Reads a CSV file and its manifest entry, and checks that they agree on the columns.
pub fn table(path: &Path) -> Result<DataTable, DocumentError> {
    let folder = path.parent().unwrap_or(Path::new("."));
    let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    let entry = manifest(folder)?
        .table
        .into_iter()
        .find(|entry| entry.file == name)
        .ok_or_else(|| DocumentError::Undescribed { path: path.to_owned() })?;
    let text = read(path)?;
    let wrong = |source| DocumentError::Csv { path: path.to_owned(), source };
    let mut reader = csv::Reader::from_reader(text.as_bytes());
    let found: Vec<String> = reader.headers().map_err(wrong)?.iter().map(str::to_owned).collect();
    let described: Vec<String> = entry.columns.iter().map(|(id, _)| id.clone()).collect();
    if found != described {
        return Err(DocumentError::Columns { path: path.to_owned(), found, described });
    }
    let rows = reader
        .records()
        .map(|record| Ok(record.map_err(wrong)?.iter().map(str::to_owned).collect()))
        .collect::<Result<_, DocumentError>>()?;
    Ok(DataTable { entry, rows })
}

/// The manifests' folders below `data`, sorted.
pub fn folders(data: &Path) -> Result<Vec<PathBuf>, DocumentError> {
    let unreadable = |source| DocumentError::Read { path: data.to_owned(), source };
    let mut folders = Vec::new();
    for entry in std::fs::read_dir(data).map_err(unreadable)? {
        let path = entry.map_err(unreadable)?.path();
        if path.is_dir() {
            folders.push(path);
        }
    }
    folders.sort();
    Ok(folders)
}

impl DataTable {
    /// As a Markdown table.
    pub fn markdown(&self, selection: &Selection) -> Result<String, UnknownColumn> {
        let place = |id: &String| {
            let found = self.entry.columns.iter().position(|(known, _)| known == id);
            found.ok_or_else(|| UnknownColumn { column: id.clone() })
        };
        let columns = match selection.columns.is_empty() {
            true => (0..self.entry.columns.len()).collect(),
            false => selection.columns.iter().map(place).collect::<Result<Vec<_>, _>>()?,
        };
        let mut rows: Vec<&Vec<String>> = self.rows.iter().collect();
        for condition in &selection.conditions {
            let at = place(&condition.column)?;
            rows.retain(|row| (row[at] == condition.value) == condition.equal);
        }
        let heads: Vec<&str> =
            columns.iter().map(|at| self.entry.columns[*at].1.as_str()).collect();
        let lines: Vec<Vec<&str>> =
            rows.iter().map(|row| columns.iter().map(|at| row[*at].as_str()).collect()).collect();
        Ok(markdown_table(&heads, &lines))
    }
}

/// A Markdown table; columns of numbers are aligned to the right.
pub fn markdown_table(heads: &[&str], rows: &[Vec<&str>]) -> String {
    let line = |cells: &mut dyn Iterator<Item = String>| {
        let cells: Vec<String> = cells.collect();
        format!("| {} |\n", cells.join(" | "))
    };
    let mut text = line(&mut heads.iter().map(|head| cell(head)));
    let rules = (0..heads.len()).map(|at| {
        let numbers = rows.iter().all(|row| is_number(row[at])) && !rows.is_empty();
        if numbers { "--:" } else { "---" }
    });
    text.push_str(&format!("|{}|\n", rules.collect::<Vec<_>>().join("|")));
    for row in rows {
        text.push_str(&line(&mut row.iter().map(|value| cell(value))));
    }
    text
}

fn cell(value: &str) -> String {
    value.replace('|', "\\|")
}

/// Whether a cell holds a number with its unit, or nothing.
fn is_number(value: &str) -> bool {
    let is_word = |word: &str| word.len() >= 4 && word.chars().all(|c| c.is_ascii_alphabetic());
    if value.split([' ', '(', ',']).any(is_word) {
        return false;
    }
    let first = value.trim_start_matches(['+', '-', '−', '±', '×', '<', '>', ' ']);
    first.is_empty() || (first.starts_with(|c: char| c.is_ascii_digit()) && !first.contains(", "))
}

fn read(path: &Path) -> Result<String, DocumentError> {
    std::fs::read_to_string(path)
        .map_err(|source| DocumentError::Read { path: path.to_owned(), source })
}
