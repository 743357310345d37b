//! The journal: transactions, and what a commit writes and waits for.

use super::run::Run;
use super::{BY_JOURNAL, Frame, Machine, Step, TaskId};
use crate::cache::Page;
use crate::stack::JournalRules;
use device::{Device, Op};
use std::collections::VecDeque;
use units::Nanos;

/// The stage of a commit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Commit {
    /// No commit runs, until one is requested or the interval ends.
    Idle,
    /// Data before metadata: writes the next page of the list.
    Data(u32),
    /// Waits for the data that was submitted.
    DataSent,
    /// Waits for the transaction's blocks.
    Blocks,
    /// Makes everything before the record durable.
    Flushed,
    /// Waits for the commit record.
    Record,
}

/// The state of a filesystem's journal.
#[derive(Debug)]
pub(crate) struct Journal {
    rules: Option<JournalRules>,
    pub task: TaskId,
    /// Where it starts, its size, and where its head is.
    start: u64,
    sectors: u64,
    head: u64,
    /// The number of the running transaction, from 1.
    running: u32,
    /// Whether it contains anything.
    any: bool,
    /// Its data pages, in the order in which they were first written to.
    data: Vec<(u16, u32)>,
    /// The same of the committing transaction.
    committing: Vec<(u16, u32)>,
    /// Whether a commit runs.
    busy: bool,
    /// The last transaction whose commit was requested.
    asked: u32,
    waiters: VecDeque<(u32, TaskId)>,
    due: Option<Nanos>,
    idle: bool,
}

impl Journal {
    pub fn new(rules: Option<JournalRules>, start: u64, sectors: u64) -> Self {
        Journal {
            rules,
            task: 0,
            start,
            sectors,
            head: 0,
            running: 1,
            any: false,
            data: Vec::new(),
            committing: Vec::new(),
            busy: false,
            asked: 0,
            waiters: VecDeque::new(),
            due: None,
            idle: false,
        }
    }

    /// Whether a page that belongs to `transaction` waits for the running commit.
    #[inline]
    pub fn is_committing(&self, transaction: u32) -> bool {
        self.busy && transaction != 0 && transaction + 1 == self.running
    }

    /// Adds a page that was written to to the running transaction.
    #[inline]
    pub fn orders(&mut self, page: &Page) -> Option<u32> {
        if !self.rules.is_some_and(|rules| rules.orders_data) || page.transaction == self.running {
            return None;
        }
        self.data.push((page.file, page.index));
        Some(self.running)
    }

    /// Metadata changed.
    #[inline]
    pub fn touched(&mut self) {
        self.any = true;
    }
}

impl<D: Device + ?Sized> Machine<D> {
    /// Requests a commit of everything so far; `task` is woken after it.
    pub(super) fn ask_for_commit(&mut self, task: TaskId) {
        let journal = &mut self.journal;
        journal.any = true;
        journal.asked = journal.running;
        journal.waiters.push_back((journal.running, task));
        if journal.idle {
            let thread = journal.task;
            self.wake_task(thread);
        }
    }

    pub(super) fn commit(&mut self, id: TaskId, commit: Commit) -> Step {
        let Some(rules) = self.journal.rules else { return Step::Done };
        match commit {
            Commit::Idle => self.wait_for_a_reason(id, rules),
            Commit::Data(at) => self.send_data(id, at),
            Commit::DataSent => {
                let (at, blocks) = self.journal.take_space(rules.blocks);
                self.submit_own(id, Op::Write, at, blocks, self.rules.barrier && !rules.record);
                Step::Io(Frame::Commit(Commit::Blocks))
            }
            Commit::Blocks => {
                // Before 3.10 the record is a barrier itself, and drains the queue.
                if self.rules.barrier && self.kernel >= blocklayer::Kernel::V3_10 {
                    self.submit_flush(id);
                }
                Step::Io(Frame::Commit(Commit::Flushed))
            }
            Commit::Flushed => {
                if rules.record {
                    let (at, sectors) = self.journal.take_space(8);
                    self.submit_own(id, Op::Write, at, sectors, self.rules.barrier);
                }
                Step::Io(Frame::Commit(Commit::Record))
            }
            Commit::Record => {
                self.counts.commits += 1;
                self.journal.busy = false;
                let committed = self.journal.running - 1;
                while let Some((wanted, task)) = self.journal.waiters.front().copied() {
                    if wanted > committed {
                        break;
                    }
                    self.journal.waiters.pop_front();
                    self.wake_task(task);
                }
                Step::Again(Frame::Commit(Commit::Idle))
            }
        }
    }

    fn wait_for_a_reason(&mut self, id: TaskId, rules: JournalRules) -> Step {
        let journal = &mut self.journal;
        let asked = journal.asked == journal.running;
        let due = journal.due.is_some_and(|due| due <= self.now);
        if asked || (due && journal.any) {
            journal.idle = false;
            journal.busy = true;
            journal.running += 1;
            journal.any = false;
            journal.committing = std::mem::take(&mut journal.data);
            journal.due = rules.interval.map(|interval| self.now + interval);
            return Step::Again(Frame::Commit(Commit::Data(0)));
        }
        journal.idle = true;
        if let Some(interval) = rules.interval {
            let due = journal.due.filter(|due| *due > self.now).unwrap_or(self.now + interval);
            journal.due = Some(due);
            self.set_timer(id, due);
        }
        Step::Wait(Frame::Commit(Commit::Idle))
    }

    /// ext3: every page of the transaction that is still dirty, in the order of its list.
    fn send_data(&mut self, id: TaskId, mut at: u32) -> Step {
        let transaction = self.journal.running - 1;
        while let Some((file, index)) = self.journal.committing.get(at as usize).copied() {
            at += 1;
            let Some(slot) = self.cache.peek(file, index) else { continue };
            let page = self.cache[slot];
            match (page.run, page.dirty && page.transaction == transaction) {
                (None, true) => {
                    self.counts.written[BY_JOURNAL] += 1;
                    let run = Run { file, first: index, count: 1, write: true, ..Run::default() };
                    let run = self.submit_run(id, run, false);
                    self.wait_for_run(id, run);
                    if self.tasks[id as usize].asleep.is_some() {
                        return Step::Again(Frame::Commit(Commit::Data(at)));
                    }
                }
                // Under write-back by another task: waits for it as well.
                (Some(run), false) if !page.reading => self.wait_for_run(id, run),
                _ => {}
            }
        }
        self.journal.committing = Vec::new();
        Step::Io(Frame::Commit(Commit::DataSent))
    }
}

impl Journal {
    /// Allocates sectors at the head of the circular journal.
    fn take_space(&mut self, sectors: u64) -> (u64, u64) {
        if self.head + sectors > self.sectors {
            self.head = 0;
        }
        let at = self.start + self.head;
        self.head += sectors;
        (at, sectors)
    }
}
