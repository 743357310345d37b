//! The pilot: a few short visits to the cells before the first round say how long trials should be.
//!
//! A round compares a cell with its baseline, so that its variance has two parts: what differs within a trial
//! (it falls as trials get longer) and what the machine drifts between the two (it grows with the time of a
//! round). With rounds as many as fit a budget, the interval's width follows from both, and the best trial is
//! found by trying all lengths.

use crate::{Correction, Estimate, MIN_VERDICT_ROUNDS, t_quantile};
use plan::Timing;
use units::Nanos;

/// What one visit to a cell showed.
#[derive(Clone, Debug, PartialEq)]
pub struct Visit {
    /// The cell's place in the plan.
    pub cell: usize,
    /// When it began, from the beginning of the pilot.
    pub began: Nanos,
    /// Operations a second in equal steps, from the moment the clients began: no warm-up.
    pub rates: Vec<f64>,
    /// The longest latency, in-flight operations included.
    pub longest: Nanos,
    /// The time beside what was measured: settings, clients' start and end.
    pub overhead: Nanos,
}

/// What is known before the pilot.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PilotQuestion {
    /// The length of a step of [`Visit::rates`].
    pub step: Nanos,
    /// Trials a round.
    pub slots: usize,
    /// Time for all rounds.
    pub budget: Nanos,
    /// The difference that is to be detectable in throughput, in place of a budget.
    pub detect: Option<f64>,
    /// How intervals will be widened.
    pub correction: Correction,
}

/// What the pilot says.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PilotAnswer {
    /// Time before measuring, in each trial.
    pub warmup: Nanos,
    /// Time measured, in each trial.
    pub measure: Nanos,
    /// Time beside both.
    pub overhead: Nanos,
    /// Rounds.
    pub rounds: u32,
    /// The difference in throughput (0.05: 5 %) that so many rounds are expected to find four times in five.
    pub detectable: f64,
    /// Whether throughput had settled after [`PilotAnswer::warmup`]; if not, longer visits may tell.
    pub settled: bool,
}

/// The shortest trial.
const MIN_MEASURE: Nanos = Nanos::from_millis(400);

/// The longest that is chosen for its own sake.
const MAX_MEASURE: Nanos = Nanos::from_secs(60);

/// A trial is so many times as long as the longest latency seen: what its end cuts off is a small part.
const LATENCIES: u64 = 4;

/// Fewer rounds than these are not planned, even if longer trials would be better.
const MIN_ROUNDS: u32 = 10;

/// More than these make a large run file and narrow hardly.
const MAX_ROUNDS: u32 = 240;

/// The most rounds that a wanted difference may take.
const MAX_DETECT_ROUNDS: u32 = 2000;

/// An interval so much wider than the narrowest is as good, and more rounds are safer against a
/// disturbance.
const AS_GOOD: f64 = 1.05;

/// A step that differs from the end of its visit by less has settled.
const SETTLED: f64 = 0.03;

/// From the visits so far; none where they hold too little to say anything.
pub fn pilot(visits: &[Visit], question: PilotQuestion) -> Option<PilotAnswer> {
    let visits: Vec<&Visit> = visits.iter().filter(|visit| mean(late(visit)) > 0.0).collect();
    let longest = visits.iter().map(|visit| visit.longest).max()?;
    let overhead = visits.iter().map(|visit| visit.overhead.0).sum::<u64>() / visits.len() as u64;
    let (steps, settled) = settling(&visits)?;
    // At least a step, so that all clients have begun.
    let warmup = question.step * steps.max(1) as u64;
    let noise = Noise::of(&visits, steps, question.step)?;
    let beside = (warmup + Nanos(overhead)).as_secs_f64();
    let slots = question.slots.max(1) as f64;
    let budget = question.budget.as_secs_f64();
    let most = MAX_MEASURE.as_secs_f64().min(budget / slots / f64::from(MIN_ROUNDS) - beside);
    // Too few rounds would be worse than trials that cut latencies off.
    let shortest = (longest * LATENCIES).as_secs_f64().min(most).max(MIN_MEASURE.as_secs_f64());
    // For a difference that shall be found, the time of all rounds is what matters, not their number.
    let most_rounds = match question.detect {
        Some(_) => f64::INFINITY,
        None => f64::from(MAX_ROUNDS),
    };
    // The variance of the mean of all rounds, for trials that measure so long and fill the budget.
    let variance = |measure: f64| {
        let trial = measure + beside;
        let rounds = (budget / (slots * trial)).floor().clamp(1.0, most_rounds);
        noise.round(measure, trial * slots) / rounds
    };
    let lengths: Vec<f64> = (0..60)
        .map(|power| shortest * 1.1f64.powi(power))
        .take_while(|length| *length <= most.max(shortest))
        .collect();
    let best = lengths.iter().map(|length| variance(*length)).fold(f64::INFINITY, f64::min);
    let measure = lengths.into_iter().find(|length| {
        // With more rounds than the most, a short trial would leave a part of the budget unused.
        variance(*length) <= best * AS_GOOD * AS_GOOD
    })?;
    let trial = measure + beside;
    let of_rounds = |rounds: u32| {
        let std_err = (noise.round(measure, trial * slots) / f64::from(rounds)).sqrt();
        if rounds < MIN_VERDICT_ROUNDS {
            return f64::INFINITY;
        }
        crate::comparison::detectable(std_err, f64::from(rounds - 1), question.correction)
    };
    let fitting = (budget / (slots * trial)).floor().clamp(1.0, f64::from(MAX_ROUNDS)) as u32;
    let rounds = match question.detect {
        Some(wanted) => (MIN_ROUNDS..=MAX_DETECT_ROUNDS)
            .find(|rounds| of_rounds(*rounds) <= wanted)
            .unwrap_or(MAX_DETECT_ROUNDS),
        None => fitting,
    };
    Some(PilotAnswer {
        warmup,
        measure: Nanos::from_millis((measure * 1000.0).round() as u64),
        overhead: Nanos(overhead),
        rounds,
        detectable: of_rounds(rounds),
        settled,
    })
}

impl PilotAnswer {
    /// The timing of the rounds, with the rest as it was.
    pub fn timing(&self, timing: Timing) -> Timing {
        Timing {
            warmup: self.warmup,
            measure: plan::TrialLength::Time(self.measure),
            rounds: self.rounds,
            overhead: self.overhead,
            pilot: false,
            ..timing
        }
    }
}

/// What a machine's throughput varies by.
#[derive(Clone, Copy, Debug)]
struct Noise {
    /// Variance of the logarithm of the mean over a second.
    white: f64,
    /// What the variance of a difference gains a second between its two sides.
    drift: f64,
}

impl Noise {
    fn of(visits: &[&Visit], skip: usize, step: Nanos) -> Option<Noise> {
        let step = step.as_secs_f64();
        // Neighbouring halves of what has settled differ by noise, and hardly by drift.
        let halves = visits.iter().filter_map(|visit| {
            let rates = visit.rates.get(skip..)?;
            let (a, b) = rates.split_at(rates.len() / 2);
            let seconds = a.len() as f64 * step;
            let log = (mean(a) / mean(b)).ln();
            (!a.is_empty() && log.is_finite()).then_some((log * log / 2.0) * seconds)
        });
        let halves: Vec<f64> = halves.collect();
        let white = Estimate::of(&halves)?.mean;
        let means: Vec<(usize, f64, f64, f64)> = visits
            .iter()
            .filter_map(|visit| {
                let rates = visit.rates.get(skip..)?;
                let seconds = rates.len() as f64 * step;
                (seconds > 0.0)
                    .then(|| (visit.cell, visit.began.as_secs_f64(), mean(rates).ln(), seconds))
            })
            .collect();
        let (mut excess, mut apart) = (0.0, 0.0);
        for (place, (cell, began, log, seconds)) in means.iter().enumerate() {
            for (_, other_began, other, _) in
                means[place + 1..].iter().filter(|other| other.0 == *cell)
            {
                excess += (log - other).powi(2) - 2.0 * white / seconds;
                apart += (other_began - began).abs();
            }
        }
        let drift = if apart > 0.0 { (excess / apart).max(0.0) } else { 0.0 };
        Some(Noise { white, drift })
    }

    /// The variance of one round's comparison, of trials that measure so long in rounds that take so long: two
    /// slots of a round are a third of it apart in the mean.
    fn round(&self, measure: f64, round: f64) -> f64 {
        1.5 * self.white / measure + self.drift * round / 3.0
    }
}

/// The steps after which throughput is what it is at the end of a visit, and whether it was seen to settle:
/// the mean over all visits differs by less than [`SETTLED`] or than chance, from there to the middle.
fn settling(visits: &[&Visit]) -> Option<(usize, bool)> {
    let steps = visits.iter().map(|visit| visit.rates.len()).min()?;
    let half = steps / 2;
    let unsettled = |step: usize| {
        let relative: Vec<f64> =
            visits.iter().map(|visit| visit.rates[step] / mean(late(visit)) - 1.0).collect();
        let Some(estimate) = Estimate::of(&relative) else { return false };
        // One step in a hundred is out by chance.
        let chance = match visits.len() {
            0..3 => f64::INFINITY,
            visits => t_quantile(0.995, (visits - 1) as f64) * estimate.std_err,
        };
        estimate.mean.abs() > SETTLED.max(chance)
    };
    let last = (0..half).rev().find(|step| unsettled(*step));
    let after = last.map_or(0, |step| step + 1);
    (half > 0).then_some((after, after < half))
}

/// The second half of a visit.
fn late(visit: &Visit) -> &[f64] {
    &visit.rates[visit.rates.len() / 2..]
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len().max(1) as f64
}

#[cfg(test)]
mod tests {
    use super::*;
    use random::Stream;

    const STEP: Nanos = Nanos::from_millis(100);

    const QUESTION: PilotQuestion = PilotQuestion {
        step: STEP,
        slots: 5,
        budget: Nanos::from_secs(300),
        detect: None,
        correction: Correction { cells: 3, share: 0.8, freedom: 1.0 },
    };

    /// Twelve visits of two seconds to three cells: white noise a step, a random walk from step to step, and a
    /// beginning at half the rate that lingers for so many steps.
    fn visits(white: f64, walk: f64, lingers: f64, seed: u64) -> Vec<Visit> {
        let mut stream = Stream::new(seed, "pilot");
        let mut drift = 0.0;
        let visit = |place: usize| {
            let rates = (0..20).map(|step| {
                drift += walk * stream.normal();
                let settled = 1.0 - 0.5 * (-f64::from(step) / lingers.max(1e-3)).exp();
                1000.0 * settled * (drift + white * stream.normal()).exp()
            });
            Visit {
                cell: place % 3,
                began: Nanos::from_millis(2100 * place as u64),
                rates: rates.collect(),
                longest: Nanos::from_millis(20),
                overhead: Nanos::from_millis(50),
            }
        };
        (0..12).map(visit).collect()
    }

    #[test]
    fn a_setting_that_lingers_gets_a_longer_warm_up() {
        let quick = pilot(&visits(0.02, 0.0, 0.0, 1), QUESTION).unwrap();
        assert_eq!((quick.warmup, quick.settled), (STEP, true));
        // From half to within 3 % takes 2.8 times the constant.
        let slow = pilot(&visits(0.02, 0.0, 2.0, 1), QUESTION).unwrap();
        let expected = Nanos::from_millis(400)..=Nanos::from_millis(800);
        assert!(expected.contains(&slow.warmup) && slow.settled, "{slow:?}");
        let beyond = pilot(&visits(0.02, 0.0, 12.0, 1), QUESTION).unwrap();
        assert!(!beyond.settled, "{beyond:?}");
    }

    #[test]
    fn a_machine_that_drifts_gets_shorter_trials() {
        let mean_measure = |walk: f64| {
            let of_seed = |seed| pilot(&visits(0.05, walk, 0.0, seed), QUESTION).unwrap().measure.0;
            (0..20).map(of_seed).sum::<u64>() / 20
        };
        let (steady, drifting) = (mean_measure(0.0), mean_measure(0.02));
        assert!(drifting < steady * 2 / 3, "{steady} {drifting}");
    }

    #[test]
    fn trials_are_long_enough_for_the_latencies_seen() {
        let mut slow = visits(0.02, 0.0, 0.0, 1);
        slow[3].longest = Nanos::from_millis(900);
        let answer = pilot(&slow, QUESTION).unwrap();
        assert!(answer.measure >= Nanos::from_millis(3600), "{answer:?}");
        let trial = answer.warmup + answer.measure + answer.overhead;
        assert!(trial * 5 * u64::from(answer.rounds) <= QUESTION.budget);
    }

    #[test]
    fn latencies_leave_enough_rounds() {
        let mut slow = visits(0.02, 0.0, 0.0, 1);
        slow[3].longest = Nanos::from_secs(2);
        let question = PilotQuestion { slots: 10, budget: Nanos::from_secs(170), ..QUESTION };
        let answer = pilot(&slow, question).unwrap();
        assert!(answer.rounds >= MIN_ROUNDS, "{answer:?}");
        assert!(answer.measure >= Nanos::from_millis(1400), "{answer:?}");
    }

    #[test]
    fn a_smaller_difference_takes_more_rounds() {
        let rounds = |detect| {
            let budget = Nanos::from_secs(24 * 3600);
            let question = PilotQuestion { detect: Some(detect), budget, ..QUESTION };
            let answer = pilot(&visits(0.05, 0.0, 0.0, 1), question).unwrap();
            assert!(answer.detectable <= detect, "{answer:?}");
            assert!(answer.measure < Nanos::from_secs(10), "{answer:?}");
            answer.rounds
        };
        let (coarse, fine) = (rounds(0.02), rounds(0.01));
        // Four times, less what Student's t asks of few rounds.
        assert!(2 * fine > 5 * coarse && fine < 5 * coarse, "{coarse} {fine}");
    }

    #[test]
    fn nothing_measured_says_nothing() {
        assert_eq!(pilot(&[], QUESTION), None);
        let still = Visit { rates: vec![0.0; 20], ..visits(0.0, 0.0, 0.0, 1)[0].clone() };
        assert_eq!(pilot(&[still], QUESTION), None);
    }
}
