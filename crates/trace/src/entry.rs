//! Requests of a trace.

use units::{Nanos, Sectors};

/// What a request does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TraceOp {
    /// Reads.
    Read,
    /// Writes.
    Write,
    /// Makes what was written durable.
    Flush,
}

/// A request as it was recorded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entry {
    /// When it was issued, from the trace's beginning.
    pub at: Nanos,
    /// What it does.
    pub op: TraceOp,
    /// Its first sector; the devices or files of a trace are laid out one after the other.
    pub start: Sectors,
    /// How many sectors; none in a flush.
    pub count: Sectors,
    /// A write before which the device's cache has to be flushed (REQ_PREFLUSH).
    pub preflush: bool,
    /// A write that is done when it is on the medium (REQ_FUA).
    pub fua: bool,
    /// Its process, numbered from 0 in the order of their first requests.
    pub process: u32,
    /// How long it took when it was recorded, if the trace says so.
    pub service: Option<Nanos>,
}

impl Entry {
    /// Where it ends.
    pub fn end(&self) -> Sectors {
        Sectors(self.start.0.saturating_add(self.count.0))
    }

    /// The request within `span`, which is not shorter than it: one that reaches beyond begins so far behind
    /// the beginning as it lay behind a multiple of the span, or ends at the span's end.
    pub fn within(self, span: Sectors) -> Entry {
        if self.end() <= span {
            return self;
        }
        let start = (self.start.0 % span.0.max(1)).min(span.0.saturating_sub(self.count.0));
        Entry { start: Sectors(start), ..self }
    }
}

/// A request as a line describes it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Request {
    pub at: Nanos,
    pub op: TraceOp,
    pub device: String,
    pub start: u64,
    pub count: u64,
    pub preflush: bool,
    pub fua: bool,
    pub process: String,
    pub service: Option<Nanos>,
}

impl Request {
    /// A read or a write of sectors of a device, without a process.
    pub fn of(at: Nanos, op: TraceOp, device: String, start: u64, count: u64) -> Request {
        Request {
            at,
            op,
            device,
            start,
            count,
            preflush: false,
            fua: false,
            process: String::new(),
            service: None,
        }
    }

    /// That took so long.
    pub fn took(self, service: Nanos) -> Request {
        Request { service: Some(service), ..self }
    }
}
