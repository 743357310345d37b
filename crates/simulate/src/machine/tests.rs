//! What is read is what was written last: through the page cache, write-back and the journal.

use super::*;
use crate::stack::Stack;
use blocklayer::{AdvanceOutput, Config};
use proptest::prelude::*;
use std::collections::BTreeMap;
use units::{Bytes, Sectors};
use workload::Workload;

const PAGES: u32 = 40;
const TASKS: u32 = 3;

/// A page on its way: which, whether it is read, and the version that a write carries.
type Flying = (u32, bool, u64);

/// Versions of pages: what the last write that has returned put there, what one that has not will
/// put there, and what the device has.
struct Versions {
    returned: [u64; PAGES as usize],
    coming: [u64; PAGES as usize],
    device: [u64; PAGES as usize],
    flying: BTreeMap<u32, Vec<Flying>>,
    /// By task: the page that it writes, or what fsync has to make durable.
    writing: [Option<u32>; TASKS as usize],
    syncing: [Option<[u64; PAGES as usize]>; TASKS as usize],
}

impl Versions {
    fn done(&mut self, bio: &BioDone) {
        if bio.id & OF_RUN == 0 {
            return;
        }
        for (page, read, version) in self.flying.remove(&(bio.id as u32)).unwrap_or_default() {
            let at = page as usize;
            match read {
                true => assert!(
                    self.device[at] >= self.returned[at],
                    "page {page} was read as of version {} after {} was written",
                    self.device[at],
                    self.returned[at]
                ),
                false => self.device[at] = self.device[at].max(version),
            }
        }
    }

    fn look(&mut self, machine: &Machine<dyn Device>) {
        let known: Vec<u32> = self.flying.keys().copied().collect();
        for page in 0..PAGES {
            let Some(slot) = machine.cache.peek(0, page) else { continue };
            let state = machine.cache[slot];
            let Some(run) = state.run.filter(|run| !known.contains(run)) else { continue };
            // A page that is dirty again holds what comes; what is on its way is older.
            let at = page as usize;
            let version = match state.dirty || self.coming[at] == 0 {
                true => self.returned[at],
                false => self.coming[at],
            };
            self.flying.entry(run).or_default().push((page, state.reading, version));
        }
    }

    fn finish(&mut self, task: u32) {
        if let Some(page) = self.writing[task as usize].take() {
            let at = page as usize;
            self.returned[at] = std::mem::take(&mut self.coming[at]);
        }
        if let Some(due) = self.syncing[task as usize].take() {
            for (page, (device, due)) in self.device.iter().zip(due).enumerate() {
                assert!(*device >= due, "fsync returned without page {page}");
            }
        }
    }
}

/// What a task is to do, and how long until the next looks for something to do.
type Order = (u32, u8, u32, u64);

fn play(
    kernel: Kernel,
    filesystem: Option<&str>,
    (memory_pages, flusher): (u64, bool),
    orders: &[Order],
) {
    let stack = Stack {
        page_cache: Bytes(memory_pages * PAGE),
        filesystem: filesystem.map(|word| word.parse().unwrap()),
        ..Stack::default()
    };
    // A small pool: pages stay dirty while others are on their way.
    let queue = Config::new(kernel, 1).with_scheduler(kernel.schedulers()[1]).with_nr_requests(4);
    let spec = Spec {
        workload: &Workload::default(),
        queue: &queue,
        stack: &stack,
        span: Sectors(u64::from(PAGES) * PAGE_SECTORS),
        warmup: Nanos::ZERO,
        measure: Nanos::ZERO,
        turnaround: Nanos::ZERO,
        seed: 1,
        replay: None,
        log_requests: 0,
    };
    let device = device::profile::find("hdd-15k").unwrap().build(1).unwrap();
    let volume = Volume::new(&queue, vec![device], None).unwrap();
    let contexts: Vec<Context> = (0..TASKS).map(Context::of).collect();
    let mut machine = Machine::new(volume, &spec, &contexts);
    match flusher || filesystem.is_some() || kernel >= Kernel::V3_10 {
        true => machine.start_threads(),
        // Only writers and fsync write back: dirty pages grow old.
        false => machine.flusher.task = machine.join(Context::of(TASKS)),
    }
    let mut versions = Versions {
        returned: [0; PAGES as usize],
        coming: [0; PAGES as usize],
        device: [0; PAGES as usize],
        flying: BTreeMap::new(),
        writing: [None; TASKS as usize],
        syncing: [None; TASKS as usize],
    };
    let mut busy = [false; TASKS as usize];
    let step = |machine: &mut Machine<dyn Device>, versions: &mut Versions, busy: &mut [bool]| {
        machine.settle();
        while let Some(task) = machine.finished.pop() {
            if task < TASKS {
                busy[task as usize] = false;
                versions.finish(task);
            }
        }
        machine.synced.clear();
        versions.look(machine);
    };
    let mut outcome = AdvanceOutput::default();
    let mut version = 0;
    // After the orders, long enough for the flusher and the journal to come to rest.
    let rest = (0, 9, 0, 60_000_000u64);
    let last = (0, 7, 1, 60_000_000);
    for (task, what, page, wait_us) in orders.iter().copied().chain([rest, last]) {
        let from = u64::from(page) * PAGE;
        let frame = match what {
            _ if busy[task as usize] => None,
            0..=4 if versions.coming[page as usize] == 0 => {
                version += 1;
                versions.coming[page as usize] = version;
                versions.writing[task as usize] = Some(page);
                let end = from + if what == 4 { 512 } else { PAGE };
                Some(Frame::Write(WriteCall::new(0, from, end)))
            }
            5..=6 => Some(Frame::Read(ReadCall { file: 0, page, end: page + 1, counted: false })),
            7 => {
                versions.syncing[task as usize] = Some(versions.returned);
                Some(Frame::Sync(SyncCall::new(0, page % 2 == 0)))
            }
            _ => None,
        };
        if let Some(frame) = frame {
            busy[task as usize] = true;
            machine.start(task, &[frame]);
        }
        step(&mut machine, &mut versions, &mut busy);
        let until = machine.now + Nanos::from_micros(wait_us);
        while let Some(at) = machine.next_event().filter(|at| *at <= until) {
            machine.now = at.max(machine.now);
            machine.volume.advance(machine.now, &mut outcome);
            for process in &outcome.woken {
                machine.wake(*process);
            }
            for bio in &outcome.done {
                versions.done(bio);
                machine.complete(bio);
            }
            outcome.clear();
            machine.end_timers();
            step(&mut machine, &mut versions, &mut busy);
        }
        machine.now = until;
        assert!(machine.cache.len() <= memory_pages.max(16));
    }
    let open = || {
        format!(
            "{:?}, {} dirty, {} under write",
            &machine.tasks[..TASKS as usize],
            machine.cache.dirty(),
            machine.cache.under_write()
        )
    };
    assert!(busy.iter().all(|busy| !busy), "a call never ended: {}", open());
    assert_eq!((machine.cache.dirty(), machine.cache.under_write()), (0, 0), "never written back");
    assert_eq!(versions.device, versions.returned, "the device has what was written last");
}

/// Mostly none: calls come while others go on.
fn wait() -> impl Strategy<Value = u64> {
    prop_oneof![2 => Just(0), 2 => 0u64..300, 1 => 0u64..30_000]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(150))]

    #[test]
    fn what_is_read_is_what_was_written_last(
        kernel in prop::sample::select(Kernel::ALL.to_vec()),
        filesystem in prop::sample::select(vec![None, Some("ext3"), Some("ext4"), Some("xfs")]),
        memory in prop::sample::select(vec![16u64, 24, 1000]),
        flusher in any::<bool>(),
        orders in prop::collection::vec((0..TASKS, 0u8..8, 0..PAGES, wait()), 1..200),
    ) {
        play(kernel, filesystem, (memory, flusher), &orders);
    }
}
