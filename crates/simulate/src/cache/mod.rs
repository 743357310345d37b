//! The page cache: which pages of which files are in memory, and in what state.
//!
//! Memory is bounded by the number of pages: the table, the lists and the sets of dirty pages grow
//! with the pages that are in it and no further.

mod set;

pub(crate) use set::PageSet;

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

/// Bytes of a page.
pub(crate) const PAGE: u64 = 4096;
/// Sectors of a page.
pub(crate) const PAGE_SECTORS: u64 = PAGE / 512;

/// A page's place in the cache.
pub(crate) type Slot = u32;
const NONE: u32 = u32::MAX;

/// A page in memory.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Page {
    pub file: u16,
    pub index: u32,
    /// Its data differs from the device's.
    pub dirty: bool,
    /// The run that reads or writes it, if any.
    pub run: Option<u32>,
    /// It is being read, and cannot be used yet.
    pub reading: bool,
    /// The journal's transaction that has to write it before it commits; 0: none.
    pub transaction: u32,
    referenced: bool,
    active: bool,
    before: u32,
    after: u32,
}

#[derive(Clone, Copy, Debug)]
struct List {
    head: u32,
    tail: u32,
    len: u32,
}

impl Default for List {
    fn default() -> Self {
        List { head: NONE, tail: NONE, len: 0 }
    }
}

/// The hash of the page table. The table is looked up in and never iterated, so its order cannot affect
/// results.
#[derive(Clone, Copy, Debug, Default)]
struct Mix(u64);

impl Hasher for Mix {
    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.write_u64(u64::from(*byte));
        }
    }
    fn write_u64(&mut self, value: u64) {
        let mixed = (self.0 ^ value).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        self.0 = mixed ^ (mixed >> 29);
    }
    fn finish(&self) -> u64 {
        self.0
    }
}

/// All pages in memory.
///
/// Replacement is the kernel's pair of lists (Documentation/mm, "page reclaim"): a page starts on the
/// inactive list; its first use there marks it as referenced, the next makes it active. Reclaim takes
/// the oldest inactive page, and moves the oldest active ones over when the inactive list is less than
/// half as long as the active one.
#[derive(Debug)]
pub(crate) struct Cache {
    capacity: u32,
    pages: Vec<Page>,
    free: Vec<Slot>,
    table: HashMap<u64, Slot, BuildHasherDefault<Mix>>,
    inactive: List,
    active: List,
    dirty: u64,
    under_write: u64,
    hits: u64,
    misses: u64,
}

fn key(file: u16, index: u32) -> u64 {
    u64::from(file) << 32 | u64::from(index)
}

impl std::ops::Index<Slot> for Cache {
    type Output = Page;
    fn index(&self, slot: Slot) -> &Page {
        &self.pages[slot as usize]
    }
}

impl std::ops::IndexMut<Slot> for Cache {
    fn index_mut(&mut self, slot: Slot) -> &mut Page {
        &mut self.pages[slot as usize]
    }
}

impl Cache {
    /// An empty cache of at most `capacity` pages.
    pub fn new(capacity: u32) -> Self {
        Cache {
            capacity: capacity.max(16),
            pages: Vec::new(),
            free: Vec::new(),
            table: HashMap::default(),
            inactive: List::default(),
            active: List::default(),
            dirty: 0,
            under_write: 0,
            hits: 0,
            misses: 0,
        }
    }

    /// The pages it can hold; limits on dirty pages are percentages of them.
    pub fn capacity(&self) -> u64 {
        u64::from(self.capacity)
    }

    /// Pages it holds.
    pub fn len(&self) -> u64 {
        self.table.len() as u64
    }

    /// Pages that are dirty and not yet being written.
    pub fn dirty(&self) -> u64 {
        self.dirty
    }

    /// Pages that are being written.
    pub fn under_write(&self) -> u64 {
        self.under_write
    }

    /// Hits and misses since the beginning.
    pub fn found(&self) -> (u64, u64) {
        (self.hits, self.misses)
    }

    /// A page's slot, if it is in memory. Counts neither a hit nor a miss, and is no use of the page.
    pub fn peek(&self, file: u16, index: u32) -> Option<Slot> {
        self.table.get(&key(file, index)).copied()
    }

    /// Looks a page up to use it: counts a hit or a miss, and moves the page as its use requires.
    pub fn find(&mut self, file: u16, index: u32) -> Option<Slot> {
        let Some(slot) = self.peek(file, index) else {
            self.misses += 1;
            return None;
        };
        self.hits += 1;
        let page = &mut self.pages[slot as usize];
        match (page.active, page.referenced) {
            (_, false) => page.referenced = true,
            (true, true) => {}
            (false, true) => {
                page.referenced = false;
                self.unlink(slot);
                self.pages[slot as usize].active = true;
                self.link(slot);
            }
        }
        Some(slot)
    }

    /// Adds a page that is not in memory. None if every page is dirty or busy.
    pub fn insert(&mut self, file: u16, index: u32) -> Option<Slot> {
        let slot = match self.free.pop() {
            Some(slot) => slot,
            None if (self.pages.len() as u32) < self.capacity => {
                self.pages.push(Page::new(file, index));
                (self.pages.len() - 1) as Slot
            }
            None => self.reclaim()?,
        };
        self.pages[slot as usize] = Page::new(file, index);
        self.table.insert(key(file, index), slot);
        self.link(slot);
        Some(slot)
    }

    pub fn set_dirty(&mut self, slot: Slot) {
        let page = &mut self.pages[slot as usize];
        self.dirty += u64::from(!page.dirty);
        page.dirty = true;
    }

    /// The page's data is on its way to the device with `run`.
    pub fn begin_write(&mut self, slot: Slot, run: u32) {
        let page = &mut self.pages[slot as usize];
        self.dirty -= u64::from(page.dirty);
        page.dirty = false;
        page.run = Some(run);
        page.transaction = 0;
        self.under_write += 1;
    }

    /// A run is over.
    pub fn end_run(&mut self, slot: Slot, write: bool) {
        let page = &mut self.pages[slot as usize];
        page.run = None;
        page.reading = false;
        if write {
            self.under_write -= 1;
        }
    }

    /// Evicts a page that is clean, idle, and not recently used.
    fn reclaim(&mut self) -> Option<Slot> {
        for _ in 0..self.inactive.len.saturating_mul(2).saturating_add(self.active.len) {
            if self.inactive.len < self.active.len / 2 || self.inactive.len == 0 {
                self.deactivate_oldest();
            }
            let slot = self.inactive.tail;
            if slot == NONE {
                return None;
            }
            let page = self.pages[slot as usize];
            self.unlink(slot);
            if page.dirty || page.run.is_some() {
                self.link(slot);
                // An inactive list of nothing but such pages must not hide clean active ones.
                self.deactivate_oldest();
            } else if page.referenced {
                let page = &mut self.pages[slot as usize];
                (page.referenced, page.active) = (false, true);
                self.link(slot);
            } else {
                self.table.remove(&key(page.file, page.index));
                return Some(slot);
            }
        }
        None
    }

    fn deactivate_oldest(&mut self) {
        let slot = self.active.tail;
        if slot == NONE {
            return;
        }
        self.unlink(slot);
        let page = &mut self.pages[slot as usize];
        (page.active, page.referenced) = (false, false);
        self.link(slot);
    }

    fn list(&mut self, active: bool) -> &mut List {
        if active { &mut self.active } else { &mut self.inactive }
    }

    /// Puts a page at the young end of its list.
    fn link(&mut self, slot: Slot) {
        let active = self.pages[slot as usize].active;
        let list = self.list(active);
        let head = list.head;
        list.head = slot;
        list.len += 1;
        if list.tail == NONE {
            list.tail = slot;
        }
        let page = &mut self.pages[slot as usize];
        (page.before, page.after) = (NONE, head);
        if head != NONE {
            self.pages[head as usize].before = slot;
        }
    }

    fn unlink(&mut self, slot: Slot) {
        let Page { before, after, active, .. } = self.pages[slot as usize];
        match before {
            NONE => self.list(active).head = after,
            _ => self.pages[before as usize].after = after,
        }
        match after {
            NONE => self.list(active).tail = before,
            _ => self.pages[after as usize].before = before,
        }
        self.list(active).len -= 1;
    }
}

impl Page {
    fn new(file: u16, index: u32) -> Self {
        Page {
            file,
            index,
            dirty: false,
            run: None,
            reading: false,
            transaction: 0,
            referenced: false,
            active: false,
            before: NONE,
            after: NONE,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_holds_no_more_than_its_memory_and_forgets_the_oldest() {
        let mut cache = Cache::new(16);
        for index in 0..100 {
            assert!(cache.insert(0, index).is_some());
        }
        assert_eq!(cache.len(), 16);
        assert!(cache.peek(0, 99).is_some() && cache.peek(0, 83).is_none());
    }

    #[test]
    fn what_is_used_again_outlives_what_streams_by() {
        let mut cache = Cache::new(32);
        for index in 0..8 {
            cache.insert(1, index).unwrap();
            cache.find(1, index);
            cache.find(1, index);
        }
        for index in 0..1000 {
            cache.insert(0, index).unwrap();
        }
        assert!((0..8).all(|index| cache.peek(1, index).is_some()));
    }

    #[test]
    fn dirty_pages_stay_and_a_cache_full_of_them_has_no_room() {
        let mut cache = Cache::new(16);
        for index in 0..16 {
            let slot = cache.insert(0, index).unwrap();
            cache.set_dirty(slot);
        }
        assert_eq!((cache.dirty(), cache.insert(0, 16)), (16, None));
        let slot = cache.peek(0, 3).unwrap();
        cache.begin_write(slot, 0);
        cache.end_run(slot, true);
        assert!(cache.insert(0, 16).is_some());
        assert_eq!((cache.dirty(), cache.peek(0, 3)), (15, None));
    }
}
