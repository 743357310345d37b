//! What Linux says about storage and lets us set: devices and their queues, filesystems and mounts,
//! guards before data, counters, and the journal of every change.
//!
//! What does not live here: moving bytes (`load`), deciding what to try (`plan`, `runner`), what a
//! figure means (`analysis`). Data flows out: `/sys`, `/proc` and ioctls become plain structs that
//! can be recorded. Changes flow in through [`Changes`] alone, which writes each to a journal before
//! it makes it and puts all of them back.

mod application;
mod applied;
mod atomic_write;
mod block_trace;
mod cgroup;
mod chain;
mod changes;
mod claim;
mod clock;
mod counters;
mod data_folder;
mod data_server;
mod device;
mod direct_io;
mod error;
mod exclusive;
mod expired;
mod file_id;
mod file_room;
mod filesystem;
mod guard;
mod health;
mod held;
mod host_identity;
mod identity;
mod inspect;
mod inspection;
mod journal;
mod kept;
mod kernel_log;
mod lasting;
mod lasting_file;
mod loadable;
mod loop_device;
mod loop_ioctl;
mod machine;
mod made;
mod mounts;
mod number;
mod open_files;
mod outcome;
mod own_group;
mod owner;
mod parameter;
mod parameter_value;
mod probe;
mod process;
mod process_identity;
mod process_name;
mod process_record;
mod queue;
mod queue_folder;
mod refusal;
mod removal;
mod request_order;
mod reversal;
mod scratch;
mod server;
mod setting;
mod signature;
mod surroundings;
mod sync_card;
mod trace_folder;
mod trace_instance;
mod trap_rules;
mod traps;
mod tree;
mod tuned;
mod ublk_control;
mod ublk_device;
mod ublk_removal;
mod udev;
mod undo;
mod waiting;
mod watch;

pub use application::{Application, KeptSetting};
pub use applied::{
    AppliedJournal, Standing, StandingOf, StandingState, applied, applied_anywhere, take_applied,
};
pub use atomic_write::{
    AtomicAnswer, AtomicDevice, AtomicSizes, AtomicUnits, AtomicUnsaid, AtomicWrites, NotAtomic,
};
pub use block_trace::BlockTrace;
pub use cgroup::{CgroupVersion, GroupLimits, PAGE_CACHE_BOUND_MIN, PageCacheBound};
pub use chain::{Chain, Filesystem, Layer, LayerKind, NoDevice, Role, TargetKind};
pub use changes::{Applied, Changes, Drift};
pub use clock::monotonic_now;
pub use counters::{
    Counters, CpuShares, CpuTicks, DeviceCounters, Memory, Pressure, Rates, Requests, Sampler,
};
pub use data_folder::{DataFolder, ScratchPlace};
pub use data_server::{DataServer, NoPlace};
pub use device::{BlockDevice, Bus, DeviceKind, LoopState};
pub use direct_io::{DirectIo, DirectIoSupport};
pub use error::{Error, Result};
pub use expired::Expired;
pub use file_id::FileId;
pub use file_room::FileRoom;
pub use filesystem::{FilesystemKind, MountedFilesystem, ScratchDevice, UnknownFilesystem};
pub use guard::{ClearedDevice, Confirmation, Examination, Guard, Objection, clear, examine};
pub use health::{DriveHealth, Spare, Temperature, Wear};
pub use held::{HeldEntry, HeldFolder};
pub use host_identity::HostIdentity;
pub use identity::Identity;
pub use inspection::Inspection;
pub use journal::{
    Change, Damage, Entry, Event, PendingJournal, Problem, Reading, Snapshot, latest_first,
    pending, state_folder,
};
pub use kernel_log::kernel_said;
pub use lasting::{RULES_FOLDER, RuleComplaint, rule_path, verify_rule};
pub use lasting_file::is_as_written;
pub use loadable::loadable_schedulers;
pub use loop_device::{LoopDevice, LoopOptions};
pub use machine::{DirtyLimits, Machine};
pub use made::{Made, process_began};
pub use mounts::{Mount, mount_of, mounts};
pub use number::{DeviceNumber, NotADeviceNumber};
pub use outcome::Outcome;
pub use own_group::own_group_command;
pub use owner::{OwnedSetting, Owner, OwnerKind, Place, TunedState, owners, tuned_state};
pub use parameter::fuse_uring_missing;
pub use probe::{Medium, PROBE_SIZE_MIN, Probe, probe};
pub use process::{ServerProcess, User};
pub use process_name::ProcessName;
pub use process_record::ProcessRecord;
pub use queue::{Ceiling, NR_REQUESTS_MAX_WITH_SCHEDULER, NR_REQUESTS_MIN, Queue, SchedulerChoice};
pub use queue_folder::QueueFolder;
pub use refusal::Refusal;
pub use request_order::{OrderCounts, RequestOrder};
pub use scratch::{KEEP_FREE, ScratchFile, ScratchFolder, check_room};
pub use setting::{ASYNC_DEPTH, NotASetting, Setting};
pub use signature::{Signature, SignatureKind, begins_empty, signatures};
pub use surroundings::{Surroundings, package_of};
pub use sync_card::{
    CacheEvidence, CommitCost, DurableBy, NoFsync, NoFsyncReason, NoFsyncVerdict, PageAnswer,
    PageOwner, PowerLoss, PowerLossVerdict, SyncCard, SyncCell, SyncDevice, SyncFigures,
    SyncMeasured, SyncMethod, SyncOutcome, SyncPlace,
};
pub use trap_rules::traps;
pub use traps::{DeviceTitle, NotRotating, OtherLoad, Trap, TrapKind, all_traps};
pub use tree::{Host, block_node};
pub use tuned::{TunedProfile, active_profile, not_in_profile, profile_text, tuned_profile};
pub use ublk_control::{UBLK_TAGS_MAX, UblkOptions, ublk_loadable, ublk_missing};
pub use ublk_device::UblkDevice;
pub use udev::{DeviceKey, KeyedSettings, NoKey, UdevProof, udev_rule};
pub use undo::{Step, UndoReport, of_other_hosts, undo};
pub use waiting::Waiting;
pub use watch::{BackgroundWatch, SeenWrite, SettingWrite, Watch, Writer};
