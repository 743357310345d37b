//! The arm: reads at chosen distances, and the curve that follows.

use crate::estimate::{error_of, least_squares, mean, quantile};
use crate::{Estimate, FitError, Number, Quantity, Read, SMALL, Storage, millis};
use device::disk::SeekCurve;
use random::Stream;

/// Distances that are read, as shares of the capacity: `COUNT` of them, evenly on a logarithmic scale.
const SHORTEST: f64 = 1e-4;
const LONGEST: f64 = 0.97;
const COUNT: usize = 20;
/// Walks for each distance, and reads of a walk at that distance.
const WALKS: usize = 40;
const STEPS: usize = 4;
/// So many of the shortest distances have three times as many walks: a seek is a small part of a read's time there.
const SHORT: usize = 7;

/// A read's time after the arm came from elsewhere.
#[derive(Clone, Copy, Debug)]
pub struct Step {
    /// Where the read before ended, and where this one began, in sectors.
    pub from: u64,
    pub to: u64,
    /// From sending to completion, ms.
    pub millis: f64,
    /// Which of the distances; None for the walk's first read, which comes from anywhere.
    pub distance: Option<usize>,
}

/// Reads at all distances.
pub fn measure<S: Storage>(
    storage: &mut S,
    stream: &mut Stream,
) -> Result<Vec<Step>, FitError<S::Error>> {
    let blocks = storage.capacity().0 / SMALL;
    let mut places: Vec<(u64, Option<usize>)> = Vec::new();
    // The distances in turn, so that a slow change of the storage falls on all alike.
    let turns = (0..COUNT).chain(0..SHORT).chain(0..SHORT);
    for distance in (0..WALKS).flat_map(|_| turns.clone()) {
        let exponent = distance as f64 / (COUNT - 1) as f64;
        let share = SHORTEST * (LONGEST / SHORTEST).powf(exponent);
        let span = (share * blocks as f64) as u64;
        let mut at = match stream.below(2) {
            0 => stream.below((blocks - span).max(1)),
            _ => blocks - 1 - stream.below((blocks - span).max(1)),
        };
        places.push((at, None));
        for _ in 0..STEPS {
            // The places never repeat: no buffer has them. Lengths vary by many tracks, so that where the platter
            // stands is chance.
            let varied = if distance < SHORT { 0.3 } else { 0.03 };
            let length = span as f64 * (1.0 - varied * stream.unit());
            let most = at.max(blocks - 1 - at);
            let mut step = (length as u64).max(1);
            if step > most {
                step = most - stream.below(most / 50 + 1);
            }
            let upwards = match (at >= step, at + step < blocks) {
                (true, true) => stream.below(2) == 0,
                (down, _) => !down,
            };
            at = if upwards { at + step } else { at - step };
            places.push((at, Some(distance)));
        }
    }
    let reads: Vec<Read> = places.iter().map(|(at, _)| Read::at(at * SMALL, SMALL)).collect();
    let times = millis(&storage.read(&reads, 1)?);
    Ok((1..places.len())
        .map(|n| Step {
            from: places[n - 1].0 * SMALL,
            to: places[n].0 * SMALL,
            millis: times[n],
            distance: places[n].1,
        })
        .collect())
}

/// A turn as the spread of random reads has it: what remains at one distance is uniform over a turn.
pub fn turn_of_spread(steps: &[Step]) -> Estimate {
    let turns: Vec<f64> = (0..COUNT)
        .map(|distance| {
            let times: Vec<f64> = steps
                .iter()
                .filter(|step| step.distance == Some(distance))
                .map(|step| step.millis)
                .collect();
            let at = |share| quantile(&times, share);
            (at(0.9) - at(0.1)) / 0.8
        })
        .collect();
    let (value, error) = mean(&turns);
    Estimate::with_error(value, error)
}

/// The curve and its three figures.
pub struct Arm {
    pub curve: SeekCurve,
    pub numbers: [Number; 3],
}

/// Of the reads at one distance, the share at either end that is left out of their middle.
const ENDS: f64 = 0.03;

/// Fits c + a·√(d−1) + b·(d−1), the curve of Lee and Katz, to reads of which `seek` gives distance in
/// cylinders and what is left when turn, transfer and command are taken away, ms. Where the measured times
/// say otherwise, the curve is a table of them.
pub fn curve(
    steps: &[Step],
    cylinders: u32,
    turn: f64,
    seek: impl Fn(&Step) -> Option<(f64, f64)>,
) -> Option<Arm> {
    let samples: Vec<(f64, f64, Option<usize>)> = steps
        .iter()
        .filter_map(|step| {
            let (distance, left) = seek(step)?;
            (distance >= 1.0).then_some((distance, left, step.distance))
        })
        .collect();
    let row = |d: f64| [1.0, (d - 1.0).sqrt(), d - 1.0];
    let rows: Vec<([f64; 3], f64)> = samples.iter().map(|(d, y, _)| (row(*d), *y)).collect();
    let (means, ..) = least_squares(&rows)?;
    // What is left of a read's time is uniform over a turn: the middle between two quantiles is then known
    // three times as well as the mean.
    let mut points: Vec<Point> = Vec::new();
    for group in 0..COUNT {
        let of: Vec<&(f64, f64, Option<usize>)> =
            samples.iter().filter(|sample| sample.2 == Some(group)).collect();
        if of.is_empty() {
            continue;
        }
        let distance = of.iter().map(|sample| sample.0).sum::<f64>() / of.len() as f64;
        let left: Vec<f64> = of.iter().map(|(d, y, _)| y - along(&means, row(*d))).collect();
        let middle = (quantile(&left, ENDS) + quantile(&left, 1.0 - ENDS)) / 2.0;
        // Of n uniform values, the middle of two far quantiles varies by this.
        let error = turn * (ENDS / 2.0 / of.len() as f64).sqrt();
        points.push(Point { distance, time: along(&means, row(distance)) + middle, error });
    }
    let weighed: Vec<([f64; 3], f64)> = points
        .iter()
        .map(|point| (row(point.distance).map(|it| it / point.error), point.time / point.error))
        .collect();
    let (found, covariance, variance) = least_squares(&weighed)?;
    let n = f64::from(cylinders.max(3) - 1);
    // The mean distance of random pairs is n/3, that of its root 8/15 of the root.
    let weights = [[1.0, 0.0, 0.0], [1.0, 8.0 / 15.0 * n.sqrt(), n / 3.0], [1.0, n.sqrt(), n]];
    let [single, average, full] = weights.map(|weights| {
        Estimate::with_error(along(&found, weights), error_of(weights, &covariance))
    });
    let at = |d: f64| along(&found, row(d));
    let falls = (1..=20).any(|step| {
        let d = 1.0 + n * f64::from(step) / 20.0;
        at(d) < at(d - n / 20.0) || at(d) < 0.0
    });
    let degrees = points.len().saturating_sub(3);
    let unexplained = variance * degrees as f64 > chi_square_99(degrees);
    let single = Estimate { value: single.value.max(0.0), ..single };
    let curve = match falls || unexplained {
        true => SeekCurve::Table(table(&points, single.value)),
        false => {
            SeekCurve::ThreePoint { single: single.value, average: average.value, full: full.value }
        }
    };
    let numbers = [
        Number::new(Quantity::SeekSingle, single),
        Number::new(Quantity::SeekAverage, average),
        Number::new(Quantity::SeekFull, full),
    ];
    Some(Arm { curve, numbers })
}

/// A distance in cylinders, its seek time and that time's standard error, ms.
struct Point {
    distance: f64,
    time: f64,
    error: f64,
}

fn along(coefficients: &[f64; 3], row: [f64; 3]) -> f64 {
    (0..3).map(|i| row[i] * coefficients[i]).sum()
}

/// The 99 % point of chi-square (Wilson and Hilferty 1931), within 1 % from three degrees on.
fn chi_square_99(degrees: usize) -> f64 {
    let k = degrees.max(1) as f64;
    let part = 2.0 / (9.0 * k);
    k * (1.0 - part + 2.326 * part.sqrt()).powi(3)
}

/// Times by distance, made to rise (pool adjacent violators), with one cylinder's seek before them.
fn table(points: &[Point], single: f64) -> Vec<(u32, f64)> {
    // Distances of a pool, the sum of their times, and how many there are.
    let mut pools: Vec<(Vec<f64>, f64, f64)> = Vec::new();
    for point in points {
        pools.push((vec![point.distance], point.time, 1.0));
        while let [.., before, last] = &pools[..]
            && before.1 / before.2 > last.1 / last.2
        {
            let Some(last) = pools.pop() else { break };
            if let Some(before) = pools.last_mut() {
                before.0.extend(last.0);
                before.1 += last.1;
                before.2 += last.2;
            }
        }
    }
    let first = pools.first().map_or(single, |pool| pool.1 / pool.2).max(0.0);
    let mut table = vec![(1, single.min(first))];
    for (distances, time, count) in pools {
        for distance in distances {
            let distance = (distance.round() as u32).max(1);
            if table.last().is_some_and(|(last, _)| *last < distance) {
                table.push((distance, (time / count).max(0.0)));
            }
        }
    }
    table
}
