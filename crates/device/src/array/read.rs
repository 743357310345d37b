//! Which drives a read goes to.

use super::{Array, Level, Piece, Request, on_drive};

/// Which copy of a mirror a read goes to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReadPolicy {
    /// Always the first that works.
    First,
    /// In turn.
    RoundRobin,
    /// The one with the fewest requests; of equals, the one whose last request was nearest.
    ShortestQueue,
    /// The one whose last request was nearest.
    NearestHead,
}

impl Array {
    /// Reads of each piece: from the copy that the policy names, or from all the others of a row
    /// whose drive has failed.
    pub(super) fn reads(&mut self, request: Request) -> Vec<(usize, Request)> {
        let mut reads = Vec::new();
        for piece in self.layout.pieces(request.start.0, request.count.0) {
            let read = on_drive(&request, piece.start, piece.count);
            match self.spec.level {
                Level::Parity if !self.works(piece.drive) => {
                    let others = (0..self.drives.len()).filter(|drive| *drive != piece.drive);
                    reads.extend(others.map(|drive| (drive, read)));
                }
                _ => reads.push((self.copy_to_read(&piece), read)),
            }
        }
        reads
    }

    pub(super) fn copy_to_read(&mut self, piece: &Piece) -> usize {
        self.turn += usize::from(self.spec.read_policy == ReadPolicy::RoundRobin);
        let copies = self.layout.copies(piece.drive);
        let working = copies.filter(|drive| self.works(*drive));
        let distance = |drive: &usize| self.last[*drive].abs_diff(piece.start);
        let load = |drive: &usize| self.at_drive[*drive] as usize + self.queued[*drive].len();
        let chosen = match self.spec.read_policy {
            ReadPolicy::First => working.clone().next(),
            ReadPolicy::RoundRobin => {
                let count = working.clone().count().max(1);
                working.clone().nth(self.turn % count)
            }
            ReadPolicy::ShortestQueue => working.clone().min_by_key(|d| (load(d), distance(d))),
            ReadPolicy::NearestHead => working.clone().min_by_key(|d| (distance(d), *d)),
        };
        chosen.unwrap_or(piece.drive)
    }
}
