//! Long texts are read in time in proportion to their length.

use import::{Source, import};
use std::time::{Duration, Instant};

/// What takes longer hangs: a thousand times what these texts take on a slow machine.
const HANG: Duration = Duration::from_secs(60);

#[test]
fn ten_thousands_of_lines_are_read_in_seconds() {
    // Each would take hours where every line is read again from every line before it.
    let line = |text: &str, times: usize| text.repeat(times);
    for text in [
        line("{\n\"fio version\" : \"fio-3\",\n", 40_000),
        line("{\n", 200_000),
        line("# sysbench --a \\\n", 50_000),
        line("Device r/s\nsda 1\n", 50_000),
        line("| noop | 1.50 | 2.50 |\n", 50_000),
        line("[Summary] A - Takes(s): 1, Count: 1, TPM: 1\n", 50_000),
        line("[", 300_000),
        line("progress: 1.0 s, 1.0 tps\n", 50_000),
    ] {
        let begun = Instant::now();
        let source = Source { file: "m.txt".to_owned(), bytes: text.as_bytes(), cell: None };
        let _ = import(&[source], "m", 0, "0");
        assert!(begun.elapsed() < HANG, "{:?}", &text[..20.min(text.len())]);
    }
}
