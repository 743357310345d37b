//! Writes under parity: what is read first, what is written, and rows that one write at a time may
//! change.

use super::{Array, Parent, Piece, Request, on_drive};
use std::collections::VecDeque;

impl Array {
    /// Begins a write, or keeps it until no other holds one of its rows.
    pub(super) fn write_parity(&mut self, parent: usize, request: Request, now: u64) {
        let pieces = self.layout.pieces(request.start.0, request.count.0);
        let (mut first, mut last) = (u64::MAX, 0);
        for piece in pieces {
            first = first.min(piece.row);
            last = last.max(piece.row);
        }
        self.parents[parent].rows = Some((first, last));
        if self.row_is_held(parent, first, last) {
            self.blocked.push_back(parent);
            self.parents[parent].run = (request.start.0, request.count.0);
            return;
        }
        self.write_rows(parent, request, now);
    }

    fn row_is_held(&self, parent: usize, first: u64, last: u64) -> bool {
        let held =
            |other: &Parent| other.rows.is_some_and(|(from, to)| from <= last && first <= to);
        // Those that wait before it count too, or it would overtake them.
        self.parents.iter().enumerate().any(|(number, other)| {
            number != parent && other.sequence < self.parents[parent].sequence && held(other)
        })
    }

    pub(super) fn unblock(&mut self, now: u64) {
        let mut blocked = std::mem::take(&mut self.blocked);
        let mut still = VecDeque::new();
        while let Some(parent) = blocked.pop_front() {
            let Some((first, last)) = self.parents[parent].rows else { continue };
            if self.row_is_held(parent, first, last) {
                still.push_back(parent);
                continue;
            }
            let (start, count) = self.parents[parent].run;
            let fua = self.parents[parent].host.is_none_or(|(request, _)| request.fua);
            let request = Request { fua, ..Request::write(0, start, count) };
            self.write_rows(parent, request, now);
        }
        still.append(&mut self.blocked);
        self.blocked = still;
    }

    /// A write under parity: of each row that is written whole, data and parity; else old data and
    /// old parity are read first (read-modify-write), so a small write is four operations.
    fn write_rows(&mut self, parent: usize, request: Request, now: u64) {
        let mut reads: Vec<(usize, Request)> = Vec::new();
        let mut writes: Vec<(usize, Request)> = Vec::new();
        let pieces: Vec<Piece> = self.layout.pieces(request.start.0, request.count.0).collect();
        for row in pieces.chunk_by(|a, b| a.row == b.row) {
            self.write_row(&request, row, &mut reads, &mut writes);
        }
        if reads.is_empty() {
            self.issue(parent, writes, now);
        } else {
            self.parents[parent].then = writes;
            self.issue(parent, reads, now);
        }
    }

    fn write_row(
        &self,
        request: &Request,
        row: &[Piece],
        reads: &mut Vec<(usize, Request)>,
        writes: &mut Vec<(usize, Request)>,
    ) {
        let parity = self.layout.parity_drive(row[0].row);
        let from = row.iter().map(|piece| piece.start).min().unwrap_or(0);
        let to = row.iter().map(|piece| piece.start + piece.count).max().unwrap_or(0);
        let write = |piece: &Piece| (piece.drive, on_drive(request, piece.start, piece.count));
        let read = |drive: usize, start: u64, count: u64| (drive, Request::read(0, start, count));
        writes.extend(row.iter().filter(|piece| self.works(piece.drive)).map(write));
        if !self.works(parity) {
            return; // data alone; the row has no parity now
        }
        writes.push((parity, on_drive(request, from, to - from)));
        let whole = row.len() as u64 == self.layout.columns()
            && row.iter().all(|piece| piece.count == self.layout.unit);
        if whole {
            return;
        }
        match row.iter().any(|piece| !self.works(piece.drive)) {
            // The lost drive's new data goes into the parity, made from all the others' data.
            true => {
                let others = (0..self.drives.len()).filter(|d| *d != parity && self.works(*d));
                reads.extend(others.map(|drive| read(drive, from, to - from)));
            }
            false => {
                reads.extend(row.iter().map(|p| read(p.drive, p.start, p.count)));
                reads.push(read(parity, from, to - from));
            }
        }
    }
}
