//! Numbers with their intervals, and the little statistics that they need.

use serde::Serialize;

/// A number and its 95 % interval.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Estimate {
    /// The best single value.
    pub value: f64,
    /// The interval's lower end.
    pub low: f64,
    /// Its upper end.
    pub high: f64,
}

/// The normal distribution's 97.5 % point: all intervals here rest on many observations.
pub const NORMAL: f64 = 1.96;

impl Estimate {
    /// From a value and its standard error.
    pub fn with_error(value: f64, error: f64) -> Estimate {
        Estimate { value, low: value - NORMAL * error, high: value + NORMAL * error }
    }

    /// In another unit.
    pub fn scaled(self, by: f64) -> Estimate {
        Estimate { value: self.value * by, low: self.low * by, high: self.high * by }
    }
}

/// The mean and its standard error.
pub fn mean(values: &[f64]) -> (f64, f64) {
    let count = values.len().max(1) as f64;
    let mean = values.iter().sum::<f64>() / count;
    let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
    (mean, (squares / (count - 1.0).max(1.0) / count).sqrt())
}

/// The value below which `share` of them lie.
pub fn quantile(values: &[f64], share: f64) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    match sorted.len() {
        0 => 0.0,
        n => sorted[((n - 1) as f64 * share).round() as usize],
    }
}

/// Least squares over `N` columns: coefficients, and their covariance where every observation has the
/// residuals' variance. None where the columns do not tell the coefficients apart.
pub fn least_squares<const N: usize>(
    rows: &[([f64; N], f64)],
) -> Option<([f64; N], [[f64; N]; N], f64)> {
    let mut normal = [[0.0; N]; N];
    let mut right = [0.0; N];
    for (row, y) in rows {
        for i in 0..N {
            right[i] += row[i] * y;
            for j in 0..N {
                normal[i][j] += row[i] * row[j];
            }
        }
    }
    let inverse = invert(normal)?;
    let coefficients: [f64; N] =
        std::array::from_fn(|i| (0..N).map(|j| inverse[i][j] * right[j]).sum());
    let residual =
        |(row, y): &([f64; N], f64)| y - (0..N).map(|i| row[i] * coefficients[i]).sum::<f64>();
    let squares: f64 = rows.iter().map(|row| residual(row).powi(2)).sum();
    let variance = squares / (rows.len().saturating_sub(N)).max(1) as f64;
    let covariance = inverse.map(|row| row.map(|value| value * variance));
    Some((coefficients, covariance, variance))
}

/// The inverse, by elimination with the largest pivot.
fn invert<const N: usize>(mut matrix: [[f64; N]; N]) -> Option<[[f64; N]; N]> {
    let mut inverse: [[f64; N]; N] =
        std::array::from_fn(|i| std::array::from_fn(|j| f64::from(u8::from(i == j))));
    for column in 0..N {
        let pivot = (column..N)
            .max_by(|a, b| matrix[*a][column].abs().total_cmp(&matrix[*b][column].abs()))?;
        if matrix[pivot][column].abs() < 1e-12 {
            return None;
        }
        matrix.swap(column, pivot);
        inverse.swap(column, pivot);
        let scale = matrix[column][column];
        matrix[column] = matrix[column].map(|value| value / scale);
        inverse[column] = inverse[column].map(|value| value / scale);
        let (pivot_row, pivot_inverse) = (matrix[column], inverse[column]);
        for row in (0..N).filter(|row| *row != column) {
            let factor = matrix[row][column];
            for j in 0..N {
                matrix[row][j] -= factor * pivot_row[j];
                inverse[row][j] -= factor * pivot_inverse[j];
            }
        }
    }
    Some(inverse)
}

/// The standard error of a sum of coefficients with these weights.
pub fn error_of<const N: usize>(weights: [f64; N], covariance: &[[f64; N]; N]) -> f64 {
    let mut variance = 0.0;
    for i in 0..N {
        for j in 0..N {
            variance += weights[i] * weights[j] * covariance[i][j];
        }
    }
    variance.max(0.0).sqrt()
}

#[cfg(test)]
mod tests {
    use super::*;
    use random::Stream;

    #[test]
    fn least_squares_finds_a_line_and_how_well_it_is_known() {
        let mut stream = Stream::new(1, "line");
        let mut inside = 0;
        for _ in 0..400 {
            let rows: Vec<([f64; 2], f64)> = (0..50)
                .map(|x| ([1.0, f64::from(x)], 3.0 + 0.5 * f64::from(x) + stream.normal()))
                .collect();
            let (found, covariance, _) = least_squares(&rows).unwrap();
            let slope = Estimate::with_error(found[1], error_of([0.0, 1.0], &covariance));
            inside += u32::from(slope.low <= 0.5 && 0.5 <= slope.high);
        }
        // 95 % of 400, four standard errors to either side.
        assert!((363..=397).contains(&inside), "{inside} of 400");
        assert!(least_squares(&[([1.0, 1.0], 2.0), ([1.0, 1.0], 2.0)]).is_none());
    }
}
