//! Loading: parts side by side, each in a connection of its own.

use crate::{DatabaseError, Endpoint, Shape, SqlError, workloads::Part};
use std::sync::{
    Mutex, PoisonError,
    atomic::{AtomicBool, AtomicU64, Ordering},
};

/// Called with the rows that are loaded, and with how many there are in all.
pub type Progress<'a> = dyn FnMut(u64, u64) + 'a;

/// Makes the tables of a shape and fills them.
pub fn load(
    shape: &Shape,
    endpoint: &Endpoint,
    seed: u64,
    stop: &AtomicBool,
    progress: &mut Progress<'_>,
) -> Result<(), DatabaseError> {
    let loading_error =
        |what: &str| DatabaseError::sql(format!("loading {} ({what})", shape.key()));
    let mut session = endpoint.connect().map_err(loading_error("connecting"))?;
    shape.create(session.as_mut(), seed).map_err(loading_error("making tables"))?;
    let parts = shape.parts(seed);
    let all: u64 = parts.iter().map(|part| part.rows).sum();
    let done = AtomicU64::new(0);
    let failed = AtomicBool::new(false);
    let workers = std::thread::available_parallelism().map_or(2, usize::from).clamp(2, 8);
    let lanes = Mutex::new(lanes(parts));
    let outcome = std::thread::scope(|scope| {
        let work = || {
            let worked = worker(endpoint, &lanes, &done, &|| {
                !stop.load(Ordering::Relaxed) && !failed.load(Ordering::Relaxed)
            });
            failed.fetch_or(worked.is_err(), Ordering::Relaxed);
            worked
        };
        let threads: Vec<_> = (0..workers).map(|_| scope.spawn(work)).collect();
        while !threads.iter().all(std::thread::ScopedJoinHandle::is_finished) {
            progress(done.load(Ordering::Relaxed), all);
            std::thread::sleep(std::time::Duration::from_millis(50));
        }
        let panicked = |_| Err(SqlError::Lost("a loading thread ended in a panic".to_owned()));
        threads.into_iter().map(|thread| thread.join().unwrap_or_else(panicked)).collect::<Vec<_>>()
    });
    if stop.load(Ordering::Relaxed) {
        return Err(DatabaseError::Stopped);
    }
    outcome.into_iter().collect::<Result<Vec<()>, _>>().map_err(loading_error("rows"))?;
    progress(all, all);
    shape.finish(session.as_mut()).map_err(loading_error("indexes"))
}

/// Parts of the same lane together, in their order.
fn lanes(parts: Vec<Part>) -> Vec<Vec<Part>> {
    let mut lanes: Vec<Vec<Part>> = Vec::new();
    for part in parts {
        match lanes.iter_mut().find(|lane| lane[0].lane == part.lane) {
            Some(lane) => lane.push(part),
            None => lanes.push(vec![part]),
        }
    }
    // Taken from the end.
    lanes.reverse();
    lanes
}

fn worker(
    endpoint: &Endpoint,
    lanes: &Mutex<Vec<Vec<Part>>>,
    done: &AtomicU64,
    proceed: &dyn Fn() -> bool,
) -> Result<(), SqlError> {
    let mut session = None;
    let next = || lanes.lock().unwrap_or_else(PoisonError::into_inner).pop();
    while let Some(lane) = next() {
        for part in lane {
            if !proceed() {
                return Ok(());
            }
            let session = match &mut session {
                Some(session) => session,
                none => none.insert(endpoint.connect()?),
            };
            let mut loaded = |rows| {
                done.fetch_add(rows, Ordering::Relaxed);
                proceed()
            };
            (part.load)(session.as_mut(), &mut loaded)?;
        }
    }
    Ok(())
}
