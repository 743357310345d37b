//! Clients as threads and as processes, their priorities, and many of them.

use crate::place::{Trial, directory, laid_out, trial};
use load::{LoadError, Target};
use skipped::{Need, skip};
use std::{collections::HashSet, fs, sync::atomic::AtomicBool};
use units::{Bytes, Nanos};
use workload::EngineKind;

/// Processes that the calling thread started.
fn children() -> Vec<i32> {
    // SAFETY: no arguments, cannot fail.
    let thread = unsafe { libc::gettid() };
    let text = fs::read_to_string(format!("/proc/self/task/{thread}/children")).unwrap();
    text.split_whitespace().map(|pid| pid.parse().unwrap()).collect()
}

/// Whether it has not ended: one that has keeps its number until it is waited for.
fn runs(pid: i32) -> bool {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit(") ").next().is_some_and(|rest| !rest.starts_with('Z'))
}

/// A thread's or process's I/O priority, by the kernel's number.
fn priority(task: i32) -> i64 {
    // SAFETY: integers only.
    unsafe { libc::syscall(libc::SYS_ioprio_get, 1, task) }
}

fn thread_priorities(pid: i32) -> Vec<i64> {
    let tasks = fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
    tasks.map(|task| priority(task.file_name().to_str().unwrap().parse().unwrap())).collect()
}

#[test]
fn processes_are_processes_and_end_with_the_trial() {
    let directory = directory();
    let target = laid_out(directory.path(), Bytes::from_mib(4));
    let job = "randread,clients=5,client_kind=processes,io_priority=be:6";
    let trial = Trial { measure: Nanos::from_millis(3100), ..trial(job, EngineKind::IoUring) };
    let mut seen = Vec::new();
    let measurement = trial
        .run_with(&target, &AtomicBool::new(false), &mut |live| {
            // A stalled machine may make one look come when they have ended and have no priority.
            let looked: Vec<_> =
                children().into_iter().map(|pid| (pid, thread_priorities(pid))).collect();
            if live.at < 3.05 && looked.iter().all(|(pid, _)| runs(*pid)) {
                seen = looked;
            }
        })
        .unwrap();
    let pids: HashSet<i32> = seen.iter().map(|(pid, _)| *pid).collect();
    assert_eq!(pids.len(), 5);
    // Of a test's process, the client is a thread that the test harness made.
    assert!(seen.iter().all(|(_, all)| all.contains(&(2 << 13 | 6))), "{seen:?}");
    assert!(children().is_empty(), "none is left, not even as a zombie");
    assert!(measurement.job.clients.iter().all(|share| share.operations > 0));
}

#[test]
fn threads_have_their_jobs_priority_and_the_background_its_own() {
    let directory = directory();
    let target = laid_out(directory.path(), Bytes::from_mib(4));
    let trial = Trial {
        background: Some("read,block_size=64k,io_priority=idle,clients=2"),
        measure: Nanos::from_millis(1100),
        ..trial("randread,io_priority=be:1", EngineKind::Sync)
    };
    let mut seen = Vec::new();
    let measurement = trial
        .run_with(&target, &AtomicBool::new(false), &mut |_| {
            for task in fs::read_dir("/proc/self/task").unwrap().flatten() {
                let name = fs::read_to_string(task.path().join("comm")).unwrap_or_default();
                // No other test has a background job in threads.
                if name.starts_with("back-") {
                    seen.push(priority(task.file_name().to_str().unwrap().parse().unwrap()));
                }
            }
        })
        .unwrap();
    assert!(seen.len() >= 2 && seen.iter().all(|priority| *priority == 3 << 13), "{seen:?}");
    let background = measurement.background.unwrap();
    assert_eq!(background.clients.len(), 2);
    assert!(background.reads.operations > 0);
    assert_eq!(background.reads.bytes, Bytes::from_kib(64) * background.reads.operations);
    assert_eq!(measurement.job.reads.bytes, Bytes::from_kib(4) * measurement.job.operations());
    assert_eq!(measurement.generator.threads, 3);
}

#[test]
fn a_client_process_that_is_killed_is_missed() {
    let directory = directory();
    let target = laid_out(directory.path(), Bytes::from_mib(4));
    let job = "randread,clients=3,client_kind=processes";
    let trial = Trial { measure: Nanos::from_secs(30), ..trial(job, EngineKind::Sync) };
    let outcome = trial.run_with(&target, &AtomicBool::new(false), &mut |_| {
        // SAFETY: a child of this very thread.
        unsafe { libc::kill(children()[1], libc::SIGKILL) };
    });
    match outcome {
        Err(LoadError::Died { client, how }) => assert_eq!((client, &*how), (1, "signal 9")),
        other => panic!("{other:?}"),
    }
    assert!(children().is_empty());
}

#[test]
fn as_many_clients_as_a_plan_allows() {
    let nowhere = Target::new("/nowhere", Bytes::from_mib(1));
    let job = "randread,clients=4096,rate=fixed:20000/s";
    let trial = Trial { measure: Nanos::from_millis(1000), ..trial(job, EngineKind::Null) };
    let measurement = trial.run(&nowhere).unwrap();
    assert_eq!(measurement.job.clients.len(), 4096);
    // A warning tells if this machine was too busy; nothing that was intended is unaccounted for.
    assert!(measurement.job.operations() > 10_000, "{}", measurement.job.operations());
}

#[test]
fn many_rings_in_threads_and_in_processes() {
    let directory = directory();
    let target = laid_out(directory.path(), Bytes::from_mib(4));
    for kind in ["threads", "processes"] {
        let job = format!("randread,sync=buffered,clients=600,client_kind={kind},rate=6000/s");
        let trial = Trial {
            warmup: Nanos::from_millis(300),
            measure: Nanos::from_millis(700),
            ..trial(&job, EngineKind::IoUring)
        };
        // Other tests may take the processors for a moment: one look of three has to be good.
        let busy = || {
            let measurement = trial.run(&target).unwrap();
            measurement.job.clients.iter().filter(|share| share.operations > 0).count()
        };
        let looks: Vec<usize> = std::iter::repeat_with(busy).take(3).collect();
        assert!(looks.iter().any(|busy| *busy > 550), "{kind}: {looks:?} of 600 did something");
    }
    assert!(children().is_empty());
}

#[test]
fn waiting_for_a_processor_is_counted() {
    // The first field is 0 until the thread has been counted once, some milliseconds after its start.
    let counted = (0..100).any(|_| {
        std::thread::sleep(std::time::Duration::from_millis(1));
        let text = fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
        !text.is_empty() && !text.starts_with("0 ")
    });
    if !counted {
        skip(Need::Kernel, "schedstat of threads");
        return;
    }
    // Four that never sleep for each processor: three of them wait at any time.
    let clients = 4 * std::thread::available_parallelism().unwrap().get();
    let nowhere = Target::new("/nowhere", Bytes::from_mib(1));
    let job = format!("randread,clients={clients}");
    let part = || {
        let measurement = trial(&job, EngineKind::Null).run(&nowhere).unwrap();
        let waited = measurement.counters[0].values["clients.cpu_wait_us"];
        let each = measurement.span.as_micros_f64() * clients as f64;
        waited * measurement.job.operations() as f64 / each
    };
    // Where others take processors too, or a cgroup allows less, more of the time; a client that is held
    // back at the end has waited longer than the span. One look of three has to be good.
    let looks: Vec<f64> = std::iter::repeat_with(part).take(3).collect();
    assert!(looks.iter().any(|part| (0.3..1.1).contains(part)), "{looks:?} of the clients' time");
}

#[test]
fn a_refused_priority_says_what_is_missing() {
    // Root may set any, so the error is what everybody else would see, told by its text alone.
    let error = LoadError::Client { client: 0, stage: load::Stage::Priority, errno: libc::EPERM };
    assert!(error.to_string().contains("CAP_SYS_NICE"), "{error}");
}

#[test]
fn the_observers_own_niceness_is_put_back() {
    // SAFETY: integers only; 0 is the calling thread.
    let nice = || unsafe { libc::getpriority(libc::PRIO_PROCESS, 0) };
    let before = nice();
    let nowhere = Target::new("/nowhere", Bytes::from_mib(1));
    trial("randread", EngineKind::Null).run(&nowhere).unwrap();
    assert_eq!(nice(), before);
}
