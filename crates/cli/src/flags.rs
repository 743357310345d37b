//! The flags of `plan` and `compare`: they become the same [`RawPlan`] as a plan file.

use crate::exit::Usage;
use clap::Args;
use plan::{Classic, Factor, RawJob, RawLevel, RawPlan};
use std::{collections::BTreeMap, path::PathBuf};
use units::{Bytes, Nanos};
use workload::{ClientKind, Replay, ReplayMode, WordError};

/// What to compare, on what, with which load.
#[derive(Debug, Args)]
pub struct ComparisonFlags {
    /// Directory, file or block device to measure on. A directory or file is used through a scratch
    /// file that is removed at the end; a block device is overwritten, and only with --confirm
    pub target: Option<String>,
    /// Read a plan file (TOML); flags override it
    #[arg(long, value_name = "FILE")]
    pub plan: Option<PathBuf>,
    /// A published experiment by name, in place of a plan file: `list` says which there are. A target
    /// names another world than its own, and flags override it
    #[arg(long, value_name = "NAME", conflicts_with = "plan")]
    classic: Option<String>,

    /// Schedulers: names, or `all` that the kernel offers
    #[arg(long, value_delimiter = ',', value_name = "LIST", help_heading = "What varies")]
    schedulers: Vec<String>,
    /// Queue sizes (nr_requests)
    #[arg(long, value_delimiter = ',', value_name = "LIST", help_heading = "What varies")]
    queues: Vec<String>,
    /// How many requests may be asynchronous (async_depth, Linux 7.0 and later)
    #[arg(long, value_delimiter = ',', value_name = "LIST", help_heading = "What varies")]
    async_depth: Vec<String>,
    /// A scheduler's tunable, such as mq-deadline.fifo_batch=1,16
    #[arg(long, value_name = "SCHEDULER.NAME=LIST", help_heading = "What varies")]
    tunable: Vec<String>,
    /// Write-back throttling latencies (wbt_lat_usec), in microseconds; 0 is off
    #[arg(long, value_delimiter = ',', value_name = "LIST", help_heading = "What varies")]
    wbt: Vec<String>,
    /// Read-ahead sizes (read_ahead_kb), in KiB
    #[arg(long, value_delimiter = ',', value_name = "LIST", help_heading = "What varies")]
    read_ahead: Vec<String>,
    /// Merging (nomerges): 0 all, 1 only simple merges, 2 none
    #[arg(long, value_delimiter = ',', value_name = "LIST", help_heading = "What varies")]
    nomerges: Vec<String>,
    /// Where a completion runs (rq_affinity): 0 anywhere, 1 in the group of processors that asked, 2 on
    /// the one that asked
    #[arg(long, value_delimiter = ',', value_name = "LIST", help_heading = "What varies")]
    rq_affinity: Vec<String>,
    /// Filesystems to make: ext2, ext3, ext4, xfs, btrfs
    #[arg(long, value_delimiter = ',', value_name = "LIST", help_heading = "What varies")]
    filesystems: Vec<String>,
    /// One filesystem with options: 'xfs;mkfs=-b size=1024;mount=noatime' (repeatable)
    #[arg(long, value_name = "SPEC", help_heading = "What varies")]
    filesystem: Vec<String>,
    /// Sync modes: buffered, direct, dontcache, osync, odsync, fsync, fdatasync, or joined: direct+osync
    #[arg(long, value_delimiter = ',', value_name = "LIST", help_heading = "What varies")]
    sync: Vec<String>,
    /// Block sizes
    #[arg(
        long,
        visible_alias = "bs",
        value_delimiter = ',',
        value_name = "LIST",
        help_heading = "What varies"
    )]
    block_sizes: Vec<String>,
    /// Patterns: randread, randwrite, randrw:70, read, write, rw:70, read*4
    #[arg(long, value_delimiter = ',', value_name = "LIST", help_heading = "What varies")]
    patterns: Vec<String>,
    /// Numbers of clients
    #[arg(long, value_delimiter = ',', value_name = "LIST", help_heading = "What varies")]
    clients: Vec<String>,
    /// Operations outstanding per client
    #[arg(
        long,
        visible_alias = "iodepth",
        value_delimiter = ',',
        value_name = "LIST",
        help_heading = "What varies"
    )]
    depths: Vec<String>,
    /// Offered operations per second, whether or not the device keeps up: 2000/s, fixed:2000/s,
    /// bursts:2000/s
    #[arg(long, value_delimiter = ',', value_name = "LIST", help_heading = "What varies")]
    rates: Vec<String>,
    /// I/O priorities of the clients: idle, be:0 to be:7, rt:0 to rt:7
    #[arg(long, value_delimiter = ',', value_name = "LIST", help_heading = "What varies")]
    io_priorities: Vec<String>,
    /// A job beside the measured one, such as read,block_size=1M,io_priority=idle, or none
    /// (repeatable)
    #[arg(long, value_name = "JOB", help_heading = "What varies")]
    background: Vec<String>,
    /// What makes the load: io_uring, sync, fio, null
    #[arg(long, value_delimiter = ',', value_name = "LIST", help_heading = "What varies")]
    engine: Vec<String>,
    /// A database workload in place of a block workload, such as oltp_read_write, or
    /// tpcc,server=postgresql,warehouses=10: oltp_read_only, oltp_write_only, oltp_read_write,
    /// oltp_point_select, oltp_insert, tpcc, insert (repeatable: each is a condition)
    #[arg(long, value_name = "WORKLOAD", help_heading = "What varies")]
    workload: Vec<String>,
    /// A variable of the database server, such as innodb_flush_method=fsync,O_DIRECT (repeatable)
    #[arg(long, value_name = "NAME=LIST", help_heading = "What varies")]
    variable: Vec<String>,
    /// Several variables that are set together, with a name for tables: 'disk:
    /// innodb_io_capacity=1000+innodb_io_capacity_max=2000' (repeatable: each is a level)
    #[arg(long, value_name = "SET", help_heading = "What varies")]
    variables: Vec<String>,
    /// A comparison of the server's variables by name, for its kind and version: flush, doublewrite,
    /// aio, capacity, durability; `list` says what each compares. Flags beside it add to it or
    /// override it
    #[arg(long, value_name = "NAME", help_heading = "What varies")]
    preset: Option<String>,
    /// Switch between cells in one running server where it lets its variables be changed, in place of
    /// a server on fresh data for each trial: with a preset by default
    #[arg(
        long,
        value_name = "true|false",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "true",
        help_heading = "Load"
    )]
    alternate: Option<bool>,
    /// The program of the private database server, such as /opt/mysql/bin/mysqld, in place of the
    /// installed one
    #[arg(long, value_name = "PATH", help_heading = "What varies")]
    server_program: Option<PathBuf>,
    /// Mechanisms that the simulated world switches off, to show what they do: merging, sorting,
    /// waiting, rotation, congestion, cold-drives, inode-lock, read-before-write, journal, nothing
    #[arg(long, value_delimiter = ',', value_name = "LIST", help_heading = "What varies")]
    without: Vec<String>,
    /// This many cells that differ from the baseline in name only, to see what chance shows
    #[arg(long, value_name = "CELLS", help_heading = "What varies")]
    placebo: Option<u32>,
    /// A baseline other than what the host has now: scheduler=none (repeatable)
    #[arg(long, value_name = "FACTOR=LEVEL", help_heading = "What varies")]
    baseline: Vec<String>,

    /// Clients are processes, not threads
    #[arg(long, help_heading = "Load")]
    processes: bool,
    /// Size of the scratch file, or of the part of the device that is used
    #[arg(long, help_heading = "Load")]
    size: Option<Bytes>,
    /// Put the scratch file behind a loop device of its own, so that the disk keeps its settings
    #[arg(long = "loop", help_heading = "Load")]
    own_loop: bool,
    /// Limit the page cache of buffered trials (with a memory cgroup)
    #[arg(long, value_name = "SIZE", help_heading = "Load")]
    page_cache: Option<Bytes>,
    /// Use the database that a server's URL names though it holds what Spindle did not make; its
    /// tables of the workload's names are used as they are, and changed
    #[arg(long, help_heading = "Load")]
    use_existing: bool,
    /// Seed of all random streams
    #[arg(long, help_heading = "Load")]
    seed: Option<u64>,
    /// Replay a recorded trace in place of a job, on storage, on an emulated device (emulated:PROFILE) or in
    /// the simulated world (simulated:PROFILE): what blkparse, perf script or biosnoop print,
    /// blktrace's binary files (also of `spindle record`), fio's iolog (2, 3), CSV of MSR Cambridge,
    /// SYSTOR '17, Alibaba, Tencent, SPC/UMass, ASCII of DiskSim and MQSim. On
    /// storage its writes go where those of a job go: to a scratch file, or to a device that --confirm names
    #[arg(long, value_name = "FILE", help_heading = "Load")]
    replay: Option<String>,
    /// When its requests are issued: open (as recorded), closed (each process waits for its own),
    /// asap (clients times depth outstanding)
    #[arg(long, value_name = "MODE", requires = "replay", help_heading = "Load")]
    replay_mode: Option<ReplayMode>,
    /// Its format, where its first lines do not tell: blkparse, blktrace, perf, biosnoop, fio, msr,
    /// systor17, alibaba, tencent, spc, disksim, mqsim
    #[arg(long, value_name = "FORMAT", requires = "replay", help_heading = "Load")]
    replay_format: Option<String>,
    /// The unit of its times, where it is not its format's own: s, ms, us, 100ns, ns
    #[arg(long, value_name = "UNIT", requires = "replay", help_heading = "Load")]
    replay_unit: Option<String>,
    /// Move requests of the trace that lie beyond the span (see --size) into it, and count them; a trace
    /// that reaches beyond is refused otherwise
    #[arg(long, requires = "replay", help_heading = "Load")]
    replay_wrap: bool,
    /// Leave out lines of the trace that do not fit its format, and count them
    #[arg(long, requires = "replay", help_heading = "Load")]
    skip_bad: bool,
    /// Keep what happened to each request and head in the first round, for `spindle report
    /// --events`: in the simulated world
    #[arg(long, help_heading = "Load")]
    events: bool,
    /// Simulated trials that run at once, by default one per CPU. Results do not depend on it
    #[arg(long, value_name = "N", help_heading = "Time")]
    threads: Option<u32>,
    /// The block device's serial (or what `spindle inspect` names instead), as your consent to
    /// overwrite it
    #[arg(long, value_name = "SERIAL", help_heading = "Load")]
    confirm: Option<String>,

    /// Time for the whole run; it stops earlier once every verdict is settled
    #[arg(long, value_name = "TIME", help_heading = "Time")]
    budget: Option<Nanos>,
    /// Budget in simulated time (an hour of disk time runs in about a second)
    #[arg(long, value_name = "TIME", conflicts_with = "budget", help_heading = "Time")]
    virtual_budget: Option<Nanos>,
    /// Screen: a fraction of the cells first, and then the settings that could win over all conditions, in a
    /// tenth of the time; by itself where every cell does not fit the budget. `false`: every cell in every
    /// round
    #[arg(
        long,
        value_name = "true|false",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "true",
        help_heading = "Time"
    )]
    screen: Option<bool>,
    /// Run until a difference of this many percent in throughput is detected with 80 % power: a pilot
    /// finds out how long that takes, up to a day
    #[arg(long, value_name = "PERCENT", value_parser = percent, help_heading = "Time")]
    detect: Option<f64>,
    /// Rounds: in each, every cell runs once and the baseline twice
    #[arg(long, help_heading = "Time")]
    rounds: Option<u32>,
    /// Measured time of each trial
    #[arg(long, value_name = "TIME", help_heading = "Time")]
    measure: Option<Nanos>,
    /// Time before measuring starts, in each trial
    #[arg(long, value_name = "TIME", help_heading = "Time")]
    warmup: Option<Nanos>,
    /// Smaller differences, in percent, count as the same
    #[arg(long, value_name = "PERCENT", value_parser = percent, help_heading = "Time")]
    margin: Option<f64>,
}

/// A percentage, with its sign or without.
fn percent(text: &str) -> Result<f64, WordError> {
    let number = text.strip_suffix('%').unwrap_or(text).trim_end();
    number.parse().map_err(|_| WordError::new(format!("'{text}' is not a percentage, such as 2%")))
}

impl ComparisonFlags {
    /// What `--preset list` or `--classic list` asks for.
    pub fn list(&self) -> Option<String> {
        if self.preset.as_deref() == Some("list") {
            return Some(report::presets(crate::WIDTH));
        }
        (self.classic.as_deref() == Some("list")).then(|| report::classics(crate::WIDTH))
    }

    /// The plan file with the flags over it.
    pub fn raw(&self) -> anyhow::Result<RawPlan> {
        let file = match (&self.plan, &self.classic) {
            (_, Some(name)) => RawPlan::from_toml(
                Classic::named(name).map_err(|error| Usage(error.to_string()))?.plan,
            )
            .map_err(|error| Usage(format!("--classic {name}: {error}")))?,
            (Some(path), None) => {
                let text = std::fs::read_to_string(path).map_err(|error| {
                    Usage(format!("cannot read plan file {}: {error}", path.display()))
                })?;
                RawPlan::from_toml(&text)
                    .map_err(|error| Usage(format!("plan file {}: {error}", path.display())))?
            }
            (None, None) => RawPlan::default(),
        };
        let flags = self.flags().map_err(|error| Usage(error.to_string()))?;
        Ok(file.overlaid(flags))
    }

    fn flags(&self) -> Result<RawPlan, WordError> {
        let client_kind = self.processes.then_some(ClientKind::Processes);
        Ok(RawPlan {
            target: self.target.clone(),
            own_loop: self.own_loop.then_some(true),
            size: self.size,
            seed: self.seed,
            budget: self.budget,
            virtual_budget: self.virtual_budget,
            detect_percent: self.detect,
            rounds: self.rounds,
            warmup: self.warmup,
            measure: self.measure,
            margin_percent: self.margin,
            page_cache: self.page_cache,
            confirm: self.confirm.clone(),
            preset: self.preset.as_deref().map(str::parse).transpose()?,
            alternate: self.alternate,
            screen: self.screen,
            server_program: self.server_program.clone(),
            replay: self.replay.as_ref().map(|file| Replay {
                file: file.clone(),
                mode: self.replay_mode.unwrap_or_default(),
                format: self.replay_format.clone(),
                unit: self.replay_unit.clone(),
                skip_bad: self.skip_bad,
                wrap: self.replay_wrap,
            }),
            events: self.events.then_some(true),
            threads: self.threads,
            use_existing: self.use_existing,
            job: RawJob { client_kind, ..RawJob::default() },
            factors: self.factors()?,
            baseline: self.baselines()?,
            ..RawPlan::default()
        })
    }

    fn factors(&self) -> Result<BTreeMap<String, Vec<RawLevel>>, WordError> {
        let filesystems: Vec<String> =
            self.filesystems.iter().chain(&self.filesystem).cloned().collect();
        let lists = [
            (Factor::Scheduler, &self.schedulers),
            (Factor::NrRequests, &self.queues),
            (Factor::AsyncDepth, &self.async_depth),
            (Factor::WbtLatUsec, &self.wbt),
            (Factor::ReadAheadKb, &self.read_ahead),
            (Factor::Nomerges, &self.nomerges),
            (Factor::RqAffinity, &self.rq_affinity),
            (Factor::Filesystem, &filesystems),
            (Factor::Sync, &self.sync),
            (Factor::BlockSize, &self.block_sizes),
            (Factor::Pattern, &self.patterns),
            (Factor::Clients, &self.clients),
            (Factor::Depth, &self.depths),
            (Factor::Rate, &self.rates),
            (Factor::IoPriority, &self.io_priorities),
            (Factor::Background, &self.background),
            (Factor::Without, &self.without),
            (Factor::Engine, &self.engine),
            (Factor::Workload, &self.workload),
            (Factor::Variables, &self.variables),
        ];
        let mut factors = BTreeMap::new();
        for (factor, words) in lists {
            if !words.is_empty() {
                factors.insert(factor.to_string(), levels(words.iter().map(String::as_str)));
            }
        }
        if let Some(cells) = self.placebo {
            let levels = (0..=u64::from(cells)).map(RawLevel::Number).collect();
            factors.insert(Factor::Placebo.to_string(), levels);
        }
        for text in &self.variable {
            let (name, list) = halves(text, "--variable", "innodb_flush_method=fsync,O_DIRECT")?;
            let factor: Factor = format!("server.{}", name.trim()).parse()?;
            factors.insert(factor.to_string(), levels(list.split(',')));
        }
        for text in &self.tunable {
            let (name, list) = halves(text, "--tunable", "mq-deadline.fifo_batch=1,16")?;
            match name.parse()? {
                factor @ Factor::Tunable { .. } => {
                    factors.insert(factor.to_string(), levels(list.split(',')))
                }
                other => {
                    return Err(WordError::new(format!(
                        "--tunable {other} names no scheduler's tunable: write it like \
                         mq-deadline.fifo_batch=1,16"
                    )));
                }
            };
        }
        Ok(factors)
    }

    fn baselines(&self) -> Result<BTreeMap<String, RawLevel>, WordError> {
        self.baseline
            .iter()
            .map(|text| {
                let (factor, level) = halves(text, "--baseline", "scheduler=none")?;
                Ok((factor.to_owned(), RawLevel::Word(level.to_owned())))
            })
            .collect()
    }
}

fn levels<'a>(words: impl Iterator<Item = &'a str>) -> Vec<RawLevel> {
    words.map(|word| RawLevel::Word(word.trim().to_owned())).collect()
}

fn halves<'a>(text: &'a str, flag: &str, example: &str) -> Result<(&'a str, &'a str), WordError> {
    text.split_once('=')
        .ok_or_else(|| WordError::new(format!("{flag} {text} is not of the form {example}")))
}
