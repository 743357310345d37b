//! The progress bar, on stderr; quiet where that is no terminal.

use crate::say;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use plan::{BudgetClock, Plan};
use record::{Event, EventKind, Outcome, StoreWait, Trial, TrialId, Waiting, WorldKind};
use runner::Watcher;
use std::{
    io::IsTerminal,
    sync::{Arc, atomic::AtomicBool},
    time::Instant,
};
use units::{Bytes, Nanos};
use workload::{Live, Phase};

/// Shows a run on stderr.
pub struct Progress {
    bar: ProgressBar,
    label: String,
    /// What the bar counts of trials that have ended: milliseconds, or trials where a trace says how long one is.
    done: u64,
    /// `None` where a trace says it.
    trial_ms: Option<u64>,
    /// Where trials take virtual time, the bar shows the budget of this host's.
    wall: Option<Instant>,
    quiet: bool,
    /// What is counted a second.
    unit: &'static str,
}

impl Progress {
    /// For a plan of which `trials_done` trials ran before.
    pub fn new(plan: &Plan, kind: WorldKind, rounds_done: u32, quiet: bool) -> Progress {
        let trial_ms = trial_ms(plan);
        let rounds = u64::from(plan.timing.rounds.saturating_sub(rounds_done));
        let wall_budget = match (kind, plan.timing.budget_clock) {
            (WorldKind::Simulated, BudgetClock::Wall) => plan.timing.budget,
            _ => None,
        };
        let length = match wall_budget {
            Some(budget) => budget.0 / 1_000_000,
            None => {
                let trials = plan.timing.trials.unwrap_or(plan.slots() as u64 * rounds);
                trial_ms.unwrap_or(1) * trials
            }
        };
        let bar = bar(length, quiet);
        let wall = wall_budget.map(|_| Instant::now());
        let unit = if plan.is_of_databases() { "trans/s" } else { "IOPS" };
        Progress { bar, label: String::new(), done: 0, trial_ms, wall, quiet, unit }
    }

    /// Takes the bar away.
    pub fn finish(&self) {
        self.bar.finish_and_clear();
    }

    /// What a run file is told to do while others read it: to wait until the user interrupts, and to say so.
    pub fn waiting(&self, stop: &Arc<AtomicBool>) -> Waiting {
        let bar = self.bar.clone();
        let tell = move |wait: &StoreWait| bar.suspend(|| say::note(&report::store_wait(wait)));
        Waiting { stop: Some(Arc::clone(stop)), tell: Some(Box::new(tell)) }
    }

    /// Time left if everything goes as planned, or trials.
    fn left(&self) -> String {
        let left = self.bar.length().unwrap_or(0).saturating_sub(self.bar.position());
        match (self.wall, self.trial_ms, left) {
            (None, None, 1) => "1 trial".to_owned(),
            (None, None, _) => format!("{left} trials"),
            _ => Nanos::from_millis(left).to_string(),
        }
    }

    fn advance(&self, done: u64) {
        let wall_ms = self.wall.map(|began| began.elapsed().as_millis() as u64);
        self.bar.set_position(wall_ms.unwrap_or(done));
    }

    fn show(&self, figures: &str) {
        self.bar.set_message(message(&self.label, figures, &self.left()));
    }
}

fn trial_ms(plan: &Plan) -> Option<u64> {
    plan.timing.trial().map(|trial| trial.0 / 1_000_000)
}

/// A bar of a length, hidden where nobody looks.
fn bar(length: u64, quiet: bool) -> ProgressBar {
    let bar = ProgressBar::new(length);
    if quiet || !std::io::stderr().is_terminal() {
        bar.set_draw_target(ProgressDrawTarget::hidden());
    }
    // The template is a constant that the library accepts; without it the bar is plainer.
    if let Ok(style) = ProgressStyle::with_template("{bar:20} {percent:>3}% {msg}") {
        bar.set_style(style);
    }
    bar
}

/// Shows what is done in steps.
pub struct StepProgress(ProgressBar);

impl StepProgress {
    /// Of nothing yet.
    pub fn new() -> StepProgress {
        StepProgress(bar(1, false))
    }

    /// So many steps of all are done, and `what` is next.
    pub fn show(&self, done: usize, of: usize, what: &str) {
        self.0.set_length(of as u64);
        self.0.set_position(done as u64);
        self.0.set_message(what.to_owned());
    }

    /// Takes the bar away.
    pub fn finish(&self) {
        self.0.finish_and_clear();
    }
}

/// Columns beside the bar and its percentage, of 80; the last stays free, lest a terminal wraps.
const MESSAGE_WIDTH: usize = crate::WIDTH - 27;

/// The cell, its figures and the time left, in [`MESSAGE_WIDTH`] columns. A long label is cut: of a
/// cell one can guess the end, of figures not.
fn message(label: &str, figures: &str, left: &str) -> String {
    let end = format!(" {figures}, {left} left");
    let room = MESSAGE_WIDTH.saturating_sub(end.chars().count());
    match label.chars().count() > room {
        true => label.chars().take(room.saturating_sub(1)).chain(['…']).collect::<String>() + &end,
        false => format!("{label}{end}"),
    }
}

impl Watcher for Progress {
    fn laying_out(&mut self, done: Bytes, of: Bytes) {
        self.bar.set_message(format!("laying out the scratch file: {done} of {of}"));
    }

    fn loading(&mut self, what: &str, done: u64, of: u64) {
        self.bar.set_message(match of {
            0 => format!("making a server for {what}"),
            _ => format!("loading {what}: {} %", done * 100 / of),
        });
    }

    fn trial_begins(&mut self, plan: &Plan, trial: TrialId) {
        let label = plan.cells[trial.cell].label(&plan.factors);
        self.label = format!("[{}] {label}", trial.round + 1);
        self.show("starting");
    }

    fn live(&mut self, live: &Live) {
        let in_trial = match live.phase {
            Phase::WarmUp => 0,
            Phase::Measuring => (live.at.max(0.0) * 1000.0) as u64,
        };
        self.advance(self.done + in_trial.min(self.trial_ms.unwrap_or(0)));
        let figures = match live.phase {
            Phase::WarmUp => "warming up".to_owned(),
            Phase::Measuring => {
                let rate = report::count(live.operations_per_second);
                format!("{rate} {}, p99 {}", self.unit, live.p99)
            }
        };
        self.show(&figures);
    }

    fn trial_ended(&mut self, trial: &Trial) {
        self.done += self.trial_ms.unwrap_or(1);
        self.advance(self.done);
        let Some(reason) = report::outcome(&trial.outcome) else { return };
        let what = match trial.outcome {
            Outcome::Failed { .. } => "failed",
            Outcome::Valid(_) | Outcome::Void { .. } => "does not count",
        };
        self.note(&format!("a trial {what}: {reason}"));
    }

    fn piloting(&mut self, seconds: f64, of: f64) {
        self.bar.set_message(format!("pilot: {seconds:.0} of {of:.0} s"));
    }

    fn event(&mut self, plan: &Plan, event: &Event) {
        if matches!(event.kind, EventKind::Piloted { .. } | EventKind::Extended { .. }) {
            self.trial_ms = trial_ms(plan);
            let trials = plan.slots() as u64 * u64::from(plan.timing.rounds);
            self.bar.set_length(self.trial_ms.unwrap_or(1) * trials);
        }
        self.note(&report::event(plan, event));
    }
}

impl Progress {
    fn note(&self, text: &str) {
        if !self.quiet {
            self.bar.suspend(|| say::note(text));
        }
    }
}

/// A run that ends early leaves no bar behind.
impl Drop for Progress {
    fn drop(&mut self) {
        self.finish();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_label_hides_no_figures() {
        let figures = "1,234,567 IOPS, p99 12.3 ms";
        let text = message("[12] mq-deadline, queue 2048, read-ahead 128", figures, "4m 15s");
        assert_eq!(text, "[12] mq-dea… 1,234,567 IOPS, p99 12.3 ms, 4m 15s left");
        assert_eq!(text.chars().count(), MESSAGE_WIDTH);
        assert_eq!(message("[1] none", "warming up", "9 s"), "[1] none warming up, 9 s left");
    }
}
