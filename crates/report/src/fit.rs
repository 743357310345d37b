//! What `spindle fit` shows of a storage, and the profile that it writes.

use crate::{Align, Table, words};
use device::{
    disk::{DiskSpec, Policy},
    profile::{Kind, NotWritable, Profile},
};
use fit::{CellKind, Doubt, Estimate, Fit, Number, Quantity};
use std::collections::BTreeMap;
use units::Bytes;

/// A fit for a terminal: its numbers, its predictions, and what speaks against it.
pub fn fitted(target: &str, capacity: Bytes, fit: &Fit, width: usize) -> String {
    let kind = match &fit.kind {
        Kind::Disk(_) => "a disk",
        Kind::Flash(_) => "a flash drive",
        Kind::Array { .. } => "an array",
    };
    let first = format!("{target}: {capacity}, read as {kind}. Intervals are of 95 %.");
    let mut out = words::wrap(&first, width, 2) + "\n\n";
    let mut table =
        Table::new(&[("", Align::Left), ("fitted", Align::Right), ("interval", Align::Right)]);
    for number in rows(fit) {
        table.row([name(number.quantity), value(&number), interval(&number)]);
    }
    out += &table.text(width);
    if let Some(order) = order(fit) {
        out += &format!("Random reads are served {order}.\n");
    }
    out += "\nReads that the fit was not made from, and what its model says\n";
    let mut table = Table::new(&[
        ("", Align::Left),
        ("measured", Align::Right),
        ("predicted", Align::Right),
        ("error", Align::Right),
    ]);
    for cell in &fit.predictions {
        table.row([
            format!("{} {}, {} outstanding", cell.block, place(cell.kind), cell.depth),
            format!("{}/s", digits(cell.measured)),
            format!("{}/s", digits(cell.predicted)),
            format!("{:+.1} %", 100.0 * cell.error()),
        ]);
    }
    out += &table.text(width);
    let mut errors: Vec<f64> =
        fit.predictions.iter().map(|cell| 100.0 * cell.error().abs()).collect();
    errors.sort_by(f64::total_cmp);
    if let (Some(median), Some(largest)) = (errors.get(errors.len() / 2), errors.last()) {
        out += &format!("Half of them are within {median:.1} %, all within {largest:.1} %.\n");
    }
    for doubt in &fit.doubts {
        out += &format!("\n{}\n", words::wrap(&format!("Note: {}", doubt_words(*doubt)), width, 2));
    }
    out + "\nOnly reads were made: what the profile says of writes is assumed.\n"
}

/// A fit as JSON.
pub fn fitted_json(target: &str, capacity: Bytes, fit: &Fit) -> serde_json::Value {
    serde_json::json!({
        "target": target,
        "capacity_bytes": capacity.0,
        "kind": match &fit.kind {
            Kind::Disk(_) => "disk",
            Kind::Flash(_) => "flash",
            Kind::Array { .. } => "array",
        },
        "order": order(fit),
        "numbers": fit.numbers,
        "predictions": fit.predictions,
        "doubts": fit.doubts,
    })
}

/// The profile, with where each number comes from.
pub fn fit_profile(target: &str, host: &str, fit: &Fit) -> Result<String, NotWritable> {
    let mut sources = BTreeMap::new();
    for number in &fit.numbers {
        let field = match number.quantity {
            Quantity::Command => "overhead",
            Quantity::Turn => "turn",
            Quantity::SeekSingle | Quantity::SeekAverage | Quantity::SeekFull => "seek",
            Quantity::Rate { .. } => "zones",
            Quantity::Depth => "queue",
            Quantity::Segment | Quantity::Segments => "cache",
            Quantity::PageRead => "read",
            Quantity::Firmware => "firmware",
            Quantity::Controller => "controller",
            Quantity::Channel => "channel",
            Quantity::Link => "link_read",
            Quantity::Dies => "channels",
        };
        let fitted = format!("{} {} ({})", name(number.quantity), value(number), interval(number));
        let source = sources.entry(field.to_owned()).or_insert_with(|| "fit: ".to_owned());
        if source.len() > "fit: ".len() {
            source.push_str("; ");
        }
        source.push_str(&fitted);
    }
    let assumed: &[(&str, &str)] = match &fit.kind {
        Kind::Disk(_) => &[
            (
                "heads",
                "assumption: reads tell how much a cylinder holds, and not on how many surfaces",
            ),
            (
                "bus",
                "assumption: 300 MB/s; what a small read spends on it is a part of the command",
            ),
            ("write_settle", "assumption: none; nothing was written"),
            ("write_cache", "assumption: off; nothing was written"),
        ],
        _ => &[
            ("capacity", "the size of what was read"),
            ("program", "assumption: ten times a read; nothing was written"),
            ("erase", "assumption: 3 ms; nothing was written"),
            ("over_provisioning", "assumption: 7 %; nothing was written"),
            ("buffer", "assumption: 1 MiB, and 20 us to put a write into it; nothing was written"),
            ("link_write", "assumption: as for reads"),
            ("depth", "assumption: 128 tags"),
            ("pages_per_block", "assumption: 256"),
            ("state", "assumption: written once, in order"),
        ],
    };
    for (field, source) in assumed {
        sources.insert((*field).to_owned(), (*source).to_owned());
    }
    let errors: Vec<f64> = fit.predictions.iter().map(|cell| cell.error().abs()).collect();
    let largest = errors.iter().copied().fold(0.0, f64::max);
    let mut notes = vec![format!(
        "Fitted to {target} on {host}, its kernel's path included. Of {} kinds of reads that the fit \
         was not made from, the model's rates are within {:.1} %.",
        errors.len(),
        100.0 * largest
    )];
    notes.extend(fit.doubts.iter().map(|doubt| doubt_words(*doubt)));
    Profile::toml(&format!("{target}, fitted"), notes, sources, &fit.kind)
}

/// The numbers as a reader wants them: of all places, the first, the middle and the last rate.
fn rows(fit: &Fit) -> Vec<Number> {
    let rates: Vec<f64> = fit
        .numbers
        .iter()
        .filter_map(|number| match number.quantity {
            Quantity::Rate { position } => Some(position),
            _ => None,
        })
        .collect();
    let shown = [rates.first(), rates.get(rates.len() / 2), rates.last()];
    let keep = |number: &&Number| match number.quantity {
        Quantity::Rate { position } => shown.contains(&Some(&position)),
        _ => true,
    };
    fit.numbers.iter().filter(keep).copied().collect()
}

fn name(quantity: Quantity) -> String {
    match quantity {
        Quantity::Command => "a command that the buffer answers".to_owned(),
        Quantity::Turn => "a turn".to_owned(),
        Quantity::SeekSingle => "a seek over one cylinder".to_owned(),
        Quantity::SeekAverage => "a seek between random places".to_owned(),
        Quantity::SeekFull => "a seek over the whole disk".to_owned(),
        Quantity::Rate { position } => {
            format!("sequential reads at {:.0} % of the capacity", 100.0 * position)
        }
        Quantity::Depth => "commands ordered at once".to_owned(),
        Quantity::Segment => "read ahead, the read included".to_owned(),
        Quantity::Segments => "places kept in the buffer".to_owned(),
        Quantity::PageRead => "reading a flash page".to_owned(),
        Quantity::Firmware => "firmware, for every request".to_owned(),
        Quantity::Controller => "controller, one request at a time".to_owned(),
        Quantity::Channel => "a channel's rate".to_owned(),
        Quantity::Link => "the link's rate".to_owned(),
        Quantity::Dies => "flash dies at work at once".to_owned(),
    }
}

fn unit(quantity: Quantity) -> &'static str {
    match quantity {
        Quantity::Command
        | Quantity::Turn
        | Quantity::SeekSingle
        | Quantity::SeekAverage
        | Quantity::SeekFull => " ms",
        Quantity::Rate { .. } | Quantity::Channel | Quantity::Link => " MB/s",
        Quantity::PageRead | Quantity::Firmware | Quantity::Controller => " us",
        Quantity::Segment => " KiB",
        Quantity::Depth | Quantity::Segments | Quantity::Dies => "",
    }
}

fn value(number: &Number) -> String {
    format!("{}{}", digits(number.estimate.value), unit(number.quantity))
}

fn interval(number: &Number) -> String {
    let Estimate { low, high, .. } = number.estimate;
    format!("{} to {}", digits(low), digits(high))
}

/// Four digits, without a fraction of zeroes.
fn digits(value: f64) -> String {
    let decimals = match value.abs() {
        value if value >= 1000.0 || value.fract() == 0.0 => 0,
        value if value >= 100.0 => 1,
        value if value >= 10.0 => 2,
        _ => 3,
    };
    format!("{value:.decimals$}")
}

/// In which order a disk serves.
fn order(fit: &Fit) -> Option<&'static str> {
    let Kind::Disk(DiskSpec { policy, .. }) = &fit.kind else { return None };
    Some(match policy {
        Policy::Fifo => "in the order of arrival",
        Policy::Look => "to and fro over the cylinders (LOOK)",
        Policy::CLook => "in one direction over the cylinders (C-LOOK)",
        Policy::ShortestSeek => "the shortest seek first (SSTF)",
        Policy::ShortestPositioning => "the shortest positioning time first (SPTF)",
    })
}

fn place(kind: CellKind) -> String {
    match kind {
        CellKind::Random { percent: 100 } => "anywhere".to_owned(),
        CellKind::Random { percent } => format!("anywhere in {percent} %"),
        CellKind::Sequential { percent } => format!("in sequence from {percent} %"),
        CellKind::Streams { streams } => format!("in {streams} streams"),
    }
}

fn doubt_words(doubt: Doubt) -> String {
    match doubt {
        Doubt::Depths { ratio } => format!(
            "no model of one drive explains how reads grow with size and depth: the best one is off by a \
             factor of {ratio:.2} somewhere. Is it an array, or does a cache of the host answer?"
        ),
        Doubt::NoBuffer => {
            "nothing is answered from a buffer, so that what a command costs is a part of \
                            the seek's times."
                .to_owned()
        }
        Doubt::TurnFromSpread => {
            "blocks just before the last one do not take a turn, so that the turn is \
                                  from the spread of random reads."
                .to_owned()
        }
        Doubt::Predictions { wrong, of } => format!(
            "{wrong} of {of} predictions are wrong by more than a quarter: the profile is no base for a \
             choice between settings there."
        ),
    }
}
