//! What must hold whatever the configuration.

use super::*;
use proptest::prelude::*;
use servers::Servers;

/// A mean of bins under 1 % wide.
const BINS: f64 = 0.01;

fn queues() -> impl Strategy<Value = Config> {
    let pairs = schedulers();
    (0..pairs.len(), 1u32..64, 4u32..200).prop_map(move |(at, depth, nr_requests)| {
        let (kernel, scheduler) = pairs[at];
        let config = Config::new(kernel, depth).with_scheduler(scheduler);
        match scheduler {
            "none" => config,
            _ => config.with_nr_requests(nr_requests),
        }
    })
}

fn jobs() -> impl Strategy<Value = String> {
    let patterns =
        ["randread", "randwrite", "randrw:30", "read", "write*3", "rw:50"].map(str::to_owned);
    let syncs = ["direct", "direct+osync", "direct+fsync", "direct+fsync:5"];
    let kinds = ["threads", "processes"];
    (
        prop::sample::select(patterns.to_vec()),
        prop::sample::select(syncs.to_vec()),
        prop::sample::select(kinds.to_vec()),
        prop::sample::select(vec!["512", "4k", "64k", "1M"]),
        1u32..20,
        1u32..20,
    )
        .prop_map(|(pattern, sync, kind, block, clients, depth)| {
            format!(
                "{pattern},sync={sync},client_kind={kind},block_size={block},clients={clients},\
                 depth={depth}"
            )
        })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    #[test]
    fn laws_hold(queue in queues(), job in jobs(), drives in 1usize..5, turnaround in 0u64..2000) {
        let mut trial = Trial::of(&job, queue.clone(), 20);
        trial.turnaround = Nanos::from_micros(turnaround);
        // Ids twice and more than the depth at once, the device itself complains of.
        let device = Servers::exponential(drives, 500, queue.depth);
        let simulated = trial.run(Box::new(device));
        let measurement = &simulated.measurement;
        let job = &trial.workload.job;
        let done = measurement.job.operations() as f64;
        prop_assert!(done > 100.0, "only {done} operations");

        // Little's law for the clients: outstanding = throughput × (service + turnaround).
        let mean = measurement.job.latency().mean().unwrap().as_secs_f64();
        let outstanding = done / 20.0 * (mean + turnaround as f64 / 1e6);
        let expected = f64::from(job.clients * job.depth);
        // At either end of the trial each may have one under way: what it waited before the
        // beginning counts, and what it has waited at the end does not. None of them for longer than
        // the longest, or a warning says so.
        let longest = measurement.job.latency().max().unwrap().as_secs_f64();
        let edge = (longest + turnaround as f64 / 1e6) / 20.0;
        let off = outstanding / expected - 1.0;
        prop_assert!(off < BINS + edge, "{outstanding} instead of {expected} outstanding");
        // A client that sleeps for a request holds back what else it would begin.
        let sleeps = measurement.counters.iter().any(|s| s.values["sim.sleeps/s"] > 0.0);
        if (job.depth == 1 || !sleeps) && measurement.warnings.is_empty() {
            prop_assert!(-off < BINS + edge, "{outstanding} instead of {expected}");
        }

        // A merge keeps the bytes: what operations moved, requests moved, but for what is in
        // flight.
        let moved = counter(measurement, "device.rMB/s") + counter(measurement, "device.wMB/s");
        let asked = measurement.job.bytes().0 as f64 / 20.0 / f64::from(1 << 20);
        let in_flight = expected * job.block_size.0 as f64 / 20.0 / f64::from(1 << 20);
        prop_assert!((moved - asked).abs() <= in_flight + 1e-9, "{moved} MB/s for {asked}");

        // Every operation is in a client's share, a histogram and a second.
        let shares: u64 = measurement.job.clients.iter().map(|share| share.operations).sum();
        let seconds: u64 = measurement
            .seconds
            .iter()
            .filter(|second| second.at > 0.0)
            .map(|second| second.reads + second.writes)
            .sum();
        prop_assert_eq!((shares, seconds), (done as u64, done as u64));
    }

    #[test]
    fn nothing_is_faster_than_its_service(queue in queues(), job in jobs()) {
        let trial = Trial::of(&job, queue.clone(), 5);
        let simulated = trial.run(Box::new(Servers::constant(1000, queue.depth)));
        let latency = simulated.measurement.job.latency();
        let fastest = latency.buckets().next().unwrap().0;
        // Bins know the time to 1 %.
        prop_assert!(fastest >= Nanos::from_micros(990), "{fastest}");
        // One server, 1 ms: no more than 1000 requests a second.
        for name in ["device.r/s", "device.w/s"] {
            prop_assert!(counter(&simulated.measurement, name) <= 1000.5);
        }
    }

    #[test]
    fn what_never_idles_keeps_the_device_at_work(queue in queues(), clients in 2u32..20) {
        let idles = ["cfq", "anticipatory", "bfq"];
        prop_assume!(!queue.scheduler.as_deref().is_some_and(|name| idles.contains(&name)));
        let job = format!("randrw:50,clients={clients},client_kind=processes");
        let trial = Trial::of(&job, queue.clone(), 5);
        let simulated = trial.run(Box::new(Servers::constant(1000, queue.depth)));
        let idle = counter(&simulated.measurement, "sim.%idle_while_waiting");
        prop_assert!(idle < 1e-6, "idle for {idle} % of the time with requests waiting");
        let busy = counter(&simulated.measurement, "sim.busy_drives");
        prop_assert!((busy - 1.0).abs() < 1e-3, "{busy} of 1 drive busy");
    }
}
