//! Drives that are published as DiskSim's parameter files, and traces in its validation format.
//!
//! The formats are those of the DiskSim 4.0 reference manual (CMU-PDL-08-101) and of its Diskmodel
//! library's manual: `*.diskspecs` (electronics), `*.model` (layout and arm), `*.seek` (measured
//! seek times), `*.parv` (the bus), `*.trace` (requests with their measured times).

mod arm;
mod import;
mod index;
mod layout;
mod parse;
mod reader;
mod trace;

pub use import::import;
pub use trace::{TraceEntry, parse_trace};
