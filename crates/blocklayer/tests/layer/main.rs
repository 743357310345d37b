//! The layer with all its schedulers, driven in virtual time before a device that keeps a log.

mod errors;
mod properties;
mod schedules;
mod world;
