//! Load on the real kernel: files, loop devices, processes. What needs root says so and is skipped
//! without it.

// Helpers of tests are tests, too.
#![allow(clippy::unwrap_used)]

mod commit;
mod device;
mod dont_cache;
mod file;
mod fio;
mod laying_out;
mod many;
mod page;
mod place;
