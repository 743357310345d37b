//! The pages of docs/.
//!
//! What lives here: the topics of `spindle explain` with their text ([`topics`], [`terminal`]);
//! tables in Markdown that are rendered from data/ or from what the program knows ([`markers`],
//! [`data`]); checks of links, reachability and length ([`checks`]). What does not: the content of
//! sections that only the program knows, which the caller passes as a function. Data flows from
//! files to text.

pub mod checks;
pub mod data;
pub mod error;
pub mod markers;
mod synonyms;
pub mod terminal;
pub mod topics;

pub use error::DocumentError;
