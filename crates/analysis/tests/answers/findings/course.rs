//! Findings in the course of a run.

use super::runs::{cells, faster, raw, run_of};
use analysis::FindingKind;
use record::{Run, WorldKind};

#[test]
fn drift() {
    let drifting = |a_round: f64| {
        run_of(raw("randwrite"), 12, move |_, round, m| {
            faster(m, (1.0 + a_round).powi(i32::try_from(round).unwrap()));
        })
    };
    assert_eq!(cells(&drifting(-0.03), FindingKind::Drift), [0, 1]);
    assert!(cells(&drifting(-0.002), FindingKind::Drift).is_empty(), "too little to matter");
    // A noisy host has a bad quarter of an hour, and recovers.
    let bad = run_of(raw("randwrite"), 12, |_, round, m| {
        faster(m, if (7..10).contains(&round) { 0.6 } else { 1.0 });
    });
    assert!(cells(&bad, FindingKind::Drift).is_empty());
}

#[test]
fn throttled_host() {
    let limited = |limit: bool| {
        run_of(raw("randwrite"), 10, move |cell, round, m| {
            let own = if cell == 1 { 2.2 } else { 1.7 };
            faster(m, if limit && round >= 5 { 1.0 } else { own });
        })
    };
    assert_eq!(cells(&limited(true), FindingKind::ThrottledHost), [0, 1]);
    assert!(cells(&limited(false), FindingKind::ThrottledHost).is_empty());
    // Slower from a moment on, and each cell as much: no limit that holds all.
    let slower = run_of(raw("randwrite"), 10, |cell, round, m| {
        let own = if cell == 1 { 2.2 } else { 1.7 };
        faster(m, if round >= 5 { own * 0.5 } else { own });
    });
    assert!(cells(&slower, FindingKind::ThrottledHost).is_empty());
}

/// The second cell runs between the two trials of its baseline; trials after it are `times` as fast.
fn followed(times: f64) -> Run {
    let mut run = run_of(raw("randwrite"), 24, |_, _, _| ());
    run.trials.sort_by_key(|trial| (trial.id.round, trial.id.replica, trial.id.cell));
    let before: Vec<Option<(u32, usize)>> = std::iter::once(None)
        .chain(run.trials.iter().map(|trial| Some((trial.id.round, trial.id.cell))))
        .collect();
    for (trial, before) in run.trials.iter_mut().zip(before) {
        let follows = before == Some((trial.id.round, 1));
        if let record::Outcome::Valid(m) = &mut trial.outcome {
            faster(m, if follows { times } else { 1.0 });
        }
    }
    run
}

#[test]
fn order_effect() {
    assert_eq!(cells(&followed(0.7), FindingKind::OrderEffect), [1]);
    assert!(cells(&followed(1.0), FindingKind::OrderEffect).is_empty());
    let mut simulated = followed(0.7);
    simulated.environment.world = WorldKind::Simulated;
    assert!(cells(&simulated, FindingKind::OrderEffect).is_empty(), "each begins anew there");
}
