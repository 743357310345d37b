//! Traces that people posted, traces of every format, and damaged ones.

#![allow(clippy::unwrap_used, clippy::expect_used)]

mod field;
mod formats;

use trace::{How, Trace, TraceError, read};

fn parsed(text: &str) -> Trace {
    read("t", text.as_bytes(), &How::default()).unwrap()
}

fn refused(text: &str) -> TraceError {
    read("t", text.as_bytes(), &How::default()).unwrap_err()
}
