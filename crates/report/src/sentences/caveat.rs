//! Caveats of whole runs.

use record::Caveat;

/// A caveat in a sentence, without a full stop.
pub(crate) fn caveat(caveat: &Caveat) -> String {
    match caveat {
        Caveat::Trap { id, title, evidence } => {
            format!("{title} ({evidence}); see spindle explain {id}")
        }
        Caveat::ScratchBesideData { server, data, folder } => scratch_beside(server, data, folder),
        Caveat::EmulatedModel { profile, transport } => format!(
            "the device is a model ({profile}), paced in wall time behind {transport}; its data are \
             real, and the model starts each trial as new"
        ),
        Caveat::FewerTags { model, passed, transport } => format!(
            "the model takes {model} commands at once, of which {transport} passes {passed}"
        ),
        Caveat::SimulatedModel { turnaround, page_cache } => format!(
            "models computed these figures in virtual time; a client takes {turnaround} from a \
             completion to its next request, and buffered I/O goes through a page cache of \
             {page_cache}"
        ),
        Caveat::Imported { files } => format!(
            "other programs measured this; the figures are what they printed ({})",
            files.join(", ")
        ),
        Caveat::Trace { format, requests, processes, length } => format!(
            "the trace ({format}) has {requests} requests of {processes} processes over {length}"
        ),
        Caveat::TraceBadLines { lines } => {
            format!("{lines} lines of the trace could not be read and were left out")
        }
        Caveat::TraceClockSteps { steps } => {
            format!(
                "the recording clock of the trace was set or wrapped ({steps} steps): requests after a \
                 step follow the latest before it without a gap"
            )
        }
        Caveat::TraceCut { length, measure } => {
            format!(
                "the trace is {length} long and a trial ends after {measure}: the rest is not replayed; \
                 raise --measure to replay all of it"
            )
        }
        Caveat::TraceWrapped { requests, span } => format!(
            "{requests} requests of the trace lie beyond {span} and were moved into it (--replay-wrap): they \
             are nearer to the others than they were"
        ),
        Caveat::TraceOtherRequests { requests } => format!(
            "{requests} requests of the trace are neither reads, writes nor flushes and were left out"
        ),
        Caveat::TraceReissued { requests } => format!(
            "{requests} times a request of the trace was issued to the device again: each counts once"
        ),
        Caveat::TraceBelow { requests } => format!(
            "{requests} requests of the trace were made by a device above, whose own are in it, too: they \
             were left out"
        ),
        Caveat::TraceDoubled { requests } => format!(
            "{requests} requests of the trace are the same as the one just before them (within 10 µs): it \
             may have been recorded at two levels"
        ),
        Caveat::TraceLost { events } => {
            format!("the recorder lost {events} events: requests are missing from the trace")
        }
        Caveat::FilesystemsPlacedOnce { filesystems } => format!(
            "each of the {filesystems} filesystems is in a file that is laid out once for the whole run: what its \
             place on the disk does counts as the filesystem's (on a rotating disk the outer tracks are faster); a \
             second run lays them out anew, and a block device as the target has them all in one place"
        ),
        Caveat::Recorded { text } => text.clone(),
    }
}

/// Where scratch files go instead of a data folder, in a sentence without a full stop.
pub(crate) fn scratch_beside(server: &str, data: &str, folder: &str) -> String {
    format!(
        "{data} is a data folder of {server}, where a scratch folder would count as the server's own: scratch \
         files go into {folder}, on the same filesystem"
    )
}
