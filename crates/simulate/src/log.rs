//! The event log: the first requests' lives, where asked for.

use blocklayer::BioDone;
use device::Op;
use record::{EventLog, HeadPosition, RequestLife};
use units::Nanos;

/// Writes down what happens.
pub(crate) struct Recorder {
    /// Requests to keep at most.
    most: usize,
    /// Where the log's time begins.
    begins: Nanos,
    requests: Vec<RequestLife>,
    heads: Vec<HeadPosition>,
    cut: bool,
}

impl Recorder {
    /// Keeps the lives of `most` requests that end after `begins`.
    pub fn new(most: u32, begins: Nanos) -> Self {
        Recorder {
            most: most as usize,
            begins,
            requests: Vec::new(),
            heads: Vec::new(),
            cut: false,
        }
    }

    /// Whether lives are still wanted.
    #[inline]
    pub fn wants_lives(&self, now: Nanos) -> bool {
        self.most > 0 && now > self.begins && !self.cut
    }

    /// A bio has ended: its request's life, or one more that had joined it.
    pub fn bio(&mut self, bio: &BioDone) {
        let axis = |time: Nanos| time.0 as i64 - self.begins.0 as i64;
        let (dispatched_ns, done_ns) = (axis(bio.dispatched), axis(bio.at));
        if bio.merged {
            let last = self.requests.last_mut();
            let its = last.filter(|r| (r.dispatched_ns, r.done_ns) == (dispatched_ns, done_ns));
            if let Some(request) = its {
                request.merged += 1;
                request.start = request.start.min(bio.start.0);
            }
            return;
        }
        if self.requests.len() == self.most {
            self.cut = true;
            return;
        }
        self.requests.push(RequestLife {
            process: bio.process,
            op: match bio.op {
                Op::Read => 'R',
                Op::Write => 'W',
                Op::Flush => 'F',
                Op::Discard => 'D',
            },
            start: bio.start.0,
            sectors: bio.request_count.0,
            queued_ns: axis(bio.queued),
            dispatched_ns,
            began_ns: axis(bio.began),
            done_ns,
            merged: 0,
        });
    }

    /// Where the arms are now.
    pub fn heads(&mut self, now: Nanos, cylinders: &[u32]) {
        let at_ns = now.0 as i64 - self.begins.0 as i64;
        let all = cylinders.iter().enumerate();
        self.heads.extend(all.map(|(drive, cylinder)| HeadPosition {
            at_ns,
            drive: drive as u32,
            cylinder: *cylinder,
        }));
    }

    /// What was written down, with the hash of everything.
    pub fn log(self, hash: u64) -> EventLog {
        EventLog { hash, requests: self.requests, heads: self.heads, cut: self.cut }
    }
}
