//! Hand-worked schedules; the same examples stand in docs/reference/schedulers.

use crate::world::{Logger, Run, drive, ms, play, read, write};
use blocklayer::{Bio, BlockLayer, Config, IoClass, Kernel};
use units::Nanos;

/// One request at a time at the device.
fn one_at_a_time(kernel: Kernel, scheduler: &str) -> Config {
    let mut config = Config::new(kernel, 1).with_scheduler(scheduler);
    config.one_beyond = false;
    config
}

fn at_zero(bios: Vec<Bio>) -> Vec<(Nanos, Bio)> {
    bios.into_iter().map(|bio| (Nanos::ZERO, bio)).collect()
}

/// Each of 1 ms, all but the first (at sector 0, from process 9) waiting.
fn order(config: &Config, bios: Vec<Bio>) -> Vec<u64> {
    let mut all = vec![(Nanos::ZERO, read(999, 0, 9))];
    all.extend(bios.into_iter().map(|bio| (Nanos(1000), bio)));
    let run = play(config, Logger::new(1, ms(1)), &all);
    run.starts()[1..].to_vec()
}

#[test]
fn noop_keeps_the_order_and_merges() {
    let config = one_at_a_time(Kernel::V2_6_32, "noop");
    let bios = vec![read(0, 800, 1), read(1, 100, 1), read(2, 500, 1), read(3, 808, 1)];
    assert_eq!(order(&config, bios.clone()), [800, 100, 500]);
    // 2.6.18 compares only with the last one.
    let config = one_at_a_time(Kernel::V2_6_18, "noop");
    assert_eq!(order(&config, bios), [800, 100, 500, 808]);
}

#[test]
fn none_passes_on() {
    let config = Config::new(Kernel::V6_12, 2).with_scheduler("none");
    let config = Config { tag_waiters_share: Some(0.0), ..config };
    let bios = at_zero(vec![read(0, 800, 1), read(1, 100, 2), read(2, 500, 3), read(3, 300, 4)]);
    let run = play(&config, Logger::new(2, ms(1)), &bios);
    // Two tags: the third and fourth sleep until the first two are done, and a moment longer, in which
    // somebody else might take them.
    assert_eq!(run.log, [(0, 800), (0, 100), (1035, 500), (1035, 300)]);
    assert_eq!(run.layer.counters().sleeps, 2);
    let config = Config { tag_waiters_share: Some(1.0), ..config };
    let run = play(&config, Logger::new(2, ms(1)), &bios);
    assert_eq!(run.log[2..], [(1000, 500), (1000, 300)]);
    let error =
        BlockLayer::new(&Config { tag_waiters_share: Some(1.1), ..config }, Logger::new(2, ms(1)));
    assert!(error.unwrap_err().to_string().contains("1.1"));
}

#[test]
fn deadline_serves_two_read_batches_then_writes() {
    let config = one_at_a_time(Kernel::V3_10, "deadline").with("fifo_batch", 2);
    let mut bios: Vec<_> = (0..6).map(|i| read(i, 1000 + i * 100, 1)).collect();
    bios.extend((6..9).map(|i| write(i, 5000 + i * 100, 2)));
    // The first read was a batch of its own, and no write waited. Then reads (starved 1), reads
    // (2), writes, and so on; the last batch of writes has one.
    let expected = [1000, 1100, 1200, 1300, 5600, 5700, 1400, 1500, 5800];
    assert_eq!(order(&config, bios), expected);
}

#[test]
fn deadline_of_2_6_18_ends_a_batch_at_every_gap() {
    let config = one_at_a_time(Kernel::V2_6_18, "deadline");
    let mut bios: Vec<_> = (0..6).map(|i| read(i, 1000 + i * 100, 1)).collect();
    bios.extend((6..9).map(|i| write(i, 5000 + i * 100, 2)));
    let expected = [1000, 1100, 5600, 1200, 1300, 5700, 1400, 1500, 5800];
    assert_eq!(order(&config, bios), expected);
}

#[test]
fn deadline_starts_at_the_oldest_when_it_expired() {
    // Service 10 ms, batches of three: the first ends at 30 ms. 2000 would be next, but 900, which
    // came before it, has expired if reads expire after 25 ms.
    let config = one_at_a_time(Kernel::V3_10, "deadline").with("fifo_batch", 3);
    let first = [read(0, 1000, 1), read(1, 1100, 1), read(2, 1200, 1), read(3, 900, 2)];
    let mut bios = at_zero(first.to_vec());
    bios.push((ms(1), read(4, 2000, 1)));
    let run = play(&config.clone().with("read_expire", 25), Logger::new(1, ms(10)), &bios);
    assert_eq!(run.starts(), [1000, 1100, 1200, 900, 2000]);
    let run = play(&config, Logger::new(1, ms(10)), &bios);
    assert_eq!(run.starts(), [1000, 1100, 1200, 2000, 900]);
}

#[test]
fn mq_deadline_serves_classes_in_order_and_ages_the_lower() {
    let config = one_at_a_time(Kernel::V6_12, "mq-deadline")
        .with_nr_requests(64)
        .with("prio_aging_expire", 5);
    let class = |mut bio: Bio, class| {
        bio.context.class = class;
        bio
    };
    // A read of a millisecond at 0 from nobody in particular, then at 1 µs one of the idle and one
    // of the real-time class, and each millisecond one of the default class.
    let mut bios = vec![
        (Nanos::ZERO, read(100, 0, 9)),
        (Nanos(1000), class(read(101, 50, 2), IoClass::Idle)),
        (Nanos(1000), class(read(102, 9000, 3), IoClass::RealTime)),
    ];
    bios.extend((0..8).map(|i| (ms(i) + Nanos(1000), read(i, 1000 + i * 100, 1))));
    let run = play(&config, Logger::new(1, ms(1)), &bios);
    // Real time first; idle would be last, but at 6 ms, the first free moment after 5.001 ms, it
    // is old enough, and the default class has nothing as old.
    let expected = [0, 9000, 1000, 1100, 1200, 1300, 50, 1400, 1500, 1600, 1700];
    assert_eq!(run.starts(), expected);
}

#[test]
fn kyber_serves_domains_in_turn() {
    let config = one_at_a_time(Kernel::V6_12, "kyber").with_nr_requests(64);
    let mut bios: Vec<_> = (0..18).map(|i| read(i, 1000 + i * 100, 1)).collect();
    bios.extend((18..28).map(|i| write(i, 10_000 + i * 100, 2)));
    let got: String = order(&config, bios)
        .into_iter()
        .map(|start| if start < 10_000 { 'r' } else { 'w' })
        .collect();
    // Sixteen reads with the very first one, eight writes, what is left.
    assert_eq!(got, format!("{}{}{}{}", "r".repeat(15), "w".repeat(8), "r".repeat(3), "ww"));
}

/// Two processes, each reads its own region in sequence, the next 0.1 ms after the last is done.
fn two_readers(config: &Config, service: Nanos, each: u64) -> Run {
    let start = |process: u32, i: u64| u64::from(process) * 1_000_000 + i * 8;
    let first = at_zero(vec![read(0, start(1, 0), 1), read(1_000_000, start(2, 0), 2)]);
    drive(config, Logger::new(1, service), &first, |done| {
        let i = done.id % 1_000_000 + 1;
        let next = read(done.id + 1, start(done.process, i), done.process);
        if i < each { vec![(Nanos::from_micros(100), next)] } else { Vec::new() }
    })
}

/// How many requests one region gets before the other's turn, and how often the turn changes.
fn turns(run: &Run) -> Vec<usize> {
    let regions: Vec<u64> = run.starts().iter().map(|start| start / 1_000_000).collect();
    regions.chunk_by(|a, b| a == b).map(<[u64]>::len).collect()
}

#[test]
fn noop_and_deadline_alternate_where_cfq_and_anticipatory_wait() {
    let alternate = two_readers(&one_at_a_time(Kernel::V2_6_18, "noop"), ms(1), 100);
    assert!(turns(&alternate).iter().all(|turn| *turn <= 2), "{:?}", turns(&alternate));
    for (kernel, scheduler) in [
        (Kernel::V2_6_18, "anticipatory"),
        (Kernel::V2_6_18, "cfq"),
        (Kernel::V2_6_32, "cfq"),
        (Kernel::V3_10, "cfq"),
        (Kernel::V6_12, "bfq"),
    ] {
        let mut config = one_at_a_time(kernel, scheduler);
        if scheduler == "bfq" {
            config = config.with("low_latency", 0);
        }
        let run = two_readers(&config, ms(1), 400);
        let turns = turns(&run);
        assert!(turns.len() <= 20, "{kernel} {scheduler}: {turns:?}");
        assert!(run.layer.counters().idle_waiting > ms(20), "{kernel} {scheduler}");
    }
}

#[test]
fn bfq_waits_for_nobody_while_new_readers_are_raised() {
    // As two sequential readers do on an emulated disk under Linux 6.18, in their first second: 192
    // operations a second with low_latency and 187 under mq-deadline, against 513 without.
    let run = two_readers(&one_at_a_time(Kernel::V6_12, "bfq"), ms(1), 400);
    assert!(turns(&run).iter().all(|turn| *turn <= 2), "{:?}", turns(&run));
}

#[test]
fn who_comes_ends_a_turn_of_bfq_that_is_not_worth_a_wait() {
    // A disk of two, 1 ms each, and process 1 with four requests, so that some are always held. At
    // 700.4 ms comes process 2, too late to be joined to it. (Seen in the kernel's own trace, 6.18,
    // of a disk with 100 random reads outstanding: the other process's read ends the turn.)
    let comes = |place: fn(u64) -> u64| {
        let config = Config { one_beyond: false, ..Config::new(Kernel::V6_12, 2) };
        let config = config.with_scheduler("bfq").with("low_latency", 0).with_nr_requests(64);
        let mut bios = at_zero((0..4).map(|id| read(id, place(id), 1)).collect());
        bios.push((Nanos::from_micros(700_400), read(2_000_000, 1 << 34, 2)));
        let run = drive(&config, Logger::new(2, ms(1)), &bios, |done| {
            let next = read(done.id + 4, place(done.id + 4), 1);
            let goes_on = done.process == 1 && done.at < ms(900);
            if goes_on { vec![(Nanos::ZERO, next)] } else { Vec::new() }
        });
        run.log.iter().find(|(_, start)| *start == 1 << 34).unwrap().0
    };
    let anywhere = comes(|id| id * 7_654_321 % 1_000_000_007 * 8);
    assert!((700_400..702_500).contains(&anywhere), "{anywhere} µs");
    // A sequential reader goes on until the turn's 125 ms are over: the sixth turn's.
    let in_order = comes(|id| id * 8);
    assert!((750_000..762_000).contains(&in_order), "{in_order} µs");
}

#[test]
fn bfq_joins_queues_that_begin_soon_after_one_another() {
    // Two processes read once, 1 ms apart, and come back with four reads each, which lie among one
    // another's: one queue sends them by place, two queues one after the other.
    let order = |rotational, again| {
        let mut bios = vec![(ms(1), read(100, 8, 1)), (ms(2), read(200, 16, 2))];
        bios.push((ms(again), read(101, 24, 1)));
        bios.push((ms(again), read(201, 32, 2)));
        let later = ms(again) + Nanos(1000);
        bios.extend((1..9).map(|i| (later, read(100 + i, i * 1000, 1 + (i % 2) as u32))));
        let config = Config { rotational, ..one_at_a_time(Kernel::V6_12, "bfq") };
        let config = config.with_nr_requests(64); // nobody sleeps for one
        let run = play(&config, Logger::new(1, ms(1)), &bios);
        run.starts().into_iter().filter(|start| *start >= 1000).collect::<Vec<_>>()
    };
    let joined: Vec<u64> = (1..9).map(|i| i * 1000).collect();
    assert_eq!(order(false, 100), joined);
    assert_eq!(order(true, 700), joined);
    assert_ne!(order(true, 500), joined);
}

#[test]
fn bfq_opens_a_disk_to_64_new_readers_little_by_little() {
    // On an emulated disk under Linux 6.18 they have a half of the rate in their first 0.2 s, 0.6 in
    // the next, and all of it from about 0.5 s on. Here the disk has 64 servers of 6 ms each.
    let readers = 64;
    let place = |id: u64| id * 7_654_321 % 1_000_000_007 * 8;
    let begin = |i: u64| (Nanos::from_micros(i * 20), read(i, place(i), i as u32));
    let bios: Vec<_> = (0..readers).map(begin).collect();
    let config = Config::new(Kernel::V6_12, 64).with_scheduler("bfq");
    let config = Config { one_beyond: false, ..config };
    let mut ends = Vec::new();
    drive(&config, Logger::new(64, ms(6)), &bios, |done| {
        ends.push(done.at);
        let next = read(done.id + readers, place(done.id + readers), done.process);
        let goes_on = done.at < ms(2500);
        if goes_on { vec![(Nanos::from_micros(50), next)] } else { Vec::new() }
    });
    let within = |from, to| ends.iter().filter(|at| (ms(from)..ms(to)).contains(at)).count();
    let full = 64 * 200 / 6;
    assert!(within(0, 200) < full / 2, "{}", within(0, 200));
    assert!(within(2000, 2200) > full * 9 / 10, "{}", within(2000, 2200));
}

#[test]
fn bfq_sends_the_overdue_unless_one_that_is_nearer_comes() {
    // Process 2 reads in sequence until its 125 ms are over; then process 1 sends what is nearest,
    // and then its oldest, which is over its time.
    let config = one_at_a_time(Kernel::V6_12, "bfq").with("low_latency", 0);
    let config = config.with("fifo_expire_sync", 100).with_nr_requests(512);
    let order = |newcomer: Option<u64>| {
        let mut bios = at_zero((0..300).map(|i| read(i, i * 16, 2)).collect());
        let million = [50, 30, 20].map(|at| at * 1_000_000);
        bios.extend((300..).zip(million).map(|(id, at)| (Nanos(1000), read(id, at, 1))));
        bios.extend(newcomer.map(|at| (ms(125) + Nanos::from_micros(500), read(400, at, 1))));
        let starts = play(&config, Logger::new(1, ms(1)), &bios).starts().to_vec();
        starts.into_iter().filter(|start| *start >= 1_000_000).collect::<Vec<_>>()
    };
    assert_eq!(order(None), [20_000_000, 50_000_000, 30_000_000]);
    assert_eq!(order(Some(25_000_000)), [20_000_000, 25_000_000, 30_000_000, 50_000_000]);
}

#[test]
fn cfq_slices_last_100_ms_and_idle_8() {
    // 1.1 ms a request and its think time; a slice of 100 ms has those sent before it ends: at
    // 0, 1.1, … 99.0: 91.
    for kernel in [Kernel::V2_6_18, Kernel::V2_6_32] {
        let run = two_readers(&one_at_a_time(kernel, "cfq"), ms(1), 300);
        let turns = turns(&run);
        assert!(turns[..5].iter().all(|turn| (90..=92).contains(turn)), "{kernel}: {turns:?}");
    }
    // The last request of process 1 is followed by 8 ms of waiting for it.
    let run = two_readers(&one_at_a_time(Kernel::V2_6_18, "cfq"), ms(1), 20);
    let changed = run.log.windows(2).find(|pair| pair[1].1 / 1_000_000 == 2).unwrap();
    assert_eq!(changed[1].0 - changed[0].0, 1_000 + 8_000);
}

#[test]
fn cfq_of_rhel_5_serialises_direct_writers_in_one_async_queue() {
    // 40 direct writers, one each: all in one queue, sent in visits of quantum; a reader that
    // comes takes the device from them.
    let config = Config::new(Kernel::V2_6_18, 1).with_scheduler("cfq");
    let mut bios: Vec<_> = (0..40u64)
        .map(|i| {
            let mut bio = write(i, 10_000 + i * 1000, i as u32);
            bio.sync = true;
            (Nanos::ZERO, bio)
        })
        .collect();
    bios.push((ms(2) + Nanos(500), read(40, 5, 99)));
    let run = play(&config, Logger::new(1, ms(1)), &bios);
    let place = run.starts().iter().position(|start| *start == 5).unwrap();
    // The visit it met is sent first: quantum 4 and what the driver had taken.
    assert!((4..=9).contains(&place), "read went out as number {place}");
}

#[test]
fn cfq_shares_time_by_priority() {
    // Level 0 has slices of 180 ms, level 7 of 40.
    let config = one_at_a_time(Kernel::V2_6_32, "cfq");
    let start = |process: u32, i: u64| u64::from(process) * 1_000_000 + i * 8;
    let level = |mut bio: Bio| {
        bio.context.level = if bio.context.process == 1 { 0 } else { 7 };
        bio
    };
    let first =
        at_zero(vec![level(read(0, start(1, 0), 1)), level(read(1_000_000, start(2, 0), 2))]);
    let run = drive(&config, Logger::new(1, ms(1)), &first, |done| {
        let i = done.id % 1_000_000 + 1;
        let next = level(read(done.id + 1, start(done.process, i), done.process));
        if i < 800 { vec![(Nanos::from_micros(100), next)] } else { Vec::new() }
    });
    let turns = turns(&run);
    assert!((163..=165).contains(&turns[0]), "{turns:?}");
    assert!((36..=38).contains(&turns[1]), "{turns:?}");
}

#[test]
fn anticipatory_waits_6_ms_and_drains_at_a_change() {
    // Process 1 reads once and is gone; process 2's read, far away, waits for 6 ms after it.
    let config = Config::new(Kernel::V2_6_18, 32).with_scheduler("anticipatory");
    let bios = at_zero(vec![read(0, 0, 1), read(1, 50_000_000, 2)]);
    let run = play(&config, Logger::new(1, ms(1)), &bios);
    assert_eq!(run.log, [(0, 0), (7_000, 50_000_000)]);
    // Near ones (8192 sectors) need not wait, but reads go one at a time.
    let bios = at_zero(vec![read(0, 0, 1), read(1, 5_000, 2)]);
    let run = play(&config, Logger::new(1, ms(1)), &bios);
    assert_eq!(run.log, [(0, 0), (1_000, 5_000)]);
    // Without antic_expire they go together.
    let bios = at_zero(vec![read(0, 0, 1), read(1, 50_000_000, 2)]);
    let run = play(&config.clone().with("antic_expire", 0), Logger::new(1, ms(1)), &bios);
    assert_eq!(run.log, [(0, 0), (0, 50_000_000)]);
    // A write after reads waits until all of them are back.
    let mut bios = at_zero(vec![read(0, 0, 1), read(1, 100, 1), write(2, 200, 2)]);
    bios[2].0 = Nanos(1);
    let run = play(&config, Logger::new(1, ms(1)), &bios);
    assert_eq!(run.starts(), [0, 100, 200]);
    assert!(run.log[2].0 >= 2_000, "{:?}", run.log);
}

#[test]
fn bfq_shares_sectors_by_weight() {
    // Levels 0 and 4 weigh 80 and 40; without low_latency the sectors go 2 : 1.
    let config = one_at_a_time(Kernel::V6_12, "bfq").with("low_latency", 0);
    let start = |process: u32, i: u64| u64::from(process) * 1_000_000_000 + i * 8;
    let level = |mut bio: Bio| {
        bio.context.level = if bio.context.process == 1 { 0 } else { 4 };
        bio
    };
    let first = at_zero(vec![level(read(0, start(1, 0), 1)), level(read(1 << 32, start(2, 0), 2))]);
    let run = drive(&config, Logger::new(1, ms(1)), &first, |done| {
        let i = done.id % (1 << 32) + 1;
        let next = level(read(done.id + 1, start(done.process, i), done.process));
        if done.at < Nanos::from_secs(20) { vec![(Nanos::from_micros(100), next)] } else { vec![] }
    });
    let first = run.done.iter().filter(|done| done.process == 1).count() as f64;
    let ratio = first / (run.done.len() as f64 - first);
    assert!((1.8..2.2).contains(&ratio), "{ratio}");
}

#[test]
fn write_back_is_told_of_congestion() {
    let config = Config::new(Kernel::V2_6_18, 1).with_scheduler("deadline");
    let mut layer = blocklayer::BlockLayer::new(&config, Logger::new(1, ms(1))).unwrap();
    let accepted = (0..200).take_while(|i| {
        layer.submit(write(*i, i * 100, 1), Nanos::ZERO) == blocklayer::Submitted::Accepted
            && !layer.congested(true)
    });
    assert_eq!(accepted.count(), 112);
    assert!(!layer.congested(false));
}

#[test]
fn a_barrier_of_2_6_drains_and_goes_alone() {
    // Depth 4, 1 ms each on four servers. Two writes, a barrier write, a write after it.
    let config = Config::new(Kernel::V2_6_18, 4).with_scheduler("deadline");
    let mut bios = vec![write(0, 500, 1), write(1, 100, 1), write(2, 300, 1), write(3, 50, 1)];
    bios[2].fua = true;
    bios[3].sync = true;
    let run = play(&config, Logger::new(4, ms(1)), &at_zero(bios));
    // The drained ones in one sweep at 0; at 1 ms a flush alone, at 2 ms the barrier, then what
    // came after.
    assert_eq!(run.log, [(0, 100), (0, 500), (1000, 0), (2000, 300), (3000, 50)]);
    assert_eq!(run.commands[2].1.op, device::Op::Flush);
    assert!(run.commands[3].1.fua);
}

#[test]
fn flushes_from_3_10_on_are_shared_and_drain_nothing() {
    let config = Config::new(Kernel::V3_10, 4).with_scheduler("noop");
    let flush = |id, at| (at, Bio { op: device::Op::Flush, ..write(id, 0, id as u32) });
    let mut bios: Vec<_> = (0..5).map(|id| flush(id, Nanos(id * 1000))).collect();
    bios.push((Nanos(2000), write(5, 100, 9)));
    let run = play(&config, Logger::new(4, ms(1)), &bios);
    // The first alone, the four that came meanwhile together; the write waits for none.
    assert_eq!(run.log, [(0, 0), (2, 100), (1000, 0)]);
    assert_eq!(run.layer.counters().dispatched, [0, 1, 2, 0]);
}

#[test]
fn an_empty_queue_of_2_6_is_plugged_for_3_ms_or_four_requests() {
    let config = Config::new(Kernel::V2_6_18, 1).with_scheduler("noop");
    let run_with = |count: u64| {
        let mut layer = blocklayer::BlockLayer::new(&config, Logger::new(1, ms(1))).unwrap();
        for i in 0..count {
            let _ = layer.submit(write(i, i * 100, 1), Nanos::ZERO);
        }
        (layer.view().queued, layer.next_event())
    };
    assert_eq!(run_with(3), (3, Some(ms(3))));
    // The fourth opens it: one at the device, one more taken by the driver.
    assert_eq!(run_with(4), (3, Some(ms(1))));
}

#[test]
fn neighbours_become_one_request_up_to_the_limit() {
    for (kernel, scheduler, most) in [
        (Kernel::V2_6_18, "deadline", 1024),
        (Kernel::V3_10, "cfq", 1024),
        (Kernel::V6_12, "mq-deadline", 2560),
    ] {
        let config = one_at_a_time(kernel, scheduler).with_nr_requests(64);
        let mut bios = vec![(Nanos::ZERO, read(999, 9_000_000, 9))];
        // From the middle backwards and forwards, 8 sectors each.
        let near = (0..400).map(|i| if i % 2 == 0 { 4000 + i * 4 } else { 4000 - i * 4 - 4 });
        bios.extend(
            near.enumerate().map(|(i, start)| (Nanos(1000 + i as u64), read(i as u64, start, 1))),
        );
        let run = play(&config, Logger::new(1, ms(1)), &bios);
        let sizes: Vec<u64> = run.commands[1..].iter().map(|c| c.1.count.0).collect();
        assert!(sizes.iter().all(|size| *size <= most), "{kernel} {scheduler}: {sizes:?}");
        assert!(sizes.len() <= 400 * 8 / most as usize + 3, "{kernel} {scheduler}: {sizes:?}");
    }
}

#[test]
fn a_deep_writer_saw_tooths_above_its_pool() {
    // One writer that always has more: it takes 32 in a batch above a full pool of 128.
    let config = Config::new(Kernel::V4_19, 32).with_scheduler("deadline");
    let bios = at_zero((0..2000).map(|i| write(i, i * 1000, 1)).collect());
    let run = play(&config, Logger::new(1, ms(1)), &bios);
    assert!((128..=160).contains(&run.most_allocated), "{}", run.most_allocated);
    assert!(run.layer.device().most_out <= 32);
}

/// RequestTable out together, on average, when 32 tasks read one random place after the other.
fn depth_of_random_readers(config: &Config) -> f64 {
    let mut stream = random::Stream::new(1, "readers");
    let mut place = move || stream.below(1 << 27) * 8;
    let first: Vec<_> = (0..32).map(|p| (Nanos(p), read(p << 32, place(), p as u32))).collect();
    let run = drive(config, Logger::new(32, ms(5)), &first, |done| {
        let next = read(done.id + 1, place(), done.process);
        if done.at < Nanos::from_secs(30) { vec![(Nanos::ZERO, next)] } else { Vec::new() }
    });
    run.layer.counters().depth_time as f64 / 30e9
}

#[test]
fn who_serialises_random_readers() {
    let depth = |kernel, scheduler| {
        depth_of_random_readers(&Config::new(kernel, 32).with_scheduler(scheduler))
    };
    assert!(depth(Kernel::V3_10, "noop") > 31.0);
    assert!(depth(Kernel::V3_10, "deadline") > 31.0);
    assert!(depth(Kernel::V6_12, "mq-deadline") > 31.0);
    // One queue at a time keeps one request out, and waits 2 ms for the next of it.
    assert!(depth(Kernel::V2_6_18, "cfq") <= 1.01);
    assert!(depth(Kernel::V2_6_32, "cfq") <= 1.01);
    // The seeky are sent together from 3.10 on, and by bfq when it has seen that they are.
    assert!(depth(Kernel::V3_10, "cfq") > 20.0);
    assert!(depth(Kernel::V6_12, "bfq") > 20.0);
}

#[test]
fn nobody_starves() {
    // Twelve random readers, two that read in sequence, two direct writers and two that buffer, all
    // of one class and level, for 30 s: each gets something in each 5 s after 10 s. Before, bfq
    // raises whoever is waited for thirtyfold, and that is for ever to the two that buffer.
    for (kernel, scheduler) in crate::properties::all() {
        let mut stream = random::Stream::new(1, "clients");
        let mut next = move |process: u32, i: u64| {
            let place = match process {
                0..12 => stream.below(1 << 27) * 8,
                12..14 => u64::from(process) * 1_000_000 + i * 8,
                _ => stream.below(1 << 27) * 8,
            };
            let id = u64::from(process) << 32 | i;
            let mut bio =
                if process < 14 { read(id, place, process) } else { write(id, place, process) };
            bio.sync = process < 16;
            bio
        };
        let mut config = Config::new(kernel, 8).with_scheduler(scheduler);
        config.nr_requests = (scheduler != "none").then_some(64);
        let first: Vec<_> = (0..18).map(|process| (Nanos::ZERO, next(process, 0))).collect();
        let run = drive(&config, Logger::new(2, ms(4)), &first, |done| {
            let bio = next(done.process, (done.id & 0xffff_ffff) + 1);
            if done.at < Nanos::from_secs(30) { vec![(Nanos(50_000), bio)] } else { Vec::new() }
        });
        for process in 0..18 {
            for span in 2..6 {
                let within = |at: Nanos| at.0 / 5_000_000_000 == span;
                let got = run.done.iter().filter(|d| d.process == process && within(d.at)).count();
                assert!(got > 0, "{kernel} {scheduler}: {process} starves in span {span}");
            }
        }
    }
}
