//! A trace of one format, or of whichever its bytes resemble.

#![no_main]

use libfuzzer_sys::fuzz_target;
use std::sync::OnceLock;
use trace::{Format, How, read};

static FORMAT: OnceLock<Option<Format>> = OnceLock::new();

fuzz_target!(|input: &[u8]| {
    let format = *FORMAT.get_or_init(|| fuzz::named(Format::ALL));
    // In half of all inputs, what stands behind a line that does not fit is seen, too.
    let skip_bad = input.len() % 2 == 1;
    fuzz::bounded(input, || {
        let _ = read("f", input, &How { format, unit: None, skip_bad });
    });
});
