//! What other programs printed about runs that they made: text → [`record::Run`].
//!
//! What lives here: the formats, one file each in `formats/`; what a transcript says between outputs
//! (`transcript`, `settings`); what contradicts what (`checks`, `table`); and the run that comes of it
//! (`run`). What does not: opening files, and any verdict. Pure.
//!
//! Nothing printed is believed because it is printed: what can be computed again is, and a contradiction is
//! a [`record::Doubt`] with both lines.

mod asked;
mod checks;
mod devices;
mod error;
mod format;
mod formats;
mod json;
mod line;
mod output;
mod proposal;
mod quoting;
mod run;
mod settings;
mod source;
mod table;
mod text;
mod transcript;
mod unknown;

pub use error::{DecodeError, ImportError};
pub use format::Format;
pub use output::{Conditions, DeviceReport, Output, Piece, PieceKind};
pub use proposal::{Proposal, Unplanned, proposal};
pub use run::import;
pub use source::{CellFile, Source};
pub use text::{Text, decode};
pub use transcript::{Part, parts, read_as};
