//! Order of service: which policy and depth explain how random reads grow with what is outstanding.

use crate::{Doubt, Estimate, FitError, Read, SMALL, Storage, anywhere, model_of};
use device::disk::{DiskSpec, Policy};
use device::profile::Kind;
use random::Stream;

/// Reads outstanding, from one to more than any drive orders.
const OUTSTANDING: [u32; 10] = [1, 2, 4, 8, 16, 32, 64, 128, 256, 384];
/// Reads at each.
const READS: usize = 700;
/// Depths that drives have.
const DEPTHS: [u32; 14] = [1, 2, 3, 4, 8, 16, 31, 32, 48, 64, 96, 128, 192, 256];
const POLICIES: [Policy; 5] =
    [Policy::Fifo, Policy::Look, Policy::CLook, Policy::ShortestSeek, Policy::ShortestPositioning];
/// Seeds that show how far chance moves a rate.
const SEEDS: u64 = 5;
/// No model explains rates that lie farther apart than this.
const FAR: f64 = 0.15;

/// Reads at a depth, and how many a second came back.
pub struct AtDepth {
    outstanding: u32,
    reads: Vec<Read>,
    per_second: f64,
}

/// Random reads at rising depths.
pub fn measure<S: Storage>(
    storage: &mut S,
    stream: &mut Stream,
) -> Result<Vec<AtDepth>, FitError<S::Error>> {
    let capacity = storage.capacity().0;
    OUTSTANDING
        .iter()
        .map(|outstanding| {
            let reads: Vec<Read> = (0..READS + *outstanding as usize)
                .map(|_| anywhere(stream, capacity, SMALL))
                .collect();
            let per_second = storage.read(&reads, *outstanding)?.per_second();
            Ok(AtDepth { outstanding: *outstanding, reads, per_second })
        })
        .collect()
}

/// The order of service.
pub struct Queue {
    pub policy: Policy,
    pub depth: u32,
    pub estimate: Estimate,
    pub doubt: Option<Doubt>,
}

/// A policy and a depth, and how far its rates are from what was measured.
#[derive(Clone, Copy)]
struct Tried {
    policy: Policy,
    depth: u32,
    misfit: f64,
    bend: f64,
    worst: f64,
}

/// Logarithms of measured over modelled, depth by depth.
fn ratios(spec: &DiskSpec, depths: &[AtDepth], seed: u64) -> Option<Vec<f64>> {
    let mut ratios = Vec::new();
    for depth in depths {
        let mut model = model_of(&Kind::Disk(spec.clone()), seed)?;
        let capacity = model.capacity().0;
        let reads: Vec<Read> =
            depth.reads.iter().copied().filter(|read| read.start + SMALL <= capacity).collect();
        let Ok(answers) = model.read(&reads, depth.outstanding);
        ratios.push((depth.per_second / answers.per_second()).ln());
    }
    Some(ratios)
}

/// The policy and depth whose rates are nearest, and the depths that chance does not rule out.
pub fn choose(spec: &DiskSpec, depths: &[AtDepth]) -> Queue {
    let mut tried: Vec<Tried> = Vec::new();
    // Chance moves both sides: the spread over seeds, twice.
    let mut noise = vec![0.0f64; depths.len()];
    let sharpest = DiskSpec { policy: Policy::ShortestPositioning, depth: 64, ..spec.clone() };
    let spread: Vec<Vec<f64>> =
        (0..SEEDS).filter_map(|seed| ratios(&sharpest, depths, seed + 1)).collect();
    for (at, noise) in noise.iter_mut().enumerate() {
        let values: Vec<f64> = spread.iter().map(|ratios| ratios[at]).collect();
        let (_, error) = crate::estimate::mean(&values);
        *noise = (error * (values.len() as f64).sqrt()).max(0.005) * std::f64::consts::SQRT_2;
    }
    for policy in POLICIES {
        for depth in DEPTHS {
            if policy == Policy::Fifo && depth > 1 {
                break;
            }
            let spec = DiskSpec { policy, depth, ..spec.clone() };
            let Some(ratios) = ratios(&spec, depths, 0) else { continue };
            let worst = ratios.iter().map(|ratio| ratio.abs()).fold(0.0, f64::max);
            let bend = misfit(&without_line(&ratios, depths), &noise);
            tried.push(Tried { policy, depth, misfit: misfit(&ratios, &noise), bend, worst });
        }
    }
    tried.sort_by(|one, other| one.misfit.total_cmp(&other.misfit));
    let Some(policy) = tried.first().map(|it| it.policy) else {
        let estimate = Estimate { value: 1.0, low: 1.0, high: 1.0 };
        return Queue { policy: Policy::Fifo, depth: 1, estimate, doubt: None };
    };
    tried.retain(|it| it.policy == policy);
    tried.sort_by(|one, other| one.bend.total_cmp(&other.bend));
    let best = tried[0];
    // 95 % of chi-square with one degree, in units of how well the best one fits.
    let unit = (best.bend / depths.len() as f64).max(1.0);
    let possible = tried.iter().filter(|it| it.bend <= best.bend + 3.84 * unit).map(|it| it.depth);
    let (low, high) = possible
        .fold((best.depth, best.depth), |(low, high), depth| (low.min(depth), high.max(depth)));
    let estimate = Estimate { value: best.depth.into(), low: low.into(), high: high.into() };
    let doubt = (best.worst > FAR).then_some(Doubt::Depths { ratio: best.worst.exp() });
    Queue { policy, depth: best.depth, estimate, doubt }
}

/// How far ratios are from 1, or from a line over the depth's logarithm.
fn misfit(ratios: &[f64], noise: &[f64]) -> f64 {
    ratios.iter().zip(noise).map(|(ratio, noise)| (ratio / noise).powi(2)).sum()
}

/// What is left of the ratios when a line over the depth's logarithm is taken away: an arm that is a little
/// wrong makes a line, a depth that is wrong makes a bend.
fn without_line(ratios: &[f64], depths: &[AtDepth]) -> Vec<f64> {
    let row = |depth: &AtDepth| [1.0, f64::from(depth.outstanding).ln()];
    let rows: Vec<([f64; 2], f64)> =
        depths.iter().zip(ratios).map(|(depth, ratio)| (row(depth), *ratio)).collect();
    let line = crate::estimate::least_squares(&rows).map_or([0.0; 2], |(line, ..)| line);
    rows.iter().map(|(row, ratio)| ratio - line[0] * row[0] - line[1] * row[1]).collect()
}
