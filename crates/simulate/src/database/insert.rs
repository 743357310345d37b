//! `insert`: one row a statement into a MyISAM table with three indexes on random columns.

use super::lru::Lru;
use super::then;
use super::tree::{Tree, fill};
use crate::cache::PAGE;
use crate::machine::{File, Frame, Machine, ReadCall, Server, Step, TaskId, WriteCall};
use crate::stage::Stage;
use device::Device;
use random::Stream;
use std::collections::VecDeque;
use units::Bytes;

/// The table of the published queue-size experiment (Matsunobu, 2009): an auto-increment key, three
/// indexed integers, 40 characters; each statement's index blocks are written when it ends.
#[derive(Clone, Debug, PartialEq)]
pub struct Insert {
    /// `key_buffer_size`: memory for index blocks.
    pub key_buffer: Bytes,
    /// Rows in the table before the clients begin.
    pub prefill: u64,
}

/// MyISAM's index block for keys like these.
const KEY_BLOCK: u64 = 1024;
/// An integer that may be NULL and a row pointer of 6 bytes, in a block less its head.
const KEYS_A_LEAF: u32 = 1022 / 11;
/// The same with a pointer to a block.
const KEYS_A_BRANCH: u32 = 1022 / 15;
/// The primary key's: not NULL. Its keys come in order, and fill blocks whole.
const PRIMARY_KEYS_A_LEAF: u64 = 1022 / 10;
/// A row: four integers, 41 characters, and its head.
const ROW: u64 = 64;
/// Secondary indexes.
const INDEXES: usize = 3;

/// Indices of the files. File 0, the raw device, is not used.
const INDEX_FILE: u16 = 1;
const DATA_FILE: u16 = 2;

/// Steps in which the prefilled files have grown.
const PARTS: u64 = 64;

/// A call that a statement makes.
#[derive(Clone, Copy, Debug)]
enum Call {
    ReadBlock(u32),
    WriteBlock(u32),
    Append { from: u64, to: u64 },
}

/// The table, and the server's memory of its index.
pub(crate) struct Table {
    trees: Vec<Tree>,
    /// Number of index blocks; block 0 is the file's header.
    blocks: u32,
    /// The primary key's last block, and keys in it.
    primary: (u32, u64),
    key_cache: Lru,
    keys: Stream,
    rows: u64,
    data_end: u64,
    calls: Vec<Call>,
    changed: Vec<u32>,
    /// The table's lock: a statement at a time.
    busy: bool,
    waiting: VecDeque<TaskId>,
    counts: [u64; 4],
}

/// The indices of [`Table::counts`].
const KEY_READ_REQUESTS: usize = 0;
const KEY_READS: usize = 1;
const KEY_WRITE_REQUESTS: usize = 2;
const KEY_WRITES: usize = 3;

impl<D: Device + ?Sized> Server<D> for Table {
    fn serve(&mut self, machine: &mut Machine<D>, id: TaskId, stage: Stage) -> Step {
        match stage {
            Stage::Begin => {
                if self.busy {
                    self.waiting.push_back(id);
                    return Step::Wait(Frame::Server(Stage::Begin));
                }
                self.busy = true;
                self.prepare();
                Step::Again(Frame::Server(Stage::Go(0)))
            }
            Stage::Go(at) => match self.calls.get(at as usize) {
                Some(call) => then(Stage::Go(at + 1), frame(*call)),
                None => {
                    self.busy = false;
                    if let Some(next) = self.waiting.pop_front() {
                        machine.wake_task(next);
                    }
                    Step::Done
                }
            },
            // The others are InnoDB's.
            _ => Step::Done,
        }
    }

    fn counters(&self) -> Vec<(&'static str, f64, bool)> {
        let mib = |bytes: u64| bytes as f64 / 1_048_576.0;
        let sum = |at: usize| self.counts[at] as f64;
        vec![
            ("mariadb.rows", self.rows as f64, false),
            ("mariadb.data_mib", mib(self.data_end), false),
            ("mariadb.index_mib", mib(u64::from(self.blocks) * KEY_BLOCK), false),
            ("mariadb.Key_read_requests/s", sum(KEY_READ_REQUESTS), true),
            ("mariadb.Key_reads/s", sum(KEY_READS), true),
            ("mariadb.Key_write_requests/s", sum(KEY_WRITE_REQUESTS), true),
            ("mariadb.Key_writes/s", sum(KEY_WRITES), true),
        ]
    }
}

impl Table {
    pub fn new<D: Device + ?Sized>(insert: &Insert, machine: &mut Machine<D>, seed: u64) -> Self {
        let mut blocks = 1;
        let mut trees: Vec<Tree> =
            (0..INDEXES).map(|_| Tree::new(KEYS_A_LEAF, KEYS_A_BRANCH, &mut blocks)).collect();
        let mut stream = Stream::new(seed, "index prefill");
        fill(&mut trees, insert.prefill, &mut blocks, &mut stream);
        // The primary key's blocks lie between the others; here they are counted, not placed.
        blocks += (insert.prefill / PRIMARY_KEYS_A_LEAF) as u32;
        let primary = (blocks, insert.prefill % PRIMARY_KEYS_A_LEAF);
        blocks += 1;
        let data_end = insert.prefill * ROW;
        machine.files.extend([File::growing(), File::growing()]);
        // They grew at the same time, so their extents interleave.
        for part in 1..=PARTS {
            for (file, bytes) in
                [(INDEX_FILE, u64::from(blocks) * KEY_BLOCK), (DATA_FILE, data_end)]
            {
                let pages = (bytes * part / PARTS).div_ceil(PAGE);
                if pages > 0 {
                    let file = &mut machine.files[file as usize];
                    file.grow((pages - 1) as u32, &mut machine.free_space);
                }
            }
        }
        let mut key_cache = Lru::new(insert.key_buffer.0 / KEY_BLOCK);
        if insert.prefill > 0 {
            warm(machine, &mut key_cache, (blocks, data_end), &mut stream);
        }
        Table {
            trees,
            blocks,
            primary,
            key_cache,
            keys: Stream::new(seed, "inserted keys"),
            rows: insert.prefill,
            data_end,
            calls: Vec::new(),
            changed: Vec::new(),
            busy: false,
            waiting: VecDeque::new(),
            counts: [0; 4],
        }
    }

    /// One statement: the row goes to the data file, a key into each index, and when it ends every
    /// changed block is written, in the order of the file.
    fn prepare(&mut self) {
        self.calls.clear();
        self.changed.clear();
        self.rows += 1;
        self.calls.push(Call::Append { from: self.data_end, to: self.data_end + ROW });
        self.data_end += ROW;
        for tree in 0..INDEXES {
            let key = self.keys.bits();
            // The blocks above the leaf are used by every sixtieth row, and so stay in memory.
            let leaf = self.trees[tree].leaves.number(key);
            self.use_block(leaf, true);
            let before = self.changed.len();
            self.trees[tree].insert(key, &mut self.blocks, &mut self.changed);
            for at in before..self.changed.len() {
                let block = self.changed[at];
                self.use_block(block, false);
            }
        }
        if self.primary.1 == PRIMARY_KEYS_A_LEAF {
            self.primary = (self.blocks, 0);
            self.blocks += 1;
        }
        self.primary.1 += 1;
        self.changed.push(self.primary.0);
        // The file's header, with the number of rows.
        self.changed.push(0);
        self.changed.sort_unstable();
        self.changed.dedup();
        self.counts[KEY_WRITE_REQUESTS] += self.changed.len() as u64;
        self.counts[KEY_WRITES] += self.changed.len() as u64;
        self.calls.extend(self.changed.iter().map(|block| Call::WriteBlock(*block)));
    }

    /// Uses an index block. One that exists (`reads`) is read if it is not in the key buffer; a new one is
    /// created there.
    fn use_block(&mut self, block: u32, reads: bool) {
        let (there, _) = self.key_cache.touch(block);
        if reads {
            self.counts[KEY_READ_REQUESTS] += 1;
            if !there {
                self.counts[KEY_READS] += 1;
                self.calls.push(Call::ReadBlock(block));
            }
        }
    }
}

/// Memory as the insertion of the prefilled rows leaves it: the key buffer full of index blocks that
/// were used at random, the page cache full of pages of the files, all of them written back.
fn warm<D: Device + ?Sized>(
    machine: &mut Machine<D>,
    key_cache: &mut Lru,
    (blocks, data_end): (u32, u64),
    stream: &mut Stream,
) {
    let mut order: Vec<u32> = (0..blocks).collect();
    stream.shuffle(&mut order);
    for block in &order {
        key_cache.touch(*block);
    }
    let a_page = (PAGE / KEY_BLOCK) as u32;
    let room = machine.cache.capacity();
    let index_pages = u64::from(blocks.div_ceil(a_page));
    let data_pages = data_end.div_ceil(PAGE);
    let rest = room.saturating_sub(index_pages).min(data_pages);
    for page in data_pages - rest..data_pages {
        machine.cache.insert(DATA_FILE, page as u32);
    }
    for block in order.iter().filter(|block| *block % a_page == 0) {
        machine.cache.insert(INDEX_FILE, block / a_page);
    }
}

fn frame(call: Call) -> Frame {
    match call {
        Call::ReadBlock(block) => {
            let page = (u64::from(block) * KEY_BLOCK / PAGE) as u32;
            Frame::Read(ReadCall { file: INDEX_FILE, page, end: page + 1, counted: false })
        }
        Call::WriteBlock(block) => {
            let from = u64::from(block) * KEY_BLOCK;
            Frame::Write(WriteCall::new(INDEX_FILE, from, from + KEY_BLOCK))
        }
        Call::Append { from, to } => Frame::Write(WriteCall::new(DATA_FILE, from, to)),
    }
}
