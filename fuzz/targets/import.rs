//! An output of one format, or a transcript: decoded, read, checked, made a run, and that a plan.

#![no_main]

use import::{Format, Source, decode, import, proposal, read_as};
use libfuzzer_sys::fuzz_target;
use std::sync::OnceLock;

static FORMAT: OnceLock<Option<Format>> = OnceLock::new();

fuzz_target!(|input: &[u8]| {
    let format = *FORMAT.get_or_init(|| fuzz::named(Format::ALL));
    fuzz::bounded(input, || match format {
        Some(format) => {
            if let Ok(text) = decode(input) {
                let _ = read_as(&text, format);
            }
        }
        None => {
            let source = Source { file: "f".to_owned(), bytes: input, cell: None };
            if let Ok((run, asked)) = import(&[source], "f", 0, "0") {
                let _ = proposal(&run, &asked, "/f");
            }
        }
    });
});
