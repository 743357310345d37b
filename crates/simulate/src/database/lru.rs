//! Which blocks a server holds in memory of its own: least recently used goes first.

const NONE: u32 = u32::MAX;
const ABSENT: u32 = u32::MAX - 1;

/// Blocks by number. Memory goes with the number of blocks there are: eight bytes each.
#[derive(Debug)]
pub(crate) struct Lru {
    most: u64,
    len: u64,
    /// (younger, older) of each block.
    links: Vec<(u32, u32)>,
    youngest: u32,
    oldest: u32,
}

impl Lru {
    /// Of at most so many blocks.
    pub fn new(most: u64) -> Self {
        Lru { most: most.max(1), len: 0, links: Vec::new(), youngest: NONE, oldest: NONE }
    }

    /// Uses a block: whether it was there, and which had to go for it.
    pub fn touch(&mut self, block: u32) -> (bool, Option<u32>) {
        if self.links.len() <= block as usize {
            self.links.resize(block as usize + 1, (ABSENT, ABSENT));
        }
        let there = self.links[block as usize].0 != ABSENT;
        if there && self.youngest == block {
            return (true, None);
        }
        let mut gone = None;
        if there {
            self.unlink(block);
        } else {
            if self.len == self.most {
                let oldest = self.oldest;
                self.unlink(oldest);
                self.links[oldest as usize] = (ABSENT, ABSENT);
                gone = Some(oldest);
            } else {
                self.len += 1;
            }
        }
        self.links[block as usize] = (NONE, self.youngest);
        match self.youngest {
            NONE => self.oldest = block,
            youngest => self.links[youngest as usize].0 = block,
        }
        self.youngest = block;
        (there, gone)
    }

    fn unlink(&mut self, block: u32) {
        let (younger, older) = self.links[block as usize];
        match younger {
            NONE => self.youngest = older,
            _ => self.links[younger as usize].1 = older,
        }
        match older {
            NONE => self.oldest = younger,
            _ => self.links[older as usize].0 = younger,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_least_recently_used_goes() {
        let mut lru = Lru::new(3);
        for block in [1, 2, 3] {
            assert_eq!(lru.touch(block), (false, None));
        }
        assert_eq!(lru.touch(1), (true, None));
        assert_eq!(lru.touch(9), (false, Some(2)));
        assert_eq!(lru.touch(2), (false, Some(3)));
        assert_eq!(lru.touch(9), (true, None));
    }
}
