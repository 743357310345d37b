//! Clocks that were set, or wrapped, while a trace was recorded.

use units::Nanos;

/// Lines of several processors are out of order by less than this, in nanoseconds.
const REORDERED_NS: i128 = 1_000_000_000;

/// Makes the times of requests, in the order of their lines, those of one clock that begins at zero and
/// never goes back by more than [`REORDERED_NS`]. Says how often it had to step in.
pub(crate) fn straighten<'a>(times: impl Iterator<Item = &'a mut Nanos>) -> u64 {
    let mut times: Vec<&mut Nanos> = times.collect();
    let mut straight: Vec<i128> = Vec::with_capacity(times.len());
    let mut steps = 0;
    // What is added to a recorded time, for each time the clock was set back.
    let mut offset = 0;
    // The latest time so far, and the latest before the last jump ahead, which began at this place.
    let (mut latest, mut before_jump, mut jump) = (0, 0, 0);
    for (place, time) in times.iter().enumerate() {
        let mut at = i128::from(time.0) + offset;
        if place == 0 {
            latest = at;
        } else if at + REORDERED_NS < latest {
            steps += 1;
            if jump > 0 && at + REORDERED_NS >= before_jump {
                // The clock had jumped ahead and is back.
                straight[jump..].fill(before_jump);
                latest = before_jump;
            } else {
                offset += latest - at;
                at = latest;
            }
        }
        if at > latest {
            if at > latest + REORDERED_NS {
                (before_jump, jump) = (latest, place);
            }
            latest = at;
        }
        straight.push(at);
    }
    let first = straight.iter().copied().min().unwrap_or(0);
    for (time, at) in times.iter_mut().zip(straight) {
        // Half of what fits, so that a sum of two times fits, too.
        **time = Nanos((at - first).min(i128::from(u64::MAX / 2)) as u64);
    }
    steps
}

#[cfg(test)]
mod tests {
    use super::*;

    fn straight(seconds: &[u64]) -> (Vec<u64>, u64) {
        let mut times: Vec<Nanos> = seconds.iter().map(|s| Nanos::from_secs(*s)).collect();
        let steps = straighten(times.iter_mut());
        (times.iter().map(|time| time.0 / 1_000_000_000).collect(), steps)
    }

    #[test]
    fn a_gap_is_kept_and_a_clock_that_is_set_back_goes_on() {
        assert_eq!(straight(&[5, 6, 90_000, 90_001]), (vec![0, 1, 89_995, 89_996], 0));
        assert_eq!(straight(&[500, 501, 3, 4, 6]), (vec![0, 1, 1, 2, 4], 1));
        assert_eq!(straight(&[500, 0, 500, 0]), (vec![0, 0, 0, 0], 2));
    }

    #[test]
    fn a_clock_that_jumps_ahead_and_comes_back_leaves_no_gap() {
        let far = 9_000_000_000;
        assert_eq!(straight(&[5, 6, far, 7, 8]), (vec![0, 1, 1, 2, 3], 1));
        assert_eq!(straight(&[5, 6, far, far + 1, 8]), (vec![0, 1, 1, 1, 3], 1));
        assert_eq!(straight(&[]), (vec![], 0));
    }

    #[test]
    fn what_is_a_little_out_of_order_stays() {
        let mut times = [Nanos(2_000_000_000), Nanos(1_500_000_000), Nanos(2_000_000_001)];
        assert_eq!(straighten(times.iter_mut()), 0);
        assert_eq!(times, [Nanos(500_000_000), Nanos(0), Nanos(500_000_001)]);
    }
}
