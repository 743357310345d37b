//! What other programs printed, read back: published outputs, outputs made here, and damaged ones.

#![allow(clippy::unwrap_used, clippy::expect_used)]

mod field;
mod formats;
mod long;
mod made;
mod transcript;

use import::{Output, PieceKind, Source, decode, parts};
use record::{Doubt, Imported, Quantity, Run};

/// The runs in a text, in their order.
fn outputs(text: &str) -> Vec<(String, Output)> {
    parts(&decode(text.as_bytes()).unwrap())
        .into_iter()
        .filter_map(|part| match part.piece.kind {
            PieceKind::Run(output) => Some((part.piece.tool, *output)),
            _ => None,
        })
        .collect()
}

/// The one run in a text.
fn output(text: &str) -> (String, Output) {
    let mut all = outputs(text);
    assert_eq!(all.len(), 1, "{all:#?}");
    all.remove(0)
}

fn value(output: &Output, subject: &str, quantity: Quantity) -> Option<f64> {
    let found = output.figures.iter().find(|it| it.subject == subject && it.quantity == quantity);
    found.map(|it| it.value)
}

/// A latency in milliseconds, to the digits that are printed.
fn ms(output: &Output, subject: &str, quantity: Quantity) -> Option<f64> {
    value(output, subject, quantity).map(|ns| (ns / 1e3).round() / 1e3)
}

fn has(output: &Output, wanted: fn(&Doubt) -> bool) -> bool {
    output.doubts.iter().any(wanted)
}

/// A run of files.
fn run(files: &[(&str, &str)]) -> Run {
    let sources: Vec<Source<'_>> = files
        .iter()
        .map(|(file, text)| Source { file: (*file).to_owned(), bytes: text.as_bytes(), cell: None })
        .collect();
    import::import(&sources, "t", 0, "0").unwrap().0
}

fn imported(run: &Run, trial: usize) -> &Imported {
    run.trials[trial].measurement().unwrap().imported.as_ref().unwrap()
}
