//! mq-deadline: deadline for blk-mq, once per priority class.

use super::deadline::{Directions, READ, WRITE, direction};
use crate::bio::{Bio, Context};
use crate::config::Resolved;
use crate::order::Links;
use crate::requests::{RequestTable, Rq};
use crate::scheduler::{Issue, Scheduler, Side, TagClass};
use units::Nanos;

/// One priority class.
#[derive(Debug, Default)]
struct Class {
    queues: Directions,
    /// Where the last request of each direction started.
    position: [u64; 2],
    /// RequestTable held and in flight.
    present: u32,
}

/// The scheduler as of 6.12.
#[derive(Debug)]
pub(crate) struct MqDeadline {
    classes: [Class; 3],
    links: Links,
    last_direction: usize,
    batching: u64,
    starved: u64,
    expire: [Nanos; 2],
    fifo_batch: u64,
    writes_starved: u64,
    front_merges: bool,
    aging: Nanos,
    async_depth: u32,
    sorting: bool,
}

impl MqDeadline {
    pub fn new(config: &Resolved) -> Self {
        let tunables = &config.tunables;
        MqDeadline {
            sorting: config.sorting,
            classes: Default::default(),
            links: Links::default(),
            last_direction: READ,
            batching: 0,
            starved: 0,
            expire: ["read_expire", "write_expire"].map(|n| Nanos::from_millis(tunables.get(n))),
            fifo_batch: tunables.get("fifo_batch"),
            writes_starved: tunables.get("writes_starved"),
            front_merges: tunables.get("front_merges") == 1,
            aging: Nanos::from_millis(tunables.get("prio_aging_expire")),
            async_depth: match tunables.get("async_depth") as u32 {
                0 => config.nr_requests,
                depth => depth,
            },
        }
    }

    /// A class that waited too long behind a higher one: its oldest request, if old enough.
    fn aged(&self, requests: &RequestTable, now: Nanos) -> Option<(usize, Rq)> {
        [1, 2].into_iter().find_map(|class| {
            let fifos = &self.classes[class].queues.fifos;
            let heads = [READ, WRITE].into_iter().filter_map(|dir| fifos[dir].head());
            let oldest = heads.min_by_key(|rq| (requests[*rq].queued, *rq))?;
            (requests[oldest].queued + self.aging <= now).then_some((class, oldest))
        })
    }

    fn choose(&mut self, class: usize, requests: &RequestTable, now: Nanos) -> Option<Rq> {
        let c = &self.classes[class];
        let from = |dir: usize| match self.sorting {
            true => c.queues.trees[dir].from(c.position[dir]),
            false => c.queues.fifos[dir].head(),
        };
        if let Some(rq) = from(self.last_direction)
            && self.batching < self.fifo_batch
        {
            return Some(rq);
        }
        let [reads, writes] = [READ, WRITE].map(|dir| !c.queues.trees[dir].is_empty());
        let dir = match (reads, writes) {
            (false, false) => return None,
            (true, false) => READ,
            (true, true) if self.starved < self.writes_starved => {
                self.starved += 1;
                READ
            }
            _ => {
                self.starved = 0;
                WRITE
            }
        };
        self.last_direction = dir;
        self.batching = 0;
        let onward = if c.queues.expired(dir, requests, now) { None } else { from(dir) };
        onward.or(c.queues.fifos[dir].head())
    }

    fn take(&mut self, class: usize, rq: Rq, requests: &RequestTable) -> Issue {
        let c = &mut self.classes[class];
        self.batching += 1;
        c.position[direction(requests[rq].op)] = requests[rq].start;
        c.queues.remove(rq, requests, &mut self.links);
        Issue::Send(rq)
    }

    fn class(&self, requests: &RequestTable, rq: Rq) -> &Class {
        &self.classes[requests[rq].queue_index as usize]
    }
}

impl Scheduler for MqDeadline {
    fn insert(&mut self, rq: Rq, requests: &mut RequestTable, now: Nanos) {
        let request = &mut requests[rq];
        request.deadline = now + self.expire[direction(request.op)];
        request.queue_index = request.context.class as u32;
        let class = &mut self.classes[request.queue_index as usize];
        class.present += 1;
        class.queues.insert(rq, requests, &mut self.links);
    }

    fn dispatch(&mut self, requests: &mut RequestTable, now: Nanos) -> Issue {
        if let Some((class, rq)) = self.aged(requests, now) {
            return self.take(class, rq, requests);
        }
        for class in 0..3 {
            if let Some(rq) = self.choose(class, requests, now) {
                return self.take(class, rq, requests);
            }
            if self.classes[class].present > 0 {
                break;
            }
        }
        // A lower class may be waiting for its age to let it pass.
        let oldest = [1, 2].into_iter().flat_map(|class| {
            [READ, WRITE].map(|dir| self.classes[class].queues.fifos[dir].head())
        });
        let age = oldest.flatten().map(|rq| requests[rq].queued + self.aging).min();
        age.map_or(Issue::Nothing, Issue::WaitUntil)
    }

    fn complete(&mut self, rq: Rq, requests: &mut RequestTable, _: Nanos) {
        self.classes[requests[rq].queue_index as usize].present -= 1;
    }

    fn len(&self) -> usize {
        self.classes.iter().map(|class| class.queues.len()).sum()
    }

    fn wants_end_hash(&self) -> bool {
        false
    }

    fn back(&self, requests: &RequestTable, bio: &Bio) -> Option<Rq> {
        let queues = &self.classes[bio.context.class as usize].queues;
        let before = queues.trees[direction(bio.op)].below(bio.start.0)?;
        (requests[before].end() == bio.start.0).then_some(before)
    }

    fn front(&self, _: &RequestTable, bio: &Bio) -> Option<Rq> {
        let queues = &self.classes[bio.context.class as usize].queues;
        self.front_merges.then(|| queues.trees[direction(bio.op)].at(bio.end())).flatten()
    }

    fn neighbour(&self, requests: &RequestTable, rq: Rq, side: Side) -> Option<Rq> {
        self.class(requests, rq).queues.neighbour(requests, rq, side)
    }

    fn allows_merge(&self, requests: &RequestTable, rq: Rq, bio: &Bio) -> bool {
        requests[rq].queue_index == bio.context.class as u32
    }

    fn moved(&mut self, rq: Rq, old_start: u64, requests: &mut RequestTable) {
        self.classes[requests[rq].queue_index as usize].queues.moved(rq, old_start, requests);
    }

    fn absorbed(&mut self, into: Rq, gone: Rq, requests: &mut RequestTable) {
        let class = &mut self.classes[requests[gone].queue_index as usize];
        class.present -= 1;
        class.queues.absorbed(into, gone, requests, &mut self.links);
    }

    fn tag_limit(&self, class: TagClass, _: &Context, _: u32) -> u32 {
        if class == TagClass::Read { u32::MAX } else { self.async_depth }
    }

    fn drain(&mut self, _: &mut RequestTable, out: &mut Vec<Rq>) {
        self.classes.iter_mut().for_each(|class| class.queues.drain(out));
    }
}
