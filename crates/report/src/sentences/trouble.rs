//! Why trials do not count.

use analysis::LostTrial;
use record::{LateCompletions, LateStatistic, MovedSetting, Mover, Outcome, VoidReason};

/// Why a trial does not count, without a full stop; none if it does.
pub fn outcome(outcome: &Outcome) -> Option<String> {
    match outcome {
        Outcome::Valid(_) => None,
        Outcome::Void { reason } => Some(void(reason)),
        Outcome::Failed { error } => Some(error.clone()),
    }
}

/// The same of a trial in a summary.
pub(crate) fn lost(trial: &LostTrial) -> String {
    match trial {
        LostTrial::Void(reason) => format!("void: {}", void(reason)),
        LostTrial::Failed(error) => format!("failed: {error}"),
    }
}

fn void(reason: &VoidReason) -> String {
    match reason {
        VoidReason::SettingsMoved { moved } => {
            let each: Vec<String> = moved
                .iter()
                .map(|it| {
                    let after = it.after.as_deref().unwrap_or("nothing");
                    let by = it.by.as_ref().map_or(String::new(), |by| format!(" {}", mover(by)));
                    format!("{} from {} to {after}{by}", it.name, it.before)
                })
                .collect();
            let known = |it: &MovedSetting| matches!(it.by, Some(Mover::Process { .. }));
            let guess = match moved.iter().any(known) {
                true => "",
                false => "; something else sets it too (a udev rule, tuned, another person)",
            };
            format!("a setting moved during the trial: {}{guess}", each.join(", "))
        }
        VoidReason::CompletionsLate(late) => completions_late(late),
        VoidReason::Database { problem } => problem.clone(),
        VoidReason::Recorded { text } => text.clone(),
    }
}

/// "by sh (4711), of systemd-udevd.service, a child of (udev-worker)".
fn mover(mover: &Mover) -> String {
    match mover {
        Mover::Process { pid, name, command, unit, parents } => {
            let name = name.as_deref().unwrap_or("a process that had ended");
            let command = command.as_ref().map_or(String::new(), |it| format!(": {it}"));
            let unit = unit.as_ref().map_or(String::new(), |it| format!(", of {it}"));
            let parent = match parents.first() {
                Some(parent) => format!(", a child of {parent}"),
                None => String::new(),
            };
            format!("by {name} ({pid}{command}){unit}{parent}")
        }
        Mover::NotSeen => "by nobody who was seen".to_owned(),
        Mover::NotWatched { why } => format!("(by whom could not be watched: {why})"),
    }
}

fn completions_late(late: &LateCompletions) -> String {
    let LateCompletions { statistic, late, response, cpu_taken } = *late;
    let percent = 100.0 * late.0 as f64 / response.0.max(1) as f64;
    let how = match statistic {
        LateStatistic::Mean => format!(
            "completions were {late} late on average, {percent:.1} % of the model's {response}"
        ),
        LateStatistic::P99 => format!(
            "one completion in a hundred was more than {late} late, {percent:.1} % of the model's \
             99th percentile of {response}"
        ),
    };
    let taken = cpu_taken.map_or(String::new(), |share| {
        format!(
            " (its CPU was taken from the pacing thread for {:.1} % of the time that it spun)",
            100.0 * share
        )
    });
    format!("{how}: the host was too busy to keep the model's time{taken}")
}
