//! Real servers from the distribution's packages, private to each test. Without the packages a test
//! says so and is skipped.

#![allow(clippy::unwrap_used, clippy::expect_used)]

mod deadlock;
mod server;
mod statements;
mod tpcc;
