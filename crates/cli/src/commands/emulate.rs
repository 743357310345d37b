//! `spindle emulate`: a block device with the timing of a profile, for whatever one likes.

mod list;

use crate::{
    exit::{Exit, Usage},
    interrupt,
    pending::settle_pending,
    say,
};
use anyhow::{Context, bail};
use clap::{Args, builder::BoolishValueParser};
use emulate::{DataPlace, EmulateError, Emulation, Sight, Transport, Wanted};
use host::{Changes, Host};
use list::Record;
use std::{
    io::{BufRead, BufReader, IsTerminal, Read},
    os::unix::process::CommandExt,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    sync::atomic::{AtomicBool, Ordering},
    time::{Duration, Instant},
};
use units::Bytes;

/// The flags of `emulate`.
#[derive(Debug, Args)]
pub struct EmulateArgs {
    /// A profile's name or a file that ends in .toml; or `list`, or `stop`
    #[arg(value_name = "PROFILE|list|stop")]
    what: String,
    /// After `stop`: the devices (loop7 or /dev/loop7), or `all`
    #[arg(value_name = "NAME")]
    names: Vec<String>,
    /// Length of the device, when less than the profile's capacity
    #[arg(long)]
    size: Option<Bytes>,
    /// Where its data go: `memory`, a folder (a scratch file in it, removed in the end) or a file
    /// (yours, kept); a sparse scratch file beside the journal when not said
    #[arg(long, value_name = "memory|FOLDER|FILE")]
    data: Option<String>,
    /// How the kernel's requests reach the model: `ublk` (Linux 6.0, module ublk_drv), `fuse` (FUSE and a
    /// loop device), or `fuse-uring` (the same over io_uring, Linux 6.14: more reads); ublk where
    /// this host has it, and fuse elsewhere, when not said
    #[arg(long, value_name = "ublk|fuse|fuse-uring")]
    transport: Option<Transport>,
    /// Whether idle processors may halt for 2 ms in 50 while requests come, which keeps the host of a virtual
    /// machine from stopping them for longer; disks' do, flash's do not, when not said
    #[arg(long, value_name = "yes|no", value_parser = BoolishValueParser::new())]
    pauses: Option<bool>,
    /// Seed of what is random in the model
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Go on in the background; `spindle emulate stop` ends it
    #[arg(long)]
    detach: bool,
    /// Print as JSON (with `list`)
    #[arg(long)]
    json: bool,
}

impl EmulateArgs {
    /// Emulates until stopped; or lists, or stops.
    pub fn run(self) -> anyhow::Result<Exit> {
        match self.what.as_str() {
            "list" => list::list(self.json),
            "stop" => list::stop(&self.names),
            _ if !self.names.is_empty() => Err(usage(format!(
                "'{}' after a profile means nothing: one device at a time",
                self.names.join(" ")
            ))),
            _ if self.detach => self.in_background(),
            _ => self.emulate(),
        }
    }

    fn wanted(&self) -> anyhow::Result<Wanted> {
        Ok(Wanted {
            program: std::env::current_exe().context("cannot find this program's own file")?,
            words: vec![emulate::SERVER_WORD.to_owned()],
            profile: self.what.clone(),
            seed: self.seed,
            size: self.size,
            data: self.data_place()?,
            transport: self.transport,
            pauses: self.pauses,
        })
    }

    fn data_place(&self) -> anyhow::Result<DataPlace> {
        Ok(match self.data.as_deref() {
            Some("memory") => DataPlace::Memory,
            Some(path) if Path::new(path).is_dir() => DataPlace::Scratch(path.into()),
            Some(path) => DataPlace::File(path.into()),
            None => {
                let folder = host::state_folder()?;
                std::fs::create_dir_all(&folder)
                    .with_context(|| format!("cannot create {}", folder.display()))?;
                DataPlace::Scratch(folder)
            }
        })
    }

    fn emulate(&self) -> anyhow::Result<Exit> {
        let stop = interrupt::flag()?;
        Transport::choose(self.transport).map_err(explain)?;
        settle_pending()?;
        let words: Vec<String> = std::env::args().collect();
        let mut changes = Changes::begin(&Host::here(), &words.join(" "))?;
        // What was made before an error goes with `changes`.
        let mut emulation = Emulation::start(&mut changes, &self.wanted()?).map_err(explain)?;
        let record = Record::of(&emulation, self.data.as_deref());
        record.write()?;
        say::line(&emulation.node.display().to_string())?;
        say::aside(&introduction(&emulation));
        let watched = watch(&mut emulation, &stop);
        if watched.is_ok() {
            // A server that has died has nothing to lose any more.
            wait_until_free(&emulation.node);
        }
        drop(emulation);
        let report = changes.finish()?;
        record.remove();
        watched?;
        if !report.is_complete() {
            say::aside(&crate::pending::report_text(&report));
            bail!("not everything could be taken down; `spindle undo` tries again");
        }
        Ok(Exit::Done)
    }

    /// Starts the same in the background, and waits until its device is there.
    fn in_background(&self) -> anyhow::Result<Exit> {
        let words = std::env::args_os().skip(1).filter(|word| word != "--detach");
        let mut child = Command::new(std::env::current_exe()?)
            .args(words)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .process_group(0)
            .spawn()
            .context("cannot start in the background")?;
        let mut name = String::new();
        if let Some(out) = child.stdout.take() {
            BufReader::new(out).read_line(&mut name)?;
        }
        if name.is_empty() {
            let mut told = String::new();
            if let Some(mut err) = child.stderr.take() {
                err.read_to_string(&mut told)?;
            }
            let code = child.wait()?.code();
            say::aside(&told);
            return Ok(if code == Some(2) { Exit::Usage } else { Exit::Failed });
        }
        say::result(&name)?;
        Ok(Exit::Done)
    }
}

/// Exit code 2 for what somebody wrote wrong.
fn explain(error: EmulateError) -> anyhow::Error {
    match error {
        EmulateError::Usage(text) => usage(text),
        other => other.into(),
    }
}

fn usage(text: String) -> anyhow::Error {
    Usage(text).into()
}

fn introduction(emulation: &Emulation) -> String {
    let mut words = vec![format!(
        "{} of {}, {}.",
        emulation.size,
        emulation.profile.title.trim_end_matches('.'),
        emulation.way()
    )];
    if emulation.model_depth > emulation.depth {
        words.push(format!(
            "The model's queue takes {}, of which {} pass at once.",
            emulation.model_depth, emulation.depth
        ));
    }
    if emulation.spins {
        let spins = "While requests come, idle processors poll and the server spins before each event, \
                    as long as its wake-ups turn out to need.";
        words.push(spins.to_owned());
    }
    words.push("Ctrl-C or `spindle emulate stop` takes it down, its data with it.".to_owned());
    report::wrap(&words.join(" "), crate::WIDTH, 0) + "\n"
}

/// Shows what the device does, each second, where somebody looks.
fn watch(emulation: &mut Emulation, stop: &AtomicBool) -> anyhow::Result<()> {
    let shown = std::io::stderr().is_terminal();
    let mut before = emulation.look().map_err(explain)?;
    let mut at = Instant::now();
    while !stop.load(Ordering::Relaxed) {
        std::thread::sleep(Duration::from_millis(50));
        if at.elapsed() < Duration::from_secs(1) {
            continue;
        }
        let span = at.elapsed();
        at = Instant::now();
        let now = emulation.look().map_err(explain)?;
        if shown {
            say::aside(&format!("\r\x1b[K{}", live_line(&before, &now, span)));
        }
        before = now;
    }
    if shown {
        say::aside("\r\x1b[K");
    }
    Ok(())
}

/// One second in a line that no terminal of 80 columns wraps: what is asked of the device and how late
/// it is always, the rest as far as there is room.
fn live_line(before: &Sight, now: &Sight, span: Duration) -> String {
    let seconds = span.as_secs_f64().max(1e-9);
    let rate = |now: u64, before: u64| {
        let rate = (now.saturating_sub(before) as f64 / seconds).round();
        if rate < 100.0 { rate.to_string() } else { report::count(rate) }
    };
    let (new, old) = (&now.requests, &before.requests);
    let mut line = format!(
        "{} r/s  {} w/s  {} f/s  depth {}",
        rate(new.reads, old.reads),
        rate(new.writes, old.writes),
        rate(new.flushes, old.flushes),
        now.outstanding
    );
    let late = format!("  late p99 {}", now.lateness.p99);
    // One drive is busy when it has requests; of several, none's head is the device's.
    let several = now.units > 1;
    let busy = several.then(|| format!("  busy {}/{}", now.busy, now.units));
    let dirty = (now.dirty > Bytes::ZERO).then(|| format!("  dirty {}", now.dirty));
    let cylinder = now.cylinder.filter(|_| !several).map(|it| format!("  cylinder {it}"));
    for word in [busy, dirty, cylinder].into_iter().flatten() {
        if [&line, &word, &late].iter().map(|it| it.chars().count()).sum::<usize>() < crate::WIDTH {
            line += &word;
        }
    }
    line + &late
}

/// While a filesystem is mounted from it, a device is not taken away: what is not written yet would be
/// lost. A second Ctrl-C ends the program all the same, and leaves the rest to `spindle undo`.
fn wait_until_free(node: &Path) {
    let mut told = false;
    while let Some(point) = mounted_from(node) {
        if !told {
            say::note(&format!(
                "{} is mounted from {}: unmount it, and the device goes",
                point.display(),
                node.display()
            ));
        }
        told = true;
        std::thread::sleep(Duration::from_millis(200));
    }
}

/// Where something is mounted from a device or a partition of it.
fn mounted_from(node: &Path) -> Option<PathBuf> {
    let all = host::mounts(&Host::here()).ok()?;
    all.into_iter().find(|mount| mount.stands_on(node)).map(|mount| mount.point)
}

#[cfg(test)]
mod tests {
    use super::*;
    use emulate::{Lateness, Requests};

    #[test]
    fn a_live_line_fits_and_keeps_what_matters() {
        let second = Duration::from_millis(1003);
        let idle = Sight { units: 1, cylinder: Some(0), ..Sight::default() };
        let line = live_line(&idle, &idle, second);
        assert_eq!(line, "0 r/s  0 w/s  0 f/s  depth 0  cylinder 0  late p99 0 ns");
        let busy = Sight {
            requests: Requests {
                reads: 68_200,
                writes: 50_900,
                flushes: 1200,
                ..Default::default()
            },
            lateness: Lateness { p99: units::Nanos::from_micros(123), ..Default::default() },
            outstanding: 1023,
            busy: 16,
            units: 16,
            cylinder: Some(123_456),
            dirty: Bytes::from_mib(4096),
            ..Sight::default()
        };
        let line = live_line(&idle, &busy, second);
        assert!(line.chars().count() < crate::WIDTH, "{line}");
        assert!(line.starts_with("67,996 r/s  50,748 w/s  1,196 f/s  depth 1023"), "{line}");
        assert!(line.ends_with("late p99 123 µs"), "{line}");
        assert!(line.contains("busy 16/16"), "{line}");
    }
}
