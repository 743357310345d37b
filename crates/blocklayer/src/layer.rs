//! The block layer before one device: from bios to requests, and back.

use crate::admission::{Admission, Asks};
use crate::bio::{AdvanceOutput, Bio, Submitted};
use crate::config::{Config, ConfigError, Resolved};
use crate::counters::{Counters, LayerView, Ledger, index};
use crate::flush::{Barrier, Flushes, PRE_FLUSH};
use crate::kernel::Kernel;
use crate::merge::EndHash;
use crate::plug::{LARGE_SECTORS, QueuePlug, TaskPlugs};
use crate::requests::{Limits, RequestState, RequestTable, Rq};
use crate::scheduler::{Issue, MayQueue, Scheduler, TagClass};
use crate::schedulers;
use ::scheduler::SchedulerKind;
use device::{Completion, Device, Op};
use std::collections::VecDeque;
use units::{Nanos, Sectors};

/// One device's queue: plugging, merging, the pool or the tags, a scheduler, the driver.
#[derive(Debug)]
pub struct BlockLayer<D: Device + ?Sized = dyn Device> {
    pub(crate) config: Resolved,
    pub(crate) limits: Limits,
    pub(crate) scheduler: Option<Box<dyn Scheduler>>,
    pub(crate) requests: RequestTable,
    pub(crate) hash: EndHash,
    pub(crate) uses_hash: bool,
    pub(crate) last_merge: Option<Rq>,
    /// The dispatch list: decided, in order, before anything the scheduler holds.
    ready: VecDeque<Rq>,
    /// The request that the driver took before it found the device full.
    held: Option<Rq>,
    in_driver: u32,
    pub(crate) queued: u32,
    pub(crate) admission: Admission,
    queue_plug: QueuePlug,
    pub(crate) task_plugs: TaskPlugs,
    plug_limit: usize,
    flushes: Flushes,
    barrier: Option<Barrier>,
    timer: Option<Nanos>,
    /// Processes woken outside of `advance`, reported by the next.
    pub(crate) owed: Vec<u32>,
    pub(crate) now: Nanos,
    pub(crate) ledger: Ledger,
    completions: Vec<Completion>,
    device: Box<D>,
}

impl<D: Device + ?Sized> BlockLayer<D> {
    /// A layer with these settings before this device.
    pub fn new(config: &Config, device: Box<D>) -> Result<Self, ConfigError> {
        let config = config.resolve()?;
        let scheduler = schedulers::make(&config);
        let uses_hash =
            config.nomerges == 0 && scheduler.as_ref().is_some_and(|s| s.wants_end_hash());
        Ok(BlockLayer {
            limits: Limits { sectors: config.max_sectors, segments: config.kernel.segments() },
            admission: Admission::new(&config),
            plug_limit: match (config.kernel.multi_queue(), config.hardware_queues) {
                (false, _) => 16,
                (true, 1) => 32,
                (true, _) => 64,
            },
            scheduler,
            requests: RequestTable::default(),
            hash: EndHash::default(),
            uses_hash,
            last_merge: None,
            ready: VecDeque::new(),
            held: None,
            in_driver: 0,
            queued: 0,
            queue_plug: QueuePlug::default(),
            task_plugs: TaskPlugs::default(),
            flushes: Flushes::default(),
            barrier: None,
            timer: None,
            owed: Vec::new(),
            now: Nanos::ZERO,
            ledger: Ledger::default(),
            completions: Vec::new(),
            device,
            config,
        })
    }

    /// The settings in effect.
    pub fn config(&self) -> &Resolved {
        &self.config
    }

    /// The largest request: layers above should not hand over more in one bio.
    pub fn max_sectors(&self) -> Sectors {
        Sectors(self.config.max_sectors)
    }

    /// The device below.
    pub fn device(&self) -> &D {
        &self.device
    }

    /// The device below, for inspection. Do not submit to it.
    pub fn device_mut(&mut self) -> &mut D {
        &mut self.device
    }

    /// Sums since the layer was made, as of the last call.
    pub fn counters(&self) -> &Counters {
        &self.ledger.counters
    }

    /// The state of queue and device.
    pub fn view(&self) -> LayerView {
        LayerView { queued: self.queued, in_driver: self.in_driver, device: self.device.view() }
    }

    /// The cylinder of each of the device's arms.
    pub fn heads(&self) -> Vec<u32> {
        self.device.heads()
    }

    /// RequestTable that are allocated now.
    pub fn allocated(&self) -> u32 {
        self.admission.allocated()
    }

    /// Whether write-back (or read-ahead) should hold off. Always false with blk-mq, which has no
    /// such state.
    pub fn congested(&self, write: bool) -> bool {
        !self.config.kernel.multi_queue() && self.admission.congested(u8::from(write))
    }

    /// Hands a bio over at `now`. Call [`advance`](Self::advance) to `now` before.
    pub fn submit(&mut self, bio: Bio, now: Nanos) -> Submitted {
        self.take_in(bio, true, now)
    }

    /// The same for a task that does not wait for a request (REQ_NOWAIT): after `MustWait` it is not
    /// woken.
    pub fn try_submit(&mut self, bio: Bio, now: Nanos) -> Submitted {
        self.take_in(bio, false, now)
    }

    fn take_in(&mut self, bio: Bio, may_sleep: bool, now: Nanos) -> Submitted {
        self.pass(now);
        let woken = self.admission.returns(bio.context.process);
        if bio.op == Op::Flush {
            self.ledger.counters.bios[index(Op::Flush)] += 1;
            self.submit_flush(bio, now);
            return Submitted::Accepted;
        }
        let barrier = bio.fua && self.has_barriers();
        if woken.is_none() && !barrier && self.try_merge(bio, now) {
            self.ledger.counters.bios[index(bio.op)] += 1;
            self.ledger.counters.merges[index(bio.op)] += 1;
            return Submitted::Accepted;
        }
        // A task that waited for a tag keeps the limit it had when it began to wait. Observed: block
        // tracepoints on 6.18, bfq.
        let now_asks = self.asks(&bio);
        let asks =
            woken.map_or(now_asks, |slept| Asks { woken: true, limit: slept.limit, ..now_asks });
        let Some(grant) = self.admission.take(asks, now) else {
            if !may_sleep {
                return Submitted::MustWait;
            }
            self.admission.sleep(asks);
            self.ledger.counters.sleeps += 1;
            self.unplug(bio.context.process, now);
            return Submitted::MustWait;
        };
        self.ledger.counters.bios[index(bio.op)] += 1;
        let rq = self.requests.create(bio, Some(grant), now);
        self.queued += 1;
        match (barrier, self.config.kernel.task_plugs()) {
            (true, _) => self.add_barrier(rq, now),
            (false, true) => self.plug(rq, &bio, now),
            (false, false) => self.insert_into_plugged_queue(rq, &bio, now),
        }
        Submitted::Accepted
    }

    /// A task has handed over what it has: it finishes its plug, or goes to sleep. Before 3.10 this
    /// opens the whole queue.
    pub fn unplug(&mut self, process: u32, now: Nanos) {
        self.pass(now);
        if self.config.kernel.task_plugs() {
            if self.flush_plug(process, now) {
                self.dispatch(now);
            }
        } else if self.queue_plug.until.take().is_some() {
            self.dispatch(now);
        }
    }

    /// When the next event is; `None` if there is none before the next submission.
    #[inline]
    pub fn next_event(&self) -> Option<Nanos> {
        let mut next = self.device.next_event().unwrap_or(Nanos::MAX);
        next = next.min(self.timer.unwrap_or(Nanos::MAX));
        next = next.min(self.admission.next_event().unwrap_or(Nanos::MAX));
        next = next.min(self.queue_plug.until.unwrap_or(Nanos::MAX));
        if !self.owed.is_empty() {
            next = self.now;
        }
        (next != Nanos::MAX).then_some(next.max(self.now))
    }

    /// Processes all events until `now`, and adds their results to `outcome`.
    ///
    /// A caller that must react to completions in time (closed loops) advances to each `next_event`.
    pub fn advance(&mut self, now: Nanos, outcome: &mut AdvanceOutput) {
        while let Some(at) = self.next_event().filter(|at| *at <= now) {
            self.pass(at);
            outcome.woken.append(&mut self.owed);
            self.admission.wake_for_untaken(at, &mut outcome.woken);
            let mut run = false;
            if self.device.next_event().is_some_and(|event| event <= at) {
                let mut completions = std::mem::take(&mut self.completions);
                self.device.advance(at, &mut completions);
                for completion in completions.drain(..) {
                    self.complete(completion, outcome);
                    run = true;
                }
                self.completions = completions;
                // A completion runs the queue even if it is plugged.
                run.then(|| self.queue_plug.until = None);
            }
            if self.queue_plug.until.is_some_and(|until| until <= at) {
                self.queue_plug.until = None;
                run = true;
            }
            if run || self.timer.is_some_and(|timer| timer <= at) {
                self.dispatch(at);
            }
            if self.admission.waiters_need_a_wakeup() {
                self.admission.wake_one(&mut outcome.woken);
            }
        }
        self.pass(now);
    }

    fn pass(&mut self, now: Nanos) {
        self.now = self.now.max(now);
        self.ledger.pass(now, self.queued, self.in_driver, self.config.depth);
    }

    fn has_barriers(&self) -> bool {
        self.config.kernel < Kernel::V3_10
    }

    fn asks(&self, bio: &Bio) -> Asks {
        let sync = bio.is_sync();
        let tag_class = match (bio.op, sync) {
            (Op::Read, _) => TagClass::Read,
            (_, true) => TagClass::SyncWrite,
            (_, false) => TagClass::Async,
        };
        let class = match self.config.kernel {
            kernel if kernel.is_2_6_18() => u8::from(bio.op != Op::Read),
            kernel if kernel.multi_queue() => tag_class as u8,
            _ => u8::from(!sync),
        };
        let (mut must, mut limit) = (false, u32::MAX);
        if let Some(scheduler) = &self.scheduler {
            match self.config.kernel.multi_queue() {
                true => {
                    let plugged = self.task_plugs.list(bio.context.process).len() as u32;
                    limit = scheduler.tag_limit(tag_class, &bio.context, plugged);
                }
                false => must = scheduler.may_queue(&bio.context, bio.op, sync) == MayQueue::Must,
            }
        }
        Asks { class, process: bio.context.process, must, limit, woken: false }
    }

    /// Since 3.10: adds to the task's own list, which is flushed when it is long or its last request large.
    fn plug(&mut self, rq: Rq, bio: &Bio, now: Nanos) {
        let process = bio.context.process;
        let list = self.task_plugs.list(process);
        let large = list.last().is_some_and(|last| self.requests[*last].count >= LARGE_SECTORS);
        if (list.len() >= self.plug_limit || large) && self.flush_plug(process, now) {
            self.dispatch(now);
        }
        self.task_plugs.push(process, rq);
    }

    /// Moves a task's list to the scheduler; returns whether there was one.
    fn flush_plug(&mut self, process: u32, now: Nanos) -> bool {
        let Some(mut list) = self.task_plugs.take(process) else { return false };
        if !self.config.kernel.multi_queue() && self.config.sorting {
            list.sort_by_key(|rq| self.requests[*rq].start);
        }
        for rq in &list {
            if !self.join_to_former(*rq) {
                self.insert(*rq, now);
            }
        }
        self.task_plugs.recycle(list);
        true
    }

    /// Before 3.10: an empty queue is plugged; four requests or a sync one unplug it.
    fn insert_into_plugged_queue(&mut self, rq: Rq, bio: &Bio, now: Nanos) {
        let empty = self.scheduler.as_ref().is_none_or(|s| s.is_empty()) && self.ready.is_empty();
        if empty && self.queue_plug.until.is_none() {
            self.queue_plug.until = Some(now + QueuePlug::DELAY);
        }
        self.insert(rq, now);
        let waiting = self.admission.allocated().saturating_sub(self.in_driver);
        if bio.sync || waiting >= QueuePlug::THRESHOLD {
            self.queue_plug.until = None;
        }
        self.dispatch(now);
    }

    fn insert(&mut self, rq: Rq, now: Nanos) {
        match &mut self.scheduler {
            None => {
                self.requests[rq].state = RequestState::Bypass;
                self.ready.push_back(rq);
            }
            Some(scheduler) => {
                self.requests[rq].state = RequestState::Scheduler;
                scheduler.insert(rq, &mut self.requests, now);
                if self.uses_hash {
                    self.hash.insert(rq, &self.requests);
                }
                self.last_merge = Some(rq);
            }
        }
    }

    /// Sends the driver as many requests as it has room for.
    fn dispatch(&mut self, now: Nanos) {
        if self.queue_plug.until.is_some() {
            return;
        }
        self.timer = None;
        while self.barrier.is_none() {
            let room = self.in_driver < self.config.depth;
            if room && let Some(rq) = self.held.take() {
                self.send(rq, now);
                continue;
            }
            if !room && (!self.config.one_beyond || self.held.is_some()) {
                return;
            }
            let Some(rq) = self.next(now) else { return };
            match room {
                true => self.send(rq, now),
                false => self.held = Some(rq),
            }
        }
    }

    /// The next request from the dispatch list, or else from the scheduler.
    fn next(&mut self, now: Nanos) -> Option<Rq> {
        if let Some(front) = self.ready.front().copied() {
            let request = &self.requests[front];
            if self.has_barriers() && (request.op == Op::Flush || request.fua) {
                self.start_barrier(front, now);
                return None;
            }
            self.ready.pop_front();
            return Some(front);
        }
        let scheduler = self.scheduler.as_mut()?;
        match scheduler.dispatch(&mut self.requests, now) {
            Issue::Send(rq) => {
                self.leave_scheduler(rq);
                Some(rq)
            }
            Issue::WaitUntil(at) => {
                // At least a nanosecond later, so that time advances.
                self.timer = Some(at.max(now + Nanos(1)));
                None
            }
            Issue::Nothing => None,
        }
    }

    fn leave_scheduler(&mut self, rq: Rq) {
        let request = &mut self.requests[rq];
        request.state = RequestState::Dispatched;
        if self.uses_hash {
            self.hash.remove(rq, request.end(), request.op);
        }
        if self.last_merge == Some(rq) {
            self.last_merge = None;
        }
    }

    fn send(&mut self, rq: Rq, now: Nanos) {
        self.requests[rq].dispatched = now;
        self.ledger.dispatched(&self.requests[rq]);
        self.queued -= 1;
        self.in_driver += 1;
        let command = self.requests.command(rq);
        let flushed_behind = self.is_flushed_behind(rq);
        self.flushes.writing += u32::from(flushed_behind);
        let fua = command.fua && !flushed_behind;
        self.device.submit(device::Request { fua, ..command }, now);
    }

    fn complete(&mut self, completion: Completion, outcome: &mut AdvanceOutput) {
        self.in_driver -= 1;
        if completion.id == PRE_FLUSH {
            if let Some(Barrier::PreFlush(rq)) = self.barrier {
                self.barrier = Some(Barrier::Body(rq));
                self.send(rq, completion.at.max(self.now));
            }
            return;
        }
        let rq = completion.id as Rq;
        let grant = self.requests[rq].grant;
        if self.requests[rq].state == RequestState::Dispatched
            && let Some(scheduler) = &mut self.scheduler
        {
            scheduler.complete(rq, &mut self.requests, self.now);
        }
        if self.is_flushed_behind(rq) {
            self.flushes.writing -= 1;
            self.flushes.written.push((rq, completion));
            self.flushes.since.get_or_insert(self.now);
            self.start_pending_flushes();
            return;
        }
        self.requests.finish(rq, &completion, &mut outcome.done);
        if self.barrier == Some(Barrier::Body(rq)) {
            self.barrier = None;
        }
        if let Some(grant) = grant {
            self.admission.give_back(grant, self.now, &mut outcome.woken);
        }
        if self.flushes.running == Some(rq) {
            self.flushes.running = None;
            self.end_written(completion.at, outcome);
            self.start_pending_flushes();
        }
    }

    /// Whether a flush follows a request, because it has FUA and the device does not take that.
    fn is_flushed_behind(&self, rq: Rq) -> bool {
        !self.config.fua && !self.has_barriers() && self.requests[rq].fua
    }

    /// A flush is done: so are the writes whose data it made durable.
    fn end_written(&mut self, at: Nanos, outcome: &mut AdvanceOutput) {
        for (rq, written) in std::mem::take(&mut self.flushes.ending) {
            let grant = self.requests[rq].grant;
            self.requests.finish(rq, &Completion { at, ..written }, &mut outcome.done);
            if let Some(grant) = grant {
                self.admission.give_back(grant, self.now, &mut outcome.woken);
            }
        }
    }

    fn submit_flush(&mut self, bio: Bio, now: Nanos) {
        if self.has_barriers() {
            let rq = self.requests.create(bio, None, now);
            self.queued += 1;
            self.add_barrier(rq, now);
            return;
        }
        self.flushes.pending.push((bio, now));
        self.flushes.since.get_or_insert(now);
        if self.start_pending_flushes() {
            self.dispatch(now);
        }
    }

    /// One flush answers all who asked before it started. It goes before everything else. Whether there is one.
    fn start_pending_flushes(&mut self) -> bool {
        if !self.flushes.may_start(self.now) {
            return false;
        }
        self.flushes.since = None;
        let mut pending = std::mem::take(&mut self.flushes.pending);
        self.flushes.ending = std::mem::take(&mut self.flushes.written);
        let ending = self.flushes.ending.first().map(|(rq, _)| self.requests[*rq].context);
        if let Some(context) = pending.first().map(|(bio, _)| bio.context).or(ending) {
            let rq = self.requests.flush(context, self.now);
            for (bio, queued) in pending.drain(..) {
                self.requests.chain(rq, bio, queued);
            }
            self.queued += 1;
            self.ready.push_front(rq);
            self.flushes.running = Some(rq);
        }
        self.flushes.pending = pending;
        self.flushes.running.is_some()
    }

    /// 2.6: everything the scheduler holds goes to the dispatch list, then the barrier.
    fn add_barrier(&mut self, rq: Rq, now: Nanos) {
        self.requests[rq].state = RequestState::Bypass;
        if let Some(scheduler) = &mut self.scheduler {
            let mut drained = Vec::with_capacity(scheduler.len());
            scheduler.drain(&mut self.requests, &mut drained);
            if self.config.scheduler != SchedulerKind::Noop && self.config.sorting {
                // One sweep upwards from where the last ended, then what lies below.
                let end = self.ledger.end;
                let requests = &self.requests;
                drained.sort_by_key(|rq| (requests[*rq].start < end, requests[*rq].start));
            }
            for rq in drained {
                self.leave_scheduler(rq);
                self.ready.push_back(rq);
            }
        }
        self.ready.push_back(rq);
        self.queue_plug.until = None;
        self.dispatch(now);
    }

    /// 2.6: when all before it is done, a flush goes alone, and a write after a flush.
    fn start_barrier(&mut self, rq: Rq, now: Nanos) {
        if self.in_driver > 0 || self.held.is_some() {
            return;
        }
        self.ready.pop_front();
        if self.requests[rq].op == Op::Flush {
            self.barrier = Some(Barrier::Body(rq));
            self.send(rq, now);
        } else {
            self.barrier = Some(Barrier::PreFlush(rq));
            self.in_driver += 1;
            self.ledger.counters.dispatched[index(Op::Flush)] += 1;
            self.device.submit(device::Request::flush(PRE_FLUSH), now);
        }
    }
}
