//! A B-tree under insertions of uniformly random keys: which block each lands in, and which split.
//!
//! No key is kept. A block covers a part of the key space, and counts; a full one splits in the
//! middle of its part and hands half of its keys to a new block at the end of the file, as random
//! keys do on average. Blocks so come to be about ln 2 full (Yao, 1978).

use random::Stream;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// One level of a tree: the leaves, or the blocks that point to the level below.
#[derive(Debug)]
pub(crate) struct Level {
    /// Keys a block holds at most.
    capacity: u32,
    blocks: Vec<Block>,
    /// The block of each prefix of `bits` bits.
    directory: Vec<u32>,
    bits: u32,
}

#[derive(Clone, Copy, Debug)]
struct Block {
    /// Its number in the file.
    number: u32,
    keys: u32,
    /// Bits of prefix that its keys share.
    depth: u32,
}

/// The most bits of a key that tell blocks apart.
const MAX_DEPTH: u32 = 26;

impl Level {
    pub fn new(capacity: u32, number: u32) -> Self {
        let first = Block { number, keys: 0, depth: 0 };
        Level { capacity: capacity.max(4), blocks: vec![first], directory: vec![0], bits: 0 }
    }

    fn at(&self, key: u64) -> u32 {
        let prefix = if self.bits == 0 { 0 } else { key >> (64 - self.bits) };
        self.directory[prefix as usize]
    }

    /// The number of the block that a key belongs to.
    pub fn number(&self, key: u64) -> u32 {
        self.blocks[self.at(key) as usize].number
    }

    /// Adds a key. A full block is split first: then the new block's number is `next`, and the first
    /// key of its part is returned.
    pub fn insert(&mut self, key: u64, next: u32) -> Option<u64> {
        let mut at = self.at(key);
        let full = self.blocks[at as usize];
        let mut split = None;
        if full.keys >= self.capacity && full.depth < MAX_DEPTH {
            split = Some(self.split(at, key, next));
            at = self.at(key);
        }
        self.blocks[at as usize].keys += 1;
        split
    }

    /// Splits the block `at`, which holds `key`; the first key of the new one's part.
    fn split(&mut self, at: u32, key: u64, number: u32) -> u64 {
        let Block { keys, depth, .. } = self.blocks[at as usize];
        let depth = depth + 1;
        if depth > self.bits {
            self.directory = self.directory.iter().flat_map(|block| [*block, *block]).collect();
            self.bits += 1;
        }
        let new = self.blocks.len() as u32;
        self.blocks.push(Block { number, keys: keys / 2, depth });
        let old = &mut self.blocks[at as usize];
        (old.keys, old.depth) = (keys - keys / 2, depth);
        // The upper half of its part.
        let first = (key >> (64 - depth) | 1) << (64 - depth);
        let from = (first >> (64 - self.bits)) as usize;
        let count = 1usize << (self.bits - depth);
        self.directory[from..from + count].fill(new);
        first
    }
}

/// A tree: leaves, and what points to them.
#[derive(Debug)]
pub(crate) struct Tree {
    pub leaves: Level,
    pub branches: Level,
}

impl Tree {
    /// Whose blocks hold so many keys, with its first two blocks.
    pub fn new(keys_a_leaf: u32, keys_a_branch: u32, next: &mut u32) -> Self {
        let mut take = || {
            *next += 1;
            *next - 1
        };
        Tree {
            leaves: Level::new(keys_a_leaf, take()),
            branches: Level::new(keys_a_branch, take()),
        }
    }

    /// Adds a key: `changed` gets the numbers of the blocks that have to be written. New blocks are
    /// numbered from `next` on.
    pub fn insert(&mut self, key: u64, next: &mut u32, changed: &mut Vec<u32>) {
        if let Some(first) = self.leaves.insert(key, *next) {
            changed.push(*next);
            *next += 1;
            changed.push(self.leaves.number(key));
            if self.branches.insert(first, *next).is_some() {
                changed.push(*next);
                *next += 1;
            }
            changed.push(self.branches.number(first));
        } else {
            changed.push(self.leaves.number(key));
        }
    }
}

/// Fills trees with `rows` random keys each, side by side, without drawing every key: a block whose
/// part is 2^−d of the space takes a key with every 2^d-th row on average, so it is known when it
/// fills, but for chance.
pub(crate) fn fill(trees: &mut [Tree], rows: u64, next: &mut u32, stream: &mut Stream) {
    let mut splits: BinaryHeap<Reverse<(u64, usize, u32, u64)>> = BinaryHeap::new();
    let mut born: Vec<Vec<u64>> = vec![vec![0]; trees.len()];
    let mut until_full = |level: &Level, at: u32, now: u64| {
        let block = level.blocks[at as usize];
        let missing = f64::from(level.capacity.saturating_sub(block.keys).max(1));
        let chance = 1.0 + stream.normal() / missing.sqrt();
        now + (missing * chance.max(0.1) * (1u64 << block.depth) as f64) as u64
    };
    for (nth, tree) in trees.iter().enumerate() {
        splits.push(Reverse((until_full(&tree.leaves, 0, 0), nth, 0, 0)));
    }
    while let Some(Reverse((now, nth, at, key))) = splits.pop() {
        if now >= rows {
            break;
        }
        let tree = &mut trees[nth];
        let level = &mut tree.leaves;
        if level.blocks[at as usize].depth >= MAX_DEPTH {
            continue;
        }
        level.blocks[at as usize].keys = level.capacity;
        let first = level.split(at, key, *next);
        *next += 1;
        if tree.branches.insert(first, *next).is_some() {
            *next += 1;
        }
        let new = (tree.leaves.blocks.len() - 1) as u32;
        born[nth][at as usize] = now;
        born[nth].push(now);
        for (block, key) in [(at, key), (new, first)] {
            splits.push(Reverse((until_full(&tree.leaves, block, now), nth, block, key)));
        }
    }
    for (tree, born) in trees.iter_mut().zip(&born) {
        let level = &mut tree.leaves;
        for (block, born) in level.blocks.iter_mut().zip(born) {
            let since = rows.saturating_sub(*born) >> block.depth.min(63);
            let keys = u64::from(block.keys) + since;
            block.keys = keys.min(u64::from(level.capacity)) as u32;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Mean fill, and blocks.
    fn shape(level: &Level) -> (f64, usize) {
        let keys: u64 = level.blocks.iter().map(|block| u64::from(block.keys)).sum();
        (keys as f64 / level.blocks.len() as f64 / f64::from(level.capacity), level.blocks.len())
    }

    #[test]
    fn random_insertions_leave_blocks_about_ln_2_full() {
        let mut next = 0;
        let mut tree = Tree::new(90, 60, &mut next);
        let mut stream = Stream::new(1, "keys");
        let (mut changed, mut written) = (Vec::new(), 0);
        // A tree that began empty splits in waves: the mean over one doubling counts.
        let (mut fills, mut look_at) = (Vec::new(), 200_000.0);
        for row in 0..400_000 {
            if row as f64 >= look_at {
                fills.push(shape(&tree.leaves).0);
                look_at *= 2f64.powf(1.0 / 16.0);
            }
            changed.clear();
            tree.insert(stream.bits(), &mut next, &mut changed);
            written += changed.len();
        }
        let fill = fills.iter().sum::<f64>() / fills.len() as f64;
        assert!((fill / 2f64.ln() - 1.0).abs() < 0.04, "{fill}");
        let blocks = tree.leaves.blocks.len() + tree.branches.blocks.len();
        assert_eq!(blocks, next as usize);
        assert!((1.0..1.2).contains(&(written as f64 / 400_000.0)), "{written}");
    }

    #[test]
    fn a_filled_tree_is_like_a_grown_one() {
        let mut grown_next = 0;
        let mut grown = Tree::new(90, 60, &mut grown_next);
        let mut stream = Stream::new(2, "keys");
        let mut changed = Vec::new();
        for _ in 0..300_000 {
            grown.insert(stream.bits(), &mut grown_next, &mut changed);
        }
        let mut next = 0;
        let mut filled = vec![Tree::new(90, 60, &mut next)];
        fill(&mut filled, 300_000, &mut next, &mut stream);
        let ((a, n), (b, m)) = (shape(&grown.leaves), shape(&filled[0].leaves));
        assert!((a / b - 1.0).abs() < 0.08, "{a} and {b}");
        assert!((n as f64 / m as f64 - 1.0).abs() < 0.08, "{n} and {m}");
    }
}
