//! What a controller and its server say to each other: one line of JSON each, over a socket pair that
//! is the server's standard input.

use crate::{
    data::Place,
    lateness::{Lateness, Requests},
};
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use std::{
    io::{self, BufRead, BufReader, Write},
    os::unix::net::UnixStream,
    path::PathBuf,
};
use units::{Bytes, Nanos};

/// What a controller asks for.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Order {
    /// Serve. The first order, and given once.
    Begin(Begin),
    /// Say what was seen.
    Look,
    /// Forget what was counted.
    Forget,
    /// Begin with a model as new, whose randomness comes from a seed.
    Reset {
        /// The seed.
        seed: u64,
    },
    /// Answer at once, or when the model says.
    Bypass {
        /// At once.
        on: bool,
    },
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
    /// Where the data are.
    pub place: Place,
    /// How requests come.
    pub way: Way,
    /// Whether idle processors may halt now and then.
    pub pauses: bool,
}

/// How requests come, as the controller has made it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Way {
    /// Through a FUSE filesystem.
    Fuse {
        /// Where to mount it.
        point: PathBuf,
    },
    /// The same, over io_uring, which FUSE allows while the server begins.
    FuseUring {
        /// Where to mount it.
        point: PathBuf,
        /// As many requests as may be there at once.
        tags: u32,
    },
    /// Through a ublk device that was added.
    Ublk {
        /// Its number.
        index: u32,
        /// Its tags.
        tags: u32,
        /// Whether its kernel wants commands that are numbered as ioctls are.
        encoded: bool,
    },
}

/// What a server answers.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Answer {
    /// It serves.
    Serving {
        /// It wakes ahead of each event and spins for the rest.
        spins: bool,
    },
    /// What it saw.
    Seen(Box<Sight>),
    /// The order was carried out.
    Done,
    /// It was not.
    Refused {
        /// Why.
        why: String,
    },
}

/// What a server saw since it was last told to forget.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Sight {
    /// Requests that arrived.
    pub requests: Requests,
    /// How late completions were.
    pub lateness: Lateness,
    /// Requests at the model.
    pub outstanding: u32,
    /// The most there were.
    pub most_outstanding: u32,
    /// Drives (or flash dies) at work.
    pub busy: u32,
    /// Drives (or dies) there are.
    pub units: u32,
    /// The head's cylinder, where there is a head.
    pub cylinder: Option<u32>,
    /// Acknowledged and not on the medium.
    pub dirty: Bytes,
    /// Room that the data take.
    pub taken: Bytes,
    /// Time that was spun away.
    pub spun: Nanos,
    /// Of that, when the processor was not the pacing thread's.
    pub spun_taken: Nanos,
    /// Processor time of the server since it began.
    pub processor: Nanos,
    /// Whether the pacing thread has real-time priority.
    pub real_time: bool,
}

/// One end of the conversation.
#[derive(Debug)]
pub struct Talk {
    reader: BufReader<UnixStream>,
    writer: UnixStream,
}

impl Talk {
    /// Over a socket.
    pub fn over(socket: UnixStream) -> io::Result<Talk> {
        Ok(Talk { writer: socket.try_clone()?, reader: BufReader::new(socket) })
    }

    /// Says something.
    pub fn say(&mut self, what: &impl Serialize) -> io::Result<()> {
        let mut line = serde_json::to_vec(what)?;
        line.push(b'\n');
        self.writer.write_all(&line)
    }

    /// Hears something; `None` when the other has gone.
    pub fn hear<T: DeserializeOwned>(&mut self) -> io::Result<Option<T>> {
        let mut line = String::new();
        match self.reader.read_line(&mut line)? {
            0 => Ok(None),
            _ => Ok(Some(serde_json::from_str(&line)?)),
        }
    }
}
