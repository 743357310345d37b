//! What is said of runs whose truth is known: verdicts, findings, decisions, recommendations.

#![allow(clippy::unwrap_used)] // a panic is how a test tells

mod durability;
mod findings;
mod fleet;
mod generated;
mod recommendation;
mod screening;
mod sessions;
mod tails;
mod verdicts;
