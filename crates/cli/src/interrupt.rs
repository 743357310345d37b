//! Ctrl-C and its like: the first asks for a clean end, the second ends at once.

use anyhow::Context;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use std::sync::{Arc, atomic::AtomicBool};

/// A flag that SIGINT, SIGTERM and SIGHUP raise. A second signal ends the program with code 130,
/// leaving the journal for `spindle undo`.
pub fn flag() -> anyhow::Result<Arc<AtomicBool>> {
    let flag = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM, SIGHUP] {
        signal_hook::flag::register_conditional_shutdown(signal, 130, Arc::clone(&flag))
            .and_then(|_| signal_hook::flag::register(signal, Arc::clone(&flag)))
            .context("cannot catch signals")?;
    }
    Ok(flag)
}
