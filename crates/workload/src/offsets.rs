//! Where a client's next operation goes: the patterns of docs/reference/workloads/pattern.md.

use crate::{Order, Pattern};
use random::Stream;

/// One client's sequence of operations: a block's number, and whether it is read.
pub struct Offsets {
    blocks: u64,
    read_percent: u64,
    next: Next,
    stream: Stream,
}

enum Next {
    Random,
    /// The next block of each interleaved stream, and whose turn it is.
    Sequential {
        next: Vec<u64>,
        turn: usize,
    },
}

impl Offsets {
    /// Of client `client` of `clients`, over `blocks` blocks (at least one).
    pub fn new(
        pattern: Pattern,
        (client, clients): (u32, u32),
        blocks: u64,
        stream: Stream,
    ) -> Self {
        let next = match pattern.order {
            Order::Random => Next::Random,
            Order::Sequential { streams } => {
                let all = u128::from(clients) * u128::from(streams);
                let first = u128::from(client) * u128::from(streams);
                let start = |s| ((first + u128::from(s)) * u128::from(blocks) / all) as u64;
                Next::Sequential { next: (0..streams).map(start).collect(), turn: 0 }
            }
        };
        Offsets { blocks, read_percent: pattern.read_percent.into(), next, stream }
    }

    /// The next operation's block, and whether it is read.
    // It never ends, so an iterator would only make callers unwrap.
    #[allow(clippy::should_implement_trait)]
    #[inline]
    pub fn next(&mut self) -> (u64, bool) {
        let block = match &mut self.next {
            Next::Random => self.stream.below(self.blocks),
            Next::Sequential { next, turn } => {
                let block = next[*turn];
                next[*turn] = if block + 1 == self.blocks { 0 } else { block + 1 };
                *turn = if *turn + 1 == next.len() { 0 } else { *turn + 1 };
                block
            }
        };
        let reads = match self.read_percent {
            100 => true,
            0 => false,
            percent => self.stream.below(100) < percent,
        };
        (block, reads)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn offsets(pattern: &str, client: (u32, u32), blocks: u64) -> Offsets {
        Offsets::new(pattern.parse().unwrap(), client, blocks, Stream::new(1, "test"))
    }

    #[test]
    fn random_covers_all_blocks_evenly_and_nothing_else() {
        let mut offsets = offsets("randread", (0, 1), 10);
        let mut hits = [0; 10];
        for _ in 0..10_000 {
            let (block, reads) = offsets.next();
            assert!(reads);
            hits[block as usize] += 1;
        }
        assert!(hits.iter().all(|n| (850..1150).contains(n)), "{hits:?}");
    }

    #[test]
    fn sequential_streams_start_evenly_spread_and_wrap_at_the_end() {
        // Two clients of two streams over 8 blocks: the second client's start at 4 and 6.
        let mut offsets = offsets("write*2", (1, 2), 8);
        let blocks: Vec<u64> = (0..10).map(|_| offsets.next().0).collect();
        assert_eq!(blocks, [4, 6, 5, 7, 6, 0, 7, 1, 0, 2]);
    }

    #[test]
    fn a_mix_has_its_share_of_reads() {
        let mut offsets = offsets("randrw:70", (0, 1), 100);
        let reads = (0..20_000).filter(|_| offsets.next().1).count();
        assert!((13_700..14_300).contains(&reads), "{reads}");
    }
}
