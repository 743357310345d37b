//! What lies between the kernel and an emulated device's model on this machine, now: the transport. It
//! is measured on a device on which nothing waits for anything else, so that what is beyond an
//! operation's own time is the transport and the clients.

use crate::{
    Step, ValidateError,
    cells::Load,
    session::Session,
    subject::Subject,
    trials::{self, TrialFigures},
};
use analysis::Analysis;
use emulate::{DataPlace, Emulation, SERVER_VERB, Wanted};
use host::{Changes, Host};
use plan::{Factor, Plan, RawLevel, RawPlan, TrialLength};
use record::{Histogram, Run};
use runner::WorldError;
use serde::Serialize;
use simulate::CHANCES;
use std::collections::BTreeMap;
use units::{Bytes, Nanos};

/// Rounds of the trials that measure the transport.
const ROUNDS: u32 = 3;

const WARMUP: Nanos = Nanos::from_millis(500);

/// So small that its memory is all there after the warm-up.
const SIZE: Bytes = Bytes::from_mib(64);

/// The host may be late by much: its lateness is a part of what is measured.
const MARGIN_PERCENT: f64 = 50.0;

/// The lowest few latencies are not of a transport that is used again and again.
const LOWEST: f64 = 0.01;

/// How far apart the link lets completions be where the most that the transport carries is measured: less
/// than two requests one behind the other take on any transport that was measured, and enough that they
/// are not answered in bunches, which take less.
const APART: Nanos = Nanos::from_micros(5);

/// How long a read takes on the device on which the smallest gap is measured.
const READ_AT_ONCE: Nanos = Nanos::from_micros(1);

/// With more operations outstanding than this, requests wait for one another's tags.
const MAX_DEPTH: u32 = 32;

/// A link that takes no time, MB/s.
const NO_LINK: f64 = 1_000_000.0;

/// Quantiles of times.
type Quantiles = [Nanos; CHANCES.len()];

/// The transport of one profile's cells, as it was measured.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct MeasuredTransport {
    /// The profile.
    pub profile: String,
    /// The set of cells.
    pub set: String,
    /// Their pattern.
    pub pattern: String,
    /// Their block size.
    pub block_size: String,
    /// Their clients.
    pub clients: u32,
    /// What was measured.
    pub figures: TransportFigures,
}

/// What lies between the models, of operations of one pattern.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct TransportFigures {
    /// To the device and back, at best.
    pub round_trip: Nanos,
    /// What comes on top by chance: the quantiles of [`simulate::CHANCES`].
    pub jitter: Quantiles,
    /// A client's time between a completion and its next request.
    pub turnaround: Nanos,
    /// How far apart the requests were in which that was measured.
    pub every: Nanos,
    /// How far one request is behind another at least.
    pub gap: Nanos,
    /// What writes take in addition.
    pub write: Nanos,
}

impl TransportFigures {
    /// The jitter at a quantile, or at the next lower one that was measured.
    pub fn jitter_at(&self, quantile: f64) -> Nanos {
        let above = CHANCES.partition_point(|chance| *chance <= quantile);
        self.jitter[above.saturating_sub(1)]
    }

    /// The options of a simulated target. `at_once`: a client's time between two operations is added to
    /// the transport, because a newcomer who is late at a tag has lost.
    pub fn options(&self, at_once: bool) -> String {
        let (round_trip, turnaround) = match at_once {
            true => (self.round_trip + self.turnaround, Nanos::ZERO),
            false => (self.round_trip, self.turnaround),
        };
        let jitter = self.jitter.map(written).join("/");
        format!(
            "turnaround={},transport={},transport_gap={},transport_write={},transport_jitter={jitter}",
            written(turnaround),
            written(round_trip),
            written(self.gap),
            written(self.write)
        )
    }
}

/// A time as a target's option has it.
pub fn written(time: Nanos) -> String {
    format!("{}ns", time.0)
}

/// Measures the transport for a set of cells: one for each of its patterns.
pub(crate) fn measure(
    session: &mut Session,
    subject: &Subject,
    load: &Load,
) -> Result<Vec<MeasuredTransport>, ValidateError> {
    // Streams meet one another on the transport. So do small operations, but less, and flash leaves no
    // room to measure it.
    let together = if load.is_small() { 1 } else { load.clients };
    let read = read_time(subject, load) * u64::from(together);
    let [reads, writes] = ["randread", "randwrite"].map(|pattern| {
        let run = paced(session, subject, load, pattern, together, read)?;
        Latency::of(&run, together, read, pattern, load)
    });
    let (reads, writes) = (reads?, writes?);
    let gap = smallest_gap(session, load)?;
    let of_pattern = |pattern: &&str| {
        let is_write = pattern.ends_with("write");
        let latency = if is_write { &writes } else { &reads };
        let apart = (latency.beyond + latency.turnaround) / f64::from(together);
        let figures = TransportFigures {
            round_trip: nanos(latency.best),
            jitter: latency.jitter,
            turnaround: nanos(latency.turnaround),
            every: read_time(subject, load) + nanos(apart),
            gap,
            write: nanos(writes.beyond - latency.beyond),
        };
        MeasuredTransport {
            profile: subject.name.clone(),
            set: load.set.to_string(),
            pattern: (*pattern).to_owned(),
            block_size: load.block_size.to_string(),
            clients: load.clients,
            figures,
        }
    };
    Ok(load.patterns.iter().map(of_pattern).collect())
}

/// Nanoseconds of a difference that may be below zero, by chance.
fn nanos(time: f64) -> Nanos {
    Nanos(time.max(0.0).round() as u64)
}

/// How long an operation of the device takes, of one client: about as long as those that go through such
/// a transport. It is longer the longer processors have slept before. Several clients' take as many times
/// as long, and so come as far apart.
fn read_time(subject: &Subject, load: &Load) -> Nanos {
    match (subject.rotates, load.is_small()) {
        (true, true) => Nanos::from_millis(5),
        (true, false) => Nanos::from_micros(500),
        (false, _) => Nanos::from_micros(100),
    }
}

/// How operations went through the transport, in nanoseconds.
struct Latency {
    /// The transport at best.
    best: f64,
    /// What came on top by chance.
    jitter: Quantiles,
    /// The mean beyond the device's own time.
    beyond: f64,
    /// A client's time between two operations.
    turnaround: f64,
}

impl Latency {
    /// Of a run of one cell on the device whose operations take `read`.
    fn of(
        run: &Run,
        clients: u32,
        read: Nanos,
        pattern: &str,
        load: &Load,
    ) -> Result<Latency, ValidateError> {
        let trials = trials_of_one_cell(run);
        let latencies = trials::together(&trials);
        let throughput = Analysis::of(run)
            .groups
            .first()
            .and_then(|group| group.baseline.throughput)
            .map(|estimate| estimate.mean);
        match (latencies.mean(), throughput) {
            (Some(mean), Some(throughput)) if throughput > 0.0 => {
                Ok(Latency::of_figures(&latencies, mean, throughput, clients, read))
            }
            _ => Err(ValidateError::NoTrial {
                step: step(pattern, load, clients),
                why: "no operation completed".to_owned(),
            }),
        }
    }

    fn of_figures(
        latencies: &Histogram,
        mean: Nanos,
        throughput: f64,
        clients: u32,
        read: Nanos,
    ) -> Latency {
        let times = CHANCES.map(|chance| latencies.quantile(chance.max(LOWEST)).unwrap_or(mean));
        let jitter = times.map(|time| time.saturating_sub(times[0]));
        let mean = mean.0 as f64;
        let beyond = mean - read.0 as f64;
        Latency {
            best: beyond - mean_of(&jitter),
            jitter,
            beyond,
            turnaround: f64::from(clients) * 1e9 / throughput - mean,
        }
    }
}

/// The mean of times with these quantiles, a straight line between two and the last beyond it, as the
/// simulated transport draws them.
fn mean_of(quantiles: &Quantiles) -> f64 {
    let between = CHANCES.windows(2).zip(quantiles.windows(2));
    let sum: f64 = between
        .map(|(chance, time)| (chance[1] - chance[0]) * (time[0].0 + time[1].0) as f64 / 2.0)
        .sum();
    let last = CHANCES.len() - 1;
    sum + (1.0 - CHANCES[last]) * quantiles[last].0 as f64
}

/// The trials of a run of which a baseline is all.
fn trials_of_one_cell(run: &Run) -> Vec<TrialFigures> {
    (0..run.plan.cells.len()).flat_map(|cell| trials::of_cell(run, cell)).collect()
}

fn step(pattern: &str, load: &Load, clients: u32) -> Step {
    Step::Transport {
        pattern: pattern.to_owned(),
        block_size: load.block_size.to_string(),
        clients,
    }
}

/// A run of one pattern on a device whose operations take `read`, paced like the one that it stands for.
fn paced(
    session: &mut Session,
    subject: &Subject,
    load: &Load,
    pattern: &str,
    clients: u32,
    read: Nanos,
) -> Result<Run, ValidateError> {
    let source = device_file(session, read, NO_LINK)?;
    let (kind, pauses) = if subject.rotates { ("disk", "yes") } else { ("flash", "no") };
    let transport = transport_word(session);
    let target = format!("emulated:{source},data=memory,transport={transport},pauses={pauses}");
    let mut raw = one_cell(session, target, load, pattern, clients, 1);
    raw.margin_percent = Some(MARGIN_PERCENT);
    let block_size = load.block_size.to_string().replace(' ', "");
    let name = format!("transport-{kind}-{block_size}-{clients}-{pattern}");
    session.run(&step(pattern, load, clients), &name, &raw, true)
}

/// A plan of one cell, under no scheduler.
fn one_cell(
    session: &Session,
    target: String,
    load: &Load,
    pattern: &str,
    clients: u32,
    depth: u32,
) -> RawPlan {
    let word = |text: &str| RawLevel::Word(text.to_owned());
    let number = |number: u32| RawLevel::Number(u64::from(number));
    let block_size = load.block_size.to_string().replace(' ', "");
    RawPlan {
        target: Some(target),
        size: Some(SIZE),
        seed: Some(1),
        rounds: Some(ROUNDS),
        warmup: Some(WARMUP),
        measure: Some(session.settings.transport_measure),
        factors: BTreeMap::from([
            (Factor::Scheduler.to_string(), vec![word("none")]),
            (Factor::Pattern.to_string(), vec![word(pattern)]),
            (Factor::BlockSize.to_string(), vec![word(&block_size)]),
            (Factor::Clients.to_string(), vec![number(clients)]),
            (Factor::Depth.to_string(), vec![number(depth)]),
        ]),
        baseline: BTreeMap::from([(Factor::Scheduler.to_string(), word("none"))]),
        ..RawPlan::default()
    }
}

/// How often the transport takes a request from as many clients as the cells have, at best: trials differ
/// by up to three times.
fn smallest_gap(session: &mut Session, load: &Load) -> Result<Nanos, ValidateError> {
    let depths = load.depths.iter().copied().filter(|depth| *depth <= MAX_DEPTH);
    let depth = depths.max().unwrap_or(MAX_DEPTH);
    let block_size = load.block_size.to_string().replace(' ', "");
    let name = format!("gap-{block_size}-{}-{depth}", load.clients);
    let timing = (ROUNDS, TrialLength::Time(session.settings.transport_measure));
    let as_now = |plan: &Plan| (plan.timing.rounds, plan.timing.measure) == timing;
    let run = match session.kept(&name, as_now) {
        Some(run) => run,
        None => at_its_limit(session, load, depth, &name)?,
    };
    let rates = trials_of_one_cell(&run).into_iter().map(|trial| trial.throughput);
    let most = rates.fold(0.0, f64::max);
    match most > 0.0 {
        true => Ok(nanos(1e9 / most)),
        false => Err(ValidateError::NoTrial {
            step: gap_step(load, depth),
            why: "no operation completed".to_owned(),
        }),
    }
}

fn gap_step(load: &Load, depth: u32) -> Step {
    Step::Gap { block_size: load.block_size.to_string(), clients: load.clients, depth }
}

/// A run on a device that is faster than the transport, whose model's times it then cannot keep. So the
/// device is brought up for itself, and measured as any block device, of which nobody asks whether it
/// keeps a model's times.
fn at_its_limit(
    session: &mut Session,
    load: &Load,
    depth: u32,
    name: &str,
) -> Result<Run, ValidateError> {
    // Bytes in a microsecond are MB/s.
    let link = load.block_size.0 as f64 / APART.as_micros_f64();
    let source = device_file(session, READ_AT_ONCE, link)?;
    let wanted = Wanted {
        program: std::env::current_exe().map_err(WorldError::fatal)?,
        arguments: vec![SERVER_VERB.to_owned()],
        profile: source,
        seed: 1,
        size: Some(SIZE),
        data: DataPlace::Memory,
        transport: Some(session.settings.transport),
        pauses: None,
    };
    let mut changes = Changes::begin(&Host::here(), &session.settings.command)?;
    // What was made before an error goes with `changes`.
    let emulation = Emulation::start(&mut changes, &wanted)?;
    let node = emulation.node.display().to_string();
    let mut raw = one_cell(session, node, load, "randread", load.clients, depth);
    raw.confirm = Some(emulation.confirmation.clone());
    let run = session.run(&gap_step(load, depth), name, &raw, true);
    drop(emulation);
    let report = changes.finish()?;
    let failed: Vec<String> = report
        .steps
        .iter()
        .filter(|step| !step.outcome.is_right())
        .map(|step| format!("{}: {}", step.what, step.outcome))
        .collect();
    match failed.is_empty() {
        true => run,
        false => Err(WorldError::LeftBehind { steps: failed }.into()),
    }
}

/// The word of the transport that carries requests.
pub fn transport_word(session: &Session) -> &'static str {
    use emulate::Transport;
    match session.settings.transport {
        Transport::Ublk => "ublk",
        Transport::Fuse => "fuse",
        Transport::FuseUring => "fuse-uring",
    }
}

/// The file of a device on which nothing waits for anything else: reads and writes take `read`, behind a
/// link of so many MB/s.
fn device_file(session: &Session, read: Nanos, link: f64) -> Result<String, ValidateError> {
    let path = session.folder().join(format!("free-{}.toml", read.0));
    let text = device_text(read, link);
    std::fs::write(&path, text).map_err(|error| ValidateError::write(&path, error))?;
    Ok(path.to_string_lossy().into_owned())
}

fn device_text(read: Nanos, link: f64) -> String {
    let read = read.0;
    // As deep as what the transport of FUSE and a loop device passes.
    let depth = emulate::Transport::Fuse.tags(u32::MAX);
    format!(
        r#"title = "A device on which nothing waits for anything else"

[sources]
all = "none: made to measure the transport to it"

[flash]
capacity = "64 GiB"
over_provisioning = 1.0
channels = 256
dies_per_channel = 128
planes = 1
page = "128 KiB"
pages_per_block = 8
read = ["{read} ns"]
program = "1 ns"
erase = "1 ns"
channel = "{NO_LINK:.0} MB/s"
link_read = "{link:.1} MB/s"
link_write = "{NO_LINK:.0} MB/s"
firmware = "1 ns"
controller = "1 ns"
buffer_write = "{read} ns"
buffer = "16 MiB"
power_safe = true
depth = {depth}
state = "fresh"
full = 0.5
"#
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use device::{Profile, Request, profile};
    use runner::Target;

    fn micros(times: [u64; CHANCES.len()]) -> Quantiles {
        times.map(Nanos::from_micros)
    }

    #[test]
    fn the_mean_of_quantiles_is_that_of_the_lines_between_them() {
        // 10 µs throughout, but for the last thousandth: half of 0.4 % on the way from 10 to 110, 0.1 % at
        // 110: 10 + 0.004 * 50 + 0.001 * 100 = 10.3.
        let quantiles = micros([10, 10, 10, 10, 10, 10, 10, 10, 10, 10, 110]);
        assert!((mean_of(&quantiles) / 1000.0 - 10.3).abs() < 1e-9, "{}", mean_of(&quantiles));
    }

    #[test]
    fn what_is_beyond_the_devices_time_is_told_apart() {
        // Half of the operations take 120 µs, half 140; the device's own time is 100, and a client makes
        // one in 150 µs.
        let fast = Nanos(120_000);
        let latencies = Histogram::from_buckets([(fast, 500), (Nanos(140_000), 500)]);
        let mean = Nanos(130_000);
        let latency =
            Latency::of_figures(&latencies, mean, 1e6 / 150.0, 1, Nanos::from_micros(100));
        assert_eq!((latency.beyond, latency.turnaround.round()), (30_000.0, 20_000.0));
        assert_eq!(latency.jitter[0], Nanos::ZERO);
        // Buckets are up to 1 % wide.
        let most = latency.jitter[CHANCES.len() - 1].as_micros_f64();
        assert!((most - 20.0).abs() < 1.4, "{most}");
        assert!((latency.best + mean_of(&latency.jitter) - latency.beyond).abs() < 1e-6);
    }

    #[test]
    fn the_options_are_those_of_a_simulated_target() {
        let figures = TransportFigures {
            round_trip: Nanos(20_100),
            jitter: micros([0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 99]),
            turnaround: Nanos(7_900),
            every: Nanos(5_000_000),
            gap: Nanos(11_000),
            write: Nanos(3_000),
        };
        let text = |at_once| format!("simulated:hdd-15k@6.18,{}", figures.options(at_once));
        for at_once in [false, true] {
            Target::parse(&text(at_once)).unwrap();
        }
        assert!(text(true).contains("turnaround=0ns,transport=28000ns,"), "{}", text(true));
        assert!(text(false).contains("turnaround=7900ns,transport=20100ns,"), "{}", text(false));
    }

    #[test]
    fn nothing_waits_on_the_device_that_the_transport_is_measured_on() {
        let text = device_text(Nanos::from_micros(100), NO_LINK);
        let profile = Profile::parse("free", &text, &profile::find).unwrap();
        let mut device = profile.build(1).unwrap();
        for nth in 0..32 {
            device.submit(Request::read(nth, nth * 7_919_000 % 100_000_000, 8), Nanos::ZERO);
        }
        let mut done = Vec::new();
        while let Some(at) = device.next_event() {
            device.advance(at, &mut done);
        }
        assert_eq!(done.len(), 32);
        let last = done.iter().map(|completion| completion.at).max().unwrap();
        assert!(last < Nanos::from_micros(101), "{last}");
    }
}
