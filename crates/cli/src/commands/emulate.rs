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
use emulate::{DataPlace, EmulateError, Emulation, ServerStats, Transport, Wanted};
use host::{Changes, Host};
use list::Record;
use report::{EmulatedDevice, EmulatedSecond};
use std::{
    io::{BufRead, BufReader, IsTerminal, Read},
    path::{Path, PathBuf},
    process::Stdio,
    sync::atomic::{AtomicBool, Ordering},
    time::{Duration, Instant},
};
use units::Bytes;

pub use list::forget_dead;

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
    /// Where its data go: `memory`, a folder (a scratch file in it, removed at the end) or a file
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
    #[arg(long, value_name = "yes|no", hide_possible_values = true, value_parser = BoolishValueParser::new())]
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
            arguments: vec![emulate::SERVER_VERB.to_owned()],
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
        settle_pending(&stop)?;
        let words: Vec<String> = std::env::args().collect();
        let mut changes = Changes::begin(&Host::here(), &words.join(" "))?;
        // What was made before an error goes with `changes`.
        let mut emulation = Emulation::start(&mut changes, &self.wanted()?).map_err(explain)?;
        let record = Record::of(&emulation, self.data.as_deref());
        let shown = record.write().and_then(|()| say::line(&emulation.node.display().to_string()));
        let watched = shown.and_then(|()| {
            say::aside(&introduction(&emulation));
            watch(&mut emulation, &stop)
        });
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
        let mut child = host::own_group_command(std::env::current_exe()?)
            .args(words)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .context("cannot start in the background")?;
        let mut name = String::new();
        if let Some(out) = child.stdout.take() {
            BufReader::new(out).read_line(&mut name)?;
        }
        if name.is_empty() {
            let mut complaint = String::new();
            if let Some(mut err) = child.stderr.take() {
                err.read_to_string(&mut complaint)?;
            }
            let code = child.wait()?.code();
            say::aside(&complaint);
            return Ok(if code == Some(2) { Exit::Usage } else { Exit::Failed });
        }
        say::result(&name)?;
        Ok(Exit::Done)
    }
}

/// Exit code 2 for usage errors.
fn explain(error: EmulateError) -> anyhow::Error {
    match error.is_usage() {
        true => usage(error.to_string()),
        false => error.into(),
    }
}

fn usage(text: String) -> anyhow::Error {
    Usage(text).into()
}

fn introduction(emulation: &Emulation) -> String {
    let device = EmulatedDevice {
        size: emulation.size,
        title: &emulation.profile.title,
        transport: emulation.describe_transport(),
        model_depth: emulation.model_depth,
        depth: emulation.depth,
        spins: emulation.spins,
    };
    report::emulated_device(&device, crate::WIDTH)
}

/// How long a server may be silent before that is said.
const PATIENCE: Duration = Duration::from_secs(2);

/// Shows what the device does, each second, where somebody looks.
fn watch(emulation: &mut Emulation, stop: &AtomicBool) -> anyhow::Result<()> {
    let shown = std::io::stderr().is_terminal();
    let mut before = emulation.stats().map_err(explain)?;
    let mut at = Instant::now();
    let mut silent = false;
    while !stop.load(Ordering::Relaxed) {
        std::thread::sleep(Duration::from_millis(50));
        if at.elapsed() < Duration::from_secs(1) {
            continue;
        }
        let Some(now) = emulation.stats_within(PATIENCE).map_err(explain)? else {
            if !silent {
                let pid = emulation.server;
                say::note(&format!(
                    "the server (process {pid}) does not answer: it is stopped, or this host has no \
                     time for it; requests to {} wait until it goes on",
                    emulation.node.display()
                ));
            }
            silent = true;
            continue;
        };
        silent = false;
        let span = at.elapsed();
        at = Instant::now();
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

/// One second of a device, in a line.
fn live_line(before: &ServerStats, now: &ServerStats, span: Duration) -> String {
    let seconds = span.as_secs_f64().max(1e-9);
    let rate = |now: u64, before: u64| now.saturating_sub(before) as f64 / seconds;
    let (new, old) = (&now.requests, &before.requests);
    let several = now.units > 1;
    let second = EmulatedSecond {
        reads_per_second: rate(new.reads, old.reads),
        writes_per_second: rate(new.writes, old.writes),
        flushes_per_second: rate(new.flushes, old.flushes),
        outstanding: now.outstanding,
        late_p99: now.lateness.p99,
        busy: several.then_some((now.busy, now.units)),
        dirty: now.dirty,
        cylinder: now.cylinder.filter(|_| !several),
    };
    report::emulated_second(&second, crate::WIDTH)
}

/// While a filesystem is mounted from it, a device is not taken away: what is not written yet would be
/// lost. Ctrl-C a second after the first ends the program all the same, and leaves the rest to `spindle undo`.
fn wait_until_free(node: &Path) {
    let mut said = false;
    while let Some(point) = mounted_from(node) {
        if !said {
            say::note(&format!(
                "{} is mounted from {}: unmount it, and the device goes",
                point.display(),
                node.display()
            ));
        }
        said = true;
        std::thread::sleep(Duration::from_millis(200));
    }
}

/// Where something is mounted from a device or a partition of it.
fn mounted_from(node: &Path) -> Option<PathBuf> {
    let all = host::mounts(&Host::here()).ok()?;
    all.into_iter().find(|mount| mount.stands_on(node)).map(|mount| mount.point)
}
