//! Whether what is said of a fleet can be trusted: generated fleets whose truth is known.

use analysis::{Estimate, outliers, pool};
use random::Stream;
use statrs::distribution::{Binomial, DiscreteCDF};

/// How a generated fleet is made.
#[derive(Clone, Copy, Debug)]
struct Kind {
    hosts: usize,
    rounds: usize,
    /// Of true effects between hosts.
    between: f64,
    /// Of a round, within a host; a host's own is up to `uneven` times this.
    noise: f64,
    uneven: f64,
}

const MEAN: f64 = 0.08;
const FLEETS: u32 = 4_000;

fn fleet(kind: Kind, stream: &mut Stream) -> Vec<Estimate> {
    let host = |stream: &mut Stream| {
        let truth = MEAN + kind.between * stream.normal();
        let noise = kind.noise * (1.0 + (kind.uneven - 1.0) * stream.unit());
        // Some hosts lost a round or two.
        let rounds = kind.rounds + stream.below(3) as usize;
        let all: Vec<f64> = (0..rounds).map(|_| truth + noise * stream.normal()).collect();
        Estimate::of(&all).unwrap()
    };
    (0..kind.hosts).map(|_| host(stream)).collect()
}

fn kinds() -> Vec<Kind> {
    let mut all = Vec::new();
    for hosts in [2, 3, 5, 12, 60] {
        for rounds in [3, 8] {
            for between in [0.0, 0.02, 0.1] {
                for uneven in [1.0, 4.0] {
                    all.push(Kind { hosts, rounds, between, noise: 0.03, uneven });
                }
            }
        }
    }
    all
}

#[test]
fn pooled_intervals_hold_the_truth_with_and_without_differences_between_hosts() {
    for (at, kind) in kinds().into_iter().enumerate() {
        let mut stream = Stream::new(20 + at as u64, "fleet");
        let mut held = 0;
        for _ in 0..FLEETS {
            let (low, high) = pool(&fleet(kind, &mut stream)).unwrap().interval(0.05);
            held += u32::from(low <= MEAN && MEAN <= high);
        }
        let share = f64::from(held) / f64::from(FLEETS);
        println!("{share:.4} {kind:?}");
        assert!((0.93..=0.97).contains(&share), "{share} {kind:?}");
    }
}

#[test]
fn a_run_on_the_next_host_shows_what_was_said() {
    for (at, kind) in kinds().into_iter().filter(|it| it.hosts >= 3).enumerate() {
        let mut stream = Stream::new(70 + at as u64, "next host");
        let mut held = 0;
        for _ in 0..FLEETS {
            let (low, high) = pool(&fleet(kind, &mut stream)).unwrap().next_host(0.05).unwrap();
            let next = fleet(Kind { hosts: 1, ..kind }, &mut stream)[0].mean;
            held += u32::from(low <= next && next <= high);
        }
        let share = f64::from(held) / f64::from(FLEETS);
        println!("{share:.4} {kind:?}");
        assert!((0.93..=0.97).contains(&share), "{share} {kind:?}");
    }
}

/// Where the share of `fleets` that name an outlier lies, when each does with probability `level`: outside of
/// it in one of a thousand runs of `tests` such tests, and above it in half of those.
fn by_chance(level: f64, fleets: u32, tests: usize) -> (f64, f64) {
    let binomial = Binomial::new(level, u64::from(fleets)).unwrap();
    let share = |quantile: f64| binomial.inverse_cdf(quantile) as f64 / f64::from(fleets);
    let miss = 0.0005 / tests as f64;
    (share(miss), share(1.0 - miss))
}

#[test]
fn few_fleets_without_an_outlier_name_one_and_most_with_one_name_it() {
    let kinds: Vec<Kind> = kinds().into_iter().filter(|it| it.hosts >= 5).collect();
    let (least, most) = by_chance(0.05, FLEETS, kinds.len());
    println!("{least:.4} to {most:.4}");
    for (at, kind) in kinds.into_iter().enumerate() {
        let mut stream = Stream::new(120 + at as u64, "outlier");
        let (mut named, mut found) = (0, 0);
        for _ in 0..FLEETS {
            let mut hosts = fleet(kind, &mut stream);
            named += u32::from(!outliers(&hosts, 0.05).is_empty());
            hosts[1].mean -= 20.0 * (kind.between + kind.noise * kind.uneven / 1.7);
            found += u32::from(outliers(&hosts, 0.05).contains(&1));
        }
        let of = f64::from(FLEETS);
        let (named, found) = (f64::from(named) / of, f64::from(found) / of);
        println!("{named:.4} {found:.4} {kind:?}");
        assert!(named <= most, "{named} {kind:?}");
        // Where noise alone may be what scatters, or a host may be noisier than the others, it is careful.
        let exact = kind.between > 2.0 * kind.noise && kind.uneven == 1.0;
        assert!(!exact || named >= least, "{named} {kind:?}");
        assert!(found >= 0.9, "{found} {kind:?}");
    }
}
