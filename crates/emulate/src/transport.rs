//! The ways between the kernel and a server, and which one a host has.

use crate::EmulateError;
use host::{Host, UBLK_TAGS_MAX, ublk_missing};
use serde::{Deserialize, Serialize};
use std::{fmt, path::Path, str::FromStr};

/// How the kernel's requests reach a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Transport {
    /// A ublk device: the kernel hands each request to the server itself (Linux 6.0).
    #[serde(rename = "ublk")]
    Ublk,
    /// A loop device on a file that the server shows through FUSE.
    #[serde(rename = "fuse+loop")]
    Fuse,
}

/// A loop device has so many tags (loop.hw_queue_depth): what a deeper model could take beyond them
/// never reaches it.
const LOOP_TAGS: u32 = 128;

impl Transport {
    /// The one that was asked for, or ublk where the host has it. An error says what this host lacks;
    /// nothing is changed to find out.
    pub fn choose(asked: Option<Transport>) -> Result<Transport, EmulateError> {
        if !rustix::process::geteuid().is_root() {
            return Err(cannot(
                "only root may mount, attach loop devices and add ublk devices",
                "run it with sudo, or use simulated:PROFILE, which needs no root",
            ));
        }
        match (asked, ublk_missing(&Host::here())) {
            (None | Some(Transport::Ublk), None) => Ok(Transport::Ublk),
            (Some(Transport::Ublk), Some(why)) => {
                Err(cannot(&why, "leave --transport out, and FUSE and a loop device carry it"))
            }
            (None | Some(Transport::Fuse), _) => check_fuse().map(|()| Transport::Fuse),
        }
    }

    /// How many of a model's commands it carries at once.
    pub fn tags(self, model_depth: u32) -> u32 {
        match self {
            Transport::Ublk => model_depth.min(UBLK_TAGS_MAX),
            Transport::Fuse => model_depth.min(LOOP_TAGS),
        }
    }

    /// "ublk", "FUSE and a loop device".
    pub fn title(self) -> &'static str {
        match self {
            Transport::Ublk => "ublk",
            Transport::Fuse => "FUSE and a loop device",
        }
    }

    /// In run files.
    pub fn name(self) -> &'static str {
        match self {
            Transport::Ublk => "ublk",
            Transport::Fuse => "fuse+loop",
        }
    }
}

fn check_fuse() -> Result<(), EmulateError> {
    if !Path::new("/dev/fuse").exists() {
        return Err(cannot(
            "there is no /dev/fuse",
            "load the module (modprobe fuse), or give the container the device (--device /dev/fuse)",
        ));
    }
    if !Path::new("/dev/loop-control").exists() {
        return Err(cannot(
            "there is no /dev/loop-control",
            "load the module (modprobe loop), or start the container with --privileged",
        ));
    }
    Ok(())
}

fn cannot(why: &str, next: &str) -> EmulateError {
    let what = "an emulated device".to_owned();
    host::Error::Unsupported { what, why: why.to_owned(), next: next.to_owned() }.into()
}

impl fmt::Display for Transport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Transport::Ublk => "ublk",
            Transport::Fuse => "fuse",
        })
    }
}

impl FromStr for Transport {
    type Err = String;
    fn from_str(word: &str) -> Result<Self, String> {
        match word {
            "ublk" => Ok(Transport::Ublk),
            "fuse" => Ok(Transport::Fuse),
            _ => Err(format!("'{word}' is no transport: take ublk or fuse")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ublk_carries_what_a_loop_device_cannot() {
        for (depth, loops, ublks) in [(64, 64, 64), (256, 128, 256), (10_000, 128, 4096)] {
            assert_eq!(Transport::Fuse.tags(depth), loops);
            assert_eq!(Transport::Ublk.tags(depth), ublks);
        }
    }

    #[test]
    fn words_are_read_as_they_are_written() {
        for transport in [Transport::Ublk, Transport::Fuse] {
            assert_eq!(transport.to_string().parse(), Ok(transport));
        }
        assert!("loop".parse::<Transport>().is_err());
    }
}
