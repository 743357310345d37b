//! What a simulation gave, and what it left undone.

use super::{Simulated, Simulation};
use crate::client::Operation;
use crate::warnings::{warn, warn_of_backlog};
use device::Device;
use record::{CounterSample, JobRole, Measurement};
use units::Nanos;

impl<D: Device + ?Sized> Simulation<'_, D> {
    pub(super) fn result(self) -> Simulated {
        let span = self.now - self.spec.warmup;
        let mut warnings = Vec::new();
        let backlogs: Vec<(u64, Nanos)> =
            (0..self.tallies.len()).map(|j| self.backlog(j)).collect();
        let oldest: Vec<Nanos> = (0..self.tallies.len()).map(|job| self.oldest(job)).collect();
        let open: Vec<bool> = self.table.rules.iter().map(|rules| rules.open).collect();
        let mut jobs = Vec::new();
        let roles = [JobRole::Measured, JobRole::Background];
        let mut transactions = None;
        for (at, tally) in self.tallies.into_iter().enumerate() {
            let (job, of_database) = tally.measurement();
            if of_database.is_some() {
                transactions = of_database;
                jobs.push(job);
                continue;
            }
            warn(&mut warnings, roles[at], &job, span, oldest[at]);
            if open[at] {
                warn_of_backlog(&mut warnings, roles[at], backlogs[at]);
            }
            jobs.push(job);
        }
        let background = (jobs.len() > 1).then(|| jobs.remove(1));
        let mut counters = self.sampling.samples();
        if self.table.clients.iter().any(|client| client.sleeping.tries()) {
            // As a real trial's, with the last second's.
            let (at, name) = (span.as_secs_f64(), counters::URING_PUNTED.id.to_owned());
            let per_second = self.punted as f64 / at.max(1e-9);
            match counters.last_mut() {
                Some(last) => {
                    last.values.insert(name, per_second);
                }
                None => counters.push(CounterSample { at, values: [(name, per_second)].into() }),
            }
        }
        Simulated {
            measurement: Measurement {
                span,
                job: jobs.remove(0),
                background,
                seconds: self.seconds,
                transactions,
                counters,
                warnings,
                events: Some(self.log.log(self.machine.hash.value())),
                ..Measurement::default()
            },
            operations: self.operations,
        }
    }

    fn in_flight(&self, job: usize) -> impl Iterator<Item = &Operation> {
        let of_job = move |operation: &&Operation| {
            operation.busy && self.table.clients[operation.client as usize].job == job
        };
        self.table.operations.iter().filter(of_job)
    }

    /// For how long the oldest operation that is not done has been going on.
    fn oldest(&self, job: usize) -> Nanos {
        let submitted = self.in_flight(job).map(|operation| operation.submitted).min();
        submitted.map_or(Nanos::ZERO, |submitted| self.now - submitted)
    }

    /// What was to begin before the end and is not done, and since when the first of them is due.
    fn backlog(&self, job: usize) -> (u64, Nanos) {
        let mut first = self.in_flight(job).map(|operation| operation.intended).min();
        let mut count = self.in_flight(job).count() as u64;
        for client in self.table.clients.iter().filter(|client| client.job == job) {
            let Some(schedule) = &client.schedule else { continue };
            count += schedule.due_before(self.now);
            first = Some(first.map_or(schedule.next(), |first| first.min(schedule.next())));
        }
        if let Some(replay) = self.replay.as_ref().filter(|_| job == 0) {
            let (waiting, due) = replay.backlog(self.now);
            count += waiting;
            first = due.map(|due| first.map_or(due, |first| first.min(due))).or(first);
        }
        (count, first.map_or(Nanos::ZERO, |first| self.now.saturating_sub(first)))
    }
}
