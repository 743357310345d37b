//! Damaged traces: whatever a file holds, reading it ends, within a second, without a panic and without more memory
//! than its length allows. A short form of `tools/fuzz`, on any compiler: files of its corpus, and mutations of them
//! drawn from a seeded stream; a failure names the seed that repeats it. `SPINDLE_MUTATIONS` makes it any number.

#![allow(clippy::unwrap_used, clippy::expect_used)]

use std::{
    path::Path,
    time::{Duration, Instant},
};
use trace::{Format, How, read};

/// What takes longer hangs.
const HANG: Duration = Duration::from_secs(1);
/// Memory that the program may take in all: 64 MiB to read a text of this length, and itself.
const MEMORY_KIB: u64 = (64 + 64) << 10;

/// The files of the corpus.
fn corpus() -> Vec<Vec<u8>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus/trace");
    let mut files = Vec::new();
    for format in std::fs::read_dir(folder).unwrap() {
        files.extend(
            std::fs::read_dir(format.unwrap().path()).unwrap().map(|it| it.unwrap().path()),
        );
    }
    files.sort();
    files.iter().map(|file| std::fs::read(file).unwrap()).collect()
}

/// Time that this thread has had of the processor (Documentation/scheduler/sched-stats.rst): a busy machine may stop
/// the program as long as it likes.
fn processor_time() -> Duration {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap();
    Duration::from_nanos(text.split_whitespace().next().unwrap().parse().unwrap())
}

/// Reads bytes. Only where that takes long by the clock, it is read again to see what the processor had of it.
fn bounded(name: &str, bytes: &[u8], read: impl Fn(&[u8]) + std::panic::RefUnwindSafe) {
    let begun = Instant::now();
    let done = std::panic::catch_unwind(|| read(bytes));
    assert!(done.is_ok(), "{name}: {:?}", String::from_utf8_lossy(bytes));
    if begun.elapsed() > HANG {
        let begun = processor_time();
        read(bytes);
        assert!(processor_time() - begun < HANG, "{name} takes too long");
    }
}

/// The most memory that this program has had, in KiB (proc(5), VmHWM).
fn most_memory_kib() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    line.trim().trim_end_matches(" kB").parse().unwrap()
}

fn mutations(usual: u64) -> u64 {
    std::env::var("SPINDLE_MUTATIONS").ok().and_then(|it| it.parse().ok()).unwrap_or(usual)
}

fn read_any(bytes: &[u8], named: Format) {
    for format in [None, Some(named)] {
        for skip_bad in [false, true] {
            let _ = read("m", bytes, &How { format, skip_bad, unit: None });
        }
    }
}

#[test]
fn damaged_traces_are_read_or_refused_without_a_panic_a_hang_or_much_memory() {
    let corpus = corpus();
    for (number, bytes) in corpus.iter().enumerate() {
        for named in Format::ALL {
            bounded(&format!("file {number}"), bytes, |bytes| read_any(bytes, *named));
        }
    }
    for seed in 0..mutations(20_000) {
        let mut stream = random::Stream::new(seed, "trace mutation");
        let mut bytes = corpus[stream.below(corpus.len() as u64) as usize].clone();
        for _ in 0..1 + stream.below(5) {
            let at = stream.below(bytes.len().max(1) as u64) as usize;
            let length = (1 + stream.below(12) as usize).min(bytes.len().saturating_sub(at));
            match stream.below(5) {
                _ if bytes.is_empty() => break,
                0 => bytes[at] = stream.below(256) as u8,
                1 => drop(bytes.drain(at..at + length)),
                2 => {
                    let part = bytes[at..at + length].to_vec();
                    bytes.splice(at..at, part);
                }
                3 => bytes.truncate(at),
                _ => {
                    let words: [&[u8]; 7] =
                        [b"18446744073709551615", b"-1", b"1e300", b"0", b"+", b"\n", b"[0]"];
                    let word = words[stream.below(7) as usize];
                    bytes.splice(at..at + length, word.iter().copied());
                }
            }
        }
        let named = Format::ALL[stream.below(Format::ALL.len() as u64) as usize];
        bounded(&format!("seed {seed}"), &bytes, |bytes| read_any(bytes, named));
    }
    assert!(most_memory_kib() < MEMORY_KIB, "{} KiB", most_memory_kib());
}
