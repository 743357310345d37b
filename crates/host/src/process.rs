//! Processes that must not outlive us: a database's server and what prepares its data.
//!
//! Each is in the journal and asks the kernel for a signal when we die, however that happens, so
//! that neither Ctrl-C nor `kill -9` of this program leaves one running.

use crate::{Changes, Error, Host, Made, Result, process_identity::process_start};
use rustix::{
    fs::fchown,
    process::{Gid, Uid},
};
use std::{
    io::{self, Read, Write},
    os::{fd::BorrowedFd, unix::process::CommandExt},
    process::{Child, Command, ExitStatus},
};

/// A process of ours.
#[derive(Debug)]
pub struct ServerProcess {
    child: Child,
    entry: u64,
    name: String,
}

/// Whom a process runs as.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct User {
    /// Its name in `/etc/passwd`.
    pub name: String,
    /// User number.
    pub uid: u32,
    /// Group number.
    pub gid: u32,
}

impl User {
    /// The user of this name, if the host has it in `/etc/passwd`.
    pub fn named(host: &Host, name: &str) -> Option<User> {
        let text = host.text("/etc/passwd")?;
        text.lines().find_map(|line| {
            let mut fields = line.split(':');
            let found = fields.next()?;
            let (uid, gid) = (fields.nth(1)?.parse().ok()?, fields.next()?.parse().ok()?);
            (found == name).then(|| User { name: name.to_owned(), uid, gid })
        })
    }

    /// Gives something open to this user.
    pub fn own(&self, file: BorrowedFd) -> io::Result<()> {
        let (user, group) = (Uid::from_raw(self.uid), Gid::from_raw(self.gid));
        Ok(fchown(file, Some(user), Some(group))?)
    }
}

impl Changes {
    /// Starts a process that the kernel sends `death_signal` when the calling thread ends, and notes
    /// it in the journal as `name`. With a user it runs as that, and may still search every folder
    /// above its data where we may.
    pub fn start_process(
        &mut self,
        mut command: Command,
        name: &str,
        user: Option<&User>,
        death_signal: i32,
    ) -> Result<ServerProcess> {
        die_with_us(&mut command, user.cloned(), death_signal);
        let program = command.get_program().to_owned();
        let child = command.spawn().map_err(|source| Error::Io {
            doing: "start",
            path: program.into(),
            source,
        })?;
        let pid = child.id();
        let started_ticks = process_start(self.host(), pid).unwrap_or_default();
        let entry = self.announce(Made::Process { pid, started_ticks, name: name.to_owned() })?;
        Ok(ServerProcess { child, entry, name: name.to_owned() })
    }

    /// Waits until a process that ends by itself has ended.
    pub fn await_process(&mut self, mut process: ServerProcess) -> Result<ExitStatus> {
        let ended = process.child.wait();
        self.gone(process.entry)?;
        ended.map_err(|source| Error::Io {
            doing: "wait for",
            path: process.name.clone().into(),
            source,
        })
    }

    /// Ends a process with `signal`, and where that does not end it in `patience`, with SIGKILL.
    pub fn end_process(
        &mut self,
        mut process: ServerProcess,
        signal: i32,
        patience: std::time::Duration,
    ) -> Result<()> {
        let begun = std::time::Instant::now();
        process.send(signal);
        while process.ended().is_none() {
            if begun.elapsed() > patience {
                process.send(libc::SIGKILL);
                // What SIGKILL does not end is waiting for a device, and is waited for.
                let _status = process.child.wait();
                break;
            }
            std::thread::sleep(std::time::Duration::from_millis(5));
        }
        self.gone(process.entry)
    }
}

impl ServerProcess {
    /// Its number.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// What it is, for people.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Writes to its input, closes that, and reads its output to the end, where both are pipes.
    pub(crate) fn say_and_hear(&mut self, input: &str) -> io::Result<String> {
        if let Some(mut pipe) = self.child.stdin.take() {
            pipe.write_all(input.as_bytes())?;
        }
        let mut said = Vec::new();
        if let Some(mut pipe) = self.child.stdout.take() {
            pipe.read_to_end(&mut said)?;
        }
        Ok(String::from_utf8_lossy(&said).into_owned())
    }

    /// How it ended, if it did.
    pub fn ended(&mut self) -> Option<ExitStatus> {
        self.child.try_wait().ok().flatten()
    }

    /// Sends it a signal, unless it has ended.
    pub fn send(&mut self, signal: i32) {
        if self.ended().is_some() {
            return;
        }
        let Ok(pid) = i32::try_from(self.child.id()) else { return };
        // SAFETY: integers only; the child is not reaped yet, so its number is still its own.
        unsafe { libc::kill(pid, signal) };
    }
}

/// CAP_DAC_READ_SEARCH and CAP_DAC_OVERRIDE of capabilities(7): the first can write nothing, and many containers
/// have the second alone.
const SEARCH_CAPABILITIES: [u32; 2] = [2, 1];

/// The version of `struct __user_cap_header_struct` with 64 capabilities, of capget(2).
const CAPABILITY_VERSION_3: u32 = 0x2008_0522;

fn die_with_us(command: &mut Command, user: Option<User>, death_signal: i32) {
    let parent = std::process::id();
    let become_user = move || -> io::Result<()> {
        if let Some(user) = &user {
            switch_to(user)?;
        }
        // After the switch, which clears it (prctl(2)).
        // SAFETY: integers only.
        if unsafe { libc::prctl(libc::PR_SET_PDEATHSIG, death_signal) } != 0 {
            return Err(io::Error::last_os_error());
        }
        // We may have died before that.
        // SAFETY: no arguments.
        match unsafe { libc::getppid() } as u32 == parent {
            true => Ok(()),
            false => Err(io::ErrorKind::BrokenPipe.into()),
        }
    };
    command.process_group(0);
    // SAFETY: between fork and exec only system calls are made, and nothing is allocated.
    unsafe { command.pre_exec(become_user) };
}

/// Becomes `user`, keeping the right to search folders: the data may be below one that only root may
/// enter, and the server is to have its own data and nothing above it.
fn switch_to(user: &User) -> io::Result<()> {
    #[repr(C)]
    struct Header {
        version: u32,
        pid: i32,
    }
    #[repr(C)]
    #[derive(Clone, Copy)]
    struct Data {
        effective: u32,
        permitted: u32,
        inheritable: u32,
    }
    let check = |outcome: i64| match outcome {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    };
    // SAFETY: integers, and for setgroups a null list of no groups.
    unsafe {
        check(libc::prctl(libc::PR_SET_KEEPCAPS, 1, 0, 0, 0).into())?;
        check(libc::setgroups(0, std::ptr::null()).into())?;
        check(libc::setgid(user.gid).into())?;
        check(libc::setuid(user.uid).into())?;
    }
    // The first that we have ourselves and may pass on; with none, the way there must be open.
    for capability in SEARCH_CAPABILITIES {
        let bit = 1 << capability;
        let header = Header { version: CAPABILITY_VERSION_3, pid: 0 };
        let none = Data { effective: 0, permitted: 0, inheritable: 0 };
        let data = [Data { effective: bit, permitted: bit, inheritable: bit }, none];
        // SAFETY: capset(2) reads one header and two data structs, which these are.
        let set = unsafe { libc::syscall(libc::SYS_capset, &raw const header, data.as_ptr()) } == 0;
        let raise = libc::PR_CAP_AMBIENT_RAISE as libc::c_ulong;
        let of = libc::c_ulong::from(capability);
        // SAFETY: integers only.
        if set && unsafe { libc::prctl(libc::PR_CAP_AMBIENT, raise, of, 0, 0) } == 0 {
            break;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::{Duration, Instant};

    #[test]
    fn a_process_is_ended_and_no_longer_in_the_journal() {
        let folder = tempfile::tempdir().unwrap();
        let mut changes = Changes::begin_in(&Host::here(), folder.path(), "test").unwrap();
        let mut command = Command::new("sh");
        // Deaf to SIGTERM, so that patience ends.
        command.args(["-c", "trap '' TERM; while :; do sleep 0.05; done"]);
        let mut process = changes.start_process(command, "a shell", None, libc::SIGKILL).unwrap();
        assert_eq!(process.ended(), None);
        let pid = process.pid();
        let journal = || std::fs::read_to_string(changes.journal()).unwrap();
        assert!(journal().contains("a shell"));
        std::thread::sleep(Duration::from_millis(100));
        let begun = Instant::now();
        changes.end_process(process, libc::SIGTERM, Duration::from_millis(300)).unwrap();
        assert!(begun.elapsed() >= Duration::from_millis(300));
        assert!(!crate::process_identity::process_lives(&Host::here(), pid));
        assert!(changes.finish().unwrap().steps.is_empty());
    }

    #[test]
    fn another_user_may_still_search_the_folders_above_its_own() {
        let host = Host::here();
        let Some(nobody) = User::named(&host, "nobody") else {
            skipped::skip(skipped::Need::Kernel, "a user nobody");
            return;
        };
        if !rustix::process::geteuid().is_root() {
            skipped::skip(skipped::Need::Root, "to change users");
            return;
        }
        let folder = tempfile::tempdir().unwrap();
        let own = folder.path().join("own");
        std::fs::create_dir(&own).unwrap();
        std::os::unix::fs::chown(&own, Some(nobody.uid), Some(nobody.gid)).unwrap();
        let mut changes = Changes::begin_in(&host, folder.path(), "test").unwrap();
        let mut command = Command::new("sh");
        let script = "cd \"$0\" && id -un > name && test \"$(id -u)\" != 0";
        command.args(["-c", script]).arg(&own);
        let process =
            changes.start_process(command, "a shell", Some(&nobody), libc::SIGKILL).unwrap();
        assert!(changes.await_process(process).unwrap().success());
        assert_eq!(std::fs::read_to_string(own.join("name")).unwrap().trim(), "nobody");
    }
}
