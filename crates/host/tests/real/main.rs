//! On the real kernel: loop devices of our own, as root. Without root or loop devices every test
//! here says so and checks nothing.
//!
//! Each test has its own files, loop devices and state folder, so that all can run at once.

#![allow(clippy::unwrap_used, clippy::expect_used)]

mod counting;
mod filesystems;
mod guards;
mod inspections;
mod journals;
mod machine;
mod order;
mod settings;
mod shared_state;
mod watching;
