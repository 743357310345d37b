//! What levels do: main effects and interactions of two factors, from a fraction of the cells.
//!
//! The logarithm of a cell's throughput is taken for the sum of a constant of its condition, an effect of the
//! level of each factor that is compared, and one of each pair of levels of two factors of which at least one is
//! compared. Interactions of three are taken to be none; what they do is in the residuals, and widens intervals.
//!
//! The constants and effects are those of a least-squares fit with a penalty on their squares (ridge regression:
//! Hoerl and Kennard 1970), which has one solution though not every pair of levels was measured. Of
//! [`PENALTIES`] of interactions that is taken whose fits without a cell predict that cell best (leave one out,
//! from the diagonal of the hat matrix: Allen's PRESS, 1974).

use crate::{Correction, t_quantile};
use plan::{Factor, Level, Plan, Role};
use serde::Serialize;
use std::collections::BTreeMap;

/// Penalties that are tried on interactions, in squared logarithms of one cell.
const PENALTIES: [f64; 5] = [0.01, 0.1, 1.0, 10.0, 100.0];

/// That of main effects: hardly any.
const MAIN_PENALTY: f64 = 0.01;

/// That of conditions: as good as none.
const CONDITION_PENALTY: f64 = 1e-6;

/// What changing one factor does, or two together beyond what each does.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Effect {
    /// One factor, or two.
    pub factors: Vec<Factor>,
    /// The levels with the most throughput.
    pub best: Vec<Option<Level>>,
    /// Those with the least.
    pub worst: Vec<Option<Level>>,
    /// The former's over the latter's, mean over all cells: as a ratio.
    pub ratio: f64,
    /// Whether that is more than chance makes of noise and of what the model leaves out.
    pub seen: bool,
}

/// A term of the model: levels of one factor, or of two.
type Term = Vec<Factor>;

/// A fitted model.
pub(super) struct Model {
    terms: Vec<Term>,
    /// Each cell's columns: of its condition, then of each term.
    columns: Vec<Vec<usize>>,
    /// The levels of each cell's terms.
    levels: Vec<Vec<Vec<Option<Level>>>>,
    coefficients: Vec<f64>,
    /// The inverse of the penalised normal matrix.
    inverse: Vec<Vec<f64>>,
    /// Variance of what the model leaves open of a cell.
    variance: f64,
    freedom: usize,
}

impl Model {
    /// Fits to the logarithms of some cells; `None` where they are too few to leave anything open.
    pub fn of(plan: &Plan, observed: &[(usize, f64)]) -> Option<Model> {
        let terms = terms(plan);
        let (columns, levels, of_column) = columns(plan, &terms);
        let penalty_of = |interactions: f64| -> Vec<f64> {
            let of = |term: &Option<usize>| match term.map(|term| terms[term].len()) {
                None => CONDITION_PENALTY,
                Some(1) => MAIN_PENALTY,
                Some(_) => interactions,
            };
            of_column.iter().map(of).collect()
        };
        let fits = PENALTIES.iter().filter_map(|it| Fit::of(&columns, observed, &penalty_of(*it)));
        let best = fits.min_by(|a, b| a.left_out.total_cmp(&b.left_out))?;
        Some(Model {
            terms,
            columns,
            levels,
            coefficients: best.coefficients,
            inverse: best.inverse,
            variance: best.variance,
            freedom: best.freedom,
        })
    }

    /// Degrees of freedom of the residuals.
    pub fn freedom(&self) -> usize {
        self.freedom
    }

    /// One setting less another, mean over the conditions that have both: the difference of logarithms and its
    /// standard error. A cell's own deviation from the model is part of it.
    pub fn difference(&self, one: &[Option<usize>], other: &[Option<usize>]) -> Option<(f64, f64)> {
        let pairs = one.iter().zip(other).filter_map(|(one, other)| Some(((*one)?, (*other)?)));
        let pairs: Vec<(usize, usize)> = pairs.collect();
        let conditions = pairs.len() as f64;
        let mut contrast = vec![0.0; self.coefficients.len()];
        for (one, other) in &pairs {
            self.columns[*one].iter().for_each(|column| contrast[*column] += 1.0 / conditions);
            self.columns[*other].iter().for_each(|column| contrast[*column] -= 1.0 / conditions);
        }
        let (mean, spread) = self.contrast(&contrast);
        let own = 2.0 / conditions;
        (conditions > 0.0).then(|| (mean, (self.variance * (spread + own)).sqrt()))
    }

    /// A linear combination of the coefficients, and its variance over that of a cell.
    fn contrast(&self, weights: &[f64]) -> (f64, f64) {
        let mean = weights.iter().zip(&self.coefficients).map(|(w, c)| w * c).sum();
        let some: Vec<usize> = (0..weights.len()).filter(|it| weights[*it] != 0.0).collect();
        let spread = some
            .iter()
            .flat_map(|a| some.iter().map(move |b| (*a, *b)))
            .map(|(a, b)| weights[a] * weights[b] * self.inverse[a][b])
            .sum::<f64>();
        (mean, spread.max(0.0))
    }

    /// What each term does, the largest first.
    pub fn effects(&self, correction: Correction) -> Vec<Effect> {
        let mut all: Vec<Effect> =
            (0..self.terms.len()).filter_map(|term| self.effect(term, correction)).collect();
        all.sort_by(|a, b| b.ratio.total_cmp(&a.ratio));
        all
    }

    /// The largest difference that a term makes: between the means over all cells that have one combination of
    /// its levels and those that have another; of an interaction, less what each of its factors does alone.
    fn effect(&self, term: usize, correction: Correction) -> Option<Effect> {
        let mut cells: BTreeMap<&Vec<Option<Level>>, Vec<usize>> = BTreeMap::new();
        for (cell, levels) in self.levels.iter().enumerate() {
            cells.entry(&levels[term]).or_default().push(cell);
        }
        let weights: Vec<(&Vec<Option<Level>>, Vec<f64>)> = cells
            .iter()
            .map(|(levels, with)| {
                let mut weights = self.mean_weights(with);
                if levels.len() == 2 {
                    for place in [0, 1] {
                        let alike: Vec<usize> = cells
                            .iter()
                            .filter(|(other, _)| other[place] == levels[place])
                            .flat_map(|(_, cells)| cells.iter().copied())
                            .collect();
                        let alone = self.mean_weights(&alike);
                        weights.iter_mut().zip(alone).for_each(|(w, a)| *w -= a);
                    }
                }
                (*levels, weights)
            })
            .collect();
        let mean = |it: &(&Vec<Option<Level>>, Vec<f64>)| self.contrast(&it.1).0;
        let best = weights.iter().max_by(|a, b| mean(a).total_cmp(&mean(b)))?;
        let worst = weights.iter().min_by(|a, b| mean(a).total_cmp(&mean(b)))?;
        let apart: Vec<f64> = best.1.iter().zip(&worst.1).map(|(a, b)| a - b).collect();
        let (size, spread) = self.contrast(&apart);
        // The largest of several differences is large by chance, too.
        let pairs = weights.len() * (weights.len() - 1) / 2 * self.terms.len();
        let alpha = Correction { cells: pairs, ..correction }.alpha();
        let reach = t_quantile(1.0 - alpha / 2.0, self.freedom as f64);
        (weights.len() > 1).then(|| Effect {
            factors: self.terms[term].clone(),
            best: best.0.clone(),
            worst: worst.0.clone(),
            ratio: size.exp(),
            seen: size > reach * (self.variance * spread).sqrt(),
        })
    }

    /// The mean over some cells as a combination of coefficients.
    fn mean_weights(&self, cells: &[usize]) -> Vec<f64> {
        let mut weights = vec![0.0; self.coefficients.len()];
        let share = 1.0 / cells.len() as f64;
        for column in cells.iter().flat_map(|cell| &self.columns[*cell]) {
            weights[*column] += share;
        }
        weights
    }
}

/// Each factor that is compared, and each pair of which at least one is.
fn terms(plan: &Plan) -> Vec<Term> {
    let alone = plan.compared().is_empty();
    let competes = |factor: &Factor| alone || factor.role() != Role::Condition;
    let mut terms: Vec<Term> =
        plan.factors.iter().filter(|it| competes(it)).map(|it| vec![it.clone()]).collect();
    for (at, one) in plan.factors.iter().enumerate() {
        for other in &plan.factors[at + 1..] {
            if competes(one) || competes(other) {
                terms.push(vec![one.clone(), other.clone()]);
            }
        }
    }
    terms
}

/// Each cell's columns, the levels of its terms, and the term of each column; of a condition's none.
#[allow(clippy::type_complexity)]
fn columns(
    plan: &Plan,
    terms: &[Term],
) -> (Vec<Vec<usize>>, Vec<Vec<Vec<Option<Level>>>>, Vec<Option<usize>>) {
    let baselines = plan.baselines();
    let mut of_column: Vec<Option<usize>> = vec![None; baselines.len()];
    let mut places: BTreeMap<(usize, Vec<Option<Level>>), usize> = BTreeMap::new();
    let (mut columns, mut levels) = (Vec::new(), Vec::new());
    for (place, cell) in plan.cells.iter().enumerate() {
        let baseline = cell.baseline.unwrap_or(place);
        let mut of_cell = vec![baselines.binary_search(&baseline).unwrap_or(0)];
        let mut levels_of_cell = Vec::new();
        for (term, factors) in terms.iter().enumerate() {
            let of_term: Vec<Option<Level>> =
                factors.iter().map(|factor| cell.level(factor).cloned()).collect();
            let column = *places.entry((term, of_term.clone())).or_insert_with(|| {
                of_column.push(Some(term));
                of_column.len() - 1
            });
            of_cell.push(column);
            levels_of_cell.push(of_term);
        }
        columns.push(of_cell);
        levels.push(levels_of_cell);
    }
    (columns, levels, of_column)
}

/// A fit with one choice of penalties.
struct Fit {
    coefficients: Vec<f64>,
    inverse: Vec<Vec<f64>>,
    variance: f64,
    freedom: usize,
    /// The mean square of what the fit without a cell misses of it.
    left_out: f64,
}

impl Fit {
    fn of(columns: &[Vec<usize>], observed: &[(usize, f64)], penalty: &[f64]) -> Option<Fit> {
        let size = penalty.len();
        let mut normal = vec![vec![0.0; size]; size];
        let mut right = vec![0.0; size];
        for (cell, log) in observed {
            for a in &columns[*cell] {
                right[*a] += log;
                columns[*cell].iter().for_each(|b| normal[*a][*b] += 1.0);
            }
        }
        penalty.iter().enumerate().for_each(|(at, penalty)| normal[at][at] += penalty);
        let inverse = inverse(&normal)?;
        let coefficients: Vec<f64> = inverse
            .iter()
            .map(|row| row.iter().zip(&right).map(|(a, b)| a * b).sum::<f64>())
            .collect();
        let (mut squares, mut left_out, mut used) = (0.0, 0.0, 0.0);
        for (cell, log) in observed {
            let of_cell = &columns[*cell];
            let residual = log - of_cell.iter().map(|it| coefficients[*it]).sum::<f64>();
            let leverage: f64 =
                of_cell.iter().flat_map(|a| of_cell.iter().map(|b| inverse[*a][*b])).sum();
            squares += residual.powi(2);
            used += leverage;
            left_out += (residual / (1.0 - leverage).max(1e-6)).powi(2);
        }
        let count = observed.len() as f64;
        let open = count - used;
        (open >= 1.0).then(|| Fit {
            coefficients,
            inverse,
            variance: squares / open,
            freedom: open as usize,
            left_out: left_out / count,
        })
    }
}

/// The inverse of a symmetric positive definite matrix (Cholesky); `None` where it is none.
fn inverse(matrix: &[Vec<f64>]) -> Option<Vec<Vec<f64>>> {
    let size = matrix.len();
    let mut lower = vec![vec![0.0; size]; size];
    for row in 0..size {
        for column in 0..=row {
            let sum: f64 = (0..column).map(|k| lower[row][k] * lower[column][k]).sum();
            let left = matrix[row][column] - sum;
            lower[row][column] = match row == column {
                true if left <= 0.0 => return None,
                true => left.sqrt(),
                false => left / lower[column][column],
            };
        }
    }
    // Symmetric as the matrix is: its columns are its rows.
    let mut inverse = Vec::with_capacity(size);
    for unit in 0..size {
        let mut solved = vec![0.0; size];
        for row in unit..size {
            let sum: f64 = (unit..row).map(|k| lower[row][k] * solved[k]).sum();
            solved[row] = (f64::from(u8::from(row == unit)) - sum) / lower[row][row];
        }
        for row in (0..size).rev() {
            let sum: f64 = (row + 1..size).map(|k| lower[k][row] * solved[k]).sum();
            solved[row] = (solved[row] - sum) / lower[row][row];
        }
        inverse.push(solved);
    }
    Some(inverse)
}
