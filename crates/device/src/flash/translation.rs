//! The flash translation layer: which page holds what, and greedy garbage collection.
//!
//! A drive has hundreds of millions of pages, and what garbage collection costs depends on ratios
//! alone. So the layer keeps a *sample* of the logical pages: of each `scale` consecutive ones it
//! follows one, and each block it knows stands for `scale` blocks. A sample spread evenly over the
//! addresses sees sequential, random and skewed writing alike.

use random::Stream;

/// No page.
const NONE: u32 = u32::MAX;

/// What garbage collection did, in units of the sample.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Work {
    /// Pages copied.
    pub moved: u64,
    /// Blocks erased.
    pub erased: u64,
}

/// The layer. Pages are numbered `block × pages_per_block + page`.
#[derive(Clone, Debug)]
pub struct Translation {
    pages_per_block: u32,
    /// Where each logical page is.
    physical: Vec<u32>,
    /// What each physical page holds.
    logical: Vec<u32>,
    valid: Vec<u32>,
    /// Full blocks by their number of valid pages, and each block's place in its list.
    by_valid: Vec<Vec<u32>>,
    position: Vec<u32>,
    free: Vec<u32>,
    /// The block being written, and its next page.
    open: (u32, u32),
    lowest: usize,
    host_writes: u64,
    moved: u64,
}

/// Blocks kept free so that a victim's pages always find a place.
const RESERVE: usize = 1;

impl Translation {
    /// An empty drive with `logical` pages and `blocks` blocks.
    pub fn new(logical: u32, blocks: u32, pages_per_block: u32) -> Self {
        let mut free: Vec<u32> = (1..blocks).rev().collect();
        free.shrink_to_fit();
        Translation {
            pages_per_block,
            physical: vec![NONE; logical as usize],
            logical: vec![NONE; (blocks * pages_per_block) as usize],
            valid: vec![0; blocks as usize],
            by_valid: vec![Vec::new(); pages_per_block as usize + 1],
            position: vec![NONE; blocks as usize],
            free,
            open: (0, 0),
            lowest: 0,
            host_writes: 0,
            moved: 0,
        }
    }

    /// Logical pages.
    pub fn pages(&self) -> u32 {
        self.physical.len() as u32
    }

    /// (Host's writes + pages moved) / host's writes, since the counters were last reset.
    pub fn write_amplification(&self) -> f64 {
        match self.host_writes {
            0 => 1.0,
            writes => (writes + self.moved) as f64 / writes as f64,
        }
    }

    /// Starts counting anew.
    pub fn reset_counters(&mut self) {
        (self.host_writes, self.moved) = (0, 0);
    }

    /// Fills the first `pages` in order, then overwrites them `times` times over at random. Returns
    /// what garbage collection did in the last pass, for each page written.
    pub fn precondition(&mut self, pages: u32, times: u32, stream: &mut Stream) -> (f64, f64) {
        for page in 0..pages {
            self.write(page);
        }
        let mut work = Work::default();
        for _ in 0..times {
            work = Work::default();
            for _ in 0..pages {
                let done = self.write(stream.below(u64::from(pages)) as u32);
                work.moved += done.moved;
                work.erased += done.erased;
            }
        }
        self.reset_counters();
        let written = f64::from(pages.max(1));
        (work.moved as f64 / written, work.erased as f64 / written)
    }

    /// Writes a logical page; returns what garbage collection had to do for it.
    pub fn write(&mut self, page: u32) -> Work {
        self.host_writes += 1;
        self.discard(page);
        self.place(page);
        let mut work = Work::default();
        while self.free.len() < RESERVE + 1 {
            match self.collect() {
                Some(moved) => {
                    work.moved += moved;
                    work.erased += 1;
                }
                None => break,
            }
        }
        self.moved += work.moved;
        work
    }

    /// Forgets a logical page.
    pub fn discard(&mut self, page: u32) {
        let at = std::mem::replace(&mut self.physical[page as usize], NONE);
        if at == NONE {
            return;
        }
        self.logical[at as usize] = NONE;
        let block = at / self.pages_per_block;
        let listed = self.position[block as usize] != NONE;
        if listed {
            self.unlist(block);
        }
        self.valid[block as usize] -= 1;
        if listed {
            self.list(block);
        }
    }

    /// Puts a logical page on the next free page.
    fn place(&mut self, page: u32) {
        let (block, next) = self.open;
        let at = block * self.pages_per_block + next;
        self.logical[at as usize] = page;
        self.physical[page as usize] = at;
        self.valid[block as usize] += 1;
        self.open.1 += 1;
        if self.open.1 == self.pages_per_block {
            self.list(block);
            // The reserve makes sure that there is one.
            if let Some(free) = self.free.pop() {
                self.open = (free, 0);
            }
        }
    }

    /// Empties the full block with the fewest valid pages. None if nothing would be gained.
    fn collect(&mut self) -> Option<u64> {
        while self.by_valid.get(self.lowest)?.is_empty() {
            self.lowest += 1;
        }
        if self.lowest as u32 == self.pages_per_block {
            return None;
        }
        let victim = self.by_valid[self.lowest].last().copied()?;
        self.unlist(victim);
        let first = victim * self.pages_per_block;
        let mut moved = 0;
        for at in first..first + self.pages_per_block {
            let page = self.logical[at as usize];
            if page != NONE {
                self.logical[at as usize] = NONE;
                self.place(page);
                moved += 1;
            }
        }
        self.valid[victim as usize] = 0;
        self.free.push(victim);
        Some(moved)
    }

    fn list(&mut self, block: u32) {
        let valid = self.valid[block as usize] as usize;
        self.position[block as usize] = self.by_valid[valid].len() as u32;
        self.by_valid[valid].push(block);
        self.lowest = self.lowest.min(valid);
    }

    fn unlist(&mut self, block: u32) {
        let valid = self.valid[block as usize] as usize;
        let at = std::mem::replace(&mut self.position[block as usize], NONE);
        let list = &mut self.by_valid[valid];
        list.swap_remove(at as usize);
        if let Some(moved) = list.get(at as usize) {
            self.position[*moved as usize] = at;
        }
    }

    /// Every logical page is on one physical page and says so: for tests.
    pub fn is_consistent(&self) -> bool {
        let forward = self
            .physical
            .iter()
            .enumerate()
            .all(|(page, at)| *at == NONE || self.logical[*at as usize] == page as u32);
        let held = self.logical.iter().filter(|page| **page != NONE).count();
        let mapped = self.physical.iter().filter(|at| **at != NONE).count();
        let valid: u32 = self.valid.iter().sum();
        forward && held == mapped && valid as usize == held
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Lambert's W on the branch through 0, for −1/e < x < 0, by Newton's method.
    fn lambert(x: f64) -> f64 {
        let mut w: f64 = -0.5;
        for _ in 0..200 {
            let e = w.exp();
            w -= (w * e - x) / (e * (w + 1.0));
        }
        w
    }

    /// Write amplification (1 + ρ)/(1 + ρ + W(−(1 + ρ)·e^−(1 + ρ))) under uniform random writes,
    /// ρ = physical over logical pages − 1: X. Luojie and B. M. Kurkoski, "An improved analytic
    /// expression for write amplification in NAND flash", ICNC 2012, arXiv:1110.4245. Its abstract
    /// gives 2.36 for ρ = 0.3, against 2.35 in the authors' own simulation of greedy collection.
    fn luojie_kurkoski(rho: f64) -> f64 {
        let a = 1.0 + rho;
        a / (a + lambert(-a * (-a).exp()))
    }

    #[test]
    fn the_published_curve_is_the_published_one() {
        assert!((luojie_kurkoski(0.3) - 2.36).abs() < 0.005, "{}", luojie_kurkoski(0.3));
    }

    #[test]
    fn greedy_cleaning_follows_the_published_curve() {
        // The expression is the limit of large blocks.
        let pages_per_block = 256;
        for rho in [0.1, 0.2, 0.3, 0.5] {
            let logical = 160_000;
            let blocks =
                (f64::from(logical) * (1.0 + rho) / f64::from(pages_per_block)).round() as u32;
            // The reserve and the open block hold no garbage to choose from.
            let rho = f64::from((blocks - 2) * pages_per_block) / f64::from(logical) - 1.0;
            let mut ftl = Translation::new(logical, blocks, pages_per_block);
            let mut stream = Stream::new(3, "greedy");
            ftl.precondition(logical, 6, &mut stream);
            for _ in 0..800_000 {
                ftl.write(stream.below(u64::from(logical)) as u32);
            }
            assert!(ftl.is_consistent());
            let (ours, published) = (ftl.write_amplification(), luojie_kurkoski(rho));
            println!("ρ {rho:.3}: ours {ours:.3}, published {published:.3}");
            let off = ours / published - 1.0;
            assert!(off.abs() < 0.04, "ρ {rho:.3}: ours {ours:.3}, published {published:.3}");
        }
    }

    #[test]
    fn sequential_overwriting_moves_nothing() {
        let mut ftl = Translation::new(6400, 110, 64);
        for _ in 0..5 {
            for page in 0..6400 {
                ftl.write(page);
            }
        }
        assert_eq!(ftl.write_amplification(), 1.0);
    }

    #[test]
    fn discarded_pages_cost_nothing() {
        let mut ftl = Translation::new(6400, 110, 64);
        let mut stream = Stream::new(1, "discard");
        ftl.precondition(6400, 3, &mut stream);
        for page in 3200..6400 {
            ftl.discard(page);
        }
        for _ in 0..6400 {
            ftl.write(stream.below(3200) as u32);
        }
        ftl.reset_counters();
        for _ in 0..20_000 {
            ftl.write(stream.below(3200) as u32);
        }
        assert!(ftl.is_consistent());
        assert!(ftl.write_amplification() < 1.2, "{}", ftl.write_amplification());
    }
}
