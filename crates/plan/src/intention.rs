//! What a run will change or make, and put back or remove in the end.

use crate::{Factor, Filesystem};
use std::path::PathBuf;
use units::{Bytes, Nanos};
use workload::DatabaseJob;

/// What a run will change or make, and put back or remove in the end. Data alone: `report` has the
/// words.
#[derive(Clone, Debug, PartialEq)]
pub enum Intention {
    /// Lay out scratch files.
    LayOut {
        /// How many.
        files: usize,
        /// The size of each.
        size: Bytes,
        /// Where.
        folder: PathBuf,
    },
    /// Overwrite the beginning of a block device.
    Overwrite {
        /// The device.
        device: String,
        /// How much; all of it where a filesystem is made.
        size: Option<Bytes>,
    },
    /// Replay a trace in every trial.
    Replay {
        /// Its file.
        file: String,
        /// Its requests.
        requests: u64,
        /// What they read.
        read: Bytes,
        /// What they write.
        written: Bytes,
        /// The end of the one that lies farthest.
        reaches: Bytes,
        /// From the first to the last, which takes as long where they are issued as recorded.
        length: Nanos,
    },
    /// Attach a loop device to each scratch file.
    AttachLoop {
        /// How many.
        devices: usize,
    },
    /// Make and mount a filesystem.
    MakeFilesystem {
        /// Which.
        filesystem: Filesystem,
    },
    /// Run in a control group that bounds the page cache.
    BoundPageCache {
        /// The bound.
        limit: Bytes,
    },
    /// Wait before each trial until the dirty pages that the last one left are written.
    WriteBack {
        /// As many as there may be.
        limit: Bytes,
    },
    /// Load a database into a private server once, and copy it for each trial.
    LoadPrivate {
        /// The workload.
        database: DatabaseJob,
        /// What is loaded, by its tables.
        data: String,
        /// Estimated size.
        size: Bytes,
        /// The server and its version.
        server: String,
        /// Where the loaded data are kept.
        kept: PathBuf,
    },
    /// Load a database into a server that runs already.
    LoadForeign {
        /// The workload.
        database: DatabaseJob,
        /// What is loaded, by its tables.
        data: String,
        /// Estimated size.
        size: Bytes,
    },
    /// Give a private server its configuration.
    ConfigureServer {
        /// The server.
        server: String,
        /// Variable and value.
        settings: Vec<(String, String)>,
    },
    /// Switch cells inside one running server, where it lets its variables be changed.
    Alternate,
    /// Change settings of a device.
    ChangeSettings {
        /// Which.
        factors: Vec<Factor>,
        /// The devices; none for the loop device that will be attached.
        devices: Vec<String>,
    },
    /// The kernel loads modules of schedulers, and keeps them.
    LoadSchedulers {
        /// The schedulers.
        schedulers: Vec<String>,
    },
    /// Write-back throttling of devices that outlive the run counts as set by hand afterwards.
    ThrottlingByHand {
        /// The devices.
        devices: Vec<String>,
    },
    /// Buffered writes are held back in some cells, and not under bfq, which switches that off.
    BfqUnthrottled,
    /// Bring up an emulated device.
    Emulate {
        /// The profile.
        profile: String,
        /// Its size.
        size: Bytes,
        /// What is made for it.
        transport: EmulatedTransport,
        /// The folder of its data; none for memory.
        data: Option<PathBuf>,
    },
    /// Compute a simulation; the host's storage is not touched.
    Simulate {
        /// The profile.
        profile: String,
        /// The kernel.
        kernel: String,
    },
}

/// What is made for an emulated device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EmulatedTransport {
    /// A ublk device.
    Ublk,
    /// A FUSE mount over io_uring and a loop device.
    FuseUring,
    /// A FUSE mount and a loop device.
    Fuse,
}
