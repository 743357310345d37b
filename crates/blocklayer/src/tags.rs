//! blk-mq's tags: places in a map of words.

use crate::config::{Resolved, nr_requests_range};

/// The most tags that a word of the map has.
const WORD_MOST: u32 = 64;
/// Where tags are few words are shorter, so that there are so many.
const WORDS_LEAST: u32 = 4;

/// The tags of a queue. Who may have only so many gets the lowest of each word, whoever has the others
/// (Omar Sandoval, "sbitmap: add sbitmap_get_shallow() operation", 2017).
#[derive(Debug)]
pub(crate) struct Tags {
    n: u32,
    word: u32,
    taken: Vec<u64>,
    /// What came back last is looked at first.
    last: u32,
}

impl Tags {
    /// Those of a queue with these settings.
    pub fn of(config: &Resolved) -> Self {
        let (usual, _) = nr_requests_range(config.kernel, config.scheduler, config.depth);
        Tags::new(config.nr_requests, usual)
    }

    /// `n` tags in a map that was made for `n` or, where the kernel made it before it was told `n`,
    /// for its `usual`.
    pub fn new(n: u32, usual: u32) -> Self {
        let word = word_of(n.max(usual));
        Tags { n, word, taken: vec![0; n.div_ceil(word) as usize], last: 0 }
    }

    pub fn len(&self) -> u32 {
        self.n
    }

    /// The words of their map.
    pub fn words(&self) -> u32 {
        self.taken.len() as u32
    }

    /// How many of a word's tags are for whom may have `limit` of all: the words share that, the first
    /// ones have what is left over.
    fn share(&self, word: usize, limit: u32) -> u32 {
        let (words, at) = (self.words(), word as u32);
        let there = (self.n - at * self.word).min(self.word);
        match limit < self.n {
            true => (limit / words + u32::from(at < limit % words)).min(there),
            false => there,
        }
    }

    /// Those of them that are free, as bits.
    fn free_of(&self, word: usize, limit: u32) -> u64 {
        let others = u64::MAX.checked_shl(self.share(word, limit)).unwrap_or(0);
        !self.taken[word] & !others
    }

    /// A free tag for whom may have `limit` of them.
    pub fn take(&mut self, limit: u32) -> Option<u32> {
        let words = self.taken.len();
        let (first, from) = ((self.last / self.word) as usize, self.last % self.word);
        for word in (first..words).chain(0..first) {
            let free = self.free_of(word, limit);
            if free == 0 {
                continue;
            }
            let behind = free >> from << from;
            let place = match word == first && behind != 0 {
                true => behind.trailing_zeros(),
                false => free.trailing_zeros(),
            };
            self.taken[word] |= 1 << place;
            return Some(word as u32 * self.word + place);
        }
        None
    }

    /// Whether who may have `limit` may have this one.
    pub fn may_have(&self, tag: u32, limit: u32) -> bool {
        tag % self.word < self.share((tag / self.word) as usize, limit)
    }

    /// Whether `limit` is no more than one in each of many words.
    pub fn is_few(&self, limit: u32) -> bool {
        limit <= self.words() && self.words() < self.n
    }

    pub fn give_back(&mut self, tag: u32) {
        self.taken[(tag / self.word) as usize] &= !(1 << (tag % self.word));
        self.last = tag;
    }
}

/// How many tags a word of a map for `n` has.
fn word_of(n: u32) -> u32 {
    let mut word = WORD_MOST;
    while n >= WORDS_LEAST && WORDS_LEAST * word > n {
        word /= 2;
    }
    word
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_tag_is_given_once_and_comes_back() {
        for n in [1, 3, 4, 31, 62, 64, 128, 256, 1000, 2048] {
            let mut tags = Tags::new(n, 0);
            let mut all: Vec<u32> = (0..n).map(|_| tags.take(n).unwrap()).collect();
            assert_eq!(tags.take(n), None);
            all.sort_unstable();
            assert!(all.iter().copied().eq(0..n), "{n}");
            tags.give_back(0);
            tags.give_back(n / 2);
            assert_eq!(tags.take(n), Some(n / 2));
        }
    }

    #[test]
    fn who_may_have_a_part_gets_the_lowest_places_of_each_word() {
        let mut tags = Tags::new(256, 256);
        let few: Vec<u32> = (0..6).map_while(|_| tags.take(6)).collect();
        assert_eq!(few, [0, 1, 64, 65, 128, 192]);
        assert_eq!(tags.take(6), None);
        // Others have the rest; and a low place that one of them had is free for the few again.
        assert_eq!((0..250).filter_map(|_| tags.take(256)).count(), 250);
        tags.give_back(200);
        assert_eq!(tags.take(6), None);
        tags.give_back(64);
        assert_eq!(tags.take(6), Some(64));
    }

    #[test]
    fn a_map_is_as_it_was_made() {
        // 64 of a map that was made for 256 are one word; made for 64, four.
        assert_eq!((Tags::new(64, 256).words(), Tags::new(64, 64).words()), (1, 4));
        assert_eq!(Tags::new(2048, 256).words(), 32);
    }
}
