//! What a screening came to, and what it did not look at.

use crate::words;
use analysis::{Effect, ScreenRatio, ScreenStanding, ScreenedSetting, Screening};
use plan::{Level, Plan};
use record::AsideCause;

/// Settings that a sentence names; the JSON has all.
const MAX_NAMED: usize = 6;

/// A paragraph each.
pub(crate) fn screening(plan: &Plan, it: &Screening) -> Vec<String> {
    let conditions = match it.conditions {
        1 => String::new(),
        several => format!(", mean over {several} conditions that count alike"),
    };
    let leader = it.leader();
    let lead = match (&leader.to_baseline, leader.baseline) {
        (_, true) => format!("the baseline, {}, leads in throughput{conditions}", leader.label),
        (Some(ratio), _) => format!(
            "{} leads in throughput{conditions}: {} against the baseline ({})",
            leader.label,
            change(ratio),
            words::verdict_word(ratio.verdict)
        ),
        (None, _) => format!("{} leads in throughput{conditions}", leader.label),
    };
    let decided = match it.decided {
        true => format!(
            "; of what was measured to the end nothing can beat it by more than {}",
            words::share(plan.margin)
        ),
        false => "; that is not decided".to_owned(),
    };
    let never = it.cells - it.cells_seen;
    let mut said = vec![
        format!("Screening: {lead}{decided}."),
        format!(
            "Looked at: {} of {} cells ({} settings); {never} never. Dropped by throughput alone: latency of \
             what was dropped is hardly known.",
            it.cells_seen,
            it.cells,
            it.settings.len()
        ),
    ];
    let standing = |wanted: ScreenStanding| -> Vec<&ScreenedSetting> {
        it.settings.iter().filter(|setting| setting.standing == wanted).collect()
    };
    let left = standing(ScreenStanding::Left);
    let (worse, open): (Vec<&ScreenedSetting>, Vec<&ScreenedSetting>) =
        left.iter().partition(|it| it.to_leader.is_some_and(|ratio| ratio.high < 1.0));
    for (all, words) in
        [(open, "Not shown to be worse than it"), (worse, "Measured to the end and worse than it")]
    {
        if !all.is_empty() {
            said.push(format!("{words}: {}.", named(&all)));
        }
    }
    for (wanted, words) in [
        (
            ScreenStanding::Aside(AsideCause::Worse),
            "Shown to be worse than the leader of their round",
        ),
        (
            ScreenStanding::Aside(AsideCause::PredictedWorse),
            "Worse than it by the effects of their levels, not all measured",
        ),
        (
            ScreenStanding::Aside(AsideCause::NoTime),
            "Set aside for lack of time, NOT shown to be worse",
        ),
    ] {
        let all = standing(wanted);
        if !all.is_empty() {
            said.push(format!("{words}: {}.", named(&all)));
        }
    }
    let (seen, unseen): (Vec<&Effect>, Vec<&Effect>) = it.effects.iter().partition(|it| it.seen);
    if !seen.is_empty() {
        let effects: Vec<String> = seen.into_iter().map(effect).collect();
        said.push(format!("Effects in the first round: {}.", effects.join("; ")));
    }
    if !unseen.is_empty() {
        let names: Vec<String> = unseen.into_iter().map(name).collect();
        said.push(format!("Effects not distinguished from noise: {}.", names.join(", ")));
    }
    said
}

/// What of it a recommendation has to say: which settings could be better still.
pub(crate) fn not_looked_at(it: &Screening) -> String {
    let no_time = ScreenStanding::Aside(AsideCause::NoTime);
    let aside = it.settings.iter().filter(|setting| setting.standing == no_time).count();
    format!(
        "Screened: {} of {} cells were never looked at, and {aside} of {} settings were set aside for lack of time \
         without being shown to be worse.",
        it.cells - it.cells_seen,
        it.cells,
        it.settings.len()
    )
}

fn named(settings: &[&ScreenedSetting]) -> String {
    let one = |setting: &&ScreenedSetting| match (&setting.to_leader, setting.standing) {
        // Its interval was against the leader of its last round.
        (Some(ratio), ScreenStanding::Aside(_)) => {
            format!("{} ({})", setting.label, words::percent(ratio.ratio))
        }
        (Some(ratio), _) => format!("{} ({})", setting.label, change(ratio)),
        (None, _) => setting.label.clone(),
    };
    let mut all: Vec<String> = settings.iter().take(MAX_NAMED).map(one).collect();
    if settings.len() > MAX_NAMED {
        all.push(format!("and {} more", settings.len() - MAX_NAMED));
    }
    all.join("; ")
}

fn change(ratio: &ScreenRatio) -> String {
    words::change_within(ratio.ratio, ratio.low, ratio.high)
}

fn name(effect: &Effect) -> String {
    let factors: Vec<String> = effect.factors.iter().map(ToString::to_string).collect();
    factors.join(" × ")
}

fn effect(it: &Effect) -> String {
    let levels = |all: &[Option<Level>]| {
        let words: Vec<String> = all
            .iter()
            .map(|level| level.as_ref().map_or("-".to_owned(), Level::to_string))
            .collect();
        words.join(" with ")
    };
    let size = words::percent(it.ratio);
    format!("{} {size} ({} over {})", name(it), levels(&it.best), levels(&it.worst))
}
