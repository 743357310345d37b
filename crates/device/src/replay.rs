//! Replays a trace against a device alone, closed, one request outstanding.

use crate::disksim::TraceEntry;
use crate::{Completion, Device, Path};
use units::Nanos;

/// What a replay gave.
#[derive(Clone, Debug, Default)]
pub struct Replay {
    /// Issue to completion on the model, in trace order.
    pub service: Vec<Nanos>,
    /// How many were served without the medium.
    pub from_cache: u64,
    /// How many reached beyond the device and were refused.
    pub out_of_range: u64,
    /// The model's clock when the last request was complete.
    pub end: Nanos,
}

/// Issues each request at the *model's* completion of the one before it plus the think time the
/// trace records; everything counts, there is no warm-up. The clock starts at 0.
pub fn replay(device: &mut dyn Device, trace: &[TraceEntry]) -> Replay {
    let mut result = Replay { service: Vec::with_capacity(trace.len()), ..Replay::default() };
    let mut done: Vec<Completion> = Vec::with_capacity(4);
    let mut now = Nanos::ZERO;
    for (id, entry) in trace.iter().enumerate() {
        device.submit(entry.request(id as u64), now);
        let completion = loop {
            let Some(next) = device.next_event() else { return result };
            device.advance(next.max(now), &mut done);
            if let Some(completion) = done.drain(..).next() {
                break completion;
            }
        };
        match completion.path {
            Path::Cache => result.from_cache += 1,
            Path::OutOfRange => result.out_of_range += 1,
            Path::Medium => (),
        }
        result.service.push(completion.at - now);
        result.end = completion.at;
        now = completion.at + entry.think;
    }
    result
}
