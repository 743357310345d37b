//! TPC-C's non-uniform draws and last names (clauses 2.1.6 and 4.3.2).

use random::Stream;

/// The constants C of NURand, of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Constants {
    /// For last names, A = 255.
    pub last_name: u64,
    /// For customers, A = 1023.
    pub customer: u64,
    /// For items, A = 8191.
    pub item: u64,
}

impl Constants {
    /// The constant for last names that data are loaded with.
    pub fn of_load(seed: u64) -> u64 {
        Stream::new(seed, "tpcc C of the load").below(256)
    }

    /// Those of a run on data that were loaded with `loaded`: the two for last names differ by 65 to
    /// 119, and neither by 96 nor by 112 (clause 2.1.6.1).
    pub fn of_run(loaded: u64, seed: u64) -> Constants {
        let mut stream = Stream::new(seed, "tpcc C of the run");
        let fits = |c: u64| {
            let delta = c.abs_diff(loaded);
            (65..=119).contains(&delta) && delta != 96 && delta != 112
        };
        let all: Vec<u64> = (0..256).filter(|c| fits(*c)).collect();
        let last_name = all[stream.below(all.len() as u64) as usize];
        Constants { last_name, customer: stream.below(1024), item: stream.below(8192) }
    }
}

/// NURand(A, x, y) = (((rand(0, A) | rand(x, y)) + C) mod (y − x + 1)) + x.
pub fn nurand(stream: &mut Stream, a: u64, c: u64, x: u64, y: u64) -> u64 {
    let both = stream.below(a + 1) | (x + stream.below(y - x + 1));
    (both + c) % (y - x + 1) + x
}

/// From `low` to `high`, both included.
pub fn between(stream: &mut Stream, low: i64, high: i64) -> i64 {
    low + stream.below((high - low + 1) as u64) as i64
}

const SYLLABLES: [&str; 10] =
    ["BAR", "OUGHT", "ABLE", "PRI", "PRES", "ESE", "ANTI", "CALLY", "ATION", "EING"];

/// The last name of a number from 0 to 999: a syllable for each digit.
pub fn last_name(number: u64, into: &mut String) {
    into.clear();
    for place in [100, 10, 1] {
        into.push_str(SYLLABLES[(number / place % 10) as usize]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn names_are_made_of_syllables() {
        let mut name = String::new();
        last_name(371, &mut name);
        assert_eq!(name, "PRICALLYOUGHT");
        last_name(0, &mut name);
        assert_eq!(name, "BARBARBAR");
    }

    #[test]
    fn nurand_favours_some() {
        let mut stream = Stream::new(5, "nurand");
        let mut counts = vec![0u32; 3001];
        for _ in 0..300_000 {
            counts[nurand(&mut stream, 1023, 77, 1, 3000) as usize] += 1;
        }
        assert_eq!(counts[0], 0);
        counts.sort_unstable();
        let most: u32 = counts[2700..].iter().sum();
        // The tenth that is drawn most gets far more than a tenth; a uniform draw's gets 12 %.
        assert!(most > 75_000, "{most}");
    }

    proptest! {
        #[test]
        fn constants_fit_the_loaded_one(load_seed in any::<u64>(), seed in any::<u64>()) {
            let loaded = Constants::of_load(load_seed);
            let delta = Constants::of_run(loaded, seed).last_name.abs_diff(loaded);
            prop_assert!((65..=119).contains(&delta) && delta != 96 && delta != 112);
        }

        #[test]
        fn nurand_stays_within(seed in any::<u64>(), c in 0u64..8192) {
            let mut stream = Stream::new(seed, "nurand");
            for _ in 0..100 {
                prop_assert!((1..=100_000).contains(&nurand(&mut stream, 8191, c, 1, 100_000)));
            }
        }
    }
}
