//! InnoDB: user threads that read what is not in the buffer pool, a redo log with group commit, a
//! page cleaner with its doublewrite buffer.

use super::lru::Lru;
use super::then;
use super::work::{Access, PAGE, Work};
use crate::cache;
use crate::machine::{
    DirectCall, DirectStage, File, Frame, Machine, ReadCall, Server, Step, SyncCall, TaskId,
    WriteCall,
};
use crate::stage::Stage;
use device::{Device, Op};
use random::Stream;
use std::collections::VecDeque;
use units::{Bytes, Nanos};
use workload::DatabaseJob;

/// The server variables that determine its I/O, under the server's own names.
#[derive(Clone, Debug, PartialEq)]
pub struct InnoDb {
    /// What the clients do, and on what data.
    pub job: DatabaseJob,
    /// `innodb_buffer_pool_size`.
    pub buffer_pool: Bytes,
    /// `innodb_io_capacity`: pages a second that the cleaner aims at.
    pub io_capacity: u64,
    /// `innodb_io_capacity_max`.
    pub io_capacity_max: u64,
    /// `innodb_flush_log_at_trx_commit`: 1, 2 or 0.
    pub flush_log: u64,
    /// `innodb_doublewrite`.
    pub doublewrite: bool,
    /// `innodb_log_file_size`.
    pub log: Bytes,
    /// `innodb_flush_method` is O_DIRECT, not fsync.
    pub direct: bool,
    /// `innodb_max_dirty_pages_pct`.
    pub dirty_percent: u64,
}

const DATA: u16 = 1;
const LOG: u16 = 2;
const DOUBLEWRITE: u16 = 3;
/// Pages of a doublewrite batch.
const BATCH: u64 = 128;
const PAGE_SECTORS: u64 = PAGE / 512;
/// The share of the log that may be in use before user threads wait for the cleaner.
const MAX_LOG_USE: f64 = 0.875;

/// A user thread's transaction.
#[derive(Debug, Default)]
struct Transaction {
    accesses: Vec<Access>,
    /// Where its log ends.
    lsn: u64,
    stream: Option<Stream>,
}

/// The running server.
pub(crate) struct Engine {
    spec: InnoDb,
    work: Work,
    pool: Lru,
    pool_pages: u64,
    transactions: Vec<Transaction>,
    seed: u64,
    /// Dirty pages with the log position of their first change, oldest first; and the same pages as a set.
    order: VecDeque<(u32, u64)>,
    dirty: crate::cache::PageSet,
    dirty_pages: u64,
    /// The cleaner's second, and the pages that it still wants to write in it.
    second: u64,
    quota: u64,
    /// Pages that the cleaner writes now.
    batch: Vec<u32>,
    cleaner: TaskId,
    /// The log's end, how far it is written, and how far it is durable.
    lsn: u64,
    written: u64,
    durable: u64,
    log_busy: bool,
    log_waiting: Vec<TaskId>,
    /// Threads that wait for room in the log.
    stalled: Vec<TaskId>,
    counts: [u64; 6],
}

const READS: usize = 0;
const READ_REQUESTS: usize = 1;
const PAGES_WRITTEN: usize = 2;
const LOG_WRITES: usize = 3;
const LOG_SYNCS: usize = 4;
const COMMITS: usize = 5;

impl<D: Device + ?Sized> Server<D> for Engine {
    fn serve(&mut self, machine: &mut Machine<D>, id: TaskId, stage: Stage) -> Step {
        match stage {
            Stage::Begin => self.begin(machine, id),
            Stage::Go(at) => self.access(machine, id, at),
            Stage::Commit => self.commit(id),
            Stage::LogWritten => self.log_written(),
            Stage::LogDurable => self.log_durable(machine, id),
            Stage::Clean => self.clean(machine, id),
            Stage::Copied => then(Stage::Page(0), self.durable(DOUBLEWRITE)),
            Stage::Page(at) => self.write_pages(machine, id, at),
            Stage::PagesWritten => then(Stage::PagesDurable, self.durable(DATA)),
            Stage::PagesDurable => {
                self.batch.clear();
                for task in self.stalled.drain(..) {
                    machine.wake_task(task);
                }
                Step::Again(Frame::Server(Stage::Clean))
            }
        }
    }

    fn counters(&self) -> Vec<(&'static str, f64, bool)> {
        let sum = |at: usize| self.counts[at] as f64;
        vec![
            ("mariadb.Innodb_buffer_pool_reads/s", sum(READS), true),
            ("mariadb.Innodb_buffer_pool_read_requests/s", sum(READ_REQUESTS), true),
            ("mariadb.Innodb_pages_written/s", sum(PAGES_WRITTEN), true),
            ("mariadb.Innodb_log_writes/s", sum(LOG_WRITES), true),
            ("mariadb.log_syncs/s", sum(LOG_SYNCS), true),
            ("mariadb.commits/s", sum(COMMITS), true),
            ("mariadb.Innodb_buffer_pool_pages_dirty", self.dirty_pages as f64, false),
            ("mariadb.checkpoint_age_mib", self.age() as f64 / 1_048_576.0, false),
        ]
    }
}

impl Engine {
    pub fn new<D: Device + ?Sized>(spec: &InnoDb, machine: &mut Machine<D>, seed: u64) -> Self {
        let work = Work::new(&spec.job);
        let sizes = [u64::from(work.pages) * PAGE, spec.log.0, BATCH * PAGE];
        for bytes in sizes {
            let mut file = File::growing();
            file.grow((bytes.div_ceil(cache::PAGE) - 1) as u32, &mut machine.free_space);
            machine.files.push(file);
        }
        // A server that has run for long: the pool is full of pages that were used at random.
        let pool_pages = (spec.buffer_pool.0 / PAGE).max(8);
        let mut pool = Lru::new(pool_pages);
        let mut stream = Stream::new(seed, "buffer pool");
        let mut accesses = Vec::new();
        let wanted = pool_pages.min(u64::from(work.pages)) * 3;
        let mut touched = 0;
        while touched < wanted {
            work.transaction(&mut stream, &mut accesses);
            for access in &accesses {
                pool.touch(access.page);
            }
            touched += accesses.len().max(1) as u64;
        }
        let cleaner = machine.join_thread();
        machine.start(cleaner, &[Frame::Server(Stage::Clean)]);
        Engine {
            spec: spec.clone(),
            work,
            pool,
            pool_pages,
            transactions: Vec::new(),
            seed,
            order: VecDeque::new(),
            dirty: crate::cache::PageSet::default(),
            dirty_pages: 0,
            second: 0,
            quota: 0,
            batch: Vec::new(),
            cleaner,
            lsn: 0,
            written: 0,
            durable: 0,
            log_busy: false,
            log_waiting: Vec::new(),
            stalled: Vec::new(),
            counts: [0; 6],
        }
    }

    /// Log that is needed for recovery: since the oldest change that is not on its page yet.
    fn age(&self) -> u64 {
        self.order.front().map_or(0, |(_, lsn)| self.lsn - lsn)
    }

    fn begin<D: Device + ?Sized>(&mut self, machine: &mut Machine<D>, id: TaskId) -> Step {
        if self.age() as f64 > self.spec.log.0 as f64 * MAX_LOG_USE {
            self.stalled.push(id);
            machine.wake_task(self.cleaner);
            return Step::Wait(Frame::Server(Stage::Begin));
        }
        if self.transactions.len() <= id as usize {
            self.transactions.resize_with(id as usize + 1, Transaction::default);
        }
        let Transaction { accesses, lsn, stream } = &mut self.transactions[id as usize];
        let name = || Stream::new(self.seed, &format!("user thread {id}"));
        let redo = self.work.transaction(stream.get_or_insert_with(name), accesses);
        *lsn = redo;
        Step::Again(Frame::Server(Stage::Go(0)))
    }

    /// The next page, from the pool or read. If a dirty page is evicted for it, that one is written first.
    fn access<D: Device + ?Sized>(
        &mut self,
        machine: &mut Machine<D>,
        id: TaskId,
        at: u32,
    ) -> Step {
        let Some(access) = self.transactions[id as usize].accesses.get(at as usize).copied() else {
            return Step::Again(Frame::Server(Stage::Commit));
        };
        self.counts[READ_REQUESTS] += 1;
        let (there, gone) = self.pool.touch(access.page);
        if access.writes && self.dirty.insert(access.page) {
            self.order.push_back((access.page, self.lsn));
            self.dirty_pages += 1;
        }
        // The cleaner keeps the oldest pages clean; when it does not keep up, the thread writes the
        // evicted page itself.
        let evicts = gone.filter(|page| self.dirty.remove(*page));
        if let Some(page) = evicts {
            self.order.retain(|(known, _)| *known != page);
            self.dirty_pages -= 1;
            self.counts[PAGES_WRITTEN] += 1;
        }
        if !there {
            self.counts[READS] += 1;
        }
        match (evicts, there) {
            (None, true) => Step::Again(Frame::Server(Stage::Go(at + 1))),
            (None, false) => then(Stage::Go(at + 1), self.read(access.page)),
            (Some(page), there) => {
                // First the write, then the read: the frame below is done last.
                if !there {
                    machine.push_frame(id, Frame::Server(Stage::Go(at + 1)));
                    let read = self.read(access.page);
                    return Step::Call(read, self.write(page));
                }
                then(Stage::Go(at + 1), self.write(page))
            }
        }
    }

    fn read(&self, page: u32) -> Frame {
        let start = u64::from(page) * PAGE_SECTORS;
        match self.spec.direct {
            true => direct(Op::Read, DATA, start, start + PAGE_SECTORS),
            false => {
                let first = (u64::from(page) * PAGE / cache::PAGE) as u32;
                let end = first + (PAGE / cache::PAGE) as u32;
                Frame::Read(ReadCall { file: DATA, page: first, end, counted: false })
            }
        }
    }

    fn write(&self, page: u32) -> Frame {
        let start = u64::from(page) * PAGE_SECTORS;
        match self.spec.direct {
            true => direct(Op::Write, DATA, start, start + PAGE_SECTORS),
            false => Frame::Write(WriteCall::new(DATA, start * 512, start * 512 + PAGE)),
        }
    }

    /// fsync of a file whose size does not change.
    fn durable(&self, file: u16) -> Frame {
        Frame::Sync(SyncCall::new(file, true))
    }

    /// Group commit: the first to come writes the log for all that have come by then.
    fn commit(&mut self, id: TaskId) -> Step {
        let transaction = &mut self.transactions[id as usize];
        if !transaction.accesses.is_empty() && transaction.lsn > 0 {
            let writes = transaction.accesses.iter().any(|access| access.writes);
            transaction.accesses.clear();
            if !writes {
                self.counts[COMMITS] += 1;
                return Step::Done;
            }
            self.lsn += transaction.lsn;
            transaction.lsn = self.lsn;
        }
        let lsn = self.transactions[id as usize].lsn;
        if self.spec.flush_log == 0 || self.durable >= lsn {
            self.counts[COMMITS] += 1;
            return Step::Done;
        }
        if self.log_busy {
            self.log_waiting.push(id);
            return Step::Wait(Frame::Server(Stage::Commit));
        }
        self.log_busy = true;
        self.write_log()
    }

    /// Writes the new part of the log, in blocks of 512 bytes. The log file is circular.
    fn write_log(&mut self) -> Step {
        self.counts[LOG_WRITES] += 1;
        let sectors = self.spec.log.0 / 512;
        let from = self.written / 512;
        let count = (self.lsn.div_ceil(512).max(from + 1) - from).min(sectors / 2);
        let start = (from % sectors).min(sectors - count);
        self.written = self.lsn;
        then(Stage::LogWritten, direct(Op::Write, LOG, start, start + count))
    }

    fn log_written(&mut self) -> Step {
        match self.spec.flush_log {
            1 => {
                self.counts[LOG_SYNCS] += 1;
                then(Stage::LogDurable, self.durable(LOG))
            }
            _ => Step::Again(Frame::Server(Stage::LogDurable)),
        }
    }

    fn log_durable<D: Device + ?Sized>(&mut self, machine: &mut Machine<D>, id: TaskId) -> Step {
        // What was appended since its write waits for the next.
        self.durable = self.written;
        self.log_busy = false;
        for task in self.log_waiting.drain(..) {
            machine.wake_task(task);
        }
        match id == self.cleaner {
            true => Step::Again(Frame::Server(Stage::Clean)),
            false => Step::Again(Frame::Server(Stage::Commit)),
        }
    }

    /// The page cleaner. Once a second it sets itself a quota of pages, which it writes oldest first: see
    /// [`Self::pages_a_second`]. While threads wait for room in the log, it does not pause.
    fn clean<D: Device + ?Sized>(&mut self, machine: &mut Machine<D>, id: TaskId) -> Step {
        let second = machine.now.0 / 1_000_000_000;
        if second != self.second {
            self.second = second;
            self.quota = self.pages_a_second();
            if self.spec.flush_log != 1 && self.written < self.lsn && !self.log_busy {
                self.log_busy = true;
                return self.write_log();
            }
        }
        if !self.stalled.is_empty() {
            self.quota = self.quota.max(BATCH);
        }
        let count = self.quota.min(BATCH).min(self.order.len() as u64);
        if count == 0 {
            self.quota = 0;
            machine.park_until(id, Nanos((second + 1) * 1_000_000_000));
            return Step::Wait(Frame::Server(Stage::Clean));
        }
        self.quota -= count;
        self.batch = self.order.drain(..count as usize).map(|(page, _)| page).collect();
        self.batch.sort_unstable();
        for page in &self.batch {
            self.dirty.remove(*page);
        }
        self.dirty_pages -= count;
        match self.spec.doublewrite {
            true => then(Stage::Copied, direct(Op::Write, DOUBLEWRITE, 0, count * PAGE_SECTORS)),
            false => Step::Again(Frame::Server(Stage::Page(0))),
        }
    }

    /// The larger of io_capacity × (share of dirty pages ÷ its limit) and io_capacity_max × (share of
    /// the usable log that is in use)².
    fn pages_a_second(&self) -> u64 {
        let dirty = self.dirty_pages as f64 / self.pool_pages as f64;
        let limit = self.spec.dirty_percent as f64 / 100.0;
        let age = self.age() as f64 / (self.spec.log.0 as f64 * MAX_LOG_USE);
        let by_dirty = self.spec.io_capacity as f64 * (dirty / limit).min(1.0);
        let by_age = self.spec.io_capacity_max as f64 * age.powi(2).min(1.0);
        by_dirty.max(by_age).ceil() as u64
    }

    /// Writes the batch's pages in place: all at once with O_DIRECT, else one after the other.
    fn write_pages<D: Device + ?Sized>(
        &mut self,
        machine: &mut Machine<D>,
        id: TaskId,
        mut at: u32,
    ) -> Step {
        while let Some(page) = self.batch.get(at as usize).copied() {
            at += 1;
            self.counts[PAGES_WRITTEN] += 1;
            if !self.spec.direct {
                return then(Stage::Page(at), self.write(page));
            }
            let start = u64::from(page) * PAGE_SECTORS;
            if !machine.write_direct(id, DATA, start, start + PAGE_SECTORS) {
                return Step::Again(Frame::Server(Stage::Page(at)));
            }
        }
        Step::Io(Frame::Server(Stage::PagesWritten))
    }
}

fn direct(op: Op, file: u16, start: u64, end: u64) -> Frame {
    Frame::Direct(DirectCall { op, file, start, end, fua: false, stage: DirectStage::default() })
}
