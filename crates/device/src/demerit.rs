//! The demerit figure: how far apart two distributions of response times are.
//!
//! Ruemmler and Wilkes (IEEE Computer 27(3), 1994): the root mean square of the horizontal distance
//! between the two distribution curves. Computed as DiskSim's validation does: each distribution
//! binned in whole µs, bins from s₀ = 0 with sᵢ₊₁ = sᵢ + 1 + ⌊sᵢ/100⌋, a bin's value its exclusive
//! upper bound; quantiles p = 0.0001, 0.0002, … 1, linear between bins.

use units::Nanos;

const BINS: usize = 1750;
const QUANTILES: usize = 10_000;

/// The demerit figure of two sets of times, in ms. Zero if either is empty.
pub fn demerit_ms(a: &[Nanos], b: &[Nanos]) -> f64 {
    if a.is_empty() || b.is_empty() {
        return 0.0;
    }
    let bounds = bounds_us();
    let (a, b) = (quantiles_us(&bounds, a), quantiles_us(&bounds, b));
    let squares: f64 = a.iter().zip(&b).map(|(x, y)| (x - y).powi(2)).sum();
    (squares / QUANTILES as f64).sqrt() / 1e3
}

/// The bins' starts, and at the end the last one's exclusive bound, in µs.
fn bounds_us() -> Vec<u64> {
    let mut bounds = vec![0u64];
    while bounds.len() <= BINS {
        let last = bounds[bounds.len() - 1];
        // Far beyond an hour the bins would overflow; the last then takes all.
        bounds.push(last.saturating_add(1 + last / 100));
    }
    bounds
}

fn quantiles_us(bounds: &[u64], times: &[Nanos]) -> Vec<f64> {
    let mut counts = vec![0u64; BINS];
    for time in times {
        let us = time.0 / 1000;
        let bin = bounds.partition_point(|start| *start <= us) - 1;
        counts[bin.min(BINS - 1)] += 1;
    }
    let total = times.len() as f64;
    // The distribution's corners: (share at or below, value).
    let mut corners = vec![(0.0, 0.0)];
    let mut below = 0u64;
    for (bin, count) in counts.iter().enumerate() {
        below += count;
        corners.push((below as f64 / total, bounds[bin + 1] as f64));
    }
    let mut at = 0;
    (1..=QUANTILES)
        .map(|n| {
            let p = n as f64 / QUANTILES as f64;
            while at + 2 < corners.len() && corners[at + 1].0 < p {
                at += 1;
            }
            let ((p0, x0), (p1, x1)) = (corners[at], corners[at + 1]);
            match p1 > p0 {
                true => x0 + (x1 - x0) * ((p - p0) / (p1 - p0)).clamp(0.0, 1.0),
                false => x1,
            }
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_sets_have_none_and_a_shift_shows_as_itself() {
        let a: Vec<Nanos> = (0..5000).map(|n| Nanos(1_000_000 + n * 1_000)).collect();
        let b: Vec<Nanos> = a.iter().map(|t| Nanos(t.0 + 500_000)).collect();
        assert_eq!(demerit_ms(&a, &a), 0.0);
        let shift = demerit_ms(&a, &b);
        assert!((shift - 0.5).abs() < 0.02, "{shift}");
    }
}
