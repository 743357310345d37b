//! How operations of jobs and of traces begin, in the machine or in the block layer.

use super::{Simulation, Wait};
use crate::client::Operation;
use crate::events::EventKind;
use crate::machine::{DirectCall, DirectStage, Frame, ReadCall, SyncCall, WriteCall};
use crate::replay::{Next, moves_data};
use crate::stage::Stage;
use blocklayer::{Bio, Kernel, Submitted};
use device::{Device, Op};
use units::Sectors;
use workload::HAND_OVER_AFTER;

/// io_uring plugs a call with more operations than this; those of a smaller one are submitted one by one.
/// Observed: block tracepoints on 6.18.
const MAX_UNPLUGGED: usize = 2;

impl<D: Device + ?Sized> Simulation<'_, D> {
    /// Lets every ready client begin the operations it can, and submit them.
    #[inline]
    pub(super) fn begin_what_may(&mut self) {
        let mut ready = std::mem::take(&mut self.ready);
        while !ready.is_empty() {
            for client in ready.drain(..) {
                self.table.clients[client as usize].ready = false;
                if self.begin(client) {
                    let client = &mut self.table.clients[client as usize];
                    client.started = true;
                    self.machine.volume.unplug(client.context.process, self.now);
                }
            }
            // One client may have made another ready.
            std::mem::swap(&mut ready, &mut self.ready);
        }
        self.ready = ready;
    }

    /// Begins operations in all free slots of a closed loop, or those that are due at a rate. Returns whether
    /// any began.
    #[inline]
    fn begin(&mut self, at: u32) -> bool {
        let began = self.begin_each(at);
        if !self.prepared.is_empty() {
            self.hand_over_prepared(at);
        }
        began
    }

    #[inline]
    fn begin_each(&mut self, at: u32) -> bool {
        let mut began = false;
        loop {
            let client = &mut self.table.clients[at as usize];
            if client.sleeping.blocks_client() {
                return began;
            }
            let Some(&slot) = client.free.last() else { return began };
            if client.job == 0 && self.replay.is_some() {
                if !self.begin_recorded(at, slot) {
                    return began;
                }
                began = true;
                continue;
            }
            let mut intended = self.now;
            if let Some(schedule) = &mut client.schedule {
                intended = schedule.next();
                if intended > self.now {
                    if !client.armed {
                        client.armed = true;
                        self.wait(intended, Wait::Arrival(at));
                    }
                    return began;
                }
                schedule.take();
            }
            client.free.pop();
            let (block, reads) = client.offsets.next();
            let start = block * self.table.rules[client.job].sectors;
            self.table.operations[slot as usize] = Operation {
                reads,
                start,
                sectors: self.table.rules[client.job].sectors,
                ..Operation::begun(at, intended, self.now)
            };
            match self.table.rules[self.table.clients[at as usize].job].calls {
                true => self.call(slot),
                false => self.prepare(slot),
            }
            began = true;
        }
    }

    /// Begins the next recorded request of a client with a free slot, if it is due. Returns whether it was.
    fn begin_recorded(&mut self, at: u32, slot: u32) -> bool {
        let Some(replay) = &mut self.replay else { return false };
        let client = &mut self.table.clients[at as usize];
        let (entry, intended) = match replay.next(at, self.now) {
            Next::Begin(entry, intended) => (entry, intended),
            Next::At(due) => {
                if !client.armed {
                    client.armed = true;
                    self.wait(due, Wait::Arrival(at));
                }
                return false;
            }
            Next::Nothing => return false,
        };
        client.free.pop();
        let turn = replay.took(at);
        self.table.operations[slot as usize] = Operation {
            reads: entry.op == trace::TraceOp::Read,
            start: entry.start.0,
            sectors: entry.count.0,
            preflush: entry.preflush && !self.barrier_flushes(entry.fua),
            fua: entry.fua,
            recorded: Some((entry.at, entry.service)),
            ..Operation::begun(at, intended, self.now)
        };
        let preflush = self.table.operations[slot as usize].preflush;
        match moves_data(&entry) && !preflush {
            true => self.prepare(slot),
            false => {
                self.hand_over_prepared(at);
                self.flush(slot, self.now);
            }
        }
        if let Some(turn) = turn.filter(|turn| *turn != at) {
            self.make_ready(turn);
        }
        true
    }

    /// Whether a write with FUA flushes the cache itself: before 3.10 it is a barrier, which does.
    fn barrier_flushes(&self, fua: bool) -> bool {
        fua && self.machine.kernel < Kernel::V3_10
    }

    /// The flush before a write of a trace is done: the write follows.
    pub(super) fn write_after_flush(&mut self, slot: u32) {
        let client = self.table.operations[slot as usize].client;
        self.table.operations[slot as usize].preflush = false;
        self.begin_handing_over(slot);
        let process = self.table.clients[client as usize].context.process;
        self.machine.volume.unplug(process, self.now);
    }

    /// Starts an operation as system calls of the machine.
    fn call(&mut self, slot: u32) {
        let operation = &self.table.operations[slot as usize];
        let client = &mut self.table.clients[operation.client as usize];
        let rules = &self.table.rules[client.job];
        if client.job == 0 && self.machine.server.is_some() {
            self.machine.start(slot, &[Frame::Server(Stage::Begin)]);
            return;
        }
        let file = if client.job == 0 { 0 } else { self.background_file };
        let (start, end) = (operation.start, operation.start + rules.sectors);
        let op = if operation.reads { Op::Read } else { Op::Write };
        let stage = DirectStage::default();
        let direct = rules.direct && !self.machine.rules.direct_is_buffered;
        let moves = match (direct, operation.reads) {
            (true, _) => {
                Frame::Direct(DirectCall { op, file, start, end, fua: rules.fua_of(op), stage })
            }
            (false, true) => {
                let (page, end) = ((start / 8) as u32, end.div_ceil(8) as u32);
                Frame::Read(ReadCall { file, page, end, counted: false })
            }
            (false, false) => Frame::Write(WriteCall::new(file, start * 512, end * 512)),
        };
        let due = !operation.reads
            && rules.sync_every.is_some_and(|every| {
                client.writes_since_flush += 1;
                client.writes_since_flush >= every
            });
        if due {
            client.writes_since_flush = 0;
            let sync = Frame::Sync(SyncCall::new(file, rules.data_only));
            self.machine.start(slot, &[sync, moves]);
        } else {
            self.machine.start(slot, &[moves]);
        }
    }

    /// Puts an operation into its client's ring, or, without one, submits it.
    #[inline]
    fn prepare(&mut self, slot: u32) {
        let client = self.table.operations[slot as usize].client;
        match self.table.clients[client as usize].sleeping.tries() {
            true => self.prepared.push(slot),
            false => self.begin_handing_over(slot),
        }
    }

    /// Submits a ring's operations in calls, as the load driver does. A client that waits for completions is
    /// woken by the first, and submits that one's successor alone; those that completed together with it
    /// are collected by the next call. Observed: block tracepoints on 6.18.
    #[inline]
    fn hand_over_prepared(&mut self, at: u32) {
        let mut prepared = std::mem::take(&mut self.prepared);
        let client = &self.table.clients[at as usize];
        let (process, woken) = (client.context.process, client.started);
        let (first, rest) = prepared.split_at(usize::from(woken).min(prepared.len()));
        for call in std::iter::once(first).chain(rest.chunks(HAND_OVER_AFTER)) {
            for slot in call {
                self.begin_handing_over(*slot);
                if call.len() <= MAX_UNPLUGGED {
                    self.machine.volume.unplug(process, self.now);
                }
            }
            self.machine.volume.unplug(process, self.now);
        }
        prepared.clear();
        self.prepared = prepared;
    }

    /// Submits an operation, as far as there are free requests.
    #[inline]
    fn begin_handing_over(&mut self, slot: u32) {
        let client = self.table.operations[slot as usize].client;
        let tries = self.table.clients[client as usize].sleeping.tries();
        if self.hand_over(slot, !tries) {
            return;
        }
        self.table.operations[slot as usize].slept = self.now;
        let sleeping = &mut self.table.clients[client as usize].sleeping;
        if !tries {
            sleeping.begin();
        } else if sleeping.worker_for(slot) {
            let handed = self.hand_over(slot, true);
            debug_assert!(!handed, "no request was freed meanwhile");
        }
    }

    /// Submits the rest of an operation, in bios of at most a request's size. Returns false if there is no
    /// free request; the operation then sleeps, if it may.
    #[inline]
    pub(super) fn hand_over(&mut self, slot: u32, may_sleep: bool) -> bool {
        let operation = &mut self.table.operations[slot as usize];
        let client = &mut self.table.clients[operation.client as usize];
        let rules = &self.table.rules[client.job];
        while operation.handed < operation.sectors {
            let start = operation.start + operation.handed;
            let count = (operation.sectors - operation.handed).min(self.machine.volume.room(start));
            let bio = Bio {
                id: u64::from(slot),
                op: if operation.reads { Op::Read } else { Op::Write },
                start: Sectors(start),
                count: Sectors(count),
                // Direct I/O, O_SYNC, or written by fsync: a task waits for it.
                sync: true,
                fua: (rules.fua || operation.fua) && !operation.reads,
                context: client.context,
            };
            let submitted = match may_sleep {
                true => self.machine.volume.submit(bio, self.now),
                false => self.machine.volume.try_submit(bio, self.now),
            };
            if submitted == Submitted::MustWait {
                if may_sleep {
                    self.machine.hash.add(self.now, EventKind::Slept, u64::from(slot));
                    self.machine.sleep_slot(client.context.process, slot);
                }
                return false;
            }
            self.machine.hash.add(self.now, EventKind::Submitted, bio.start.0);
            operation.handed += count;
            operation.pieces += 1;
            self.machine.outstanding += 1;
        }
        true
    }
}
