//! How long the arm takes to travel a distance: measured tables and published curves, made into one
//! table of times by distance.

use crate::spec_error::SpecError;

/// A seek curve as its source gives it. Distances are in cylinders, times in milliseconds.
#[derive(Clone, Debug, PartialEq)]
pub enum SeekCurve {
    /// Measured points (cylinders, ms) in ascending distance: linear between them, and beyond the
    /// last on the line of the last two.
    Table(Vec<(u32, f64)>),
    /// Lee's curve through three published figures: a single cylinder's seek, the average over
    /// uniform random pairs, and the full stroke: c + a·√(d−1) + b·(d−1) with
    /// a = (−10·single + 15·average − 5·full)/(3·√N), b = (7·single − 15·average + 8·full)/(3·N)
    /// (E. K. Lee and R. H. Katz, SIGMETRICS 1993).
    ThreePoint {
        /// One cylinder.
        single: f64,
        /// The mean over uniform random pairs of cylinders.
        average: f64,
        /// From the first cylinder to the last.
        full: f64,
    },
    /// Square root, then linear (C. Ruemmler and J. Wilkes, IEEE Computer 27(3), 1994), with an
    /// optional list of times for the shortest distances: d = 1, 2, ….
    RootLinear {
        /// Times of distances 1, 2, …, where they are listed.
        first: Vec<f64>,
        /// Below this distance a + b·√d.
        threshold: u32,
        /// a, ms.
        root_base: f64,
        /// b, ms.
        root_factor: f64,
        /// From the threshold on c + e·d: c, ms.
        linear_base: f64,
        /// e, ms a cylinder.
        linear_factor: f64,
    },
    /// a + b·√f of the fraction f = d/N of the span, in ms.
    Fraction {
        /// a, ms.
        base: f64,
        /// b, ms.
        factor: f64,
    },
    /// The same time for any distance.
    Constant(f64),
}

impl SeekCurve {
    /// The time for `distance` ≥ 1 of a drive with `cylinders`, in ms.
    fn millis(&self, distance: u32, cylinders: u32) -> f64 {
        let d = f64::from(distance);
        let n = f64::from(cylinders.max(2) - 1);
        match self {
            SeekCurve::Table(points) => interpolate(points, distance),
            SeekCurve::ThreePoint { single, average, full } => {
                let a = (-10.0 * single + 15.0 * average - 5.0 * full) / (3.0 * n.sqrt());
                let b = (7.0 * single - 15.0 * average + 8.0 * full) / (3.0 * n);
                single + a * (d - 1.0).sqrt() + b * (d - 1.0)
            }
            SeekCurve::RootLinear { first, .. } if (distance as usize) <= first.len() => {
                first[distance as usize - 1]
            }
            SeekCurve::RootLinear {
                threshold,
                root_base,
                root_factor,
                linear_base,
                linear_factor,
                ..
            } => match distance < *threshold {
                true => root_base + root_factor * d.sqrt(),
                false => linear_base + linear_factor * d,
            },
            SeekCurve::Fraction { base, factor } => base + factor * (d / n).sqrt(),
            SeekCurve::Constant(time) => *time,
        }
    }
}

/// On the line through the two measured points around `distance` (or the last two, beyond them).
fn interpolate(points: &[(u32, f64)], distance: u32) -> f64 {
    let after = points.partition_point(|(d, _)| *d < distance);
    let (low, high) = match points.len() {
        0 => return 0.0,
        1 => return points[0].1,
        n => match after {
            0 => (points[0], points[1]),
            i if i >= n => (points[n - 2], points[n - 1]),
            i => (points[i - 1], points[i]),
        },
    };
    let slope = (high.1 - low.1) / (f64::from(high.0) - f64::from(low.0));
    low.1 + slope * (f64::from(distance) - f64::from(low.0))
}

/// Seek times by distance, in nanoseconds, ready for use.
#[derive(Clone, Debug)]
pub struct SeekTable {
    time_ns: Vec<u32>,
}

impl SeekTable {
    /// The table of `curve` for a drive of `cylinders`. A curve that gives a negative or an
    /// impossible time is refused.
    pub fn new(curve: &SeekCurve, cylinders: u32) -> Result<Self, SpecError> {
        if let SeekCurve::Table(points) = curve
            && (points.is_empty() || points.windows(2).any(|pair| pair[0].0 >= pair[1].0))
        {
            return Err(SpecError::new(
                "seek",
                "a table needs at least one point, in ascending distance",
            ));
        }
        let mut time_ns = Vec::with_capacity(cylinders as usize);
        time_ns.push(0);
        for distance in 1..cylinders {
            let ns = curve.millis(distance, cylinders) * 1e6;
            // A second is far beyond any arm; the bound also keeps a time in 32 bits.
            if !(0.0..1e9).contains(&ns) {
                let what = format!(
                    "the curve gives {:.3} ms for {distance} cylinders: expected 0 to 1000 ms",
                    ns / 1e6
                );
                return Err(SpecError::new("seek", what));
            }
            time_ns.push(ns.round() as u32);
        }
        Ok(SeekTable { time_ns })
    }

    /// The time of a seek over `distance` cylinders, in ns.
    #[inline]
    pub fn time_ns(&self, distance: u32) -> u32 {
        self.time_ns[distance as usize]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_is_linear_between_points_and_beyond_them() {
        let curve = SeekCurve::Table(vec![(1, 1.0), (11, 2.0), (21, 4.0)]);
        let table = SeekTable::new(&curve, 32).unwrap();
        assert_eq!(table.time_ns(0), 0);
        assert_eq!(table.time_ns(6), 1_500_000);
        assert_eq!(table.time_ns(31), 6_000_000);
    }

    #[test]
    fn three_points_average_to_the_published_average() {
        let curve = SeekCurve::ThreePoint { single: 0.2, average: 3.5, full: 7.0 };
        let n = 20_000u32;
        let table = SeekTable::new(&curve, n).unwrap();
        // Distance d between uniform random cylinders has weight 2(n − d)/n².
        let mean: f64 =
            (1..n).map(|d| f64::from(table.time_ns(d)) * 2.0 * f64::from(n - d)).sum::<f64>()
                / f64::from(n).powi(2)
                / 1e6;
        assert!((mean - 3.5).abs() < 0.02, "{mean}");
        assert_eq!(table.time_ns(1), 200_000);
        assert!((f64::from(table.time_ns(n - 1)) / 1e6 - 7.0).abs() < 0.01);
    }

    #[test]
    fn refuses_a_curve_that_runs_below_zero() {
        let curve = SeekCurve::Table(vec![(1, 2.0), (2, 1.0)]);
        assert!(SeekTable::new(&curve, 100).is_err());
    }
}
