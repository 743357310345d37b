//! Why a cell or a factor is not possible on a target.

use serde::{Deserialize, Serialize};
use units::Bytes;
use workload::{EngineKind, PresetLimit, ReplayMode};

/// Why a cell or a factor is not possible on a target. What the program decides by is data; `message`
/// is what another part of the program (the host's settings, a filesystem's tools, a server) said.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Refusal {
    /// No device below the target has a scheduler.
    #[error("{message}")]
    NoScheduledDevice {
        /// What was found instead.
        message: String,
    },
    /// The device or this kernel lacks a setting, or does not let it be changed.
    #[error("{message}")]
    Setting {
        /// The kernel's name of the setting.
        setting: String,
        /// Why.
        message: String,
    },
    /// This user may not change a setting.
    #[error("{message}")]
    NotPermitted {
        /// The kernel's name of the setting.
        setting: String,
        /// Of which device, and what to do.
        message: String,
    },
    /// A tunable of another scheduler than the cell's.
    #[error(
        "{tunable} is a tunable of {scheduler}, and the scheduler here is {current}: compare it with \
         --schedulers {scheduler}"
    )]
    TunableOfAnotherScheduler {
        /// The tunable.
        tunable: String,
        /// The scheduler that has it.
        scheduler: String,
        /// The scheduler that is set.
        current: String,
    },
    /// The devices below the target are not set alike, so that no value is what there is now.
    #[error(
        "the devices below the target are not set alike ({}), so nothing stands for what there is \
         now: set them alike first, or give one of them as the target",
        values.iter().map(|(device, value)| format!("{device} {value}")).collect::<Vec<_>>().join(", ")
    )]
    DevicesDiffer {
        /// The kernel's name of the setting.
        setting: String,
        /// Each device, and what it is set to.
        values: Vec<(String, String)>,
    },
    /// The kernel would take another value than the one that is named.
    #[error("the kernel would make it {taken} instead of {value}")]
    KernelRounds {
        /// The named value.
        value: String,
        /// What the kernel would make of it.
        taken: String,
    },
    /// Without a scheduler `nr_requests` is limited by the device's tags.
    #[error(
        "without a scheduler nr_requests is limited to the device's tags: {device} has {tags}, not \
         {nr_requests}"
    )]
    MoreThanTags {
        /// The device.
        device: String,
        /// Its tags.
        tags: u32,
        /// The named value.
        nr_requests: u32,
    },
    /// The factor exists in the simulated world only.
    #[error("only the simulated world can switch a mechanism off")]
    OnlySimulated,
    /// Simulated clients need no engine.
    #[error("simulated clients need no engine")]
    NoEngineWhenSimulated,
    /// A simulated kernel does not have the factor.
    #[error("it is modelled for the kernels {modelled}, not for {kernel}")]
    NotInKernel {
        /// The kernels that have it.
        modelled: String,
        /// The kernel that is simulated.
        kernel: String,
    },
    /// `queue/async_depth` came with a kernel that is not simulated.
    #[error(
        "Linux has it since 7.0, which is not simulated; the simulated mq-deadline has one of its own: \
         --tunable mq-deadline.async_depth=LIST"
    )]
    AsyncDepthNotSimulated,
    /// The simulated world has no processors of its own.
    #[error(
        "the processors of the simulated world are alike: on which a completion runs is not modelled"
    )]
    ProcessorsNotSimulated,
    /// The engine `sync` has one operation outstanding a client.
    #[error(
        "the engine sync keeps one operation outstanding per client, not {depth}: use {} clients, or \
         the engine io_uring", depth * clients
    )]
    DepthOfSync {
        /// The named depth.
        depth: u32,
        /// The clients.
        clients: u32,
    },
    /// A block is larger than the span.
    #[error("a block of {block} does not fit into {span}")]
    BlockTooLarge {
        /// The block.
        block: Bytes,
        /// The span.
        span: Bytes,
    },
    /// The target does not support O_DIRECT.
    #[error("{target} does not support O_DIRECT; use --sync buffered, osync, fsync or fdatasync")]
    NoDirectIo {
        /// The target.
        target: String,
    },
    /// A block is not aligned for O_DIRECT.
    #[error(
        "O_DIRECT needs multiples of {needed} here ({source_of_limit}), and a block of {block} is \
         not one: use a multiple of {needed}, or another sync mode"
    )]
    NotAligned {
        /// The block.
        block: Bytes,
        /// What it must be a multiple of.
        needed: Bytes,
        /// Where that is from.
        source_of_limit: String,
    },
    /// The target does not take RWF_DONTCACHE.
    #[error(
        "{target} does not take RWF_DONTCACHE, which needs Linux 6.14 and a filesystem that has it (ext4, \
         XFS; bare block devices do not): use --sync buffered"
    )]
    NoDontCache {
        /// The target, or the filesystem that would be made.
        target: String,
    },
    /// The simulated world does not model RWF_DONTCACHE.
    #[error(
        "RWF_DONTCACHE (Linux 6.14) is not modelled in the simulated world: use --sync buffered, or \
         measure on real storage"
    )]
    DontCacheNotModelled,
    /// The installed fio lacks an option.
    #[error(
        "this fio has no option {option}, which came with fio {since}: use --engine io_uring or sync"
    )]
    NoFioOption {
        /// fio's name for it.
        option: String,
        /// The first version that has it.
        since: String,
    },
    /// The scratch files of several filesystems do not fit at once.
    #[error(
        "{filesystems} filesystems need {each} each, {} together, and {limit}: use a smaller --size, or \
         compare fewer at once", *each * *filesystems as u64
    )]
    NoRoomForFilesystems {
        /// How many.
        filesystems: usize,
        /// What each needs.
        each: Bytes,
        /// The room that there is, and why.
        limit: String,
    },
    /// A database and the copies that trials run on do not fit.
    #[error("the data of {database} take about {data}, and {needed} are needed in all: {message}")]
    NoRoomForDatabase {
        /// The workload.
        database: String,
        /// Estimated size of its data.
        data: Bytes,
        /// With the copy of a trial.
        needed: Bytes,
        /// What the host said.
        message: String,
    },
    /// The server's own memory does not fit into the bound of the page cache.
    #[error(
        "a page cache of {limit} has to hold the server's own memory too, which is {needed} with its \
         buffer pool: raise --page-cache, or lower buffer_pool"
    )]
    PageCacheBelowServer {
        /// The bound.
        limit: Bytes,
        /// What the server needs.
        needed: Bytes,
    },
    /// A filesystem cannot be made here.
    #[error("{message}")]
    Filesystem {
        /// The filesystem.
        filesystem: String,
        /// Why.
        message: String,
    },
    /// A filesystem is not modelled.
    #[error("{filesystem} is not modelled: the simulated world has {modelled}")]
    FilesystemNotModelled {
        /// The filesystem.
        filesystem: String,
        /// Those that are.
        modelled: String,
    },
    /// A server refuses its configuration, or cannot be used.
    #[error("{message}")]
    Server {
        /// The server.
        server: String,
        /// Why.
        message: String,
    },
    /// A variable of a server that Spindle does not start.
    #[error(
        "{variable} is a variable of a server that Spindle did not start: set it there yourself, or \
         let Spindle run a private server"
    )]
    VariableOfForeignServer {
        /// The variable.
        variable: String,
    },
    /// A level of a preset that the server, its version or the storage cannot have.
    #[error("{limit}")]
    Preset {
        /// Why.
        limit: PresetLimit,
    },
    /// The workload is not valid with the cell's levels.
    #[error("{message}")]
    Workload {
        /// Why.
        message: String,
    },
    /// A mechanism that the simulated target does not have.
    #[error("{device} has no mechanism {mechanism} that could be switched off")]
    NoSuchMechanism {
        /// The profile.
        device: String,
        /// The mechanism.
        mechanism: String,
    },
    /// A block trace below a filesystem.
    #[error(
        "a trace of block I/O is replayed on a raw device: it already contains what a filesystem made \
         of the load"
    )]
    TraceOnFilesystem,
    /// A trace reaches beyond the span.
    #[error(
        "the trace reaches to {reaches}, and {span} are used: name a larger device or --size, or move what lies \
         beyond with --replay-wrap"
    )]
    TraceTooLong {
        /// The end of its last request.
        reaches: Bytes,
        /// What is used of the device.
        span: Bytes,
    },
    /// A request of a trace is longer than the span.
    #[error(
        "the longest request of the trace has {request}, and {span} are used: name a larger --size"
    )]
    TraceRequestTooLong {
        /// The longest.
        request: Bytes,
        /// What is used of the device.
        span: Bytes,
    },
    /// An engine cannot replay a trace in this mode.
    #[error(
        "the engine {engine} cannot replay a trace in mode {mode}: io_uring replays in every mode, sync (one \
         request outstanding a process) in mode closed, and in mode asap at depth 1"
    )]
    TraceEngine {
        /// The engine.
        engine: EngineKind,
        /// The mode.
        mode: ReplayMode,
    },
    /// A trace's processes are threads.
    #[error(
        "the processes of a trace are replayed by threads, each with an I/O context of its own, as a process \
         has: leave client_kind out"
    )]
    TraceByProcesses,
    /// A sentence of a run file older than version 3.
    #[error("{text}")]
    Recorded {
        /// The sentence.
        text: String,
    },
}

/// What limits the scratch span.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SizeLimit {
    /// The device or model has no more.
    Capacity {
        /// Its name.
        device: String,
        /// Its size.
        size: Bytes,
        /// What a simulated filesystem's journal takes of it.
        journal: Option<Bytes>,
    },
    /// The directory's filesystem has no more room.
    FreeSpace {
        /// The directory.
        directory: String,
        /// What is free.
        free: Bytes,
        /// What is left to others.
        kept: Bytes,
    },
}

impl std::fmt::Display for SizeLimit {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            SizeLimit::Capacity { device, size, journal: None } => write!(f, "{device} has {size}"),
            SizeLimit::Capacity { device, size, journal: Some(journal) } => {
                write!(f, "{device} has {size} beside the filesystem's journal of {journal}")
            }
            SizeLimit::FreeSpace { directory, free, kept } => {
                write!(f, "{directory} has {free} free, of which {kept} are left to others")
            }
        }
    }
}
