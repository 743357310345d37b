//! The layer with all its schedulers, driven in virtual time before a device that keeps a log.

#![allow(clippy::unwrap_used, clippy::expect_used)]

mod errors;
mod flushes;
mod properties;
mod rhel_5;
mod schedules;
mod world;
