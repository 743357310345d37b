//! The hash of what happened, and when.

use units::Nanos;

/// A running hash over (time, kind, id) of every event, in their order. Two runs that differ
/// anywhere have, but for one chance in 2^64, different hashes. It is no protection from malice.
#[derive(Clone, Copy, Debug)]
pub(crate) struct EventHash(u64);

/// What happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum EventKind {
    /// The block layer took a bio; the id is its first sector.
    Submitted = 1,
    /// A client went to sleep for a free request.
    Slept = 2,
    /// A bio is done; the id is its operation's slot.
    Done = 3,
    /// An operation is done.
    Finished = 4,
}

impl EventHash {
    /// Of nothing.
    pub fn new() -> Self {
        EventHash(0x9e37_79b9_7f4a_7c15)
    }

    /// Adds an event. Multiplication by an odd constant loses nothing, and the shift brings the
    /// high bits, which it mixes best, back down.
    #[inline]
    pub fn add(&mut self, at: Nanos, kind: EventKind, id: u64) {
        let mut hash = (self.0 ^ at.0).wrapping_mul(0xff51_afd7_ed55_8ccd);
        hash = (hash ^ (hash >> 32) ^ id).wrapping_mul(0xc4ce_b9fe_1a85_ec53);
        self.0 = hash ^ (hash >> 29) ^ kind as u64;
    }

    /// The hash so far.
    pub fn value(self) -> u64 {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn order_kind_and_time_count() {
        let hash = |events: &[(u64, EventKind, u64)]| {
            let mut hash = EventHash::new();
            events.iter().for_each(|(at, kind, id)| hash.add(Nanos(*at), *kind, *id));
            hash.value()
        };
        let (a, b) = ((1, EventKind::Done, 7), (1, EventKind::Done, 8));
        assert_eq!(hash(&[a, b]), hash(&[a, b]));
        assert_ne!(hash(&[a, b]), hash(&[b, a]));
        assert_ne!(hash(&[a]), hash(&[(2, EventKind::Done, 7)]));
        assert_ne!(hash(&[a]), hash(&[(1, EventKind::Finished, 7)]));
    }
}
