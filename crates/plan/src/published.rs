//! Figures that others have published, to be shown beside ours.

use crate::{Cell, Factor, Level, RawPublished};
use serde::Serialize;
use workload::WordError;

/// A published figure and the cells that it is laid beside.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Published {
    /// The levels that a cell must have.
    pub cell: Vec<(Factor, Level)>,
    /// See [`RawPublished::figure`].
    pub figure: String,
    /// The figure, or a range's lower end.
    pub low: f64,
    /// The same, or the upper end.
    pub high: f64,
    /// Who published it, where.
    pub source: String,
}

/// The figure that is not a counter.
pub const OPERATIONS: &str = "operations/s";

impl Published {
    /// Checks a figure as a plan file has it.
    pub fn of(raw: &RawPublished) -> Result<Published, WordError> {
        let wrong = |why: &str| {
            WordError::new(format!("the published figure {} ({}) {why}", raw.figure, raw.source))
        };
        let mut cell = Vec::new();
        for (word, level) in &raw.cell {
            let factor: Factor = word.parse()?;
            let level = factor.level(&level.text())?;
            cell.push((factor, level));
        }
        let (low, high) = match (raw.value, raw.low, raw.high) {
            (Some(value), None, None) => (value, value),
            (None, Some(low), Some(high)) if low <= high => (low, high),
            _ => return Err(wrong("needs either value, or low and high")),
        };
        if !(low.is_finite() && high.is_finite() && low > 0.0) {
            return Err(wrong("is not above zero"));
        }
        Ok(Published { cell, figure: raw.figure.clone(), low, high, source: raw.source.clone() })
    }

    /// Without the levels that every cell has: those of `fixed`, which no cell names.
    pub(crate) fn beside(mut self, fixed: &Cell) -> Published {
        self.cell.retain(|(factor, level)| fixed.level(factor) != Some(level));
        self
    }

    /// Whether it is of this cell.
    pub fn is_of(&self, cell: &Cell) -> bool {
        self.cell.iter().all(|(factor, level)| cell.level(factor) == Some(level))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn published(text: &str) -> Result<Published, WordError> {
        Published::of(&toml::from_str::<RawPublished>(text).unwrap())
    }

    #[test]
    fn a_figure_or_a_range_with_its_source() {
        let one = published("figure='operations/s'\nvalue=1000\nsource='x'").unwrap();
        assert_eq!((one.low, one.high), (1000.0, 1000.0));
        let text = "figure='device.w/s'\nlow=300\nhigh=400\nsource='x'\ncell={nr_requests=128}";
        let range = published(text).unwrap();
        let mut cell = Cell::default();
        assert!(!range.is_of(&cell));
        cell.levels.insert(Factor::NrRequests, Level("128".to_owned()));
        assert!(range.is_of(&cell));
        // One level of what clients do is named by no cell.
        let fixed = |level: &str| Cell {
            levels: [(Factor::NrRequests, Level(level.to_owned()))].into(),
            baseline: None,
        };
        assert!(range.clone().beside(&fixed("128")).is_of(&Cell::default()));
        assert!(!range.beside(&fixed("64")).is_of(&Cell::default()));
        assert!(published("figure='f'\nsource='x'").is_err());
        assert!(published("figure='f'\nvalue=-1\nsource='x'").is_err());
        assert!(published("figure='f'\nvalue=1\nsource='x'\ncell={colour='red'}").is_err());
    }
}
