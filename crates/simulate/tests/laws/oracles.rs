//! Queueing theory's and geometry's figures.

use super::*;
use servers::Servers;

/// A pool that nobody ever has to wait for, and a queue that sorts nothing.
fn wide(depth: u32) -> Config {
    Config::new(Kernel::V2_6_18, depth).with_scheduler("noop").with_nr_requests(100_000)
}

fn response_ms(simulated: &Simulated) -> f64 {
    let reads = &simulated.measurement.job.reads;
    reads.response.as_ref().unwrap().mean().unwrap().as_millis_f64()
}

#[test]
fn m_m_1_response_time() {
    let trial = Trial::of("randread,depth=4096,rate=700/s", wide(1), 1000);
    let simulated = trial.run(Box::new(Servers::exponential(1, 1000, 1)));
    // 1 / (μ − λ), with μ = 1000/s.
    near("M/M/1", response_ms(&simulated), 1e3 / 300.0, 0.03);
}

#[test]
fn m_d_1_response_time() {
    for rate in [300.0, 700.0, 900.0] {
        let trial = Trial::of(&format!("randread,depth=4096,rate={rate}/s"), wide(1), 1000);
        let simulated = trial.run(Box::new(Servers::constant(1000, 1)));
        // Pollaczek and Khinchine: D + ρD / 2(1 − ρ), with D = 1 ms.
        let rho = rate / 1000.0;
        let expected = 1.0 + rho / (2.0 * (1.0 - rho));
        near(&format!("M/D/1 at {rate}/s"), response_ms(&simulated), expected, 0.03);
    }
}

#[test]
fn clients_that_sleep_for_tags_wait_as_long_as_in_a_queue() {
    // Without a scheduler a device of depth 1 has one tag: all others sleep, and are there at once.
    let queue = Config::new(Kernel::V6_12, 1).with_scheduler("none");
    let queue = Config { tag_waiters_share: Some(1.0), ..queue };
    let trial = Trial::of("randread,clients=64,rate=700/s", queue, 1000);
    let simulated = trial.run(Box::new(Servers::constant(1000, 1)));
    near("M/D/1 asleep", response_ms(&simulated), 1.0 + 0.7 / 0.6, 0.03);
    assert!(counter(&simulated.measurement, "sim.sleeps/s") > 100.0);
    assert!(counter(&simulated.measurement, "sim.time_asleep_ms") > 0.5);
}

#[test]
fn a_closed_loop_turns_round() {
    let mut trial = Trial::of("randread", wide(1), 10);
    trial.turnaround = Nanos::from_micros(500);
    let simulated = trial.run(Box::new(Servers::constant(1000, 1)));
    near("operations/s", simulated.measurement.job.operations() as f64 / 10.0, 1e3 / 1.5, 0.001);
    near("%util", counter(&simulated.measurement, "device.%util"), 100.0 / 1.5, 0.01);
}

#[test]
fn busy_drives() {
    for (drives, outstanding) in [(4u32, 4u32), (4, 8), (16, 64)] {
        // As many operations, however many drives share them.
        let seconds = 1200 / u64::from(drives);
        let trial = Trial::of(&format!("randread,depth={outstanding}"), wide(outstanding), seconds);
        let device = Servers::exponential(drives as usize, 1000, outstanding);
        let simulated = trial.run(Box::new(device));
        let busy = counter(&simulated.measurement, "sim.busy_drives");
        let (n, q) = (f64::from(drives), f64::from(outstanding));
        let expected = n * q / (n + q - 1.0);
        near(&format!("{q} on {n} drives"), busy, expected, 0.01);
        let throughput = counter(&simulated.measurement, "device.r/s");
        near("throughput of busy drives", throughput, expected * 1000.0, 0.02);
    }
}

/// The mean distance between one request's end and the next one's start, as a share of the span.
fn sweep(queue: Config, outstanding: u32) -> f64 {
    let trial = Trial::of(&format!("randread,depth={outstanding}"), queue, 100);
    let device = Servers::constant(1000, 1);
    let span = device.capacity().0 as f64;
    let simulated = trial.run(Box::new(device));
    counter(&simulated.measurement, "sim.seek_sectors") / span
}

#[test]
fn arrival_order_seeks_a_third_of_the_span() {
    near("FIFO", sweep(wide(1), 64), 1.0 / 3.0, 0.02);
}

/// deadline without expiries, on a list: upwards from where the last ended; at the top it goes on
/// with the request that has waited longest. The newest `unseen` are not among those it chooses
/// from. The mean distance as a share of the span.
fn reference(outstanding: usize, unseen: usize) -> f64 {
    let mut stream = random::Stream::new(5, "reference");
    let mut waiting: Vec<f64> = (0..outstanding).map(|_| stream.unit()).collect();
    let (mut at, mut sum) = (0.0, 0.0);
    let steps = 200_000;
    for _ in 0..steps {
        let old = waiting.len() - unseen;
        let above = (0..old).filter(|i| waiting[*i] >= at);
        let next = above.min_by(|a, b| waiting[*a].total_cmp(&waiting[*b])).unwrap_or(0);
        let position = waiting.remove(next);
        sum += (position - at).abs();
        at = position;
        waiting.push(stream.unit());
    }
    sum / f64::from(steps)
}

#[test]
fn deadline_sweeps_one_way() {
    for kernel in [Kernel::V2_6_18, Kernel::V6_12] {
        let name = if kernel.multi_queue() { "mq-deadline" } else { "deadline" };
        let mut queue = Config::new(kernel, 1)
            .with_scheduler(name)
            .with_nr_requests(1024)
            .with("read_expire", 600_000)
            .with("fifo_batch", 100_000);
        queue.one_beyond = false;
        for outstanding in [16u32, 64, 256] {
            let what = format!("{name} with {outstanding} outstanding");
            let swept = sweep(queue.clone(), outstanding);
            // The device chooses when it is free, before the client asks again; and 2.6.18 settled
            // on this one when it sent the last.
            let unseen = if kernel.multi_queue() { 1 } else { 2 };
            near(&what, swept, reference(outstanding as usize, unseen), 0.03);
            // C-LOOK, its returns counted, is 1/(q + 1) at best; LOOK, both ways, (2/3)/q.
            let bound = 1.0 / f64::from(outstanding + 1);
            assert!((bound..1.3 * bound).contains(&swept), "{what}: {swept}, bound {bound}");
        }
    }
}
