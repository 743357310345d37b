//! Between the controller and its drives: requests on their way there, and what follows when they
//! are done.

use super::{Array, Child, Due, Op, Parent, Request};
use std::cmp::Reverse;
use units::Nanos;

impl Array {
    /// Lets a drive run to `at`, and follows up what it completed.
    pub(super) fn step(&mut self, drive: usize, at: u64) {
        let mut done = std::mem::take(&mut self.scratch);
        self.drives[drive].advance(Nanos(at), &mut done);
        self.refresh(drive);
        for completion in done.drain(..) {
            self.at_drive[drive] -= 1;
            self.child_done(completion.id as usize, at);
        }
        self.scratch = done;
        self.feed(drive, at);
        self.destage(at);
    }

    fn refresh(&mut self, drive: usize) {
        self.next[drive] = self.drives[drive].next_event().map_or(u64::MAX, |at| at.0);
    }

    /// Gives a drive what waits for it, up to its share.
    fn feed(&mut self, drive: usize, at: u64) {
        while self.at_drive[drive] < self.spec.drive_depth {
            let Some(child) = self.queued[drive].pop_front() else { return };
            self.at_drive[drive] += 1;
            self.drive_operations += 1;
            let request = self.children[child].request;
            self.last[drive] = request.end();
            self.drives[drive].submit(request, Nanos(at));
            self.refresh(drive);
        }
    }

    fn child_done(&mut self, child: usize, at: u64) {
        let parent = self.children[child].parent;
        self.free_children.push(child);
        self.parents[parent].remaining -= 1;
        if self.parents[parent].remaining > 0 {
            return;
        }
        let then = std::mem::take(&mut self.parents[parent].then);
        if then.is_empty() {
            self.parent_done(parent, at);
        } else {
            self.issue(parent, then, at);
        }
    }

    /// Sends requests to drives on behalf of `parent`.
    pub(super) fn issue(&mut self, parent: usize, requests: Vec<(usize, Request)>, at: u64) {
        self.parents[parent].remaining = requests.len() as u32;
        for (drive, request) in requests {
            let child = Child { parent, request };
            let number = match self.free_children.pop() {
                Some(number) => {
                    self.children[number] = child;
                    number
                }
                None => {
                    self.children.push(child);
                    self.children.len() - 1
                }
            };
            self.children[number].request.id = number as u64;
            self.queued[drive].push_back(number);
        }
        for drive in 0..self.drives.len() {
            self.feed(drive, at);
        }
    }

    pub(super) fn parent_done(&mut self, number: usize, at: u64) {
        let parent = std::mem::take(&mut self.parents[number]);
        self.free_parents.push(number);
        match parent.host {
            Some((request, submitted)) => {
                self.host_running -= 1;
                // The controller's own time was paid at the start by writes, and is paid now by
                // reads, with the transfer to the host.
                let transfer = match request.op {
                    Op::Read => request.count.0 * u64::from(self.spec.sector_ns),
                    _ => 0,
                };
                let due =
                    Due { id: request.id, submitted, began: parent.began, cached: parent.cached };
                let at = at + u64::from(self.spec.overhead_ns) + transfer;
                self.ahead.push(Reverse((at, parent.sequence, due)));
            }
            None => match parent.cached_row {
                Some(row) => self.row_arrived(row, at),
                None => {
                    if let Some(cache) = &mut self.cache {
                        cache.landed(parent.run);
                    }
                    self.take_stalled(at);
                }
            },
        }
        if parent.rows.is_some() {
            self.unblock(at);
        }
    }

    pub(super) fn new_parent(&mut self, parent: Parent) -> usize {
        self.sequence += 1;
        self.host_running += u32::from(parent.host.is_some());
        let parent = Parent { sequence: self.sequence, ..parent };
        match self.free_parents.pop() {
            Some(number) => {
                self.parents[number] = parent;
                number
            }
            None => {
                self.parents.push(parent);
                self.parents.len() - 1
            }
        }
    }
}
