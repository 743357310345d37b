//! A terminal that a test opens and closes, with an interactive shell on it.

use crate::machine::Place;
use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    fs::{Mode, OFlags},
    process::{Pid, test_kill_process},
    pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt},
};
use std::{
    fs::File,
    io::{Read, Write},
    process::{Child, Command, Stdio},
    time::{Duration, Instant},
};

/// A pseudo-terminal; dropped, it is closed, as when its window is.
pub struct Terminal {
    screen: File,
    /// What was shown.
    shown: String,
}

impl Terminal {
    pub fn open() -> Terminal {
        let flags = OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC;
        let screen = openpt(flags).unwrap();
        grantpt(&screen).unwrap();
        unlockpt(&screen).unwrap();
        Terminal { screen: screen.into(), shown: String::new() }
    }

    /// What a program reads and writes.
    pub fn end(&self) -> Stdio {
        let name = ptsname(&self.screen, Vec::new()).unwrap();
        let flags = OFlags::RDWR | OFlags::NOCTTY | OFlags::CLOEXEC;
        rustix::fs::open(name, flags, Mode::empty()).unwrap().into()
    }

    /// An interactive shell whose terminal this is; its commands have the place's state.
    pub fn shell(&self, place: &Place) -> Child {
        Command::new("setsid")
            .args(["--ctty", "bash", "--norc", "--noprofile", "-i"])
            .env("SPINDLE_STATE", place.state())
            .env("HISTFILE", "")
            .stdin(self.end())
            .stdout(self.end())
            .stderr(self.end())
            .spawn()
            .unwrap()
    }

    pub fn type_line(&mut self, line: &str) {
        self.screen.write_all(format!("{line}\n").as_bytes()).unwrap();
    }

    /// The first process that the shell starts.
    #[track_caller]
    pub fn await_child(&mut self, shell: &Child, what: &str) -> Pid {
        let begun = Instant::now();
        loop {
            if let Some(found) = children(Pid::from_child(shell)).first() {
                return *found;
            }
            assert!(begun.elapsed() < Duration::from_secs(30), "{what}: {}", self.shown);
            self.show_for(Duration::from_millis(1));
        }
    }

    /// Takes what is written to it, for so long.
    pub fn show_for(&mut self, time: Duration) {
        let begun = Instant::now();
        loop {
            let left = time.saturating_sub(begun.elapsed());
            let left =
                Timespec { tv_sec: left.as_secs() as i64, tv_nsec: left.subsec_nanos().into() };
            let mut ready = [PollFd::new(&self.screen, PollFlags::IN)];
            if poll(&mut ready, Some(&left)).unwrap() == 0 {
                return;
            }
            let mut part = [0; 4096];
            let Ok(bytes) = self.screen.read(&mut part) else { return };
            self.shown.push_str(&String::from_utf8_lossy(&part[..bytes]));
        }
    }
}

/// The processes that a process started and that it has not waited for.
pub fn children(process: Pid) -> Vec<Pid> {
    let threads = std::fs::read_dir(format!("/proc/{}/task", process.as_raw_nonzero()));
    let of_threads = threads.into_iter().flatten().flatten().map(|thread| {
        // Of a thread that has ended there are none.
        std::fs::read_to_string(thread.path().join("children")).unwrap_or_default()
    });
    let text: String = of_threads.collect();
    text.split_whitespace().filter_map(|it| Pid::from_raw(it.parse().ok()?)).collect()
}

/// Whether a process is there and has not ended.
pub fn is_there(process: Pid) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{}/stat", process.as_raw_nonzero()));
    let state = stat.unwrap_or_default();
    let dead = state.rsplit_once(") ").is_none_or(|(_, rest)| rest.starts_with('Z'));
    test_kill_process(process).is_ok() && !dead
}
