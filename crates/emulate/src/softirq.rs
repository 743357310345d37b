//! What the kernel left to be done later on this processor, done now.

use rustix::net::sockopt::set_socket_reuseaddr;
use std::{io, os::unix::net::UnixDatagram};

/// Has the softirqs run that the calling thread has raised.
///
/// The block layer completes a loop device's request in a softirq. One that a thread raises, not an
/// interrupt, is left to ksoftirqd, an ordinary thread: where the one that raised it is real-time and
/// goes on to spin, the completion waits until it sleeps. The kernel also runs them whenever a thread
/// enables bottom halves again, as each release of a socket's lock does; setting an option takes it.
#[derive(Debug)]
pub struct Softirqs(UnixDatagram);

impl Softirqs {
    /// With a socket that is connected to nothing.
    pub fn new() -> io::Result<Softirqs> {
        UnixDatagram::unbound().map(Softirqs)
    }

    /// Runs what is raised on this processor.
    pub fn run(&self) {
        // Where it is refused, they run later.
        let _ = set_socket_reuseaddr(&self.0, true);
    }
}
