//! Running means of what a process does: exponential, each new sample weighs 1/8.

/// A mean in fixed point; 0 samples to begin with, so that the first ones count in full.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Mean {
    weight: u64,
    total: u64,
}

impl Mean {
    pub fn add(&mut self, sample: u64) {
        self.weight = (7 * self.weight + 256) / 8;
        self.total = (7 * self.total + 256 * sample) / 8;
    }

    pub fn value(&self) -> u64 {
        self.total.checked_div(self.weight).unwrap_or(0)
    }

    /// Whether it saw three samples or more.
    pub fn is_valid(&self) -> bool {
        self.weight > 80
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn first_samples_count_in_full_and_old_ones_fade() {
        let mut mean = Mean::default();
        mean.add(800);
        assert_eq!(mean.value(), 800);
        assert!(!mean.is_valid());
        (0..100).for_each(|_| mean.add(80));
        assert!(mean.is_valid());
        // Whole numbers: the weight settles at 249 of 256, a bias of 3 %.
        assert!((78..=83).contains(&mean.value()), "{}", mean.value());
    }
}
