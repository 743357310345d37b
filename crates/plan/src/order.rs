//! The order of trials: every cell once a round, in random order; each baseline twice.

use random::Stream;

/// One trial to come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Slot {
    /// The cell's place in the plan.
    pub cell: usize,
    /// 0, and 1 for a baseline's second trial in the round.
    pub replica: u32,
}

/// The trials of round `round` (from 0): `cells` once, those in `baselines` twice, in an order that
/// depends on nothing but the seed, the round and the two lists.
pub fn round_order(seed: u64, round: u32, cells: &[usize], baselines: &[usize]) -> Vec<Slot> {
    let mut slots: Vec<Slot> = cells.iter().map(|&cell| Slot { cell, replica: 0 }).collect();
    slots.extend(baselines.iter().map(|&cell| Slot { cell, replica: 1 }));
    Stream::new(seed, &format!("order of round {round}")).shuffle(&mut slots);
    slots
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_cell_once_and_the_baseline_twice() {
        let mut orders = Vec::new();
        for round in 0..50 {
            let slots = round_order(1, round, &[0, 1, 2, 3], &[0]);
            assert_eq!(slots, round_order(1, round, &[0, 1, 2, 3], &[0]));
            let mut sorted: Vec<_> = slots.iter().map(|slot| (slot.cell, slot.replica)).collect();
            sorted.sort_unstable();
            assert_eq!(sorted, [(0, 0), (0, 1), (1, 0), (2, 0), (3, 0)]);
            orders.push(slots);
        }
        assert!(orders.iter().any(|order| order != &orders[0]));
    }
}
