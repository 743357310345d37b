//! Taking settings back after a time unless they are confirmed: a timer of systemd, or a process of our
//! own that has left the terminal.

use crate::{
    Changes, Made, Result, Waiting, error::io_error, own_group_command,
    process_identity::process_start,
};
use std::{
    os::unix::process::CommandExt,
    path::Path,
    process::{Command, Stdio},
};

impl Changes {
    /// Makes something take all of this back after so many seconds: `words` are those of this
    /// program that do it. Where systemd runs it is a timer, else a process that waits.
    pub fn reverse_after(&mut self, seconds: u64, program: &Path, words: &[&str]) -> Result<()> {
        let state = self.journal().parent().unwrap_or(Path::new("/")).to_owned();
        if self.host().path("/run/systemd/system").is_dir() {
            let name = self.journal().file_stem().unwrap_or_default().to_string_lossy();
            let unit = format!("spindle-reversal-{name}.timer");
            self.announce(Made::Reversal(Waiting::Timer { unit: unit.clone() }))?;
            let output = own_group_command("systemd-run")
                .arg(format!("--unit={}", unit.trim_end_matches(".timer")))
                .arg(format!("--on-active={seconds}s"))
                .args(["--timer-property=AccuracySec=1s", "--quiet"])
                .arg(format!("--setenv=SPINDLE_STATE={}", state.display()))
                .arg(program)
                .args(words)
                .output()
                .map_err(io_error("run systemd-run for", program))?;
            return match output.status.success() {
                true => Ok(()),
                false => Err(crate::Error::Program {
                    program: "systemd-run".to_owned(),
                    problem: String::from_utf8_lossy(&output.stderr).trim().to_owned(),
                    next: "leave --for out, and take the settings back with spindle undo"
                        .to_owned(),
                }),
            };
        }
        let mut command = Command::new(program);
        // A session of its own before it is this program: what ends our terminal, or signals our group, must not end
        // the only thing that takes the settings back.
        // SAFETY: one system call between fork and exec.
        unsafe {
            command.pre_exec(|| {
                libc::setsid();
                Ok(())
            })
        };
        let child = command
            .args(words)
            .args(["--after", &seconds.to_string()])
            .env("SPINDLE_STATE", &state)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .map_err(io_error("start", program))?;
        // It ends by itself where its journal is gone, so that it may be noted after it began.
        let pid = child.id();
        let started_ticks = process_start(self.host(), pid).unwrap_or_default();
        self.announce(Made::Reversal(Waiting::Process { pid, started_ticks })).map(drop)
    }
}
