//! Rules of the house that a test can hold: no cycles between modules, no sentence as an error's type,
//! no private vocabulary, one file and one page for each extension point.

#![allow(clippy::unwrap_used)]

mod extension;
mod modules;
mod processes;
mod source;
mod vocabulary;
