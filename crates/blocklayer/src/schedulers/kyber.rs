//! kyber: tokens per kind of request, throttled until latencies meet their targets.

use crate::bio::Context;
use crate::config::Resolved;
use crate::kernel::Kernel;
use crate::order::{Fifo, Links};
use crate::requests::{RequestTable, Rq};
use crate::scheduler::{Issue, Scheduler, Side, TagClass};
use device::Op;
use units::Nanos;

const DOMAINS: usize = 4;
/// Tokens at most: reads, writes, discards, others.
const DEPTH: [u32; DOMAINS] = [256, 128, 64, 16];
/// How many requests of a domain go before the next domain's turn.
const BATCH: [u32; DOMAINS] = [16, 8, 1, 1];
/// Buckets of a quarter of the target each; from `GOOD` on the target is missed.
const BUCKETS: usize = 8;
const GOOD: usize = 4;
const CHECK: Nanos = Nanos::from_millis(100);
const SAMPLES: u32 = 500;
const PATIENCE: Nanos = Nanos::from_secs(1);
/// Discards' target is fixed; others have none.
const DISCARD_TARGET: Nanos = Nanos::from_secs(5);

/// Latencies in quarters of the target.
#[derive(Debug, Default, Clone, Copy)]
struct Histogram {
    counts: [u32; BUCKETS],
    since: Option<Nanos>,
}

impl Histogram {
    fn add(&mut self, latency: Nanos, target: Nanos, now: Nanos) {
        let quarter = (target.0 / 4).max(1);
        let bucket = (latency.0.saturating_sub(1) / quarter).min(BUCKETS as u64 - 1);
        self.counts[bucket as usize] += 1;
        self.since.get_or_insert(now);
    }

    /// The bucket of a percentile, once there are enough samples or enough time has passed; the histogram then
    /// starts again.
    fn percentile(&mut self, percent: u32, now: Nanos) -> Option<usize> {
        let total: u32 = self.counts.iter().sum();
        let since = self.since?;
        if total < SAMPLES && now < since + PATIENCE {
            return None;
        }
        let mut left = (total * percent).div_ceil(100);
        let counts = std::mem::take(self).counts;
        let found = counts.iter().position(|count| {
            let here = *count >= left;
            left = left.saturating_sub(*count);
            here
        });
        Some(found.unwrap_or(BUCKETS - 1))
    }
}

#[derive(Debug, Default)]
struct Domain {
    fifo: Fifo,
    depth: u32,
    in_flight: u32,
    target: Option<Nanos>,
    total: Histogram,
    io: Histogram,
    /// The bucket of the 99th percentile seen last and not yet used.
    p99: Option<usize>,
}

/// The scheduler as of 5.2 and later.
#[derive(Debug)]
pub(crate) struct Kyber {
    domains: [Domain; DOMAINS],
    links: Links,
    current: usize,
    batching: u32,
    check_at: Nanos,
    async_limit: u32,
    /// Synchronous writes are not limited, before 6.17 or 6.18.
    spares_sync: bool,
}

fn domain(op: Op) -> usize {
    match op {
        Op::Read => 0,
        Op::Write => 1,
        Op::Discard => 2,
        Op::Flush => 3,
    }
}

impl Kyber {
    pub fn new(config: &Resolved) -> Self {
        let target = |name| Some(Nanos(config.tunables.get(name)));
        let targets =
            [target("read_lat_nsec"), target("write_lat_nsec"), Some(DISCARD_TARGET), None];
        let mut domains: [Domain; DOMAINS] = Default::default();
        for (at, domain) in domains.iter_mut().enumerate() {
            domain.depth = DEPTH[at];
            domain.target = targets[at];
        }
        Kyber {
            domains,
            links: Links::default(),
            current: 0,
            batching: 0,
            check_at: CHECK,
            async_limit: (config.nr_requests * 3 / 4).max(1),
            spares_sync: config.kernel < Kernel::V6_18,
        }
    }

    fn take(&mut self, at: usize) -> Option<Rq> {
        let domain = &mut self.domains[at];
        if domain.in_flight >= domain.depth {
            return None;
        }
        let rq = domain.fifo.head()?;
        domain.fifo.remove(&mut self.links, rq);
        domain.in_flight += 1;
        self.batching += 1;
        Some(rq)
    }

    /// Shrinks and widens the domains after their latencies.
    fn check(&mut self, now: Nanos) {
        let mut bad = false;
        for domain in &mut self.domains {
            bad |= domain.io.percentile(90, now).is_some_and(|bucket| bucket >= GOOD);
        }
        for (domain, most) in self.domains.iter_mut().zip(DEPTH) {
            let Some(p99) = domain.total.percentile(99, now).or(domain.p99) else { continue };
            if !bad {
                domain.p99 = Some(p99);
            }
            if bad || p99 >= GOOD {
                domain.depth = (domain.depth * (p99 as u32 + 1) / 4).clamp(1, most);
                domain.p99 = None;
            }
        }
        self.check_at = now + CHECK;
    }
}

impl Scheduler for Kyber {
    fn insert(&mut self, rq: Rq, requests: &mut RequestTable, _: Nanos) {
        let at = domain(requests[rq].op);
        requests[rq].queue_index = at as u32;
        self.domains[at].fifo.push(&mut self.links, rq);
    }

    fn dispatch(&mut self, requests: &mut RequestTable, now: Nanos) -> Issue {
        let mut found = None;
        if self.batching < BATCH[self.current] {
            found = self.take(self.current);
        }
        if found.is_none() {
            self.batching = 0;
            for _ in 0..DOMAINS {
                self.current = (self.current + 1) % DOMAINS;
                found = self.take(self.current);
                if found.is_some() {
                    break;
                }
            }
        }
        match found {
            Some(rq) => {
                // The I/O latency starts here; the total's start is `queued`.
                requests[rq].deadline = now;
                Issue::Send(rq)
            }
            None => Issue::Nothing,
        }
    }

    fn complete(&mut self, rq: Rq, requests: &mut RequestTable, now: Nanos) {
        let request = &requests[rq];
        let domain = &mut self.domains[request.queue_index as usize];
        domain.in_flight -= 1;
        if let Some(target) = domain.target {
            domain.total.add(now - request.queued, target, now);
            domain.io.add(now - request.deadline, target, now);
        }
        if now >= self.check_at {
            self.check(now);
        }
    }

    fn len(&self) -> usize {
        self.domains.iter().map(|domain| domain.fifo.len()).sum()
    }

    fn neighbour(&self, requests: &RequestTable, rq: Rq, side: Side) -> Option<Rq> {
        let fifo = &self.domains[requests[rq].queue_index as usize].fifo;
        match side {
            Side::Former => fifo.before(&self.links, rq),
            Side::Latter => fifo.after(&self.links, rq),
        }
    }

    fn moved(&mut self, _: Rq, _: u64, _: &mut RequestTable) {}

    fn absorbed(&mut self, _: Rq, gone: Rq, requests: &mut RequestTable) {
        self.domains[requests[gone].queue_index as usize].fifo.remove(&mut self.links, gone);
    }

    fn tag_limit(&self, class: TagClass, _: &Context, _: u32) -> u32 {
        match class {
            TagClass::Read => u32::MAX,
            TagClass::SyncWrite if self.spares_sync => u32::MAX,
            _ => self.async_limit,
        }
    }

    fn drain(&mut self, _: &mut RequestTable, out: &mut Vec<Rq>) {
        for domain in &mut self.domains {
            while let Some(rq) = domain.fifo.head() {
                domain.fifo.remove(&mut self.links, rq);
                domain.in_flight += 1;
                out.push(rq);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Config;

    const READ: usize = 0;
    const WRITE: usize = 1;

    /// 500 reads and 500 writes: at the device, and in all, in ms; then the look.
    fn window(kyber: &mut Kyber, reads: (f64, f64), writes: (f64, f64), at_ms: u64) -> [u32; 2] {
        let now = Nanos::from_millis(at_ms);
        for (domain, (io, total)) in [(READ, reads), (WRITE, writes)] {
            let domain = &mut kyber.domains[domain];
            let target = domain.target.unwrap();
            for _ in 0..SAMPLES {
                domain.io.add(Nanos::from_millis_f64(io), target, now);
                domain.total.add(Nanos::from_millis_f64(total), target, now);
            }
        }
        kyber.check(now);
        [READ, WRITE].map(|domain| kyber.domains[domain].depth)
    }

    /// The worked example of docs/reference/schedulers/kyber.md.
    #[test]
    fn depths_follow_the_latencies_of_all_domains() {
        let config = Config::new(Kernel::V6_12, 1023).with_scheduler("kyber").resolve().unwrap();
        let mut kyber = Kyber::new(&config);
        // Targets are met: nothing changes.
        assert_eq!(window(&mut kyber, (0.4, 0.4), (5.0, 5.0), 100), [256, 128]);
        // Writes miss their target of 10 ms: domains that meet theirs give way.
        assert_eq!(window(&mut kyber, (0.4, 0.4), (12.0, 12.0), 200), [64, 128]);
        assert_eq!(window(&mut kyber, (0.4, 0.4), (12.0, 12.0), 300), [16, 128]);
        // The device meets its targets again, but reads now wait for tokens: they get more.
        assert_eq!(window(&mut kyber, (0.4, 5.0), (5.0, 5.0), 400), [32, 128]);
        assert_eq!(window(&mut kyber, (0.4, 2.2), (5.0, 5.0), 500), [40, 128]);
        assert_eq!(window(&mut kyber, (0.4, 1.9), (5.0, 5.0), 600), [40, 128]);
    }

    #[test]
    fn synchronous_writes_are_limited_since_6_18() {
        for (kernel, sync_writes) in [(Kernel::V6_12, u32::MAX), (Kernel::V6_18, 48)] {
            let config = Config::new(kernel, 32).with_scheduler("kyber").resolve().unwrap();
            let kyber = Kyber::new(&config);
            let limit = |class| kyber.tag_limit(class, &Context::of(1), 0);
            let limits = [TagClass::Read, TagClass::SyncWrite, TagClass::Async].map(limit);
            assert_eq!(limits, [u32::MAX, sync_writes, 48]);
        }
    }
}
