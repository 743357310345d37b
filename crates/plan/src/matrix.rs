//! How large a matrix of cells is, as screening sees it.

/// The least cells beside baselines for which a plan screens by itself: below, every cell costs little more.
const MIN_SCREENED_CELLS: usize = 24;

/// What of a plan says how many trials a screening takes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Matrix {
    /// Cells, baselines included.
    pub cells: usize,
    /// Conditions: each has a baseline.
    pub conditions: usize,
    /// Levels of all factors that are compared, together.
    pub levels: usize,
}

impl Matrix {
    /// Whether screening is worth it.
    pub(crate) fn is_large(self) -> bool {
        self.cells - self.conditions.min(self.cells) >= MIN_SCREENED_CELLS
    }

    /// The fewest trials of a screening: half of them have to tell the level of each condition and the effect of
    /// each level, and the others have to be two rounds of two settings.
    pub(crate) fn least_trials(self) -> u64 {
        let first = 2 * (self.conditions + self.levels);
        first.max(8 * self.conditions) as u64
    }
}
