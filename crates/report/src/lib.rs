//! A run as text, for a terminal of 80 columns, as Markdown, CSV and JSON; as a page; its ranking as a picture.
//!
//! What lives here: layout and wording. What does not: any figure that `analysis` has not computed.
//! Data flows: [`record::Run`] and [`analysis::Analysis`] → text; nothing flows back.

mod application;
mod check;
mod csv;
mod document;
mod drawing;
mod emit;
mod emulation;
mod fit;
mod fleet;
mod fragment;
mod html;
mod imported;
mod inspection;
mod json;
mod markdown;
mod page;
mod published;
mod ranking;
mod recommendation;
mod run_diff;
mod sentences;
mod sessions;
mod sync_card;
mod table;
mod terminal;
mod transactions;
mod validation;
mod watch;
mod words;

pub use application::{
    ApplicationOutcome, ShownApplication, ShownChange, ShownDeviation, ShownStatus, age,
    other_owners, setting_diff, status, status_prometheus, udev_proof,
};
pub use check::{Checked, checked, checked_json};
pub use csv::csv;
pub use document::{Document, SCHEMA, document};
pub use drawing::{events_svg, events_terminal};
pub use emit::{EmitFormat, emit};
pub use emulation::{EmulatedDevice, EmulatedSecond, emulated_device, emulated_second};
pub use fit::{fit_profile, fitted, fitted_json};
pub use fleet::{fleet, fleet_html, fleet_json, fleet_markdown};
pub use fragment::fragment;
pub use html::{PageRun, html, live_html, packed};
pub use inspection::{devices, inspection};
pub use json::json;
pub use markdown::markdown;
pub use ranking::ranking_png;
pub use recommendation::{recommendation, recommendation_json};
pub use run_diff::{run_diff, run_diff_json};
pub use sentences::{atomic_write, classics, event, outcome, presets, store_wait};
pub use sync_card::{sync_card, sync_cell, sync_method};
pub use table::{Align, Table};
pub use terminal::{plan_text, terminal};
pub use validation::{ShownAgreement, ShownCell, ShownTransport, ShownValidation, validation};
pub use watch::setting_write;
pub use words::{count, percent, run_name, verdict_word, wrap};

#[cfg(test)]
mod tests;
