//! blk-mq's tags: bits in a bitmap of several words.

use crate::config::{Resolved, nr_requests_range};

/// The largest number of tags in a word of the bitmap.
const MAX_WORD_TAGS: u32 = 64;
/// With few tags words are shorter, so that there are at least this many.
const MIN_WORDS: u32 = 4;

/// The tags of a queue. A request with a limit gets only the lowest tags of each word, even while the
/// others are free. Documented: Omar Sandoval, "sbitmap: add sbitmap_get_shallow() operation", 2017.
#[derive(Debug)]
pub(crate) struct Tags {
    n: u32,
    word: u32,
    taken: Vec<u64>,
    /// The tag freed last, which is tried first.
    last: u32,
}

impl Tags {
    /// The tags of a queue with these settings.
    pub fn of(config: &Resolved) -> Self {
        let (default, _) = nr_requests_range(config.kernel, config.scheduler, config.depth);
        Tags::new(config.nr_requests, default)
    }

    /// `n` tags in a bitmap that was allocated for `n` or for the kernel's `default`, whichever is larger:
    /// the kernel allocates it before nr_requests is set.
    pub fn new(n: u32, default: u32) -> Self {
        let word = tags_of_word(n.max(default));
        Tags { n, word, taken: vec![0; n.div_ceil(word) as usize], last: 0 }
    }

    pub fn len(&self) -> u32 {
        self.n
    }

    /// The words of their bitmap.
    pub fn words(&self) -> u32 {
        self.taken.len() as u32
    }

    /// How many of a word's tags a request limited to `limit` tags may use: the limit divided over the
    /// words, the first ones with the remainder.
    fn share(&self, word: usize, limit: u32) -> u32 {
        let (words, at) = (self.words(), word as u32);
        let there = (self.n - at * self.word).min(self.word);
        match limit < self.n {
            true => (limit / words + u32::from(at < limit % words)).min(there),
            false => there,
        }
    }

    /// The free ones among these, as bits.
    fn free_of(&self, word: usize, limit: u32) -> u64 {
        let others = u64::MAX.checked_shl(self.share(word, limit)).unwrap_or(0);
        !self.taken[word] & !others
    }

    /// Allocates a tag for a request limited to `limit` tags.
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

/// How many tags a word of a bitmap for `n` tags has.
fn tags_of_word(n: u32) -> u32 {
    let mut word = MAX_WORD_TAGS;
    while n >= MIN_WORDS && MIN_WORDS * word > n {
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
