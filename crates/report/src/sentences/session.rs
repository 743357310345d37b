//! What is said of a run's sessions.

use crate::words;
use analysis::{Metric, SessionAnalysis, SessionGroup, Verdict};
use record::{Aspect, EnvironmentChange, SessionFactor};

/// What changed, by the name of its owner: `vm.dirty_ratio`, `mitigation retbleed`.
pub(crate) fn changed_thing(change: &EnvironmentChange) -> String {
    let name = &change.name;
    match change.aspect {
        Aspect::Kernel => "kernel".to_owned(),
        Aspect::KernelBuild => "build of the kernel".to_owned(),
        Aspect::BootLine => "kernel's command line".to_owned(),
        Aspect::Processor if name == "online" => "processors".to_owned(),
        Aspect::Processor => "processor".to_owned(),
        Aspect::Microcode => "microcode".to_owned(),
        Aspect::Mitigation => format!("mitigation {name}"),
        Aspect::Memory => "memory".to_owned(),
        Aspect::Device if name == "chain" => "device".to_owned(),
        Aspect::Device => format!("firmware of {name}"),
        Aspect::Setting => format!("setting {name}"),
        Aspect::MountOptions => format!("mount options of {name}"),
        Aspect::ModuleParameter => format!("module parameter {name}"),
        Aspect::Sysctl => name.clone(),
        Aspect::Server => format!("server's {name}"),
        Aspect::Package => format!("package {name}"),
        Aspect::Spindle => "Spindle".to_owned(),
    }
}

/// What a session of its own brings with it.
fn unit(factor: SessionFactor) -> &'static str {
    match factor {
        SessionFactor::Kernel => "boots",
        SessionFactor::Server => "sessions",
    }
}

/// How far sessions of one level differ.
pub(crate) fn session_floor(analysis: &SessionAnalysis, group: &SessionGroup) -> String {
    let (factor, unit) = (analysis.factor, unit(analysis.factor));
    let title = match factor {
        SessionFactor::Kernel => "Cross-boot noise floor",
        SessionFactor::Server => "Cross-session noise floor",
    };
    let floors: Vec<String> = group
        .floor
        .iter()
        .filter(|(metric, _)| *metric != Metric::Fairness)
        .map(|(metric, floor)| {
            let trials = match floor.trials.is_finite() {
                true => format!(
                    ", where noise of trials alone would make {}",
                    words::share(floor.trials)
                ),
                false => String::new(),
            };
            let plural = if floor.freedom == 1 { "" } else { "s" };
            format!(
                "{} {} (standard deviation, {} degree{plural} of freedom{trials})",
                words::metric_name(*metric),
                words::share(floor.session),
                floor.freedom
            )
        })
        .collect();
    match floors.is_empty() {
        true => format!(
            "{title}: not known. How far two {unit} of the same {factor} differ shows once a {factor} has \
             two sessions."
        ),
        false => {
            format!("{title} (the baseline in {unit} of the same {factor}): {}.", floors.join("; "))
        }
    }
}

/// What a reader of the comparison of levels must know.
pub(crate) fn session_caveats(analysis: &SessionAnalysis) -> Vec<String> {
    let (factor, unit) = (analysis.factor, unit(analysis.factor));
    let mut notes = Vec::new();
    if analysis.levels.len() < 2 {
        return notes;
    }
    notes.push(format!(
        "Within a session cells take turns; the {factor} cannot. What changed with it, and what {unit} \
         make by themselves, is in the difference: a session counts as one observation, and the intervals \
         hold at 95 % for all cells together."
    ));
    if analysis.in_order {
        notes.push(format!(
            "All sessions of one {factor} came before those of the next: what changed with time, such as a \
             device that ages or fills, is in the difference, too. Sessions in turn would tell it apart."
        ));
    }
    notes
}

/// What to make of the levels, for the baseline's throughput.
pub(crate) fn session_verdict(
    analysis: &SessionAnalysis,
    group: &SessionGroup,
    run: &str,
) -> String {
    let factor = analysis.factor;
    if analysis.levels.len() < 2 {
        return format!(
            "there is one {factor} alone, {}, in {} sessions; another one is compared with: spindle resume \
             {run} --as {factor}",
            analysis.levels[0].name, analysis.levels[0].sessions
        );
    }
    let mut sentences = Vec::new();
    for (place, level) in analysis.levels.iter().enumerate().skip(1) {
        let Some(baseline) = group.cells.first() else { continue };
        let said: Vec<String> = [Metric::Throughput, Metric::P99]
            .into_iter()
            .filter_map(|metric| {
                let comparison = baseline.comparison(place, metric)?;
                let (name, word) =
                    (words::metric_name(metric), words::verdict_word(comparison.verdict));
                let change = words::percent(comparison.ratio);
                Some(match comparison.verdict {
                    Verdict::NotSettled => format!("{name} is open ({change} in these sessions)"),
                    Verdict::NoDifference => format!("{name} is the same ({change})"),
                    Verdict::Better | Verdict::Worse => format!("{name} is {word} ({change})"),
                })
            })
            .collect();
        let first = &analysis.levels[0].name;
        sentences.push(match said.is_empty() {
            true => format!("{} cannot be compared with {first}", level.name),
            false => {
                format!("{} against {first}, {}: {}", level.name, baseline.label, said.join(", "))
            }
        });
    }
    let once: Vec<&str> =
        analysis.run_once().into_iter().map(|level| analysis.levels[level].name.as_str()).collect();
    let next = match once.is_empty() {
        true => String::new(),
        false => format!(
            "; {} ran once: {} again, then spindle resume {run} --as {factor}",
            once.join(" and "),
            match factor {
                SessionFactor::Kernel => "boot each",
                SessionFactor::Server => "set each up",
            }
        ),
    };
    format!("{}{next}", sentences.join("; "))
}
