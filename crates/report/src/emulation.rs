//! What `spindle emulate` shows of a device.

use crate::words;
use units::{Bytes, Nanos};

/// A device that is up.
#[derive(Clone, Debug)]
pub struct EmulatedDevice<'a> {
    /// Its size.
    pub size: Bytes,
    /// The profile's title.
    pub title: &'a str,
    /// How requests reach its server.
    pub transport: String,
    /// Commands that the model takes at once.
    pub model_depth: u32,
    /// Commands that the transport passes at once.
    pub depth: u32,
    /// Whether the pacing thread spins.
    pub spins: bool,
}

/// What the user should know of a device that came up.
pub fn emulated_device(device: &EmulatedDevice, width: usize) -> String {
    let mut words = vec![format!(
        "{} of {}, {}.",
        device.size,
        device.title.trim_end_matches('.'),
        device.transport
    )];
    if device.model_depth > device.depth {
        words.push(format!(
            "The model's queue takes {} commands, of which {} pass at once.",
            device.model_depth, device.depth
        ));
    }
    if device.spins {
        words.push(
            "While requests arrive, idle CPUs poll and the server spins before each event, for as \
             long as its wake-ups turn out to need."
                .to_owned(),
        );
    }
    words.push("Ctrl-C or `spindle emulate stop` takes it down, its data with it.".to_owned());
    words::wrap(&words.join(" "), width, 0) + "\n"
}

/// What a device did in the last second.
#[derive(Clone, Copy, Debug, Default)]
pub struct EmulatedSecond {
    /// Reads.
    pub reads_per_second: f64,
    /// Writes.
    pub writes_per_second: f64,
    /// Flushes.
    pub flushes_per_second: f64,
    /// Requests in the model.
    pub outstanding: u32,
    /// 99th percentile of the lateness.
    pub late_p99: Nanos,
    /// Busy drives or channels, and how many there are; one drive is busy when it has requests.
    pub busy: Option<(u32, u32)>,
    /// Data in its write cache.
    pub dirty: Bytes,
    /// Where the head of a single drive is.
    pub cylinder: Option<u32>,
}

/// One second in a line that no terminal of `width` columns wraps: requests and lateness always, the
/// rest as far as there is room.
pub fn emulated_second(second: &EmulatedSecond, width: usize) -> String {
    let rate = |rate: f64| match rate.round() {
        rate if rate < 100.0 => rate.to_string(),
        rate => words::count(rate),
    };
    let mut line = format!(
        "{} r/s  {} w/s  {} f/s  depth {}",
        rate(second.reads_per_second),
        rate(second.writes_per_second),
        rate(second.flushes_per_second),
        second.outstanding
    );
    let late = format!("  late p99 {}", second.late_p99);
    let busy = second.busy.map(|(busy, all)| format!("  busy {busy}/{all}"));
    let dirty = (second.dirty > Bytes::ZERO).then(|| format!("  dirty {}", second.dirty));
    let cylinder = second.cylinder.map(|cylinder| format!("  cylinder {cylinder}"));
    for word in [busy, dirty, cylinder].into_iter().flatten() {
        if [&line, &word, &late].iter().map(|it| it.chars().count()).sum::<usize>() < width {
            line += &word;
        }
    }
    line + &late
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_second_fits_a_line_and_keeps_what_matters() {
        let idle = EmulatedSecond { cylinder: Some(0), ..EmulatedSecond::default() };
        let line = emulated_second(&idle, 80);
        assert_eq!(line, "0 r/s  0 w/s  0 f/s  depth 0  cylinder 0  late p99 0 ns");
        let busy = EmulatedSecond {
            reads_per_second: 67_996.0,
            writes_per_second: 50_748.0,
            flushes_per_second: 1_196.0,
            outstanding: 1023,
            late_p99: Nanos::from_micros(123),
            busy: Some((16, 16)),
            dirty: Bytes::from_mib(4096),
            cylinder: None,
        };
        let line = emulated_second(&busy, 80);
        assert!(line.chars().count() < 80, "{line}");
        assert!(line.starts_with("67,996 r/s  50,748 w/s  1,196 f/s  depth 1023"), "{line}");
        assert!(line.ends_with("late p99 123 µs") && line.contains("busy 16/16"), "{line}");
    }
}
