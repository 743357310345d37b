//! Waiting for others who use a run file.

use record::{StoreWait, WaitsFor};

/// For whom the program waits, in a sentence without a full stop.
pub fn store_wait(wait: &StoreWait) -> String {
    let file = wait.path.display();
    match wait.waits_for {
        WaitsFor::Readers => format!(
            "waiting for a reader of {file} to end: what was measured is not in the file yet; an interrupt \
             gives it up"
        ),
        WaitsFor::Writer => format!("waiting for the program that writes {file}"),
    }
}
