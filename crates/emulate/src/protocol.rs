//! The protocol between a controller and its server: lines of JSON over a socket pair, whose one end is
//! the server's standard input.

use crate::{
    data::Storage,
    lateness::{Lateness, RequestCounts},
    server_error::ServerError,
};
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use std::{
    io::{self, BufRead, BufReader, Write},
    os::unix::net::UnixStream,
    path::PathBuf,
    time::Duration,
};
use units::{Bytes, Nanos};

/// A command of the controller.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Command {
    /// Serve. The first command, given once.
    Begin(Begin),
    /// Report the counters.
    Stats,
    /// Reset the counters.
    ResetStats,
    /// Replace the model by a new one.
    Reset {
        /// Seed of its randomness.
        seed: u64,
    },
    /// Complete requests at once, or when the model says.
    Bypass {
        /// At once.
        on: bool,
    },
    /// Keep what a power failure would take.
    LetPowerFail,
    /// The power fails: what was not flushed is gone, and what is written from now on.
    FailPower,
    /// The power is back.
    RestorePower,
}

/// What to serve.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Begin {
    /// A profile's name, or its file.
    pub profile: String,
    /// Seed of the model's randomness.
    pub seed: u64,
    /// Length of the device.
    pub size: Bytes,
    /// Where the data are stored.
    pub place: Storage,
    /// Where requests come from.
    pub endpoint: Endpoint,
    /// Whether idle processors may halt now and then; see `pacer::Waits`.
    pub pauses: bool,
}

/// Where a server's requests come from, as prepared by the controller.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Endpoint {
    /// Through a FUSE filesystem.
    Fuse {
        /// Where to mount it.
        point: PathBuf,
    },
    /// The same over io_uring, which the controller has enabled for the time being.
    FuseUring {
        /// Where to mount it.
        point: PathBuf,
        /// How many requests may be outstanding.
        tags: u32,
    },
    /// Through a ublk device that was added.
    Ublk {
        /// Its number.
        index: u32,
        /// Its tags.
        tags: u32,
        /// Whether the kernel takes ioctl-encoded command numbers.
        encoded: bool,
    },
}

/// A server's reply.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Reply {
    /// It serves.
    Serving {
        /// Whether the pacing thread wakes ahead of each event and spins until it.
        spins: bool,
    },
    /// The counters.
    Stats(Box<ServerStats>),
    /// The command was carried out.
    Done,
    /// The server could not carry it out.
    Failed {
        /// Its error.
        error: ServerError,
    },
}

/// What a server counted since its counters were reset.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ServerStats {
    /// RequestCounts that arrived.
    pub requests: RequestCounts,
    /// How late completions were.
    pub lateness: Lateness,
    /// RequestCounts at the model now.
    pub outstanding: u32,
    /// The most at once.
    pub max_outstanding: u32,
    /// Drives (or flash dies) at work.
    pub busy: u32,
    /// Drives (or dies) there are.
    pub units: u32,
    /// The head's cylinder, where there is a head.
    pub cylinder: Option<u32>,
    /// Data acknowledged that are not on the medium.
    pub dirty: Bytes,
    /// Space that the stored data take.
    pub stored: Bytes,
    /// Time the pacing thread spent spinning.
    pub spun: Nanos,
    /// Of that, the time in which it was preempted.
    pub spun_preempted: Nanos,
    /// Processor time of the server since its start.
    pub processor: Nanos,
    /// Whether the pacing thread has real-time priority.
    pub real_time: bool,
}

/// One end of the connection.
#[derive(Debug)]
pub struct Connection {
    reader: BufReader<UnixStream>,
    writer: UnixStream,
    /// The beginning of a message whose rest did not come in time.
    begun: Vec<u8>,
}

impl Connection {
    /// Over a socket.
    pub fn new(socket: UnixStream) -> io::Result<Connection> {
        Ok(Connection {
            writer: socket.try_clone()?,
            reader: BufReader::new(socket),
            begun: Vec::new(),
        })
    }

    /// Sends a message.
    pub fn send(&mut self, what: &impl Serialize) -> io::Result<()> {
        let mut line = serde_json::to_vec(what)?;
        line.push(b'\n');
        self.writer.write_all(&line)
    }

    /// Receives a message; `None` when the other end is closed.
    pub fn receive<T: DeserializeOwned>(&mut self) -> io::Result<Option<T>> {
        self.reader.read_until(b'\n', &mut self.begun)?;
        match std::mem::take(&mut self.begun) {
            line if line.is_empty() => Ok(None),
            line => Ok(Some(serde_json::from_slice(&line)?)),
        }
    }

    /// The same, but fails with `WouldBlock` after `patience`. It can be called again then.
    pub fn receive_within<T: DeserializeOwned>(
        &mut self,
        patience: Duration,
    ) -> io::Result<Option<T>> {
        self.writer.set_read_timeout(Some(patience))?;
        self.receive()
    }
}
