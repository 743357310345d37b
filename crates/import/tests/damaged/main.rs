//! Damaged outputs: whatever a file holds, reading it ends, within a second, without a panic and without more memory
//! than its length allows. A short form of `tools/fuzz`, on any compiler: files of its corpus, and mutations of them
//! drawn from a seeded stream; a failure names the seed that repeats it. `SPINDLE_MUTATIONS` makes it any number.

#![allow(clippy::unwrap_used, clippy::expect_used)]

use import::{Format, Source, decode, import, proposal, read_as};
use std::{
    path::Path,
    time::{Duration, Instant},
};

/// What takes longer hangs.
const HANG: Duration = Duration::from_secs(1);
/// Memory that the program may take in all: 64 MiB to read a text of this length, and itself.
const MEMORY_KIB: u64 = (64 + 64) << 10;

/// The files of the corpus.
fn corpus() -> Vec<Vec<u8>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus/import");
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

/// Damages a text: bytes changed, taken away, doubled, moved; lines repeated; pieces of another inserted.
fn mutate(stream: &mut random::Stream, text: &[u8], other: &[u8]) -> Vec<u8> {
    let mut bytes = text.to_vec();
    let rounds = 1 + stream.below(6);
    for _ in 0..rounds {
        if bytes.is_empty() {
            return bytes;
        }
        let at = stream.below(bytes.len() as u64) as usize;
        let length = (1 + stream.below(20) as usize).min(bytes.len() - at);
        match stream.below(8) {
            0 => bytes[at] = stream.below(256) as u8,
            1 => drop(bytes.drain(at..at + length)),
            2 => {
                let part = bytes[at..at + length].to_vec();
                bytes.splice(at..at, part);
            }
            3 => bytes.truncate(at),
            4 => {
                let from = stream.below(other.len().max(1) as u64) as usize;
                let part = other[from..].iter().copied().take(200).collect::<Vec<u8>>();
                bytes.splice(at..at, part);
            }
            5 => {
                let words: [&[u8]; 8] =
                    [b"1e308", b"-1", b"99999999999999999999", b"0", b"%", b"\n", b"{", b"\xff"];
                let word = words[stream.below(8) as usize];
                bytes.splice(at..at + length, word.iter().copied());
            }
            6 => {
                let digit = bytes.iter().position(u8::is_ascii_digit).unwrap_or(at);
                bytes[digit] = b'0' + stream.below(10) as u8;
            }
            _ => {
                let again = bytes.clone();
                if bytes.len() < 20_000 {
                    bytes.extend_from_slice(&again);
                }
            }
        }
    }
    bytes
}

fn read(bytes: &[u8]) {
    if let Ok(text) = decode(bytes) {
        for format in Format::ALL {
            let _ = read_as(&text, *format);
        }
    }
    let source = Source { file: "m.txt".to_owned(), bytes, cell: None };
    if let Ok((run, asked)) = import(&[source], "m", 0, "0") {
        let _ = proposal(&run, &asked, "/tmp");
    }
}

#[test]
fn damaged_outputs_are_read_or_refused_without_a_panic_a_hang_or_much_memory() {
    let corpus = corpus();
    for (number, bytes) in corpus.iter().enumerate() {
        bounded(&format!("file {number}"), bytes, read);
    }
    for seed in 0..mutations(4_000) {
        let mut stream = random::Stream::new(seed, "mutation");
        let text = &corpus[stream.below(corpus.len() as u64) as usize];
        let other = &corpus[stream.below(corpus.len() as u64) as usize];
        let bytes = mutate(&mut stream, text, other);
        bounded(&format!("seed {seed}"), &bytes, read);
    }
    assert!(most_memory_kib() < MEMORY_KIB, "{} KiB", most_memory_kib());
}
