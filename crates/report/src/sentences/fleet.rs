//! What is said of a fleet.

use crate::words;
use analysis::{
    FleetCell, FleetGroup, FleetVerdict, HostStanding, Likeness, PooledFigure, Verdict,
};

/// What must be the same for hosts to be pooled.
pub(crate) fn likeness(likeness: Likeness) -> &'static str {
    match likeness {
        Likeness::Device => "device",
        Likeness::Firmware => "firmware",
        Likeness::Kernel => "kernel",
        Likeness::Server => "server",
        Likeness::Workload => "workload",
        Likeness::Engine => "engine",
        Likeness::Size => "size",
        Likeness::PageCache => "bound of the page cache",
        Likeness::Trial => "warm-up and measured time",
        Likeness::Baseline => "baseline",
    }
}

/// The verdict's word in a table.
pub(crate) fn fleet_word(verdict: FleetVerdict) -> &'static str {
    match verdict {
        FleetVerdict::Better => "better",
        FleetVerdict::Worse => "worse",
        FleetVerdict::NoDifference => "same",
        FleetVerdict::ByHost => "BY HOST",
        FleetVerdict::NotSettled => "open",
    }
}

/// Why a group is not pooled with the largest.
pub(crate) fn apart(group: &FleetGroup) -> Option<String> {
    let differences: Vec<String> = group
        .apart
        .iter()
        .map(|(what, was, is)| {
            let said =
                |text: &str| if text.is_empty() { "not known".to_owned() } else { text.to_owned() };
            format!("{} {} instead of {}", likeness(*what), said(is), said(was))
        })
        .collect();
    let hosts: Vec<&str> = group.hosts.iter().map(|(host, _)| host.as_str()).collect();
    (!differences.is_empty())
        .then(|| format!("Not pooled with group 1: {} ({}).", some(&hosts), differences.join("; ")))
}

/// At most six names.
pub(crate) fn some(names: &[&str]) -> String {
    const SHOWN: usize = 6;
    match names.len().checked_sub(SHOWN) {
        None | Some(0) => names.join(", "),
        Some(more) => format!("{} and {more} more", names[..SHOWN].join(", ")),
    }
}

fn hosts(count: usize) -> String {
    if count == 1 { "1 host".to_owned() } else { format!("{count} hosts") }
}

/// `gains on 6 hosts, loses on 5, is open on 1`.
pub(crate) fn counts(figure: &PooledFigure) -> String {
    let parts = [
        ("gains on", Verdict::Better),
        ("loses on", Verdict::Worse),
        ("makes no difference on", Verdict::NoDifference),
        ("is open on", Verdict::NotSettled),
    ];
    let said = parts.into_iter().filter_map(|(words, verdict)| {
        let count = figure.count(verdict);
        (count > 0).then(|| format!("{words} {}", hosts(count)))
    });
    said.collect::<Vec<_>>().join(", ")
}

/// What may be said of a cell in one figure.
pub(crate) fn fleet_figure(group: &FleetGroup, cell: &FleetCell, figure: &PooledFigure) -> String {
    let name = words::metric_name(figure.metric);
    let ratio = words::change_within(figure.ratio, figure.low, figure.high);
    let what = match figure.verdict {
        FleetVerdict::Better => format!("{name} is better by the mean of the hosts, {ratio}"),
        FleetVerdict::Worse => format!("{name} is worse by the mean of the hosts, {ratio}"),
        FleetVerdict::NoDifference => format!("{name} is the same, {ratio}"),
        FleetVerdict::ByHost => {
            format!("{name}: decide by host, since the mean, {ratio}, stands for none of them")
        }
        FleetVerdict::NotSettled => format!("{name} is open, {ratio}"),
    };
    let mut text = format!("{}: {what}; it {}.", labelled(cell), counts(figure));
    text.push_str(&disagreement(figure));
    let far = figure.outliers();
    for at in &far {
        if let Some(Some(standing)) = figure.hosts.get(*at) {
            text.push_str(&outlier(&group.hosts[*at].0, standing));
        }
    }
    if let Some((ratio, low, high)) = figure.without_outliers {
        let without = words::change_within(ratio, low, high);
        text.push_str(&format!(" Without {} the mean is {without}.", hosts(far.len())));
    }
    text
}

fn outlier(host: &str, standing: &HostStanding) -> String {
    format!(
        " OUTLIER: {host} has {}, which is outside of what the other hosts predict.",
        words::percent(standing.ratio)
    )
}

/// How far hosts lie apart.
fn disagreement(figure: &PooledFigure) -> String {
    let pooled = &figure.pooled;
    let between = pooled.between.exp_m1();
    let mut text = match between {
        it if it < 0.0005 => " The hosts differ by no more than noise.".to_owned(),
        _ => format!(
            " Between hosts the true change scatters by about ±{} ({:.0} % of what is seen is not noise).",
            words::share(between),
            pooled.unexplained * 100.0
        ),
    };
    if let Some((low, high)) = figure.next_host {
        text.push_str(&format!(
            " Such a run on the next host of this kind shows a change between {} and {}, 19 times in 20.",
            words::percent(low),
            words::percent(high)
        ));
    }
    text
}

/// What is set, and under which condition.
pub(crate) fn labelled(cell: &FleetCell) -> String {
    match cell.condition.as_str() {
        "" => cell.label.clone(),
        condition => format!("{} with {condition}", cell.label),
    }
}

/// What to do with the hosts of a group that did not measure.
pub(crate) fn fleet_decision(group: &FleetGroup) -> String {
    if group.hosts.len() < 2 {
        return "One host says nothing of others: measure a second of this kind.".to_owned();
    }
    let Some(agreed) = &group.agreed else {
        return "Verdict: keep what the hosts of this kind have, or decide by host: they do not all \
                recommend the same change."
            .to_owned();
    };
    match group.against {
        None => format!(
            "Verdict: {agreed}. Each of the {} recommends it by itself.",
            hosts(group.hosts.len())
        ),
        Some(metric) => format!(
            "Verdict: decide by host. Each recommends {agreed} by itself, but the fleet speaks against it in {}.",
            words::metric_name(metric)
        ),
    }
}
