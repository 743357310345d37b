//! The effects of many hosts as one: what they have in common, and how far they lie apart.
//!
//! Each host is drawn from a population whose true effects scatter with a standard deviation τ about their
//! mean (random effects). τ² is estimated by moments (DerSimonian and Laird 1986, Controlled Clinical
//! Trials 7, 177–188); the interval of the mean is that of Hartung and Knapp (2001, Statistics in Medicine
//! 20, 3875–3889), which does not take τ for known. A host's own variance, from a handful of rounds, is a
//! poor weight, and one that is too small by chance draws the mean to it: hosts are weighted with the
//! variance of a round over all hosts, so that hosts of as many rounds count the same.

use crate::{
    Estimate,
    comparison::MIN_ROUNDS,
    estimate::{mean, squares},
    t_quantile,
};
use serde::Serialize;
use statrs::{
    distribution::{ContinuousCDF, FisherSnedecor, StudentsT},
    function::gamma::digamma,
};

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
    /// What the hosts' runs show: their plain mean, and the standard deviation about it.
    #[serde(skip)]
    pub shown: (f64, f64),
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
    let (centre, weight) = weighted(&effects, |it| 1.0 / of(it));
    let squared: f64 = effects.iter().map(|it| (it.mean - centre).powi(2) / of(it)).sum();
    let weights_squared: f64 = effects.iter().map(|it| of(it).powi(-2)).sum();
    let between = ((squared - (hosts - 1) as f64) / (weight - weights_squared / weight)).max(0.0);
    let (centre, weight) = weighted(&effects, |it| 1.0 / (of(it) + between));
    let scatter: f64 =
        effects.iter().map(|it| (it.mean - centre).powi(2) / (of(it) + between)).sum();
    let per_host = squared / (hosts - 1) as f64;
    let alike = FisherSnedecor::new((hosts - 1) as f64, freedom as f64);
    Some(Pooled {
        hosts,
        mean: centre,
        std_err: (scatter / (hosts - 1) as f64 / weight).sqrt(),
        between: between.sqrt(),
        unexplained: if per_host > 1.0 { 1.0 - 1.0 / per_host } else { 0.0 },
        alike_probability: alike.map_or(1.0, |it| it.sf(per_host)),
        shown: shown(&effects),
    })
}

fn shown(effects: &[Estimate]) -> (f64, f64) {
    let means: Vec<f64> = effects.iter().map(|it| it.mean).collect();
    let deviation = (squares(&means) / (means.len() - 1) as f64).sqrt();
    (mean(&means), deviation)
}

fn weighted(effects: &[Estimate], weight: impl Fn(&Estimate) -> f64) -> (f64, f64) {
    let sum: f64 = effects.iter().map(&weight).sum();
    (effects.iter().map(|it| weight(it) * it.mean).sum::<f64>() / sum, sum)
}

impl Pooled {
    /// The interval that misses the mean of all hosts with probability `alpha`.
    pub fn interval(&self, alpha: f64) -> (f64, f64) {
        let half = t_quantile(1.0 - alpha / 2.0, (self.hosts - 1) as f64) * self.std_err;
        (self.mean - half, self.mean + half)
    }

    /// What a run of as many rounds shows on the next host with probability 1 − `alpha`, its own noise included:
    /// the interval for one more observation of a normal sample, which holds however far hosts lie apart (Hahn
    /// 1970, Journal of Quality Technology 2, 115–125). `None` with fewer than three hosts. Of the next host's
    /// true effect no interval holds for a handful of hosts: τ is not known.
    pub fn next_host(&self, alpha: f64) -> Option<(f64, f64)> {
        if self.hosts < 3 {
            return None;
        }
        let (mean, deviation) = self.shown;
        let reach = t_quantile(1.0 - alpha / 2.0, (self.hosts - 1) as f64);
        let half = reach * deviation * (1.0 + 1.0 / self.hosts as f64).sqrt();
        Some((mean - half, mean + half))
    }
}

/// The hosts, by their places, whose effects lie outside of what the others predict; in `alpha` of all fleets
/// without one, one is named by chance (Bonferroni over the hosts). The farthest is taken first, and the
/// others are judged without it: two of them would otherwise hide one another.
pub fn outliers(effects: &[Estimate], alpha: f64) -> Vec<usize> {
    let mut kept: Vec<usize> = (0..effects.len()).filter(|at| usable(&effects[*at])).collect();
    let most = (kept.len() / 5).max(1);
    let level = alpha / kept.len().max(1) as f64;
    let noise = Noise::of(&kept.iter().map(|at| effects[*at]).collect::<Vec<_>>());
    let noisy: Vec<Noisy> = effects.iter().map(|it| noise.noisy(it)).collect();
    let mut found = Vec::new();
    while kept.len() > 3 && found.len() < most {
        let surprise = |at: usize| {
            let others = kept.iter().filter(|it| **it != at).map(|it| &noisy[*it]);
            (at, surprise(&noisy[at], others, kept.len() - 1))
        };
        let all = kept.iter().map(|at| surprise(*at));
        match all.min_by(|a, b| a.1.total_cmp(&b.1)) {
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

/// The probability that a host of which the others are typical lies as far from their mean as this one.
///
/// Where hosts are as noisy as one another this is the externally studentized residual of a sample, whose
/// distribution is Student's whatever τ is. A host that is noisier than the others has the difference
/// added, and Satterthwaite's degrees of freedom (1946, Biometrics Bulletin 2, 110–114).
fn surprise<'a>(own: &Noisy, others: impl Iterator<Item = &'a Noisy> + Clone, count: usize) -> f64 {
    let count = count as f64;
    let mean = others.clone().map(|it| it.mean).sum::<f64>() / count;
    let squares: f64 = others.clone().map(|it| (it.mean - mean).powi(2)).sum();
    let sample = squares / (count - 1.0) * (1.0 + 1.0 / count);
    let typical = others.map(|it| it.noise).sum::<f64>() / count;
    // A steadier one is held to what is typical: that it is steadier is itself an estimate of a few rounds.
    let more = (own.noise - typical).max(0.0);
    // Where hosts are as noisy as one another, the error of that is the same for this one and the others.
    let unsure = if own.as_others { more } else { own.noise };
    let parts = sample.powi(2) / (count - 1.0) + unsure.powi(2) / own.freedom;
    let freedom = if parts > 0.0 { (sample + more).powi(2) / parts } else { count - 1.0 };
    let far = |variance: f64, freedom: f64| {
        let t = (own.mean - mean).abs() / variance.max(f64::MIN_POSITIVE).sqrt();
        StudentsT::new(0.0, 1.0, freedom.max(1.0)).map_or(1.0, |it| 2.0 * it.sf(t))
    };
    // What noise alone explains is no outlier, however close the others happen to lie.
    far(sample + more, freedom).max(far(typical + more + typical / count, own.freedom))
}

/// A host's effect, and the variance of its mean that is noise.
struct Noisy {
    mean: f64,
    noise: f64,
    /// Degrees of freedom of the noise.
    freedom: f64,
    /// Whether all hosts are taken to be as noisy as one another.
    as_others: bool,
}

/// How noisy hosts are: the variance of a round is, over hosts, distributed as a scaled inverse χ²
/// (Smyth 2004, Statistical Applications in Genetics and Molecular Biology 3, article 3). A few rounds tell
/// little of a host's own, and all hosts together tell how far theirs lie apart.
struct Noise {
    /// What is typical.
    variance: f64,
    /// The rounds' worth of knowledge that the other hosts are about one; infinite where all are alike.
    freedom: f64,
    /// Of all hosts together.
    total: f64,
}

impl Noise {
    fn of(effects: &[Estimate]) -> Noise {
        let (pooled, total) = within(effects);
        let alike = Noise { variance: pooled, freedom: f64::INFINITY, total: total.max(1) as f64 };
        let logs: Vec<(f64, f64)> = effects
            .iter()
            .filter(|it| it.std_err > 0.0)
            .map(|it| {
                let half = (it.n - 1) as f64 / 2.0;
                let variance = it.std_err.powi(2) * it.n as f64;
                (variance.ln() - digamma(half) + half.ln(), trigamma(half))
            })
            .collect();
        let count = logs.len() as f64;
        if count < 2.0 {
            return alike;
        }
        let mean = logs.iter().map(|it| it.0).sum::<f64>() / count;
        let scatter = logs.iter().map(|it| (it.0 - mean).powi(2)).sum::<f64>() / (count - 1.0);
        let excess = scatter - logs.iter().map(|it| it.1).sum::<f64>() / count;
        if excess <= 0.0 {
            return alike;
        }
        let half = inverse_trigamma(excess);
        let variance = (mean + digamma(half) - half.ln()).exp();
        Noise { variance, freedom: 2.0 * half, ..alike }
    }

    /// A host, of whose noise its own rounds and those of the others tell.
    fn noisy(&self, host: &Estimate) -> Noisy {
        let (own, rounds) = (host.n.saturating_sub(1) as f64, host.n.max(1) as f64);
        let as_others = self.freedom.is_infinite();
        let (variance, freedom) = match as_others {
            true => (self.variance, self.total),
            false => {
                let freedom = self.freedom + own;
                let squares = self.freedom * self.variance + own * host.std_err.powi(2) * rounds;
                (squares / freedom, freedom.min(self.total))
            }
        };
        Noisy { mean: host.mean, noise: variance / rounds, freedom, as_others }
    }
}

/// The derivative of digamma: by its recurrence, and its asymptotic series from 10 on (Abramowitz and Stegun,
/// 6.4.6 and 6.4.12).
fn trigamma(x: f64) -> f64 {
    if x < 10.0 {
        return trigamma(x + 1.0) + x.powi(-2);
    }
    let inverse = 1.0 / x;
    let square = inverse * inverse;
    inverse + square / 2.0 + inverse * square * (1.0 / 6.0 - square * (1.0 / 30.0 - square / 42.0))
}

/// By halving: trigamma falls from infinity to 0.
fn inverse_trigamma(value: f64) -> f64 {
    let (mut low, mut high) = (1e-6_f64, 1e6_f64);
    while high / low > 1.0 + 1e-9 {
        let middle = (low * high).sqrt();
        match trigamma(middle) > value {
            true => low = middle,
            false => high = middle,
        }
    }
    low
}

/// The hosts whose effect is shown to be another than none, where `alpha` of those that are named may be named
/// by chance (Benjamini and Hochberg 1995), with the level at which their intervals hold for those that were
/// so chosen (Benjamini and Yekutieli 2005, Journal of the American Statistical Association 100, 71–81).
pub(crate) fn discoveries(effects: &[Estimate], alpha: f64) -> (Vec<bool>, f64) {
    let probability = |it: &Estimate| {
        let t = StudentsT::new(0.0, 1.0, it.freedom.max(1.0));
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
        Estimate { n, mean, std_err, freedom: n as f64 - 1.0 }
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
