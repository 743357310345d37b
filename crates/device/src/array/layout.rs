//! Where an array's sectors lie on its drives.

/// How data is spread over drives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Level {
    /// RAID 0: striped, no redundancy. One drive is the simplest case.
    Stripe,
    /// RAID 1: every drive holds everything.
    Mirror,
    /// RAID 10: striped over mirrored pairs (drives 0 and 1, 2 and 3, …).
    StripedMirrors,
    /// RAID 5: striped with rotating parity (left-symmetric: the parity moves one drive to the left
    /// from row to row, and a row's data begins right after it).
    Parity,
}

/// A part of a request that lies on one stripe unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Piece {
    /// The row of stripe units.
    pub row: u64,
    /// The drive with the data; of a mirror, the first.
    pub drive: usize,
    /// First sector on the drive.
    pub start: u64,
    /// Sectors.
    pub count: u64,
}

/// The map from an array's sectors to its drives'. Also for striping by the host (LVM, md): split a
/// request with it, and give each drive a queue of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Layout {
    /// How data is spread.
    pub level: Level,
    /// Drives.
    pub drives: usize,
    /// Sectors of a stripe unit.
    pub unit: u64,
}

impl Layout {
    /// Stripe units with data in a row.
    pub fn columns(&self) -> u64 {
        match self.level {
            Level::Stripe => self.drives as u64,
            Level::Mirror => 1,
            Level::StripedMirrors => self.drives as u64 / 2,
            Level::Parity => self.drives as u64 - 1,
        }
    }

    /// The array's size, of drives of `drive_sectors` each.
    pub fn capacity(&self, drive_sectors: u64) -> u64 {
        match self.level {
            Level::Mirror => drive_sectors,
            _ => drive_sectors / self.unit * self.unit * self.columns(),
        }
    }

    /// The drive that holds `row`'s parity.
    pub fn parity_drive(&self, row: u64) -> usize {
        let drives = self.drives as u64;
        (drives - 1 - row % drives) as usize
    }

    /// The first piece of `start..end`, and where the next begins.
    pub fn piece(&self, start: u64, end: u64) -> Piece {
        if self.level == Level::Mirror {
            return Piece { row: start / self.unit, drive: 0, start, count: end - start };
        }
        let nth = start / self.unit;
        let inside = start % self.unit;
        let (row, column) = (nth / self.columns(), nth % self.columns());
        let drive = match self.level {
            Level::StripedMirrors => 2 * column as usize,
            Level::Parity => (self.parity_drive(row) + 1 + column as usize) % self.drives,
            Level::Stripe | Level::Mirror => column as usize,
        };
        let count = (self.unit - inside).min(end - start);
        Piece { row, drive, start: row * self.unit + inside, count }
    }

    /// All pieces of `count` sectors from `start`, in order.
    pub fn pieces(&self, start: u64, count: u64) -> impl Iterator<Item = Piece> + use<> {
        let layout = *self;
        let end = start + count;
        let mut at = start;
        std::iter::from_fn(move || {
            if at >= end {
                return None;
            }
            let piece = layout.piece(at, end);
            at += piece.count;
            Some(piece)
        })
    }

    /// The drives that hold a copy of what `drive` holds.
    pub fn copies(&self, drive: usize) -> std::ops::Range<usize> {
        match self.level {
            Level::Mirror => 0..self.drives,
            Level::StripedMirrors => drive / 2 * 2..drive / 2 * 2 + 2,
            Level::Stripe | Level::Parity => drive..drive + 1,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The worked example of a request stream on four spindles with a stripe unit of 64 KiB.
    #[test]
    fn sectors_fall_on_the_four_spindles_as_published() {
        let layout = Layout { level: Level::Stripe, drives: 4, unit: 128 };
        let mut spindles = vec![Vec::new(); 4];
        for sector in [10, 200, 50, 300, 1020, 600, 1500, 700] {
            spindles[layout.piece(sector, sector + 1).drive].push(sector);
        }
        for spindle in &mut spindles {
            spindle.sort_unstable();
        }
        assert_eq!(spindles, [vec![10, 50, 600], vec![200, 700], vec![300], vec![1020, 1500]]);
    }

    #[test]
    fn every_sector_has_a_place_of_its_own_and_none_is_parity() {
        for (level, drives) in
            [(Level::Stripe, 3), (Level::StripedMirrors, 4), (Level::Parity, 4), (Level::Mirror, 2)]
        {
            let layout = Layout { level, drives, unit: 8 };
            let mut places = std::collections::BTreeSet::new();
            for sector in 0..layout.capacity(80) {
                let piece = layout.piece(sector, sector + 1);
                assert!(piece.start < 80);
                assert!(places.insert((piece.drive, piece.start)), "{level:?} {sector}");
                if level == Level::Parity {
                    assert_ne!(piece.drive, layout.parity_drive(piece.row));
                }
            }
        }
    }
}
