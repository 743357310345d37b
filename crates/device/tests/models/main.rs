//! Models of drives, arrays and flash: against formulas, laws, descriptions of real drives, and each other.

#![allow(clippy::unwrap_used)] // a panic is how a test tells

mod layouts;
mod oracles;
mod profiles;
mod properties;
mod validation;
