//! What holds for every scheduler, whatever comes.

use crate::world::{Logger, Run, ms, play};
use blocklayer::{Bio, Config, Context, IoClass, Kernel};
use device::Op;
use proptest::prelude::*;
use units::{Nanos, Sectors};

/// Every scheduler at every level.
pub fn all() -> Vec<(Kernel, &'static str)> {
    let of =
        |kernel: Kernel| kernel.schedulers().into_iter().map(move |kind| (kernel, kind.name()));
    Kernel::ALL.into_iter().flat_map(of).collect()
}

/// Those that never leave room unused.
fn never_idle() -> Vec<(Kernel, &'static str)> {
    let names = ["none", "noop", "deadline", "mq-deadline"];
    all().into_iter().filter(|(_, name)| names.contains(name)).collect()
}

fn config(of: Vec<(Kernel, &'static str)>) -> impl Strategy<Value = Config> {
    let pool = prop_oneof![Just(None), (4u32..40).prop_map(Some)];
    (prop::sample::select(of), 1u32..40, pool, any::<bool>(), any::<bool>(), 0u8..3).prop_map(
        |((kernel, scheduler), depth, pool, one_beyond, rotational, nomerges)| {
            let mut config = Config::new(kernel, depth).with_scheduler(scheduler);
            config.nr_requests = pool.filter(|_| scheduler != "none");
            config.one_beyond = one_beyond;
            config.rotational = rotational;
            config.nomerges = nomerges;
            config
        },
    )
}

fn op() -> impl Strategy<Value = Op> {
    prop_oneof![
        10 => Just(Op::Read),
        10 => Just(Op::Write),
        1 => Just(Op::Flush),
        1 => Just(Op::Discard),
    ]
}

/// Arrivals in bursts, on few places so that they touch, from few processes.
fn arrivals() -> impl Strategy<Value = Vec<(Nanos, Bio)>> {
    let class = prop_oneof![
        1 => Just(IoClass::RealTime),
        8 => Just(IoClass::BestEffort),
        1 => Just(IoClass::Idle)
    ];
    let gap = prop_oneof![3 => Just(0u64), 2 => 0u64..2_000, 1 => 0u64..60_000];
    let place = prop_oneof![2 => 0u64..40, 1 => 0u64..10_000_000];
    let one = (gap, op(), place, 1u64..5, 0u32..6, class, 0u8..8, any::<bool>(), 0u8..20);
    prop::collection::vec(one, 1..150).prop_map(|all| {
        let mut now = Nanos::ZERO;
        let each = |(id, (gap, op, place, pages, process, class, level, sync, fua))| {
            now += Nanos::from_micros(gap);
            let context = Context { process, class, level };
            let (start, count) = (Sectors(place * 8), Sectors(pages * 8));
            let fua = fua == 0 && op == Op::Write;
            (now, Bio { id, op, start, count, sync, fua, context })
        };
        all.into_iter().enumerate().map(|(i, v)| (i as u64, v)).map(each).collect()
    })
}

fn device() -> impl Strategy<Value = (usize, Nanos)> {
    (1usize..9, (10u64..9000).prop_map(Nanos::from_micros))
}

fn summary(run: &Run) -> Vec<(u64, u64)> {
    let done = run.done.iter().map(|done| (done.at.0, done.id));
    run.log.iter().copied().chain(done).collect()
}

/// Queued sectors must equal dispatched ones, and requests must be bios less those that joined.
fn check(config: &Config, arrivals: &[(Nanos, Bio)], run: &Run) {
    let mut ids: Vec<u64> = run.done.iter().map(|done| done.id).collect();
    ids.sort_unstable();
    assert_eq!(ids, (0..arrivals.len() as u64).collect::<Vec<_>>(), "each bio once");
    for done in &run.done {
        let queued_after = arrivals[done.id as usize].0;
        assert!(queued_after <= done.queued && done.queued <= done.at);
        assert!(done.dispatched <= done.began && done.began <= done.at);
    }
    assert!(run.layer.device().most_out <= config.depth as usize, "depth");
    let resolved = config.resolve().unwrap();
    let cap = match config.kernel.multi_queue() {
        true => resolved.nr_requests,
        false => 2 * (resolved.nr_requests + resolved.nr_requests / 2),
    };
    assert!(run.most_allocated <= cap, "pool");
    for op in [Op::Read, Op::Write] {
        let given: u64 = arrivals.iter().filter(|a| a.1.op == op).map(|a| a.1.count.0).sum();
        let sent: u64 = run.commands.iter().filter(|c| c.1.op == op).map(|c| c.1.count.0).sum();
        assert_eq!(given, sent, "bytes of {op:?}");
    }
    // Every bio lies within a command of its direction.
    for (_, bio) in arrivals.iter().filter(|a| a.1.op != Op::Flush) {
        let inside = |c: &device::Request| {
            c.op == bio.op && c.start <= bio.start && c.end() >= bio.end() && c.fua == bio.fua
        };
        assert!(run.commands.iter().any(|c| inside(&c.1)), "{bio:?} is in no command");
    }
    let counters = run.layer.counters();
    let sent: u64 = counters.dispatched[0] + counters.dispatched[1];
    let bios: u64 = counters.bios[0] + counters.bios[1];
    assert_eq!(sent + counters.merges[0] + counters.merges[1] + counters.joins, bios);
    assert_eq!(run.layer.view().queued, 0);
    assert_eq!(run.layer.allocated(), 0);
    if config.nomerges == 2 {
        assert!(run.done.iter().all(|done| !done.merged || done.op == Op::Flush));
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1500))]

    #[test]
    fn all_is_done_once_within_the_limits(
        config in config(all()), arrivals in arrivals(), (servers, service) in device()
    ) {
        let run = play(&config, Logger::new(servers, service), &arrivals);
        check(&config, &arrivals, &run);
        let again = play(&config, Logger::new(servers, service), &arrivals);
        prop_assert_eq!(summary(&run), summary(&again));
    }

    #[test]
    fn work_is_conserved_where_nobody_idles(
        mut config in config(never_idle()), arrivals in arrivals(), (servers, service) in device()
    ) {
        // One class, no barriers, no plug by time: then these never leave room unused.
        config.nomerges = 2;
        let arrivals: Vec<_> = arrivals
            .into_iter()
            .map(|(at, mut bio)| {
                bio.context.class = IoClass::BestEffort;
                bio.fua = false;
                bio.sync = true;
                if bio.op == Op::Flush { bio.op = Op::Write; }
                (at, bio)
            })
            .collect();
        let run = play(&config, Logger::new(servers, service), &arrivals);
        prop_assert_eq!(run.layer.counters().room_waiting, Nanos::ZERO);
    }

    #[test]
    fn deadline_starts_an_expired_request_after_the_batches_before_it(
        arrivals in arrivals(),
        (servers, service) in device(),
        kernel in prop::sample::select(vec![Kernel::V2_6_18, Kernel::V3_10, Kernel::V6_12]),
    ) {
        let scheduler = if kernel.multi_queue() { "mq-deadline" } else { "deadline" };
        let mut config = Config::new(kernel, 1)
            .with_scheduler(scheduler)
            .with_nr_requests(1000)
            .with("read_expire", 5)
            .with("fifo_batch", 3)
            .with("write_expire", 20);
        config.one_beyond = false;
        config.nomerges = 2;
        let arrivals: Vec<_> = arrivals
            .into_iter()
            .filter(|(_, bio)| matches!(bio.op, Op::Read | Op::Write) && !bio.fua)
            .enumerate()
            .map(|(id, (at, mut bio))| {
                bio.id = id as u64;
                bio.context.class = IoClass::BestEffort;
                (at, bio)
            })
            .collect();
        let run = play(&config, Logger::new(servers, service), &arrivals);
        // Once expired, before it can start: those of its direction that are older, each with a
        // batch; for each batch of reads at most one of writes in three, for writes two of reads;
        // and the batch that runs.
        for done in &run.done {
            let expire = if done.op == Op::Read { ms(5) } else { ms(20) };
            let older = run.done.iter().filter(|other| {
                other.op == done.op
                    && other.queued <= done.queued
                    && other.id != done.id
                    && other.dispatched >= done.queued + expire
            });
            let own = older.count() as u64 + 1;
            let batches = match done.op {
                Op::Read => own + own / 2 + 2,
                _ => own * 3 + 1,
            };
            let bound = service * (batches * 3 + 1);
            let late = done.dispatched.saturating_sub(done.queued + expire);
            prop_assert!(late <= bound, "{late} after its deadline, bound {bound}: {done:?}");
        }
    }
}
