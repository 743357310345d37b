//! What the emulated world's way costs: round trips and the most operations that it carries with the
//! model left out, and how precisely completions are paced with it. fio makes the load. Needs root, and
//! ublk, or /dev/fuse and loop devices.
//!
//!     cargo bench -p emulate                     over the transport that this host would use
//!     cargo bench -p emulate -- fuse             over that one
//!     cargo bench -p emulate -- fuse unpaced     with the model left out alone
//!     cargo bench -p emulate -- beside           that transport and plain FUSE in turns, and ratios

use emulate::{DataPlace, Emulation, SERVER_VERB, ServerStats, Transport, Wanted};
use host::{Changes, Host};
use std::{
    error::Error,
    os::{fd::AsFd, unix::net::UnixStream},
    process::Command,
    time::{Duration, Instant},
};
use units::{Bytes, Nanos};

type Outcome<T> = Result<T, Box<dyn Error>>;

/// Seconds of each measurement.
const SECONDS: u32 = 5;

fn main() -> Outcome<()> {
    if std::env::args().nth(1).as_deref() == Some(SERVER_VERB) {
        let input = std::io::stdin().as_fd().try_clone_to_owned()?;
        return Ok(emulate::serve(UnixStream::from(input))?);
    }
    let words: Vec<String> = std::env::args().skip(1).collect();
    let asked = words.iter().find_map(|word| word.parse::<Transport>().ok());
    let transport = match Transport::choose(asked) {
        Ok(transport) => transport,
        Err(error) => {
            println!("not measured: {error}");
            return Ok(());
        }
    };
    if words.iter().any(|word| word == "beside") {
        return beside(transport);
    }
    println!("Transport: {}", transport.title());
    let load = std::fs::read_to_string("/proc/loadavg")?;
    println!("Load average before: {}", load.trim());
    println!("\nThe model left out: fio, io_uring, 4 KiB\n");
    println!("| pattern | depth | IOPS | p50 | p99 | server's processor |");
    println!("|---|--:|--:|--:|--:|--:|");
    with_device("ssd-sata-2018", transport, |emulation| {
        emulation.bypass(true)?;
        for pattern in ["randread", "randwrite"] {
            for depth in [1, 16, 128] {
                let row = measure(emulation, pattern, depth)?;
                println!(
                    "| {pattern} | {depth} | {:.0} | {} | {} | {:.0} % |",
                    row.iops, row.p50, row.p99, row.processor
                );
            }
        }
        Ok(())
    })?;
    if words.iter().any(|word| word == "unpaced") {
        return Ok(());
    }
    println!("\nPaced: by how much completions were handed on after the model's time\n");
    println!("| profile | pattern | depth | IOPS | mean | p50 | p99 | max | server's processor |");
    println!("|---|---|--:|--:|--:|--:|--:|--:|--:|");
    for profile in ["hdd-15k", "raid10-8x15k-bbu", "ssd-x25e", "ssd-sata-2018"] {
        with_device(profile, transport, |emulation| {
            for (pattern, depth) in [("randread", 1), ("randread", 32), ("randwrite", 32)] {
                emulation.reset(1)?;
                let row = measure(emulation, pattern, depth)?;
                let late = row.sight.lateness;
                println!(
                    "| {profile} | {pattern} | {depth} | {:.0} | {} | {} | {} | {} | {:.0} % |",
                    row.iops, late.mean, late.p50, late.p99, late.max, row.processor
                );
            }
            Ok(())
        })?;
    }
    let load = std::fs::read_to_string("/proc/loadavg")?;
    println!("\nLoad average after: {}", load.trim());
    Ok(())
}

/// What a device is asked in turns over two transports.
const TURNS: [(&str, bool, &str, u32); 10] = [
    ("ssd-sata-2018", false, "randread", 1),
    ("ssd-sata-2018", false, "randread", 16),
    ("ssd-sata-2018", false, "randread", 128),
    ("ssd-sata-2018", false, "randwrite", 16),
    ("ssd-x25e", true, "randread", 1),
    ("ssd-x25e", true, "randread", 32),
    ("ssd-sata-2018", true, "randread", 32),
    ("ssd-sata-2018", true, "randwrite", 32),
    ("ssd-nvme", true, "randread", 32),
    ("ssd-nvme", true, "randread", 128),
];

/// How often.
const ROUNDS: usize = 3;

/// One transport beside plain FUSE: what drifts meets both.
fn beside(transport: Transport) -> Outcome<()> {
    println!("{} beside {}, {ROUNDS} rounds\n", transport.title(), Transport::Fuse.title());
    println!(
        "| | IOPS | of the other's | processor an operation, of the other's | late p99, us | of the other |"
    );
    println!("|---|--:|--:|--:|--:|--:|");
    for (profile, paced, pattern, depth) in TURNS {
        let (mut ours, mut theirs) = (Vec::new(), Vec::new());
        for _ in 0..ROUNDS {
            for (turn, rows) in [(transport, &mut ours), (Transport::Fuse, &mut theirs)] {
                with_device(profile, turn, |emulation| {
                    emulation.bypass(!paced)?;
                    rows.push(measure(emulation, pattern, depth)?);
                    Ok(())
                })?;
            }
        }
        let range = |of: &dyn Fn(&Row) -> f64, rows: &[Row], digits: usize| {
            spread(rows.iter().map(of).collect(), digits)
        };
        let ratio = |of: &dyn Fn(&Row) -> f64| {
            spread(ours.iter().zip(&theirs).map(|(one, other)| of(one) / of(other)).collect(), 2)
        };
        let late = |rows: &[Row]| match paced {
            true => range(&|row| row.sight.lateness.p99.0 as f64 / 1e3, rows, 0),
            false => "-".to_owned(),
        };
        println!(
            "| {profile}{}, {pattern}, depth {depth} | {} | {} | {} | {} | {} |",
            if paced { "" } else { ", model left out" },
            range(&|row| row.iops, &ours, 0),
            ratio(&|row| row.iops),
            ratio(&|row| row.processor / row.iops),
            late(&ours),
            late(&theirs),
        );
    }
    Ok(())
}

/// "3 (2 to 5)": the median, the least and the most.
fn spread(mut figures: Vec<f64>, digits: usize) -> String {
    figures.sort_by(f64::total_cmp);
    let (least, most) = (figures[0], figures[figures.len() - 1]);
    let median = figures[figures.len() / 2];
    format!("{median:.digits$} ({least:.digits$} to {most:.digits$})")
}

/// What was measured.
struct Row {
    iops: f64,
    p50: Nanos,
    p99: Nanos,
    processor: f64,
    sight: ServerStats,
}

fn with_device(
    profile: &str,
    transport: Transport,
    act: impl FnOnce(&mut Emulation) -> Outcome<()>,
) -> Outcome<()> {
    let mut changes = Changes::begin(&Host::here(), "bench of the transport")?;
    let wanted = Wanted {
        program: std::env::current_exe()?,
        arguments: vec![SERVER_VERB.to_owned()],
        profile: profile.to_owned(),
        seed: 1,
        size: Some(Bytes::from_gib(4)),
        data: DataPlace::Memory,
        transport: Some(transport),
        pauses: None,
    };
    let mut emulation = Emulation::start(&mut changes, &wanted)?;
    act(&mut emulation)?;
    drop(emulation);
    changes.finish()?;
    Ok(())
}

fn measure(emulation: &mut Emulation, pattern: &str, depth: u32) -> Outcome<Row> {
    emulation.reset_stats()?;
    let (before, begun) = (emulation.stats()?, Instant::now());
    let output = Command::new("fio")
        .args(["--name=x", "--bs=4k", "--ioengine=io_uring", "--direct=1", "--time_based"])
        .args(["--output-format=json", "--norandommap"])
        .arg(format!("--filename={}", emulation.node.display()))
        .arg(format!("--rw={pattern}"))
        .arg(format!("--iodepth={depth}"))
        .arg(format!("--runtime={SECONDS}"))
        .output()?;
    if !output.status.success() {
        return Err(String::from_utf8_lossy(&output.stderr).into());
    }
    let span = begun.elapsed();
    let sight = emulation.stats()?;
    let report: serde_json::Value = serde_json::from_slice(&output.stdout)?;
    let side = if pattern.ends_with("read") { "read" } else { "write" };
    let job = &report["jobs"][0][side];
    let percentile =
        |name: &str| Nanos(job["clat_ns"]["percentile"][name].as_u64().unwrap_or_default());
    Ok(Row {
        iops: job["iops"].as_f64().unwrap_or_default(),
        p50: percentile("50.000000"),
        p99: percentile("99.000000"),
        processor: share(&before, &sight, span),
        sight,
    })
}

/// Percent of one processor.
fn share(before: &ServerStats, after: &ServerStats, span: Duration) -> f64 {
    100.0 * emulate::processor_share(before, after, Nanos(span.as_nanos() as u64))
}
