//! The effects of many hosts as one: what they have in common, and how far they lie apart.
//!
//! Each host is drawn from a population whose true effects scatter with a standard deviation τ about their
//! mean (random effects). τ² is estimated by moments (DerSimonian and Laird 1986, Controlled Clinical
//! Trials 7, 177–188); the interval of the mean is that of Hartung and Knapp (2001, Statistics in Medicine
//! 20, 3875–3889), which does not take τ for known. A host's own variance, from a handful of rounds, is a
//! poor weight, and one that is too small by chance draws the mean to it: hosts are weighted with the
//! variance of a round over all hosts, so that hosts of as many rounds count the same.

use crate::{Estimate, comparison::MIN_ROUNDS, t_quantile};
use serde::Serialize;
use statrs::distribution::{ContinuousCDF, FisherSnedecor, StudentsT};

/// What many hosts have in common, in logarithms of ratios.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Pooled {
    /// Hosts.
    pub hosts: usize,
    /// The mean of their effects.
    pub mean: f64,
    /// Its standard error.
    pub std_err: f64,
    /// The standard deviation of true effects between hosts.
    pub between: f64,
    /// The share of the scatter between hosts that noise does not explain (I²).
    pub unexplained: f64,
    /// The probability of such scatter, or more, if all hosts were alike.
    pub alike_probability: f64,
}

/// Whether an estimate can be pooled.
pub(crate) fn usable(effect: &Estimate) -> bool {
    effect.n >= MIN_ROUNDS && effect.mean.is_finite() && effect.std_err.is_finite()
}

/// The variance of one observation over all hosts, and its degrees of freedom.
fn within(effects: &[Estimate]) -> (f64, usize) {
    let freedom: usize = effects.iter().map(|it| it.n - 1).sum();
    let squares: f64 =
        effects.iter().map(|it| (it.n - 1) as f64 * it.std_err.powi(2) * it.n as f64).sum();
    (squares / freedom.max(1) as f64, freedom)
}

/// Pools the hosts' effects; `None` with fewer than two that have three rounds at least.
pub fn pool(effects: &[Estimate]) -> Option<Pooled> {
    let effects: Vec<Estimate> = effects.iter().copied().filter(usable).collect();
    let hosts = effects.len();
    if hosts < 2 {
        return None;
    }
    let (variance, freedom) = within(&effects);
    // Where nothing scatters within hosts, as in a model without noise, all weigh the same.
    let floor = f64::EPSILON;
    let of = |it: &Estimate| (variance / it.n as f64).max(floor);
    let (mean, weight) = weighted(&effects, |it| 1.0 / of(it));
    let squares: f64 = effects.iter().map(|it| (it.mean - mean).powi(2) / of(it)).sum();
    let weights_squared: f64 = effects.iter().map(|it| of(it).powi(-2)).sum();
    let between = ((squares - (hosts - 1) as f64) / (weight - weights_squared / weight)).max(0.0);
    let (mean, weight) = weighted(&effects, |it| 1.0 / (of(it) + between));
    let scatter: f64 = effects.iter().map(|it| (it.mean - mean).powi(2) / (of(it) + between)).sum();
    let per_host = squares / (hosts - 1) as f64;
    let alike = FisherSnedecor::new((hosts - 1) as f64, freedom as f64);
    Some(Pooled {
        hosts,
        mean,
        std_err: (scatter / (hosts - 1) as f64 / weight).sqrt(),
        between: between.sqrt(),
        unexplained: if per_host > 1.0 { 1.0 - 1.0 / per_host } else { 0.0 },
        alike_probability: alike.map_or(1.0, |it| it.sf(per_host)),
    })
}

fn weighted(effects: &[Estimate], weight: impl Fn(&Estimate) -> f64) -> (f64, f64) {
    let sum: f64 = effects.iter().map(&weight).sum();
    (effects.iter().map(|it| weight(it) * it.mean).sum::<f64>() / sum, sum)
}

impl Pooled {
    /// The interval that misses the mean of all hosts with probability `alpha`.
    pub fn interval(&self, alpha: f64) -> (f64, f64) {
        let half = t_quantile(1.0 - alpha / 2.0, self.hosts - 1) * self.std_err;
        (self.mean - half, self.mean + half)
    }

    /// Where the true effect of the next host lies with probability 1 − `alpha` (Higgins, Thompson and
    /// Spiegelhalter 2009, Journal of the Royal Statistical Society A 172, 137–159); `None` with fewer
    /// than three hosts.
    pub fn next_host(&self, alpha: f64) -> Option<(f64, f64)> {
        let freedom = self.hosts.checked_sub(2).filter(|it| *it > 0)?;
        let spread = (self.between.powi(2) + self.std_err.powi(2)).sqrt();
        let half = t_quantile(1.0 - alpha / 2.0, freedom) * spread;
        Some((self.mean - half, self.mean + half))
    }
}

/// The hosts, by their places, whose effects lie outside of what the others predict; together they name one
/// by chance in `alpha` of all fleets. The farthest is taken first, and the others are judged without it:
/// two of them would otherwise hide one another.
pub fn outliers(effects: &[Estimate], alpha: f64) -> Vec<usize> {
    let mut kept: Vec<usize> = (0..effects.len()).filter(|at| usable(&effects[*at])).collect();
    let most = kept.len() / 5;
    let level = alpha / kept.len().max(1) as f64;
    let mut found = Vec::new();
    while kept.len() > 3 && found.len() < most.max(1) {
        // Only the two ends can be the farthest from all others.
        let by_mean = |a: &&usize, b: &&usize| effects[**a].mean.total_cmp(&effects[**b].mean);
        let ends = [kept.iter().min_by(by_mean), kept.iter().max_by(by_mean)];
        let surprise = |at: usize| -> Option<f64> {
            let others: Vec<Estimate> =
                kept.iter().filter(|it| **it != at).map(|it| effects[*it]).collect();
            let pooled = pool(&others)?;
            let own = effects[at];
            // A noisy host is no outlier, and from a few rounds its own noise may look small: it may have
            // that of the noisiest tenth. Where it has more, the degrees of freedom of the sum are
            // Satterthwaite's (1946, Biometrics Bulletin 2, 110–114).
            let own_noise = noisy_tenth(&others) / own.n as f64;
            let scatter = pooled.between.powi(2) + pooled.std_err.powi(2) + own_noise;
            let excess = (own.std_err.powi(2) - own_noise).max(0.0);
            let parts =
                scatter.powi(2) / (others.len() - 1) as f64 + excess.powi(2) / (own.n - 1) as f64;
            let variance = scatter + excess;
            let freedom = if parts > 0.0 { variance.powi(2) / parts } else { 1.0 };
            let t = StudentsT::new(0.0, 1.0, freedom.max(1.0)).ok()?;
            Some(2.0 * t.sf((own.mean - pooled.mean).abs() / variance.sqrt().max(f64::EPSILON)))
        };
        let farthest = ends
            .into_iter()
            .flatten()
            .filter_map(|at| Some((*at, surprise(*at)?)))
            .min_by(|a, b| a.1.total_cmp(&b.1));
        match farthest {
            Some((at, probability)) if probability < level => {
                kept.retain(|it| *it != at);
                found.push(at);
            }
            _ => break,
        }
    }
    found.sort_unstable();
    found
}

/// The variance of an observation that a tenth of the hosts exceed.
fn noisy_tenth(effects: &[Estimate]) -> f64 {
    let mut all: Vec<f64> = effects.iter().map(|it| it.std_err.powi(2) * it.n as f64).collect();
    all.sort_by(f64::total_cmp);
    all[(all.len() - 1) * 9 / 10]
}

/// The hosts whose effect is shown to be another than none, where `alpha` of those that are named may be named
/// by chance (Benjamini and Hochberg 1995), with the level at which their intervals hold for those that were
/// so chosen (Benjamini and Yekutieli 2005, Journal of the American Statistical Association 100, 71–81).
pub(crate) fn discoveries(effects: &[Estimate], alpha: f64) -> (Vec<bool>, f64) {
    let probability = |it: &Estimate| {
        let t = StudentsT::new(0.0, 1.0, (it.n.max(2) - 1) as f64);
        match (usable(it), t) {
            (true, Ok(t)) => 2.0 * t.sf(it.mean.abs() / it.std_err.max(f64::MIN_POSITIVE)),
            _ => 1.0,
        }
    };
    let all: Vec<f64> = effects.iter().map(probability).collect();
    let mut sorted = all.clone();
    sorted.sort_by(f64::total_cmp);
    let step = alpha / all.len().max(1) as f64;
    let count = (1..=sorted.len()).rev().find(|rank| sorted[rank - 1] <= step * *rank as f64);
    let level = step * count.unwrap_or(0) as f64;
    (all.iter().map(|it| count.is_some() && *it <= level).collect(), level)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn estimate(mean: f64, std_err: f64, n: usize) -> Estimate {
        Estimate { n, mean, std_err }
    }

    #[test]
    fn alike_weights_give_mean_and_scatter_of_the_hosts() {
        // Equal rounds: the mean is the plain one, 0.2; its standard error is that of four values,
        // sqrt(0.0002 / 3 × ... ): values 0.18, 0.19, 0.21, 0.22 have squares 0.001, so sqrt(0.001/3/4).
        let effects = [0.18, 0.19, 0.21, 0.22].map(|mean| estimate(mean, 0.001, 10));
        let pooled = pool(&effects).unwrap();
        assert!((pooled.mean - 0.2).abs() < 1e-12);
        assert!((pooled.std_err - (0.001_f64 / 12.0).sqrt()).abs() < 1e-9, "{pooled:?}");
        // τ² = 0.001/3 − 0.001².
        assert!((pooled.between - (0.001_f64 / 3.0 - 1e-6).sqrt()).abs() < 1e-9);
        assert!(pooled.unexplained > 0.99 && pooled.alike_probability < 1e-6);
        // t of 97.5 % with 3 degrees of freedom is 3.182 (NIST, 1.3.6.7.2).
        let (low, high) = pooled.interval(0.05);
        assert!(((high - low) / 2.0 / pooled.std_err - 3.182).abs() < 1e-3);
        assert!(pooled.next_host(0.05).unwrap().0 < low);
    }

    #[test]
    fn two_hosts_are_pooled_and_one_is_not() {
        assert_eq!(pool(&[estimate(0.1, 0.01, 5)]), None);
        assert_eq!(pool(&[estimate(0.1, 0.01, 5), estimate(0.1, 0.01, 2)]), None);
        let two = pool(&[estimate(0.1, 0.01, 5), estimate(0.2, 0.01, 5)]).unwrap();
        assert_eq!((two.hosts, two.next_host(0.05)), (2, None));
        // A model without noise.
        let same = pool(&[estimate(0.1, 0.0, 5), estimate(0.1, 0.0, 5)]).unwrap();
        assert_eq!((same.between, same.mean), (0.0, 0.1));
    }

    #[test]
    fn an_outlier_is_found_and_two_do_not_hide_one_another() {
        let mut all: Vec<Estimate> =
            (0..20).map(|at| estimate(0.1 + 0.002 * f64::from(at % 5), 0.003, 8)).collect();
        assert_eq!(outliers(&all, 0.05), Vec::<usize>::new());
        all[3].mean = -0.1;
        all[11].mean = -0.12;
        assert_eq!(outliers(&all, 0.05), vec![3, 11]);
    }
}
