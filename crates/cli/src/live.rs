//! The page of a run that goes on, over HTTP: on the loopback address alone, behind a random word
//! in its address.
//!
//! Any user of this machine reaches that address. So the page is a process of its own, which only
//! reads the run file: whatever its clients do to it, the run has its own descriptors, memory and
//! end. A comparison waits for some milliseconds of that reading between two trials, and never for
//! a browser.

mod connections;
mod pages;
mod request;

use anyhow::{Context, bail};
use connections::Connections;
use pages::Pages;
use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    process::{Resource, Rlimit, nice, setrlimit},
};
use std::{
    fs::File,
    io::{BufRead, BufReader, Read},
    net::{Ipv4Addr, TcpListener},
    path::Path,
    process::{Child, ChildStdout, Stdio},
    time::{Duration, Instant},
};

/// The hidden verb that makes this program the page of a run.
pub const PAGE_VERB: &str = "live-page";

/// How long a page may take until it says where it is.
const START_WITHIN: Timespec = Timespec { tv_sec: 10, tv_nsec: 0 };
/// How long it may take to tell browsers of the run's end.
const END_WITHIN: Duration = Duration::from_secs(2);
/// What the page may have open: its connections, the run file and what SQLite keeps beside it.
const DESCRIPTORS: u64 = 64;
/// What is measured goes first.
const NICE: i32 = 10;
/// And the kernel, when memory runs short, takes the page before the run.
const OOM_SCORE: &str = "500";

/// The process that serves a page; it ends when this is dropped, or when we end without that.
pub struct Live {
    /// Where the page is.
    pub address: String,
    process: Child,
}

impl Live {
    /// Serves the page of a run file.
    pub fn start(file: &Path) -> anyhow::Result<Live> {
        let program = std::env::current_exe().context("cannot find this program's own file")?;
        let mut process = host::own_group_command(program)
            .arg(PAGE_VERB)
            .arg(file)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .context("cannot start the page's process")?;
        let said = process.stdout.take();
        let mut live = Live { address: String::new(), process };
        live.address = said.context("the page's process has no output").and_then(address)?;
        Ok(live)
    }

    /// Whether its process has ended, which it does not while it is well.
    pub fn has_ended(&mut self) -> bool {
        !matches!(self.process.try_wait(), Ok(None))
    }
}

/// The line in which a page says where it is.
fn address(said: ChildStdout) -> anyhow::Result<String> {
    let mut ready = [PollFd::new(&said, PollFlags::IN)];
    if poll(&mut ready, Some(&START_WITHIN)).context("cannot wait for the page's process")? == 0 {
        bail!("the page's process says nothing for {} s", START_WITHIN.tv_sec);
    }
    let mut line = String::new();
    BufReader::new(said.take(1 << 10)).read_line(&mut line).context("cannot read its address")?;
    match line.trim() {
        "" => bail!("the page's process ended; its own words are above"),
        address => Ok(address.to_owned()),
    }
}

impl Drop for Live {
    fn drop(&mut self) {
        // The end of its input is its sign to end.
        drop(self.process.stdin.take());
        let begun = Instant::now();
        while !self.has_ended() {
            if begun.elapsed() > END_WITHIN {
                // It has nothing to lose. One that waits for a disk is not waited for.
                let _ended_already = self.process.kill();
                break;
            }
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}

/// Is the page of a run file: prints its address, and serves until standard input ends.
pub fn serve(file: &Path) -> anyhow::Result<()> {
    be_modest();
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))
        .context("cannot listen on the loopback address")?;
    let port = listener.local_addr().context("cannot listen on the loopback address")?.port();
    let token = token().context("cannot make the random word of the page's address")?;
    let pages = Pages::of(file, &token, port)?;
    let mut connections = Connections::of(listener, pages)?;
    crate::say::line(&format!("http://127.0.0.1:{port}/{token}/"))?;
    connections.serve(&std::io::stdin()).context("the page")
}

/// Takes no more than a page needs. Where the kernel refuses, the page is served all the same.
fn be_modest() {
    let _ = nice(NICE);
    let limit = Rlimit { current: Some(DESCRIPTORS), maximum: Some(DESCRIPTORS) };
    let _ = setrlimit(Resource::Nofile, limit);
    let _ = std::fs::write("/proc/self/oom_score_adj", OOM_SCORE);
}

/// A word that nobody guesses: 128 bits of the kernel's.
fn token() -> std::io::Result<String> {
    let mut bytes = [0; 16];
    File::open("/dev/urandom").and_then(|mut it| it.read_exact(&mut bytes))?;
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}
