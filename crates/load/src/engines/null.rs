//! The engine that does nothing: what is left is the cost of the driver itself.

use super::{Action, Done, Engine, Operation, sleep};
use std::io;
use units::Nanos;

/// Completes every operation at once.
pub(crate) struct Null {
    done: Vec<Done>,
}

impl Null {
    pub fn new(depth: u32) -> Self {
        Null { done: Vec::with_capacity(depth as usize) }
    }
}

impl Engine for Null {
    #[inline]
    unsafe fn submit(&mut self, operation: Operation, slot: u32) {
        let result = match operation.action {
            Action::Read | Action::Write | Action::WriteThrough => operation.length as i32,
            Action::Fsync | Action::Fdatasync => 0,
        };
        self.done.push(Done { slot, result });
    }

    #[inline]
    fn reap(&mut self, timeout: Option<Nanos>, done: &mut Vec<Done>) -> io::Result<()> {
        match timeout {
            Some(span) if self.done.is_empty() => sleep(span),
            _ => done.append(&mut self.done),
        }
        Ok(())
    }
}
