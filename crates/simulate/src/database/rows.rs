//! Which row a statement touches.

use random::Stream;
use workload::Distribution;

/// A row below `rows`, as sysbench's distributions have it.
pub(crate) fn draw(distribution: Distribution, rows: u64, stream: &mut Stream) -> u64 {
    let rows = rows.max(1);
    let part = |share: f64| ((share * rows as f64) as u64).min(rows - 1);
    match distribution {
        Distribution::Uniform => stream.below(rows),
        Distribution::Special { rows_percent, draws_percent } => {
            if stream.unit() * 100.0 < draws_percent {
                let few = ((rows as f64 * rows_percent / 100.0) as u64).max(1);
                return ((rows - few) / 2 + stream.below(few)).min(rows - 1);
            }
            stream.below(rows)
        }
        Distribution::Gaussian => part((0..12).map(|_| stream.unit()).sum::<f64>() / 12.0),
        // A share h of the rows has 1 − h of the draws, and so on within it.
        Distribution::Pareto { h } => part(stream.unit().powf(h.ln() / (1.0 - h).ln())),
        Distribution::Zipfian { exponent } => zipf(exponent, rows, stream),
    }
}

/// The continuous law r^−s between 1 and n + 1, by its inverse: for ranks above a few it is Zipf's.
fn zipf(s: f64, rows: u64, stream: &mut Stream) -> u64 {
    let (n, u) = ((rows + 1) as f64, stream.unit());
    let rank = match (s - 1.0).abs() < 1e-9 {
        true => n.powf(u),
        false => (1.0 + u * (n.powf(1.0 - s) - 1.0)).powf(1.0 / (1.0 - s)),
    };
    ((rank as u64).max(1) - 1).min(rows - 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The share of draws on the most-drawn hundredth, of 100 parts.
    fn top(word: &str) -> f64 {
        let mut stream = Stream::new(1, "rows");
        let mut parts = vec![0; 100];
        for _ in 0..100_000 {
            let row = draw(word.parse().unwrap(), 1_000_000, &mut stream);
            parts[(row / 10_000) as usize] += 1;
        }
        f64::from(*parts.iter().max().unwrap()) / 100_000.0
    }

    #[test]
    fn skews_are_what_their_names_say() {
        assert!((top("uniform") - 0.01).abs() < 0.002);
        // 75 % on 1 %, which may lie across two hundredths.
        assert!((0.37..0.77).contains(&top("special")), "{}", top("special"));
        // A share of 0.01 has 0.01^(ln 0.8 / ln 0.2) of the draws.
        assert!((top("pareto") - 0.528).abs() < 0.01, "{}", top("pareto"));
        // (0.01 n)^0.2 / n^0.2 but for the ends.
        assert!((top("zipfian") - 0.37).abs() < 0.03, "{}", top("zipfian"));
    }
}
