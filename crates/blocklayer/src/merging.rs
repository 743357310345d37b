//! The layer's merging: in the order in which the kernel tries.

use crate::bio::Bio;
use crate::layer::BlockLayer;
use crate::requests::{RequestState, Rq};
use crate::scheduler::Side;
use device::{Device, Op};
use units::Nanos;

impl<D: Device + ?Sized> BlockLayer<D> {
    /// Whether the bio found a request to join: in its task's plug, the last merged, one that ends
    /// where it starts, one that starts where it ends.
    pub(crate) fn try_merge(&mut self, bio: Bio, now: Nanos) -> bool {
        if self.config.nomerges == 2 || !matches!(bio.op, Op::Read | Op::Write) {
            return false;
        }
        if self.config.kernel.task_plugs() && self.merge_in_plug(bio, now) {
            return true;
        }
        if self.scheduler.is_none() {
            return false;
        }
        if let Some(last) = self.last_merge
            && (self.merge_back(last, bio, now) || self.merge_front(last, bio, now))
        {
            return true;
        }
        if self.config.nomerges == 1 {
            return false;
        }
        if let Some(rq) = self.find_back(&bio)
            && self.merge_back(rq, bio, now)
        {
            return true;
        }
        let front = self.scheduler.as_ref().and_then(|s| s.front(&self.requests, &bio));
        front.is_some_and(|rq| self.merge_front(rq, bio, now))
    }

    /// The request that ends where the bio starts.
    fn find_back(&self, bio: &Bio) -> Option<Rq> {
        match self.uses_hash {
            true => self.hash.find(bio.start.0, bio.op),
            false => self.scheduler.as_ref()?.back(&self.requests, bio),
        }
    }

    /// From 3.10 to 4.19 the whole list is searched, latest first; later only its last request.
    fn merge_in_plug(&mut self, bio: Bio, now: Nanos) -> bool {
        let list = self.task_plugs.list(bio.context.process);
        let look_at = if self.config.kernel.multi_queue() { 1 } else { list.len() };
        for rq in list.iter().rev().take(look_at).copied() {
            if self.requests.fits_behind(rq, &bio, &self.limits) {
                self.requests.append(rq, bio, now);
                return true;
            }
            if self.requests.fits_before(rq, &bio, &self.limits) {
                self.requests.prepend(rq, bio, now);
                return true;
            }
        }
        false
    }

    fn allowed(&self, rq: Rq, bio: &Bio) -> bool {
        self.requests[rq].state == RequestState::Scheduler
            && self.scheduler.as_ref().is_some_and(|s| s.allows_merge(&self.requests, rq, bio))
    }

    fn merge_back(&mut self, rq: Rq, bio: Bio, now: Nanos) -> bool {
        if !self.requests.fits_behind(rq, &bio, &self.limits) || !self.allowed(rq, &bio) {
            return false;
        }
        if self.uses_hash {
            self.hash.remove(rq, self.requests[rq].end(), bio.op);
        }
        self.requests.append(rq, bio, now);
        if self.uses_hash {
            self.hash.insert(rq, &self.requests);
        }
        self.last_merge = Some(rq);
        self.join_neighbour(rq, Side::Latter);
        true
    }

    fn merge_front(&mut self, rq: Rq, bio: Bio, now: Nanos) -> bool {
        if !self.requests.fits_before(rq, &bio, &self.limits) || !self.allowed(rq, &bio) {
            return false;
        }
        let old_start = self.requests[rq].start;
        self.requests.prepend(rq, bio, now);
        if let Some(scheduler) = &mut self.scheduler {
            scheduler.moved(rq, old_start, &mut self.requests);
        }
        self.last_merge = Some(rq);
        self.join_neighbour(rq, Side::Former);
        true
    }

    /// After growth a request may touch the next one.
    fn join_neighbour(&mut self, rq: Rq, side: Side) {
        if self.config.nomerges > 0 {
            return;
        }
        let found = self.scheduler.as_ref().and_then(|s| s.neighbour(&self.requests, rq, side));
        let Some(other) = found else { return };
        let (into, gone) = match side {
            Side::Latter => (rq, other),
            Side::Former => (other, rq),
        };
        let same_queue = self.requests[into].queue_index == self.requests[gone].queue_index;
        if !same_queue || !self.requests.join_fits(into, gone, &self.limits) {
            return;
        }
        if let Some(scheduler) = &mut self.scheduler {
            scheduler.absorbed(into, gone, &mut self.requests);
        }
        self.join(into, gone);
    }

    /// A request from a plug list that continues one with the scheduler joins it.
    pub(crate) fn join_to_former(&mut self, rq: Rq) -> bool {
        if self.config.nomerges > 0 || !matches!(self.requests[rq].op, Op::Read | Op::Write) {
            return false;
        }
        let (start, op, context) = {
            let r = &self.requests[rq];
            (r.start, r.op, r.context)
        };
        let probe = Bio {
            id: 0,
            op,
            start: units::Sectors(start),
            count: units::Sectors(self.requests[rq].count),
            sync: self.requests[rq].sync,
            fua: self.requests[rq].fua,
            context,
        };
        let Some(into) = self.find_back(&probe) else { return false };
        if !self.requests.join_fits(into, rq, &self.limits) || !self.allowed(into, &probe) {
            return false;
        }
        self.join(into, rq);
        true
    }

    /// `gone` is already unknown to the scheduler.
    fn join(&mut self, into: Rq, gone: Rq) {
        let grant = self.requests[gone].grant;
        if self.uses_hash {
            self.hash.remove(gone, self.requests[gone].end(), self.requests[gone].op);
            self.hash.remove(into, self.requests[into].end(), self.requests[into].op);
        }
        self.requests.join(into, gone);
        if self.uses_hash {
            self.hash.insert(into, &self.requests);
        }
        self.last_merge = Some(into);
        self.queued -= 1;
        self.ledger.counters.joins += 1;
        if let Some(grant) = grant {
            self.admission.give_back(grant, self.now, &mut self.owed);
        }
    }
}
