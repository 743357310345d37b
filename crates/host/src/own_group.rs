//! Programs that a terminal's signals do not reach.

use std::{ffi::OsStr, os::unix::process::CommandExt, process::Command};

/// A command in a process group of its own. Ctrl-C and a closed terminal signal every process of
/// the terminal's foreground group, and timeout(1) every one of its own: what we run while we put
/// the host back (tuned-adm, systemctl, a server that still has the data open) would be ended in
/// the middle of that. Such signals ask us alone to end.
pub fn own_group_command(program: impl AsRef<OsStr>) -> Command {
    let mut command = Command::new(program);
    command.process_group(0);
    command
}
