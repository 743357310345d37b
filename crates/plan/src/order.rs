//! The order of trials: every cell once a round, in random order; each baseline twice.

use crate::{Cell, Level, Plan};
use random::Stream;
use std::collections::BTreeSet;

/// One trial to come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Slot {
    /// The cell's place in the plan.
    pub cell: usize,
    /// 0, and 1 for a baseline's second trial in the round.
    pub replica: u32,
}

impl Plan {
    /// The trials of round `round` (from 0): `cells` once, those in `baselines` twice, in an order that
    /// depends on nothing but the plan, the round and the two lists: random; where a factor takes long to change
    /// ([`Plan::slow`]), all cells with one level of it before those with the next.
    pub fn round_order(&self, round: u32, cells: &[usize], baselines: &[usize]) -> Vec<Slot> {
        let block = |cell: usize| self.slow_levels(&self.cells[cell]);
        round_order(self.seed, round, cells, baselines, &block)
    }

    /// How often what is slow to change changes in a round, at the most.
    pub(crate) fn slow_changes(&self) -> usize {
        if self.slow.is_empty() {
            return 0;
        }
        self.cells.iter().map(|cell| self.slow_levels(cell)).collect::<BTreeSet<_>>().len()
    }

    fn slow_levels<'a>(&self, cell: &'a Cell) -> Vec<Option<&'a Level>> {
        self.slow.iter().map(|factor| cell.level(factor)).collect()
    }
}

/// The trials of a round, those with the same `block` one after another. The blocks of two rounds mirror each other:
/// what drifts evenly cancels between blocks, and the second round begins in the block in which the first one ended.
fn round_order<Block: Ord>(
    seed: u64,
    round: u32,
    cells: &[usize],
    baselines: &[usize],
    block: &dyn Fn(usize) -> Block,
) -> Vec<Slot> {
    let mut slots: Vec<Slot> = cells.iter().map(|&cell| Slot { cell, replica: 0 }).collect();
    slots.extend(baselines.iter().map(|&cell| Slot { cell, replica: 1 }));
    Stream::new(seed, &format!("order of round {round}")).shuffle(&mut slots);
    let blocks: BTreeSet<Block> = slots.iter().map(|slot| block(slot.cell)).collect();
    let mut order: Vec<Block> = blocks.into_iter().collect();
    if order.len() > 1 {
        let pair = round / 2;
        Stream::new(seed, &format!("order of blocks {pair}")).shuffle(&mut order);
        if !round.is_multiple_of(2) {
            order.reverse();
        }
        slots.sort_by_key(|slot| {
            let of_slot = block(slot.cell);
            order.iter().position(|block| *block == of_slot)
        });
    }
    slots
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_cell_once_and_the_baseline_twice() {
        let mut orders = Vec::new();
        for round in 0..50 {
            let slots = round_order(1, round, &[0, 1, 2, 3], &[0], &|_| ());
            assert_eq!(slots, round_order(1, round, &[0, 1, 2, 3], &[0], &|_| ()));
            let mut sorted: Vec<_> = slots.iter().map(|slot| (slot.cell, slot.replica)).collect();
            sorted.sort_unstable();
            assert_eq!(sorted, [(0, 0), (0, 1), (1, 0), (2, 0), (3, 0)]);
            orders.push(slots);
        }
        assert!(orders.iter().any(|order| order != &orders[0]));
    }

    #[test]
    fn blocks_are_not_torn_and_two_rounds_mirror_each_other() {
        let block = |cell: usize| cell / 2;
        let mut first = BTreeSet::new();
        for pair in 0..20 {
            let blocks = |round: u32| {
                let slots = round_order(1, round, &[0, 1, 2, 3, 4, 5], &[0, 4], &block);
                assert_eq!(slots.len(), 8);
                let mut blocks: Vec<usize> = slots.iter().map(|slot| block(slot.cell)).collect();
                blocks.dedup();
                blocks
            };
            let (even, mut odd) = (blocks(2 * pair), blocks(2 * pair + 1));
            assert_eq!(even.len(), 3, "{even:?}");
            odd.reverse();
            assert_eq!(even, odd);
            first.insert(even[0]);
        }
        assert_eq!(first.len(), 3, "each block is first in some round");
    }
}
