//! The layout of the fourth generation: track patterns, an index of runs, slips and remaps.
//!
//! The manual names eight fields of a run. Published files have ten, eleven where the child is a
//! track, in the order that the comments of one of them give; that order is read here. What else
//! the manual leaves open is described in docs/design/disksim-import.md.

use super::parse::Value;
use super::reader::Reader;
use crate::disk::{ChildSpec, GeometrySpec, IndexSpec, PatternSpec, RemapSpec, RunSpec};
use crate::drive_files::DriveFileError;

/// The words of a list, with their lines.
struct Words<'a> {
    layout: &'a Reader<'a>,
    name: &'static str,
    words: Vec<(&'a str, usize)>,
    at: usize,
}

impl<'a> Words<'a> {
    fn new(
        layout: &'a Reader<'a>,
        name: &'static str,
        items: &'a [(Value, usize)],
    ) -> Result<Self, DriveFileError> {
        let word = |(value, line): &'a (Value, usize)| match value {
            Value::Word(text) => Ok((text.as_str(), *line)),
            _ => Err(layout.wrong(*line, format!("expected numbers in '{name}'"))),
        };
        let words = items.iter().map(word).collect::<Result<Vec<_>, _>>()?;
        Ok(Words { layout, name, words, at: 0 })
    }

    fn is_done(&self) -> bool {
        self.at == self.words.len()
    }

    fn wrong<T>(&self, what: String) -> Result<T, DriveFileError> {
        let at = self.at.saturating_sub(1).min(self.words.len().saturating_sub(1));
        let line = self.words.get(at).map_or(self.layout.line(self.name), |(_, line)| *line);
        Err(self.layout.wrong(line, what))
    }

    fn word(&mut self, field: &str) -> Result<&'a str, DriveFileError> {
        self.at += 1;
        match self.words.get(self.at - 1) {
            Some((text, _)) => Ok(text),
            None => self.wrong(format!("the list '{}' ends before {field}", self.name)),
        }
    }

    fn number<T: std::str::FromStr>(&mut self, field: &str) -> Result<T, DriveFileError> {
        let text = self.word(field)?;
        match text.parse() {
            Ok(value) => Ok(value),
            Err(_) => {
                let kind = std::any::type_name::<T>();
                self.wrong(format!("'{}': expected {field} ({kind}), found '{text}'", self.name))
            }
        }
    }

    fn turns(&mut self, field: &str) -> Result<f64, DriveFileError> {
        let turns: f64 = self.number(field)?;
        match turns.is_finite() && turns.abs() < 1e6 {
            true => Ok(turns),
            false => self.wrong(format!("{field} of {turns} turns")),
        }
    }
}

pub(super) fn index_spec(
    disk: GeometrySpec,
    layout: &Reader<'_>,
) -> Result<GeometrySpec, DriveFileError> {
    let list = |name: &str| match layout.block.get(name) {
        Some((Value::List(items), _)) => Ok(&items[..]),
        Some((_, line)) => Err(layout.wrong(line, format!("expected a list for '{name}'"))),
        None => Err(layout.missing(name)),
    };
    let mut words = Words::new(layout, "TP", list("TP")?)?;
    let mut patterns = Vec::new();
    while !words.is_done() {
        patterns.push(PatternSpec {
            first: words.number("a track's first sector")?,
            last: words.number("its last sector")?,
            sectors_per_track: words.number("its sectors")?,
        });
    }
    let nodes = list("IDX")?
        .iter()
        .map(|(value, line)| match value {
            Value::List(items) => runs(Words::new(layout, "IDX", items)?),
            _ => Err(layout.wrong(*line, "expected a list for each node of 'IDX'")),
        })
        .collect::<Result<Vec<_>, _>>()?;
    let mut words = Words::new(layout, "Slips", list("Slips")?)?;
    let mut slips = Vec::new();
    while !words.is_done() {
        slips.push((words.number("a slip's place")?, words.number("its length")?));
    }
    let mut words = Words::new(layout, "Remaps", list("Remaps")?)?;
    let mut remaps = Vec::new();
    while !words.is_done() {
        remaps.push(RemapSpec {
            place: words.number("a remap's place")?,
            count: words.number("its length")?,
            cylinder: words.number("its cylinder")?,
            head: words.number("its head")?,
            sector: words.number("its sector")?,
            sectors_per_track: words.number("the sectors of its track")?,
        });
    }
    let index = IndexSpec { patterns, nodes, slips, remaps };
    // A published drive counts one cylinder fewer than its index takes.
    let cylinders = disk.cylinders.max(index.cylinders(disk.heads));
    Ok(GeometrySpec { cylinders, index: Some(Box::new(index)), ..disk })
}

/// A node's runs: lbn, cyl, off, len, cyllen, alen, runlen, cylrunlen, childtype, child (, head).
fn runs(mut words: Words<'_>) -> Result<Vec<RunSpec>, DriveFileError> {
    let mut runs = Vec::new();
    while !words.is_done() {
        let start = words.number("lbn")?;
        let cylinder = words.number("cyl")?;
        let angle = words.turns("off")?;
        let child_places = words.number("len")?;
        let child_cylinders = words.number("cyllen")?;
        let advance = words.turns("alen")?;
        let places = words.number("runlen")?;
        let inward = words.number::<i64>("cylrunlen")? >= 0;
        let child = match words.word("childtype")? {
            "IDX" => ChildSpec::Node(words.number("child")?),
            "TRACK" | "TP" => {
                ChildSpec::Track { pattern: words.number("child")?, head: words.number("head")? }
            }
            other => {
                let what = format!("'IDX': expected childtype IDX or TRACK, found '{other}'");
                return words.wrong(what);
            }
        };
        runs.push(RunSpec {
            start,
            cylinder,
            angle,
            child_places,
            child_cylinders,
            advance,
            places,
            inward,
            child,
        });
    }
    Ok(runs)
}
