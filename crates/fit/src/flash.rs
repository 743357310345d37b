//! A flash drive: times by size and depth, and the model's numbers that give them.

use crate::estimate::mean;
use crate::outcome::{Described, Step as Stage};
use crate::{Doubt, Estimate, FitError, Model, Number, Quantity, Read, SMALL, Storage, anywhere};
use device::Flash;
use device::flash::{FlashSpec, State};
use device::profile::Kind;
use random::Stream;

/// Cells that are read: sectors a read, reads outstanding.
const CELLS: [(u64, u32); 15] = [
    (SMALL, 1),
    (4 * SMALL, 1),
    (16 * SMALL, 1),
    (64 * SMALL, 1),
    (256 * SMALL, 1),
    (SMALL, 2),
    (SMALL, 4),
    (SMALL, 8),
    (SMALL, 16),
    (SMALL, 32),
    (SMALL, 64),
    (SMALL, 128),
    (16 * SMALL, 8),
    (64 * SMALL, 32),
    (256 * SMALL, 8),
];
/// Reads of a cell, and pieces of it, whose rates vary.
const READS: usize = 2_000;
const PIECES: usize = 8;
/// Bytes of a cell at the most.
const MAX_BYTES: u64 = 512 << 20;
/// Reads of a cell on the model, and sectors.
const MODELLED: u64 = 500;
const MODELLED_SECTORS: u64 = 40_000;
/// Channels, dies on each, and sectors of a flash page that drives have.
const CHANNELS: [u32; 7] = [1, 2, 4, 8, 10, 16, 32];
const DIES: [u32; 3] = [1, 2, 4];
const PAGES: [u64; 3] = [SMALL, 2 * SMALL, 4 * SMALL];
/// Of the layouts, so many are looked at closely.
const CLOSELY: usize = 5;
/// The search's first step, and its last on a quick look and on a close one, in logarithms.
const STEP: f64 = 0.4;
const QUICK: f64 = 0.1;
const CLOSE: f64 = 0.005;
/// No numbers of the model explain rates that lie farther apart than this.
const FAR: f64 = 0.15;

/// What a search moves: logarithms of firmware, controller and page read, ns, and of what a sector takes over
/// a channel and over the link, ns.
type Point = [f64; 5];

struct Cell {
    count: u64,
    depth: u32,
    reads: Vec<Read>,
    /// Logarithm of reads a second, and its standard error.
    rate: f64,
    error: f64,
}

pub fn fit<S: Storage>(
    storage: &mut S,
    stream: &mut Stream,
    watch: &mut dyn FnMut(Stage),
) -> Result<Described, FitError<S::Error>> {
    let capacity = storage.capacity().0 / SMALL * SMALL;
    watch(Stage::Sizes);
    let cells = measure(storage, stream, watch)?;
    watch(Stage::Models);
    let mut looks: Vec<(Layout, Point, f64)> = Vec::new();
    for layout in Layout::all(capacity) {
        let (point, misfit) =
            search(layout, &cells, beginning(&cells, layout.channels), STEP, QUICK);
        looks.push((layout, point, misfit));
    }
    looks.sort_by(|one, other| one.2.total_cmp(&other.2));
    looks.truncate(CLOSELY);
    for (layout, point, misfit) in &mut looks {
        (*point, *misfit) = search(*layout, &cells, *point, QUICK, CLOSE);
    }
    looks.sort_by(|one, other| one.2.total_cmp(&other.2));
    let Some(&(layout, point, misfit)) = looks.first() else {
        return Err(FitError::NoDevice { what: "no layout fits".to_owned() });
    };
    let spec = layout.describe(&point);
    Flash::new(spec.clone(), 1).map_err(|error| FitError::NoDevice { what: error.to_string() })?;
    let errors = errors(layout, &cells, &point, misfit);
    let mut numbers: Vec<Number> = Vec::new();
    let mb_s = |log: f64| 512.0 / log.exp() * 1e3;
    for (at, quantity) in
        [Quantity::Firmware, Quantity::Controller, Quantity::PageRead].into_iter().enumerate()
    {
        let (low, high) = (point[at] - errors[at], point[at] + errors[at]);
        let [value, low, high] = [point[at], low, high].map(|log| log.exp() / 1e3);
        numbers.push(Number::new(quantity, Estimate { value, low, high }));
    }
    for (at, quantity) in [(3, Quantity::Channel), (4, Quantity::Link)] {
        let (low, high) = (mb_s(point[at] + errors[at]), mb_s(point[at] - errors[at]));
        numbers.push(Number::new(quantity, Estimate { value: mb_s(point[at]), low, high }));
    }
    let dies = |layout: &Layout| f64::from(layout.channels * layout.dies);
    // All layouts that are not clearly worse than the best one.
    let unit = (misfit / (cells.len() - point.len()) as f64).max(1.0);
    let possible: Vec<f64> =
        looks.iter().filter(|it| it.2 <= misfit + 3.84 * unit).map(|it| dies(&it.0)).collect();
    let low = possible.iter().copied().fold(f64::INFINITY, f64::min);
    let high = possible.iter().copied().fold(0.0, f64::max);
    numbers.push(Number::new(Quantity::Dies, Estimate { value: dies(&layout), low, high }));
    let worst = residuals(layout, &cells, &point).into_iter().map(f64::abs).fold(0.0, f64::max);
    let doubts =
        (worst > FAR).then_some(Doubt::Depths { ratio: worst.exp() }).into_iter().collect();
    Ok((Kind::Flash(spec), numbers, doubts))
}

fn measure<S: Storage>(
    storage: &mut S,
    stream: &mut Stream,
    watch: &mut dyn FnMut(Stage),
) -> Result<Vec<Cell>, FitError<S::Error>> {
    let capacity = storage.capacity().0;
    let mut cells = Vec::new();
    for (count, depth) in CELLS {
        if depth == 2 {
            watch(Stage::Depths);
        }
        let number = READS.min((MAX_BYTES / 512 / count) as usize);
        let reads: Vec<Read> = (0..number).map(|_| anywhere(stream, capacity, count)).collect();
        let mut rates = Vec::new();
        for piece in reads.chunks(number / PIECES) {
            rates.push(storage.read(piece, depth)?.per_second().ln());
        }
        let (rate, error) = mean(&rates);
        // A model is never better than 1 %.
        cells.push(Cell { count, depth, reads, rate, error: error.max(0.01) });
    }
    Ok(cells)
}

/// Where the search begins: the controller takes what is left of a read when all dies are busy, the rest of a
/// lone read's time goes to firmware and page.
fn beginning(cells: &[Cell], channels: u32) -> Point {
    let lone = cells.first().map_or(1e5, |cell| 1e9 / cell.rate.exp());
    let fastest = cells
        .iter()
        .filter(|cell| cell.count == SMALL)
        .map(|cell| 1e9 / cell.rate.exp())
        .fold(f64::INFINITY, f64::min);
    let rate = cells.iter().map(|cell| cell.rate.exp() * cell.count as f64).fold(0.0, f64::max);
    let link = 1e9 / rate;
    let rest = (lone - fastest).max(0.1 * lone);
    let channel = link * f64::from(channels.min(4));
    [0.1 * rest, 0.9 * fastest, 0.6 * rest, channel, link].map(|value| value.max(1.0).ln())
}

/// What a search does not move.
#[derive(Clone, Copy, Debug)]
struct Layout {
    capacity: u64,
    channels: u32,
    dies: u32,
    page: u64,
}

impl Layout {
    fn all(capacity: u64) -> impl Iterator<Item = Layout> {
        CHANNELS.into_iter().flat_map(move |channels| {
            DIES.into_iter().flat_map(move |dies| {
                PAGES.into_iter().map(move |page| Layout { capacity, channels, dies, page })
            })
        })
    }

    fn describe(self, point: &Point) -> FlashSpec {
        describe(self, point)
    }
}

fn describe(layout: Layout, point: &Point) -> FlashSpec {
    let [firmware, controller, read, channel, link] =
        point.map(|log| log.exp().round().clamp(1.0, 1e9) as u32);
    FlashSpec {
        capacity: layout.capacity / layout.page * layout.page,
        over_provisioning: 0.07,
        channels: layout.channels,
        dies_per_channel: layout.dies,
        planes: 1,
        page_sectors: layout.page,
        pages_per_block: 256,
        read_ns: vec![read],
        read_spread_ns: 0,
        // Ten times a read, as in most flash: nothing is written here.
        program_ns: read.saturating_mul(10),
        erase_ns: 3_000_000,
        channel_sector_ns: channel,
        link_read_sector_ns: link,
        link_write_sector_ns: link,
        firmware_ns: firmware,
        controller_ns: controller,
        buffer_ns: 20_000,
        buffer_sectors: (1 << 20) / 512,
        power_safe: false,
        depth: 128,
        state: State::Sequential(1.0),
    }
}

/// Measured less modelled, in logarithms, cell by cell.
fn residuals(layout: Layout, cells: &[Cell], point: &Point) -> Vec<f64> {
    // How a drive was filled changes no read of the model, and takes time to build.
    let spec = FlashSpec { state: State::Fresh, ..layout.describe(point) };
    let Ok(fresh) = Flash::new(spec, 1) else { return vec![10.0; cells.len()] };
    cells
        .iter()
        .map(|cell| {
            let mut model = Model::new(Box::new(fresh.clone()));
            let most = MODELLED.min(MODELLED_SECTORS / cell.count).max(40);
            let reads = &cell.reads[..cell.reads.len().min(most as usize)];
            let Ok(answers) = crate::Storage::read(&mut model, reads, cell.depth);
            cell.rate - answers.per_second().ln()
        })
        .collect()
}

fn misfit(layout: Layout, cells: &[Cell], point: &Point) -> f64 {
    residuals(layout, cells, point)
        .iter()
        .zip(cells)
        .map(|(residual, cell)| (residual / cell.error).powi(2))
        .sum()
}

/// Pattern search (Hooke and Jeeves 1961): along each number by a step, and the step halved where none helps.
fn search(layout: Layout, cells: &[Cell], from: Point, mut step: f64, last: f64) -> (Point, f64) {
    let mut point = from;
    let mut least = misfit(layout, cells, &point);
    while step > last {
        let before = least;
        for at in 0..point.len() {
            for way in [step, -step] {
                let mut next = point;
                next[at] += way;
                let found = misfit(layout, cells, &next);
                if found < least {
                    (point, least) = (next, found);
                    break;
                }
            }
        }
        if least >= before * 0.999 {
            step /= 2.0;
        }
    }
    (point, least)
}

/// Half the width of each number's interval, in logarithms: how far it moves, alone, until the misfit has
/// grown by 3.84 in units of what the best fit leaves.
fn errors(layout: Layout, cells: &[Cell], point: &Point, least: f64) -> Point {
    let unit = (least / (cells.len() - point.len()) as f64).max(1.0);
    std::array::from_fn(|at| {
        let mut width = 0.01;
        while width < 2.0 {
            let worse = [width, -width].map(|way| {
                let mut next = *point;
                next[at] += way;
                misfit(layout, cells, &next)
            });
            if worse.iter().all(|misfit| *misfit > least + 3.84 * unit) {
                break;
            }
            width *= 1.5;
        }
        width
    })
}
