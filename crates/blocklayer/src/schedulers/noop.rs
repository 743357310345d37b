//! noop: first come, first served, with merging.

use crate::kernel::Kernel;
use crate::order::{Fifo, Links};
use crate::requests::{RequestTable, Rq};
use crate::scheduler::{Issue, Scheduler, Side};
use units::Nanos;

/// A queue. It sorts nothing.
#[derive(Debug)]
pub(crate) struct Noop {
    fifo: Fifo,
    links: Links,
    end_hash: bool,
}

impl Noop {
    pub fn new(kernel: Kernel) -> Self {
        // 2.6.18's noop finds a back merge only with the last request that merged or came in.
        let end_hash = !kernel.is_2_6_18();
        Noop { fifo: Fifo::default(), links: Links::default(), end_hash }
    }
}

impl Scheduler for Noop {
    fn insert(&mut self, rq: Rq, _: &mut RequestTable, _: Nanos) {
        self.fifo.push(&mut self.links, rq);
    }

    fn dispatch(&mut self, _: &mut RequestTable, _: Nanos) -> Issue {
        match self.fifo.head() {
            Some(rq) => {
                self.fifo.remove(&mut self.links, rq);
                Issue::Send(rq)
            }
            None => Issue::Nothing,
        }
    }

    fn complete(&mut self, _: Rq, _: &mut RequestTable, _: Nanos) {}

    fn len(&self) -> usize {
        self.fifo.len()
    }

    fn neighbour(&self, _: &RequestTable, rq: Rq, side: Side) -> Option<Rq> {
        match side {
            Side::Former => self.fifo.before(&self.links, rq),
            Side::Latter => self.fifo.after(&self.links, rq),
        }
    }

    fn wants_end_hash(&self) -> bool {
        self.end_hash
    }

    fn moved(&mut self, _: Rq, _: u64, _: &mut RequestTable) {}

    fn absorbed(&mut self, _: Rq, gone: Rq, _: &mut RequestTable) {
        self.fifo.remove(&mut self.links, gone);
    }

    fn drain(&mut self, _: &mut RequestTable, out: &mut Vec<Rq>) {
        while let Some(rq) = self.fifo.head() {
            self.fifo.remove(&mut self.links, rq);
            out.push(rq);
        }
    }
}
