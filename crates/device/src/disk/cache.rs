//! The drive's buffer: segments of consecutive blocks, and the read-ahead that fills them while
//! nothing else moves the arm.

use super::mechanics::{Arm, Mechanics, Part, ROUNDING};
use super::spec::{CacheSpec, ReadAhead};
use units::Nanos;

#[derive(Clone, Copy, Debug, Default)]
struct Segment {
    start: u64,
    end: u64,
    used: u64,
    written: bool,
}

/// Read-ahead in progress: the head was at the start of `next` at `time`.
#[derive(Clone, Copy, Debug)]
struct Running {
    segment: usize,
    next: u64,
    limit: u64,
    time: Nanos,
    arm: Arm,
}

/// What a read finds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lookup {
    /// Everything is there.
    Hit,
    /// The read-ahead in progress will reach the rest.
    Coming {
        /// When the last block is in the buffer.
        at: Nanos,
    },
    /// The blocks before `missing` are there.
    Partial {
        /// The first block that is not.
        missing: u64,
    },
    /// The first block is not there.
    Miss,
}

/// The buffer.
#[derive(Clone, Debug)]
pub struct Cache {
    spec: CacheSpec,
    segments: Vec<Segment>,
    running: Option<Running>,
    clock: u64,
    /// Where the last read ended: the next one is sequential if it begins there.
    last_read_end: u64,
}

impl Cache {
    /// An empty buffer.
    pub fn new(spec: CacheSpec) -> Self {
        let segments = vec![Segment::default(); spec.segments as usize];
        Cache { spec, segments, running: None, clock: 0, last_read_end: u64::MAX }
    }

    /// Brings the read-ahead up to `time`; returns where the arm then is, if it was reading.
    pub fn run(&mut self, mechanics: &Mechanics, time: Nanos) -> Option<Arm> {
        let mut running = self.running?;
        while running.next < running.limit && running.time < time {
            let rest = (running.next, running.limit - running.next);
            let pass = mechanics.pass(running.arm, running.time, rest, false, Part::ReadOn);
            if pass.start >= time {
                break;
            }
            let extent = pass.extent;
            running.arm = pass.arm;
            let (blocks, at) = match pass.end <= time + ROUNDING {
                true => (extent.blocks, pass.end),
                false => {
                    let turn = Nanos(mechanics.geometry.turn_ns());
                    let passed = time + ROUNDING - pass.start;
                    let sectors = passed.0 * extent.sectors_per_track / turn.0;
                    // Slipped sectors among them: count only what is surely there.
                    let blocks = sectors.min(extent.blocks - 1);
                    (blocks, pass.start + turn * blocks / extent.sectors_per_track)
                }
            };
            running.next += blocks;
            running.time = at;
            if blocks < extent.blocks {
                break;
            }
        }
        self.grow(running.segment, running.next);
        self.running = Some(running);
        Some(running.arm)
    }

    fn grow(&mut self, segment: usize, end: u64) {
        let size = self.spec.segment_sectors;
        let segment = &mut self.segments[segment];
        segment.end = segment.end.max(end);
        segment.start = segment.start.max(segment.end.saturating_sub(size));
    }

    /// The blocks that are in the buffer, or come next, as long as the read-ahead goes on: from, to,
    /// and up to where it will go.
    pub fn stream(&self) -> Option<(u64, u64, u64)> {
        self.running.map(|r| (self.segments[r.segment].start, r.next, r.limit))
    }

    /// Stops the read-ahead; what it has read stays.
    pub fn stop(&mut self) {
        self.running = None;
    }

    /// What a read of `start..end` finds at `time`; [`run`](Self::run) must have been called.
    pub fn lookup(&self, mechanics: &Mechanics, start: u64, end: u64) -> Lookup {
        let mut found = Lookup::Miss;
        for (number, segment) in self.segments.iter().enumerate() {
            if segment.start == segment.end || start < segment.start || start > segment.end {
                continue;
            }
            if segment.written && !self.spec.hits_on_writes {
                continue;
            }
            if end <= segment.end {
                return Lookup::Hit;
            }
            if let Some(running) = self.running.filter(|r| r.segment == number && end <= r.limit) {
                let rest = (running.next, end - running.next);
                let at = mechanics.read_on(running.arm, running.time, rest);
                return Lookup::Coming { at };
            }
            if start < segment.end {
                found = Lookup::Partial { missing: segment.end };
            }
        }
        found
    }

    /// Notes that the buffer serves a read of `start..end` at `now`; the read-ahead may go on
    /// further, or begin again if the arm is `idle` where it says.
    pub fn served(
        &mut self,
        mechanics: &Mechanics,
        (start, end): (u64, u64),
        now: Nanos,
        idle: Option<Arm>,
    ) {
        self.clock += 1;
        let clock = self.clock;
        let holds = |s: &Segment| s.start < s.end && s.start <= start && start <= s.end;
        // The read-ahead's own segment first: what it serves may not have come yet.
        let number = self
            .running
            .map(|running| running.segment)
            .filter(|segment| holds(&self.segments[*segment]))
            .or_else(|| self.segments.iter().position(|s| holds(s) && start < s.end));
        let sequential = start == self.last_read_end;
        self.last_read_end = end;
        let Some(number) = number else { return };
        self.segments[number].used = clock;
        let limit = self.limit(mechanics, self.segments[number].start, end, sequential);
        match (&mut self.running, idle) {
            (Some(running), _) if running.segment == number => {
                if running.next >= running.limit {
                    running.time = running.time.max(now); // it had stopped
                }
                running.limit = running.limit.max(limit);
            }
            (_, Some(arm)) if self.spec.on_idle_hit => {
                let next = self.segments[number].end;
                if next < limit && !self.segments[number].written {
                    self.running = Some(Running { segment: number, next, limit, time: now, arm });
                }
            }
            _ => (),
        }
    }

    /// Notes that `start..end` was read from the medium by `time`, `kept_from` on; read-ahead goes
    /// on from there.
    pub fn filled(
        &mut self,
        mechanics: &Mechanics,
        (kept_from, start, end): (u64, u64, u64),
        arm: Arm,
        time: Nanos,
    ) {
        let sequential = start == self.last_read_end;
        self.last_read_end = end;
        if self.segments.is_empty() {
            return;
        }
        self.clock += 1;
        let extends = self
            .segments
            .iter()
            .position(|s| s.start < s.end && s.start <= start && start <= s.end && !s.written);
        let number = match extends {
            Some(number) => {
                self.segments[number].end = end.max(self.segments[number].end);
                number
            }
            None => {
                let number = self.victim(false);
                self.segments[number] = Segment { start: kept_from, end, used: 0, written: false };
                number
            }
        };
        self.segments[number].used = self.clock;
        self.grow(number, end);
        let limit = self.limit(mechanics, start, end, sequential);
        let next = self.segments[number].end;
        self.running =
            (next < limit).then_some(Running { segment: number, next, limit, time, arm });
    }

    /// Notes that `start..end` was written: what the buffer held of it is out of date, and the new
    /// data takes a segment.
    pub fn written(&mut self, start: u64, end: u64) {
        self.forget(start, end);
        if self.spec.write_segments == 0 || self.segments.is_empty() || !self.spec.hits_on_writes {
            return;
        }
        self.clock += 1;
        let appended =
            self.segments.iter().position(|s| s.written && s.start < s.end && s.end == start);
        let number = appended.unwrap_or_else(|| {
            let number = self.victim(true);
            self.segments[number] = Segment { start, end: start, used: 0, written: true };
            number
        });
        self.segments[number].used = self.clock;
        self.grow(number, end);
    }

    /// Drops what is held of `start..end`.
    pub fn forget(&mut self, start: u64, end: u64) {
        for (number, segment) in self.segments.iter_mut().enumerate() {
            if segment.start == segment.end || end <= segment.start || start >= segment.end {
                continue;
            }
            // The longer remaining side stays.
            match start.saturating_sub(segment.start) >= segment.end.saturating_sub(end) {
                true => segment.end = start.max(segment.start),
                false => segment.start = end,
            }
            if self.running.is_some_and(|r| r.segment == number) {
                self.running = None;
            }
        }
    }

    /// The least recently used segment; among those with written data once they are as many as
    /// may be.
    fn victim(&mut self, write: bool) -> usize {
        let written = self.segments.iter().filter(|s| s.written && s.start < s.end).count();
        let only_written = write && written >= self.spec.write_segments as usize;
        let oldest = self
            .segments
            .iter()
            .enumerate()
            .filter(|(_, s)| !only_written || (s.written && s.start < s.end))
            .min_by_key(|(_, s)| s.used)
            .map_or(0, |(number, _)| number);
        if self.running.is_some_and(|r| r.segment == oldest) {
            self.running = None;
        }
        oldest
    }

    /// How far read-ahead goes after a read of `start..end`.
    fn limit(&self, mechanics: &Mechanics, start: u64, end: u64, sequential: bool) -> u64 {
        let geometry = &mechanics.geometry;
        let track_end = |lbn: u64| {
            let extent = geometry.extent(lbn, u64::MAX);
            lbn + extent.blocks
        };
        let next_track = |from: u64| match from < geometry.capacity() {
            true => track_end(from),
            false => from,
        };
        let wish = match self.spec.read_ahead {
            ReadAhead::Off => end,
            ReadAhead::Track => track_end(end - 1),
            ReadAhead::NextTrack if sequential => next_track(track_end(end - 1)),
            ReadAhead::NextTrack => {
                let last = geometry.extent(end - 1, u64::MAX);
                match self.spec.segment_sectors < last.sectors_per_track {
                    true => end,
                    false => end - 1 + last.blocks,
                }
            }
            ReadAhead::Cylinder => {
                let cylinder = geometry.locate(end - 1).cylinder;
                let mut at = track_end(end - 1);
                while at < geometry.capacity() && geometry.locate(at).cylinder == cylinder {
                    at = track_end(at);
                }
                at
            }
            ReadAhead::Segment => u64::MAX,
        };
        let room = match self.spec.over_requested {
            true => end + self.spec.segment_sectors,
            false => start.saturating_add(self.spec.segment_sectors).max(end),
        };
        wish.min(end + self.spec.read_ahead_max).min(room).min(geometry.capacity())
    }
}
