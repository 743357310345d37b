//! The transports between the kernel and a server, and which one a host has.

use crate::error::EmulateError;
use host::{Host, UBLK_TAGS_MAX, fuse_uring_missing, ublk_missing};
use serde::{Deserialize, Serialize};
use std::{fmt, path::Path, str::FromStr};
use strum::VariantArray;

/// How the kernel's requests reach a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, VariantArray)]
pub enum Transport {
    /// A ublk device: the kernel hands each request to the server itself (Linux 6.0).
    #[serde(rename = "ublk")]
    Ublk,
    /// A loop device on a file that the server shows through FUSE, whose requests come over io_uring
    /// (Linux 6.14).
    #[serde(rename = "fuse-uring+loop")]
    FuseUring,
    /// The same, but the server reads the requests from /dev/fuse.
    #[serde(rename = "fuse+loop")]
    Fuse,
}

/// The tags of a loop device (loop.hw_queue_depth). Documented: kernel-parameters.txt.
const LOOP_TAGS: u32 = 128;

impl Transport {
    /// All of them.
    pub const ALL: &'static [Transport] = Transport::VARIANTS;

    /// The requested one; by default ublk, or FUSE on hosts without it (over io_uring only on request,
    /// because the kernel has it disabled). An error says what this host lacks; checking changes nothing.
    pub fn choose(asked: Option<Transport>) -> Result<Transport, EmulateError> {
        if !rustix::process::geteuid().is_root() {
            return Err(cannot(
                "only root may mount, attach loop devices and add ublk devices",
                "run it with sudo, or use simulated:PROFILE, which needs no root",
            ));
        }
        match asked {
            Some(asked) => asked.check().map(|()| asked),
            None if Transport::Ublk.check().is_ok() => Ok(Transport::Ublk),
            None => Transport::Fuse.check().map(|()| Transport::Fuse),
        }
    }

    /// Whether this host has it.
    fn check(self) -> Result<(), EmulateError> {
        let missing = match self {
            Transport::Ublk => ublk_missing(&Host::here()),
            Transport::FuseUring => {
                check_fuse()?;
                fuse_uring_missing(&Host::here())
            }
            Transport::Fuse => return check_fuse(),
        };
        missing.map_or(Ok(()), |why| {
            Err(cannot(&why, "leave --transport out to use what this host has"))
        })
    }

    /// How many of a model's commands it passes at once.
    pub fn tags(self, model_depth: u32) -> u32 {
        match self {
            Transport::Ublk => model_depth.min(UBLK_TAGS_MAX),
            Transport::FuseUring | Transport::Fuse => model_depth.min(LOOP_TAGS),
        }
    }

    /// "ublk", "FUSE over io_uring and a loop device".
    pub fn title(self) -> &'static str {
        match self {
            Transport::Ublk => "ublk",
            Transport::FuseUring => "FUSE over io_uring and a loop device",
            Transport::Fuse => "FUSE and a loop device",
        }
    }

    /// In run files.
    pub fn name(self) -> &'static str {
        match self {
            Transport::Ublk => "ublk",
            Transport::FuseUring => "fuse-uring+loop",
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
            Transport::FuseUring => "fuse-uring",
            Transport::Fuse => "fuse",
        })
    }
}

/// There is no transport of this name.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("transport '{0}' is not known: use ublk, fuse or fuse-uring")]
pub struct UnknownTransport(pub String);

impl FromStr for Transport {
    type Err = UnknownTransport;
    fn from_str(word: &str) -> Result<Self, UnknownTransport> {
        let named = Transport::ALL.iter().copied().find(|it| it.to_string() == word);
        named.ok_or_else(|| UnknownTransport(word.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ublk_passes_more_than_a_loop_device() {
        for (depth, loops, ublks) in [(64, 64, 64), (256, 128, 256), (10_000, 128, 4096)] {
            assert_eq!(Transport::Fuse.tags(depth), loops);
            assert_eq!(Transport::Ublk.tags(depth), ublks);
        }
    }

    #[test]
    fn words_are_read_as_they_are_written() {
        for transport in Transport::ALL {
            assert_eq!(transport.to_string().parse(), Ok(*transport));
        }
        assert!("loop".parse::<Transport>().is_err());
    }
}
