//! More clients bring no more: something lets one at a time through.

use super::{Change, Check, Evidence, Expectation, Found, Layer, counter, summaries};
use crate::{Analysis, CellSummary, Metric};
use plan::{Cell, Factor};
use record::Run;
use std::collections::BTreeMap;

/// The clients must be this many times as many for their growth to be told.
const CLIENTS: f64 = 4.0;
/// Throughput that grows by less than this factor is no more to anybody who added clients.
const GROWTH: f64 = 1.25;
/// With fewer requests in flight on average, one at a time reaches the queue.
const ALONE: f64 = 1.5;
/// A cell that makes so many times the throughput with the same clients shows that the device can.
const DEVICE_CAN: f64 = 1.5;

/// One finding for each layer.
pub fn find(run: &Run, analysis: &Analysis) -> Vec<Found> {
    let mut found: BTreeMap<Layer, (f64, Found)> = BTreeMap::new();
    for most in summaries(analysis) {
        let Some((times, growth)) = growth(run, analysis, most) else { continue };
        let Some(layer) = layer(run, analysis, most) else { continue };
        let evidence = Evidence::Serialised { layer, clients: times, throughput: growth };
        let new = || (f64::INFINITY, Found { cells: Vec::new(), evidence, check: check(layer) });
        let (least, of_layer) = found.entry(layer).or_insert_with(new);
        of_layer.cells.push(most.cell);
        if growth < *least {
            *least = growth;
            of_layer.evidence = evidence;
        }
    }
    found.into_values().map(|(_, found)| found).collect()
}

/// How many times the clients are what the fewest are, and how many times the throughput is, where that
/// does not scale.
fn growth(run: &Run, analysis: &Analysis, most: &CellSummary) -> Option<(f64, f64)> {
    let fewest = fewest_clients(run, analysis, most)?;
    let times = clients(run, most)? / clients(run, fewest)?;
    let (more, less) = (most.throughput?.mean, fewest.throughput?.mean);
    let growth = more / less;
    (times >= CLIENTS && less > 0.0 && growth <= GROWTH).then_some((times, growth))
}

fn check(layer: Layer) -> Check {
    match layer {
        Layer::AboveTheQueue => {
            Check { change: Change::Reads, expect: Expectation::Improves(Metric::Throughput) }
        }
        Layer::Scheduler => {
            Check { change: Change::NoScheduler, expect: Expectation::Improves(Metric::Throughput) }
        }
        Layer::Device => {
            Check { change: Change::FewerClients, expect: Expectation::Stays(Metric::Throughput) }
        }
    }
}

/// Where they wait for one another; none where nothing tells.
fn layer(run: &Run, analysis: &Analysis, summary: &CellSummary) -> Option<Layer> {
    let in_flight = counter(summary, &counters::DEVICE_AQU_SZ)?;
    if in_flight < ALONE {
        let (workload, _) = run.plan.workload_of(&run.plan.cells[summary.cell]).ok()?;
        // Whoever computes, or offers a rate, is not held up by a lock.
        let only_writes = !workload.job.pattern.reads() && workload.database.is_none();
        return (only_writes && workload.job.rate.is_none()).then_some(Layer::AboveTheQueue);
    }
    if let Some(at_device) = counter(summary, &counters::SIM_DEPTH) {
        let queued = counter(summary, &counters::SIM_QUEUED).unwrap_or(0.0);
        let room = counter(summary, &counters::SIM_ROOM_WHILE_WAITING).unwrap_or(0.0);
        let held = queued > at_device && at_device < ALONE && room > 50.0;
        return Some(if held { Layer::Scheduler } else { Layer::Device });
    }
    let this = &run.plan.cells[summary.cell];
    let own = summary.throughput?.mean;
    let better = summaries(analysis).any(|other| {
        let that = &run.plan.cells[other.cell];
        let scheduler = |cell: &Cell| cell.level(&Factor::Scheduler).cloned();
        scheduler(this) != scheduler(that)
            && differ_only_in(this, that, &Factor::Scheduler)
            && other.throughput.is_some_and(|it| it.mean > own * DEVICE_CAN)
    });
    Some(if better { Layer::Scheduler } else { Layer::Device })
}

/// The cell that differs in nothing but in having the fewest clients, if it has fewer.
fn fewest_clients<'a>(
    run: &Run,
    analysis: &'a Analysis,
    summary: &CellSummary,
) -> Option<&'a CellSummary> {
    let this = &run.plan.cells[summary.cell];
    summaries(analysis)
        .filter(|other| {
            differ_only_in(this, &run.plan.cells[other.cell], &Factor::Clients)
                && clients(run, other) < clients(run, summary)
        })
        .min_by(|a, b| clients(run, a).unwrap_or(0.0).total_cmp(&clients(run, b).unwrap_or(0.0)))
}

fn clients(run: &Run, summary: &CellSummary) -> Option<f64> {
    run.plan.cells[summary.cell].level(&Factor::Clients)?.0.parse().ok()
}

fn differ_only_in(a: &Cell, b: &Cell, factor: &Factor) -> bool {
    // A tunable is only in the cells of its scheduler.
    let of_scheduler = |it: &Factor| {
        *factor == Factor::Scheduler && matches!(it, Factor::Tunable { .. } | Factor::AsyncDepth)
    };
    let rest = |cell: &Cell| {
        let levels = cell.levels.iter();
        let rest = levels.filter(|(it, _)| *it != factor && !of_scheduler(it));
        rest.map(|(it, level)| (it.clone(), level.clone())).collect::<Vec<_>>()
    };
    rest(a) == rest(b)
}
