//! How well a trial was paced, second by second.

use super::SECOND;
use crate::Watcher;
use emulate::{EmulateError, Emulation, ServerStats, preempted_share, processor_share};
use plan::Plan;
use record::{Event, LateCompletions, LateStatistic, Measurement, Trial, TrialId, Warning};
use std::collections::BTreeMap;
use units::{Bytes, Nanos};
use workload::{Live, Phase};

/// Passes a watcher on, and asks the server each second.
pub struct Pacing<'a> {
    emulation: &'a mut Emulation,
    watcher: &'a mut dyn Watcher,
    before: Option<ServerStats>,
    samples: Vec<BTreeMap<String, f64>>,
    failed: Option<EmulateError>,
}

/// How a trial was paced.
pub struct Paced {
    /// Of all of its measured part.
    pub last: ServerStats,
    samples: Vec<BTreeMap<String, f64>>,
}

impl<'a> Pacing<'a> {
    /// Begins with a trial.
    pub fn of(emulation: &'a mut Emulation, watcher: &'a mut dyn Watcher) -> Pacing<'a> {
        Pacing { emulation, watcher, before: None, samples: Vec::new(), failed: None }
    }

    /// Ends with it.
    pub fn end(self) -> Result<Paced, EmulateError> {
        match self.failed {
            Some(error) => Err(error),
            None => Ok(Paced { last: self.emulation.stats()?, samples: self.samples }),
        }
    }

    fn look(&mut self, phase: Phase) -> Result<(), EmulateError> {
        let sight = self.emulation.stats()?;
        if phase == Phase::WarmUp {
            // Only what is measured is to count.
            self.emulation.reset_stats()?;
        }
        self.samples.push(values(self.before.as_ref(), &sight));
        self.before = Some(sight);
        Ok(())
    }
}

/// Below this many percent of idle processors, clients and kernel wait for one.
const MIN_IDLE_PERCENT: f64 = 5.0;

/// How idle the host's processors were in the measured part, percent. One that is idle while I/O is under way
/// is idle: Linux counts that apart.
fn mean_idle(measurement: &Measurement) -> Option<f64> {
    let measured = measurement.counters.iter().filter(|sample| sample.at > 0.0);
    let idle: Vec<f64> = measured
        .filter_map(|sample| {
            let value = |name: &str| sample.values.get(name);
            Some(value(counters::CPU_IDLE.id)? + value(counters::CPU_IOWAIT.id)?)
        })
        .collect();
    (!idle.is_empty()).then(|| idle.iter().sum::<f64>() / idle.len() as f64)
}

/// By the names in docs/design/emulated.md.
fn values(before: Option<&ServerStats>, now: &ServerStats) -> BTreeMap<String, f64> {
    let late = &now.lateness;
    let mut values = BTreeMap::from([
        (counters::EMULATE_LATE_MEAN.id.to_owned(), late.mean.as_micros_f64()),
        (counters::EMULATE_LATE_P99.id.to_owned(), late.p99.as_micros_f64()),
        (counters::EMULATE_LATE_MAX.id.to_owned(), late.max.as_micros_f64()),
        (counters::EMULATE_LATE_KEPT_P99.id.to_owned(), late.kept_p99.as_micros_f64()),
        (counters::EMULATE_RESPONSE_MEAN.id.to_owned(), late.response_mean.as_micros_f64()),
        (counters::EMULATE_RESPONSE_P99.id.to_owned(), late.response_p99.as_micros_f64()),
        (counters::EMULATE_DEPTH.id.to_owned(), f64::from(now.outstanding)),
        (counters::EMULATE_DEPTH_MAX.id.to_owned(), f64::from(now.max_outstanding)),
        (counters::EMULATE_BUSY_DRIVES.id.to_owned(), f64::from(now.busy)),
        (counters::EMULATE_DIRTY.id.to_owned(), now.dirty.0 as f64 / (1 << 20) as f64),
    ]);
    if now.spun > Nanos::ZERO {
        values.insert(counters::EMULATE_TAKEN.id.to_owned(), 100.0 * preempted_share(now));
    }
    if let Some(before) = before {
        let share = processor_share(before, now, SECOND);
        values.insert(counters::EMULATE_PROCESSOR.id.to_owned(), 100.0 * share);
    }
    values
}

impl Paced {
    /// Which lateness makes the trial's figures wrong by more than `margin`, if one does.
    pub fn too_late(&self, margin: f64) -> Option<LateCompletions> {
        let too_late = self.last.lateness.too_late(margin)?;
        Some(LateCompletions {
            statistic: match too_late.statistic {
                emulate::LateStatistic::Mean => LateStatistic::Mean,
                emulate::LateStatistic::P99 => LateStatistic::P99,
            },
            late: too_late.late,
            response: too_late.response,
            cpu_taken: (self.last.spun > Nanos::ZERO).then(|| preempted_share(&self.last)),
        })
    }

    /// Puts the samples beside the host's and the device's of the same seconds.
    pub fn enter(self, measurement: &mut Measurement) {
        for (sample, values) in measurement.counters.iter_mut().zip(self.samples) {
            sample.values.extend(values);
        }
        if let Some(idle) = mean_idle(measurement)
            && idle < MIN_IDLE_PERCENT
        {
            measurement.warnings.push(Warning::EmulatorHostBusy { idle_percent: idle });
        }
        if !self.last.real_time {
            measurement.warnings.push(Warning::EmulatorNotRealTime);
        }
    }
}

impl Watcher for Pacing<'_> {
    fn laying_out(&mut self, done: Bytes, of: Bytes) {
        self.watcher.laying_out(done, of);
    }
    fn trial_begins(&mut self, plan: &Plan, trial: TrialId) {
        self.watcher.trial_begins(plan, trial);
    }
    fn live(&mut self, live: &Live) {
        if self.failed.is_none()
            && let Err(error) = self.look(live.phase)
        {
            self.failed = Some(error);
        }
        self.watcher.live(live);
    }
    fn trial_ended(&mut self, trial: &Trial) {
        self.watcher.trial_ended(trial);
    }
    fn event(&mut self, plan: &Plan, event: &Event) {
        self.watcher.event(plan, event);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use record::CounterSample;

    #[test]
    fn a_void_trial_tells_how_much_of_the_processor_was_taken() {
        let mut last = ServerStats {
            spun: Nanos(1_000),
            spun_preempted: Nanos(125),
            ..ServerStats::default()
        };
        last.lateness.completions = 1;
        let mut paced = Paced { last, samples: Vec::new() };
        assert_eq!(paced.too_late(0.03), None, "nothing was late");
        paced.last.lateness.mean = Nanos::from_micros(200);
        paced.last.lateness.response_mean = Nanos::from_micros(1_000);
        assert_eq!(paced.too_late(0.03).unwrap().cpu_taken, Some(0.125));
        // On one processor nothing is spun.
        paced.last.spun = Nanos::ZERO;
        assert_eq!(paced.too_late(0.03).unwrap().cpu_taken, None);
    }

    #[test]
    fn a_processor_that_waits_for_io_is_idle() {
        let sample = |at: f64, idle: f64, iowait: f64| CounterSample {
            at,
            values: BTreeMap::from([
                (counters::CPU_IDLE.id.to_owned(), idle),
                (counters::CPU_IOWAIT.id.to_owned(), iowait),
            ]),
        };
        // The first is the warm-up's.
        let counters = vec![sample(-1.0, 0.0, 0.0), sample(1.0, 2.0, 58.0), sample(2.0, 0.0, 0.0)];
        let measured = Measurement { counters, ..Measurement::default() };
        assert_eq!(mean_idle(&measured), Some(30.0));
        assert_eq!(mean_idle(&Measurement::default()), None);
    }
}
