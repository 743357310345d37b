//! Drawing keys.
//!
//! Formulas: gaussian as the mean of twelve uniform draws (sysbench's manual, `--rand-spec-iter`);
//! special as its manual says, a share of the draws uniformly on a share of the rows in the middle,
//! and the others gaussian; pareto as the self-similar distribution of Gray et al., "Quickly
//! Generating Billion-Record Synthetic Databases" (SIGMOD 1994); zipfian by rejection-inversion
//! (Hörmann and Derflinger, ACM TOMACS 6(3), 1996).

use random::Stream;
use workload::Distribution;

/// Uniform draws in a gaussian one.
const ITERATIONS: u32 = 12;

/// Draws keys from 1 to a largest.
#[derive(Clone, Debug)]
pub struct Keys {
    distribution: Distribution,
    largest: u64,
    zipf: Zipf,
}

impl Keys {
    /// From `1..=largest`.
    pub fn new(distribution: Distribution, largest: u64) -> Keys {
        let exponent = match distribution {
            Distribution::Zipfian { exponent } => exponent,
            _ => 0.5,
        };
        let largest = largest.max(1);
        Keys { distribution, largest, zipf: Zipf::new(largest, exponent) }
    }

    /// The next.
    #[inline]
    pub fn draw(&self, stream: &mut Stream) -> u64 {
        let n = self.largest;
        match self.distribution {
            Distribution::Uniform => 1 + stream.below(n),
            Distribution::Gaussian => gaussian(stream, n),
            Distribution::Special { rows_percent, draws_percent } => {
                if stream.unit() * 100.0 < draws_percent {
                    let rows = ((n as f64 * rows_percent / 100.0) as u64).max(1);
                    1 + (n - rows) / 2 + stream.below(rows)
                } else {
                    gaussian(stream, n)
                }
            }
            Distribution::Pareto { h } => {
                let share = stream.unit().powf(h.ln() / (1.0 - h).ln());
                1 + ((n as f64 * share) as u64).min(n - 1)
            }
            Distribution::Zipfian { .. } => self.zipf.draw(stream),
        }
    }
}

fn gaussian(stream: &mut Stream, n: u64) -> u64 {
    let sum: f64 = (0..ITERATIONS).map(|_| stream.unit()).sum();
    1 + ((n as f64 * sum / f64::from(ITERATIONS)) as u64).min(n - 1)
}

/// Rejection-inversion: the integral H of x^-exponent is inverted, and few draws are rejected.
#[derive(Clone, Debug)]
struct Zipf {
    n: f64,
    exponent: f64,
    h_first: f64,
    h_last: f64,
    accepted: f64,
}

impl Zipf {
    fn new(n: u64, exponent: f64) -> Zipf {
        let mut zipf = Zipf { n: n as f64, exponent, h_first: 0.0, h_last: 0.0, accepted: 0.0 };
        zipf.h_first = zipf.integral(1.5) - 1.0;
        zipf.h_last = zipf.integral(zipf.n + 0.5);
        zipf.accepted = 2.0 - zipf.inverse(zipf.integral(2.5) - 2f64.powf(-exponent));
        zipf
    }

    fn integral(&self, x: f64) -> f64 {
        let one_less = 1.0 - self.exponent;
        match one_less.abs() < 1e-9 {
            true => x.ln(),
            false => (x.powf(one_less) - 1.0) / one_less,
        }
    }

    fn inverse(&self, y: f64) -> f64 {
        let one_less = 1.0 - self.exponent;
        match one_less.abs() < 1e-9 {
            true => y.exp(),
            false => (1.0 + y * one_less).max(0.0).powf(1.0 / one_less),
        }
    }

    fn draw(&self, stream: &mut Stream) -> u64 {
        loop {
            let u = self.h_last + stream.unit() * (self.h_first - self.h_last);
            let x = self.inverse(u);
            let k = x.round().clamp(1.0, self.n);
            if k - x <= self.accepted || u >= self.integral(k + 0.5) - k.powf(-self.exponent) {
                return k as u64;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const DRAWS: usize = 200_000;

    fn counts(text: &str, n: u64) -> Vec<f64> {
        let keys = Keys::new(text.parse().unwrap(), n);
        let mut stream = Stream::new(3, text);
        let mut counts = vec![0.0; n as usize + 1];
        for _ in 0..DRAWS {
            counts[keys.draw(&mut stream) as usize] += 1.0 / DRAWS as f64;
        }
        counts
    }

    #[test]
    fn uniform_favours_nobody() {
        let counts = counts("uniform", 100);
        assert!(counts[1..].iter().all(|share| (share - 0.01).abs() < 0.002), "{counts:?}");
    }

    #[test]
    fn special_draws_its_share_in_the_middle() {
        let counts = counts("special:1:75", 1000);
        // 75 % on rows 496 to 505, and what the bell puts there: sd of the mean of 12 is 1/12.
        let middle: f64 = counts[496..=505].iter().sum();
        let bell = 0.25 * 10.0 / 1000.0 * 12.0 / (2.0 * std::f64::consts::PI).sqrt();
        assert!((middle - 0.75 - bell).abs() < 0.01, "{middle}");
    }

    #[test]
    fn pareto_gives_a_fifth_of_the_rows_four_fifths_of_the_draws() {
        let counts = counts("pareto:0.2", 1000);
        let first: f64 = counts[1..=200].iter().sum();
        assert!((first - 0.8).abs() < 0.01, "{first}");
    }

    #[test]
    fn zipfian_falls_as_its_law_says() {
        for (text, exponent) in [("zipfian:0.8", 0.8f64), ("zipfian:1", 1.0), ("zipfian:1.4", 1.4)]
        {
            let counts = counts(text, 50);
            let sum: f64 = (1..=50).map(|rank| f64::from(rank).powf(-exponent)).sum();
            for rank in [1usize, 2, 3, 10, 50] {
                let expected = (rank as f64).powf(-exponent) / sum;
                let sd = (expected / DRAWS as f64).sqrt();
                assert!((counts[rank] - expected).abs() < 5.0 * sd, "{text} {rank}: {counts:?}");
            }
        }
    }

    proptest! {
        #[test]
        fn keys_are_keys(n in 1u64..10_000, seed in any::<u64>(), which in 0usize..5) {
            let text = ["uniform", "special", "gaussian", "pareto", "zipfian"][which];
            let keys = Keys::new(text.parse().unwrap(), n);
            let mut stream = Stream::new(seed, "keys");
            for _ in 0..50 {
                prop_assert!((1..=n).contains(&keys.draw(&mut stream)));
            }
        }
    }
}
