//! The driver against an engine and a clock that only the test moves.

use super::*;
use crate::board::Board;
use crate::source::Endless;
use random::Stream;
use std::{cell::Cell, cell::RefCell, collections::HashSet, io, rc::Rc};
use units::Bytes;
use workload::{Job, Offsets, Schedule};

const MS: u64 = 1_000_000;

#[derive(Clone)]
struct Hand(Rc<Cell<u64>>);

impl Clock for Hand {
    fn now(&self) -> Nanos {
        Nanos(self.0.get())
    }
}

/// One server that takes `service` for each operation, except that it does nothing in `stall`.
struct Server {
    time: Hand,
    service: u64,
    stall: std::ops::Range<u64>,
    free_at: u64,
    in_flight: Vec<(u64, Done)>,
    depth: usize,
    /// What the n-th operation gives, if not what was asked.
    outcome: fn(u64) -> Option<i32>,
    log: Rc<RefCell<Vec<Action>>>,
}

impl Engine for Server {
    unsafe fn submit(&mut self, operation: Operation, slot: u32) {
        let mut done_at = self.time.0.get().max(self.free_at) + self.service;
        if done_at > self.stall.start && done_at <= self.stall.end + self.service {
            done_at = self.stall.end + self.service;
        }
        self.free_at = done_at;
        let count = self.log.borrow().len() as u64;
        self.log.borrow_mut().push(operation.action);
        let result = (self.outcome)(count).unwrap_or(operation.length as i32);
        self.in_flight.push((done_at, Done { slot, result }));
        let slots: HashSet<u32> = self.in_flight.iter().map(|(_, done)| done.slot).collect();
        assert_eq!(slots.len(), self.in_flight.len(), "a slot has one operation at a time");
        assert!(self.in_flight.len() <= self.depth);
    }

    fn reap(&mut self, timeout: Option<Nanos>, done: &mut Vec<Done>) -> io::Result<()> {
        let now = self.time.0.get();
        let next = self.in_flight.iter().map(|(at, _)| *at).min().unwrap_or(u64::MAX);
        let until = timeout.map_or(u64::MAX, |span| now + span.0);
        let then = next.min(until).max(now);
        assert!(then < u64::MAX, "nothing to wait for");
        self.time.0.set(then);
        self.in_flight.retain(|(at, one)| {
            if *at <= then {
                done.push(*one);
            }
            *at > then
        });
        Ok(())
    }
}

/// One client's run: from 1 s on, with these seconds of warm-up and measuring.
struct Run {
    board: Board,
    result: Result<(), Failure>,
    log: Vec<Action>,
}

struct Setup {
    job: &'static str,
    warmup_s: u64,
    measure_s: u64,
    service: u64,
    stall: std::ops::Range<u64>,
    outcome: fn(u64) -> Option<i32>,
}

impl Default for Setup {
    fn default() -> Self {
        Setup {
            job: "randread",
            warmup_s: 0,
            measure_s: 10,
            service: MS / 10,
            stall: 0..0,
            outcome: |_| None,
        }
    }
}

fn run(setup: Setup) -> Run {
    let job: Job = setup.job.parse().unwrap();
    let board = Board::new(1).unwrap();
    let start = Nanos::from_secs(1);
    let measure = start + Nanos::from_secs(setup.warmup_s);
    let times = TrialClock { start, measure, end: measure + Nanos::from_secs(setup.measure_s) };
    board.control().go(times);
    let time = Hand(Rc::new(Cell::new(0)));
    let log = Rc::default();
    let engine = Server {
        time: time.clone(),
        service: setup.service,
        stall: setup.stall,
        free_at: 0,
        in_flight: Vec::new(),
        depth: job.depth as usize,
        outcome: setup.outcome,
        log: Rc::clone(&log),
    };
    let stream = || Stream::new(1, "test");
    let kinds = (job.pattern.reads(), job.pattern.writes());
    let kit = Kit {
        engine,
        clock: time,
        control: board.control(),
        page: board.page(0),
        source: Endless::new(
            &job,
            Offsets::new(job.pattern, (0, 1), 100, stream()),
            job.rate.map(|rate| Schedule::new(rate, (0, 1), start, stream())),
        ),
        buffers: Buffers::new(4096, job.depth, kinds, &mut stream()).unwrap(),
        cpu: Cpu::default,
    };
    assert_eq!(job.block_size, Bytes::from_kib(4));
    let result = Client::new(kit, job.depth).work(times);
    let log = log.take();
    Run { board, result, log }
}

fn tally(bank: &Bank) -> crate::bank::Tally {
    let mut tally = crate::bank::Tally::new();
    tally.add(bank);
    tally
}

/// How many took half a second or longer.
fn slow(tally: &crate::bank::Tally) -> u64 {
    tally.histogram().buckets().filter(|(ns, _)| ns.0 >= 500 * MS).map(|(_, count)| count).sum()
}

#[test]
fn a_stall_shows_in_the_response_of_all_that_was_to_begin_meanwhile() {
    // 1000 a second for 10 s, each taking 0.1 ms, and nothing at all from 3 s to 4 s.
    let stall = 3000 * MS..4000 * MS;
    let open =
        run(Setup { job: "randread,rate=fixed:1000/s", stall: stall.clone(), ..Setup::default() });
    let page = open.board.page(0);
    let (service, response) = (tally(&page.read_service), tally(&page.read_response));
    assert_eq!(response.count(), 10_000, "nothing that was intended is left out");
    let late = slow(&response);
    // Arrivals of the first half second of the stall, and as the queue drains at ten times the
    // rate, nobody else.
    assert!((495..=560).contains(&late), "{late} responses above 500 ms");
    assert_eq!(service.quantile(0.999), Nanos(100_351), "only one operation was served slowly");

    // The same stall in a closed loop leaves one trace.
    let closed = run(Setup { stall, ..Setup::default() });
    assert_eq!(slow(&tally(&closed.board.page(0).read_service)), 1);
}

#[test]
fn what_an_overload_leaves_undone_is_reported() {
    // Offered twice what one server carries.
    let run =
        run(Setup { job: "randread,rate=fixed:2000/s,depth=4", service: MS, ..Setup::default() });
    let page = run.board.page(0);
    let done = tally(&page.read_response).count();
    assert!((9_990..=10_000).contains(&done), "{done}");
    let backlog = page.backlog.load(Relaxed);
    assert_eq!(done + backlog, 20_000, "done and undone are all that was intended");
    let oldest = page.oldest.load(Relaxed);
    assert!((4_990 * MS..=5_010 * MS).contains(&oldest), "{oldest}");
    assert_eq!(page.drained.load(Relaxed), 4);
}

#[test]
fn warm_up_counts_apart() {
    let run = run(Setup { warmup_s: 2, measure_s: 3, service: MS, ..Setup::default() });
    let page = run.board.page(0);
    let (warm, counted) = (page.warm_reads.count(), page.read_service.count());
    // A completion at the very moment of a boundary belongs to what follows.
    assert!((1999..=2000).contains(&warm), "{warm}");
    assert!((2999..=3000).contains(&counted), "{counted}");
}

#[test]
fn every_third_write_is_followed_by_a_sync_within_its_latency() {
    let run = run(Setup {
        job: "randwrite,sync=direct+fdatasync:3",
        measure_s: 1,
        service: MS,
        ..Setup::default()
    });
    let expected = [Action::Write, Action::Write, Action::Write, Action::Fdatasync];
    for four in run.log.chunks_exact(4) {
        assert_eq!(four, expected);
    }
    let page = run.board.page(0);
    let (writes, syncs) = (tally(&page.write_service), tally(&page.sync_service));
    assert_eq!(syncs.count(), writes.count() / 3);
    assert!(syncs.quantile(1.0) < Nanos::from_micros(1010), "by itself: 1 ms");
    assert!(writes.quantile(0.6) < Nanos::from_micros(1010));
    assert!(writes.quantile(0.9) >= Nanos::from_millis(2), "write and sync: 2 ms");
}

#[test]
fn a_device_that_fails_for_good_ends_the_client() {
    let run = run(Setup { outcome: |_| Some(-libc::EIO), ..Setup::default() });
    let failure = run.result.unwrap_err();
    assert_eq!((failure.stage, failure.errno), (Stage::Read, libc::EIO));
    assert_eq!(run.log.len(), FAILURES_IN_A_ROW as usize);

    let run = super::tests::run(Setup {
        job: "randwrite,depth=4",
        outcome: |count| (count >= 50).then_some(-libc::ENODEV),
        ..Setup::default()
    });
    assert_eq!(run.result.unwrap_err().errno, libc::ENODEV);
    assert!(run.log.len() < 60, "it does not insist: {}", run.log.len());
}

#[test]
fn passing_errors_and_short_transfers_are_counted_and_survived() {
    let run = run(Setup {
        outcome: |count| match count % 10 {
            3 => Some(-libc::EIO),
            7 => Some(512),
            _ => None,
        },
        measure_s: 1,
        service: MS,
        ..Setup::default()
    });
    assert!(run.result.is_ok());
    let page = run.board.page(0);
    assert_eq!(page.errors[libc::EIO as usize].load(Relaxed), 100);
    assert_eq!(page.errors[SHORT].load(Relaxed), 100);
    assert!((799..=800).contains(&page.read_service.count()));
}

/// A trace in blkparse's words, replayed by one client on a server that takes 1 ms.
fn replayed(text: &str, mode: workload::ReplayMode) -> (Board, Vec<Action>) {
    let trace = std::sync::Arc::new(trace::parse("t", text, None, false).unwrap());
    let replay = crate::ReplayLoad::new(trace, mode, Bytes::from_mib(1), &Job::default());
    let board = Board::new(1).unwrap();
    let start = Nanos::from_secs(1);
    let times = TrialClock { start, measure: start, end: start + Nanos::from_secs(100) };
    board.control().go(times);
    let time = Hand(Rc::new(Cell::new(0)));
    let log = Rc::default();
    let depth = replay.job().depth;
    let engine = Server {
        time: time.clone(),
        service: MS,
        stall: 0..0,
        free_at: 0,
        in_flight: Vec::new(),
        depth: depth as usize,
        outcome: |_| None,
        log: Rc::clone(&log),
    };
    let source = crate::replay::Recorded::new(&replay, (board.control(), board.page(0)), 0, start);
    let buffers = Buffers::new(8192, depth, (true, true), &mut Stream::new(1, "test")).unwrap();
    let control = board.control();
    let kit = Kit {
        engine,
        clock: time,
        control,
        page: board.page(0),
        source,
        buffers,
        cpu: Cpu::default,
    };
    Client::new(kit, depth).work(times).unwrap();
    (board, log.take())
}

/// A read, a write between a flush and FUA, a flush alone, and a read beyond the span.
const RECORDED: &str = "8,0 0 1 0.000000000 7 Q R 0 + 8 [a]\n\
    8,0 0 2 0.010000000 7 Q FWFS 64 + 16 [a]\n\
    8,0 0 3 0.020000000 7 Q FN [a]\n\
    8,0 0 4 0.030000000 7 Q R 4096 + 8 [a]\n";

#[test]
fn a_trace_is_replayed_as_what_it_is_and_ends_with_its_last_request() {
    use workload::ReplayMode::{Asap, Closed, Open};
    // Closed: the service is not recorded, so the gaps of 10 ms are thinking. The write takes two.
    for (mode, took) in [(Open, 31), (Closed, 35), (Asap, 5)] {
        let (board, log) = replayed(RECORDED, mode);
        let expected = [
            Action::Read,
            Action::Fdatasync,
            Action::WriteThrough,
            Action::Fdatasync,
            Action::Read,
        ];
        assert_eq!(log, expected, "{mode}");
        let page = board.page(0);
        assert_eq!(page.ended.load(Relaxed), 1000 * MS + took * MS, "{mode}");
        let counts = [&page.read_service, &page.write_service, &page.sync_service].map(Bank::count);
        assert_eq!(counts, [2, 1, 1], "{mode}");
        assert_eq!(page.read_response.count(), if mode == Open { 2 } else { 0 });
        let moved = [&page.bytes_read, &page.bytes_written].map(|bytes| bytes.load(Relaxed));
        assert_eq!(moved, [8192, 8192], "{mode}");
    }
}
