//! Sets of page numbers that are walked in order: which pages of a file are dirty.

use std::collections::BTreeMap;

/// Pages of a chunk: 64 words of 64 bits.
const CHUNK: u32 = 4096;

#[derive(Clone, Debug)]
struct Chunk {
    words: [u64; 64],
    /// Which words are not zero.
    any: u64,
}

/// A sparse set of page numbers: memory goes with the number of chunks that have a member.
#[derive(Clone, Debug, Default)]
pub(crate) struct PageSet {
    chunks: BTreeMap<u32, Box<Chunk>>,
    len: u64,
}

impl PageSet {
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Says whether it is new.
    pub fn insert(&mut self, page: u32) -> bool {
        let empty = || Box::new(Chunk { words: [0; 64], any: 0 });
        let chunk = self.chunks.entry(page / CHUNK).or_insert_with(empty);
        let (word, bit) = ((page % CHUNK / 64) as usize, 1u64 << (page % 64));
        let new = chunk.words[word] & bit == 0;
        chunk.words[word] |= bit;
        chunk.any |= 1 << word;
        self.len += u64::from(new);
        new
    }

    /// Says whether it was there.
    pub fn remove(&mut self, page: u32) -> bool {
        let Some(chunk) = self.chunks.get_mut(&(page / CHUNK)) else { return false };
        let (word, bit) = ((page % CHUNK / 64) as usize, 1u64 << (page % 64));
        let there = chunk.words[word] & bit != 0;
        chunk.words[word] &= !bit;
        if chunk.words[word] == 0 {
            chunk.any &= !(1 << word);
        }
        if chunk.any == 0 {
            self.chunks.remove(&(page / CHUNK));
        }
        self.len -= u64::from(there);
        there
    }

    /// The first member that is `page` or behind it.
    pub fn next(&self, page: u32) -> Option<u32> {
        let number = page / CHUNK;
        if let Some(chunk) = self.chunks.get(&number)
            && let Some(found) = chunk.next(page % CHUNK)
        {
            return Some(number * CHUNK + found);
        }
        let (number, chunk) = self.chunks.range(number + 1..).next()?;
        Some(number * CHUNK + chunk.next(0)?)
    }
}

impl Chunk {
    fn next(&self, from: u32) -> Option<u32> {
        let word = (from / 64) as usize;
        let here = self.words[word] & (u64::MAX << (from % 64));
        if here != 0 {
            return Some(word as u32 * 64 + here.trailing_zeros());
        }
        let later = self.any & u64::MAX.checked_shl(word as u32 + 1).unwrap_or(0);
        (later != 0).then(|| {
            let word = later.trailing_zeros();
            word * 64 + self.words[word as usize].trailing_zeros()
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    proptest! {
        #[test]
        fn it_is_an_ordered_set(steps in prop::collection::vec((0u32..3, 0u32..20_000), 0..300)) {
            let (mut set, mut plain) = (PageSet::default(), BTreeSet::new());
            for (what, page) in steps {
                match what {
                    0 => prop_assert_eq!(set.insert(page), plain.insert(page)),
                    1 => prop_assert_eq!(set.remove(page), plain.remove(&page)),
                    _ => prop_assert_eq!(set.next(page), plain.range(page..).next().copied()),
                }
                prop_assert_eq!(set.len, plain.len() as u64);
            }
        }
    }
}
