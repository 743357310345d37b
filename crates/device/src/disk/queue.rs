//! The drive's own queue, and the order in which it serves it.
//!
//! What a decision reads lies in one small array entry a request: with 256 requests the shortest
//! positioning time is found in about a microsecond, so there is no index to keep.

use super::mechanics::{Arm, Mechanics};
use super::spec::Policy;
use crate::request::Request;
use units::Nanos;

/// A request that waits for the medium.
#[derive(Clone, Copy, Debug)]
pub struct Pending {
    /// The request.
    pub request: Request,
    /// When it was submitted.
    pub submitted: Nanos,
    /// Its place in the order of arrival.
    pub sequence: u64,
    /// The oldest write whose data it replaces: its own number, if none.
    pub oldest: u64,
}

#[derive(Clone, Copy, Debug)]
struct Target {
    cylinder: u32,
    head: u32,
    angle_ns: u32,
    write: bool,
    sequence: u64,
}

/// Requests that wait for the medium.
#[derive(Clone, Debug)]
pub struct Queue {
    policy: Policy,
    targets: Vec<Target>,
    pending: Vec<Pending>,
    up: bool,
}

impl Queue {
    /// An empty queue.
    pub fn new(policy: Policy) -> Self {
        Queue { policy, targets: Vec::new(), pending: Vec::new(), up: true }
    }
    /// Nothing waits.
    pub fn is_empty(&self) -> bool {
        self.pending.is_empty()
    }
    /// Requests that wait.
    pub fn pending(&self) -> &[Pending] {
        &self.pending
    }

    /// Adds a request.
    pub fn push(&mut self, mechanics: &Mechanics, pending: Pending) {
        let target = match self.policy {
            // Arrival order needs no place.
            Policy::Fifo => Target {
                cylinder: 0,
                head: 0,
                angle_ns: 0,
                write: false,
                sequence: pending.sequence,
            },
            _ => {
                let place = mechanics.geometry.locate(pending.request.start.0);
                Target {
                    cylinder: place.cylinder,
                    head: place.head,
                    angle_ns: place.angle_ns,
                    write: pending.request.op == crate::Op::Write,
                    sequence: pending.sequence,
                }
            }
        };
        self.targets.push(target);
        self.pending.push(pending);
    }

    /// Takes out the request that an arm free at `time` serves next, if there is one.
    /// `overhead_ns` comes before it moves: for reads and for writes.
    pub fn take(
        &mut self,
        mechanics: &Mechanics,
        arm: Arm,
        time: Nanos,
        overhead_ns: (u32, u32),
    ) -> Option<Pending> {
        if self.pending.is_empty() {
            return None;
        }
        let index = match self.policy {
            Policy::Fifo => self.first(|_| 0u64),
            Policy::Look => self.look(arm),
            Policy::CLook => self.first(|t| (t.cylinder < arm.cylinder, t.cylinder)),
            Policy::ShortestSeek => self.first(|t| arm.cylinder.abs_diff(t.cylinder)),
            Policy::ShortestPositioning => {
                self.shortest_positioning(mechanics, arm, time, overhead_ns)
            }
        };
        self.targets.swap_remove(index);
        Some(self.pending.swap_remove(index))
    }

    /// Takes out the read that goes on where the read-ahead is, if there is one: it begins in
    /// `from..=next` and ends by `limit`. Leaving the stream would cost more than its positioning
    /// time, which is all that the policies compare.
    pub fn take_stream(&mut self, (from, next, limit): (u64, u64, u64)) -> Option<Pending> {
        if self.policy == Policy::Fifo {
            return None;
        }
        let index = self
            .pending
            .iter()
            .enumerate()
            .filter(|(_, p)| p.request.op == crate::Op::Read)
            .filter(|(_, p)| (from..=next).contains(&p.request.start.0) && p.request.end() <= limit)
            .min_by_key(|(_, p)| p.request.start.0)
            .map(|(index, _)| index)?;
        self.targets.swap_remove(index);
        Some(self.pending.swap_remove(index))
    }

    /// The index of the least key; of equals, the first to arrive.
    fn first<K: Ord>(&self, key: impl Fn(&Target) -> K) -> usize {
        self.targets
            .iter()
            .enumerate()
            .min_by_key(|(_, target)| (key(target), target.sequence))
            .map_or(0, |(index, _)| index)
    }

    fn look(&mut self, arm: Arm) -> usize {
        let ahead = |t: &Target| match self.up {
            true => t.cylinder >= arm.cylinder,
            false => t.cylinder <= arm.cylinder,
        };
        if !self.targets.iter().any(ahead) {
            self.up = !self.up;
        }
        let up = self.up;
        self.first(|t| {
            let behind = match up {
                true => t.cylinder < arm.cylinder,
                false => t.cylinder > arm.cylinder,
            };
            (behind, arm.cylinder.abs_diff(t.cylinder))
        })
    }

    fn shortest_positioning(
        &self,
        mechanics: &Mechanics,
        arm: Arm,
        time: Nanos,
        (read_ns, write_ns): (u32, u32),
    ) -> usize {
        let turn = mechanics.geometry.turn_ns() as u32;
        let phase = mechanics.phase_ns(time) as u32;
        let mut best = (u32::MAX, u64::MAX, 0);
        for (index, target) in self.targets.iter().enumerate() {
            let overhead = if target.write { write_ns } else { read_ns };
            let position =
                mechanics.position_ns(arm, target.cylinder, target.head, target.write) + overhead;
            if position > best.0 {
                continue; // no rotation can make up for it
            }
            let arrived = (phase + position) % turn;
            let wait = match target.angle_ns >= arrived {
                _ if !mechanics.rotates() => 0,
                true => target.angle_ns - arrived,
                false => target.angle_ns + turn - arrived,
            };
            let cost = position + wait;
            if (cost, target.sequence) < (best.0, best.1) {
                best = (cost, target.sequence, index);
            }
        }
        best.2
    }
}
