//! A client that is a process: this program started again with a verb that people never type, which
//! reads what it is to do from its standard input.
//!
//! A child that was forked and not executed would share the parent's locks, in whatever state the
//! parent's other threads held them, and could not even allocate.

use crate::board::Board;
use crate::client_main::{JobSpec, client_main};
use crate::client_program::ClientProgram;
use crate::cost::Cpu;
use serde::{Deserialize, Serialize};
use std::{
    io::{self, Write},
    os::unix::process::CommandExt,
    path::PathBuf,
    process::{Child, Command, Stdio},
};

/// What one process does.
#[derive(Serialize, Deserialize)]
struct Assignment {
    spec: JobSpec,
    /// Where the memory shared with the observer is opened.
    board: PathBuf,
    clients: usize,
    client: usize,
    /// The process that waits for the result.
    parent: u32,
}

/// Starts one client.
pub(crate) fn spawn(
    program: &ClientProgram,
    spec: &JobSpec,
    board: &Board,
    client: usize,
) -> io::Result<Child> {
    let assignment = Assignment {
        spec: spec.clone(),
        board: board.path(),
        clients: board.clients(),
        client,
        parent: std::process::id(),
    };
    let mut child = Command::new(&program.program)
        .args(&program.arguments)
        // A group of its own: a signal of the terminal reaches us alone, and we end the trial in good order.
        .process_group(0)
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .spawn()?;
    let written = match child.stdin.take() {
        Some(mut input) => input.write_all(&serde_json::to_vec(&assignment)?),
        None => Ok(()),
    };
    if let Err(error) = written {
        // It cannot work without; that it has ended by itself already is as good.
        let _ = child.kill();
        let _ = child.wait();
        return Err(error);
    }
    Ok(child)
}

/// Is the client that standard input describes, from beginning to end. It dies with the process that
/// started it.
pub fn serve_client() -> io::Result<()> {
    // SAFETY: integers only.
    unsafe { libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL) };
    let assignment: Assignment = serde_json::from_reader(io::stdin().lock())?;
    // SAFETY: no arguments, cannot fail.
    if unsafe { libc::getppid() }.unsigned_abs() != assignment.parent {
        return Ok(());
    }
    let board = Board::open(&assignment.board, assignment.clients)?;
    client_main(&assignment.spec, &board, assignment.client, Cpu::of_process);
    Ok(())
}
