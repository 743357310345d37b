//! Findings that counters show.

use super::runs::{cells, count, faster, raw, run, run_of, with};
use analysis::{Analysis, Evidence, Expectation, FindingKind, Layer, Metric, findings};
use plan::{RawLevel, RawPlan};
use record::{Caveat, ClientShare, Histogram, Run};
use units::{Bytes, Nanos};

fn levels(words: &[&str]) -> Vec<RawLevel> {
    words.iter().map(|word| RawLevel::Word((*word).to_owned())).collect()
}

#[test]
fn buffered_direct() {
    // Of 4 MB a second, written directly.
    let name = "memory.cached_growth";
    assert_eq!(cells(&with("randwrite", name, 2e6), FindingKind::BufferedDirect), [1]);
    assert!(cells(&with("randwrite", name, 5e5), FindingKind::BufferedDirect).is_empty());
    let device = RawPlan { target: Some("/dev/sdz".to_owned()), ..raw("randwrite") };
    let run_on_device =
        run_of(device, 5, |cell, _, m| count(cell, m, &[(name, 2e6)], &[(name, 0.0)]));
    assert!(cells(&run_on_device, FindingKind::BufferedDirect).is_empty(), "others read");
    // The file's own pages tell, whatever others do with the cache.
    let of_file = |bytes: f64| {
        let own = counters::TARGET_CACHED.id;
        run("randwrite", move |cell, _, m| {
            count(cell, m, &[(own, bytes), (name, 2e6)], &[(own, 0.0)])
        })
    };
    assert_eq!(cells(&of_file(4096.0), FindingKind::BufferedDirect), [1]);
    assert!(cells(&of_file(0.0), FindingKind::BufferedDirect).is_empty());
    // The simulated cache has grown by 16 MiB in the trial: of what was moved in it, not in what was planned.
    let grown = |planned| {
        let plan = RawPlan { measure: Some(planned), ..raw("randwrite") };
        let name = counters::CACHE_USED.id;
        run_of(plan, 5, |cell, _, m| count(cell, m, &[(name, 16.0)], &[(name, 0.0)]))
    };
    for planned in [Nanos::from_secs(4), Nanos::from_secs(366 * 86_400)] {
        assert_eq!(cells(&grown(planned), FindingKind::BufferedDirect), [1], "{planned}");
    }
    let mut buffered = raw("randwrite");
    buffered.job.sync = Some("buffered".parse().unwrap());
    let run = run_of(buffered, 5, |cell, _, m| count(cell, m, &[(name, 2e6)], &[(name, 0.0)]));
    assert!(cells(&run, FindingKind::BufferedDirect).is_empty(), "it says that it is buffered");
}

#[test]
fn cold_drives() {
    let busy = |drives: f64, times: f64| {
        run("randwrite", move |cell, _, m| {
            let name = "sim.busy_drives";
            count(cell, m, &[(name, drives)], &[(name, 3.6)]);
            faster(m, if cell == 1 { times } else { 1.0 });
        })
    };
    assert_eq!(cells(&busy(1.2, 0.5), FindingKind::ColdDrives), [1]);
    assert!(cells(&busy(1.2, 1.0), FindingKind::ColdDrives).is_empty(), "no slower for it");
    assert!(cells(&busy(3.4, 0.5), FindingKind::ColdDrives).is_empty());
    assert_eq!(cells(&busy(16.0, 2.0), FindingKind::ColdDrives), [0], "the baseline's are cold");
    assert!(cells(&busy(1.2, 2.0), FindingKind::ColdDrives).is_empty(), "faster with fewer");
    let members = |a: f64, b: f64, times: f64| {
        run("randwrite", move |cell, _, m| {
            let names = ["device.sda.%util", "device.sdb.%util"];
            count(cell, m, &[(names[0], a), (names[1], b)], &[(names[0], 80.0), (names[1], 80.0)]);
            faster(m, if cell == 1 { times } else { 1.0 });
        })
    };
    assert_eq!(cells(&members(90.0, 20.0, 0.6), FindingKind::ColdDrives), [1]);
    assert!(cells(&members(90.0, 20.0, 1.0), FindingKind::ColdDrives).is_empty(), "no slower");
    assert!(cells(&members(90.0, 20.0, 1.6), FindingKind::ColdDrives).is_empty(), "faster so");
    assert!(cells(&members(90.0, 70.0, 0.6), FindingKind::ColdDrives).is_empty());
    assert!(cells(&members(10.0, 1.0, 0.6), FindingKind::ColdDrives).is_empty(), "not busy");
}

#[test]
fn flush_bound() {
    let flushes = |each_ms: f64| {
        run("randwrite", move |cell, _, m| {
            let rates = |ms| [("device.f/s", 100.0), ("device.f_await", ms)];
            count(cell, m, &rates(each_ms), &rates(0.1));
        })
    };
    assert_eq!(cells(&flushes(8.0), FindingKind::FlushBound), [1]);
    assert!(cells(&flushes(3.0), FindingKind::FlushBound).is_empty());
}

#[test]
fn held_idle() {
    let name = "sim.%idle_while_waiting";
    let held = |here: f64, there: f64, times: f64| {
        run("randread", move |cell, _, m| {
            count(cell, m, &[(name, here)], &[(name, there)]);
            faster(m, if cell == 1 { times } else { 1.0 });
        })
    };
    let pays = |run: &Run| {
        let found = findings(run, &Analysis::of(run));
        let found = found.iter().find(|it| it.kind == FindingKind::HeldIdle).unwrap();
        let pays = matches!(found.evidence, Evidence::IdleWhileWaiting { pays: true, .. });
        let expect = if pays { Expectation::Worsens } else { Expectation::Improves };
        assert_eq!(found.check.expect, expect(Metric::Throughput));
        (pays, found.cells.clone())
    };
    assert_eq!(pays(&held(40.0, 0.0, 0.6)), (false, vec![1]));
    assert_eq!(pays(&held(40.0, 0.0, 1.8)), (true, vec![1]), "sequential readers on one spindle");
    assert_eq!(pays(&held(0.0, 40.0, 1.8)), (false, vec![0]), "the baseline's costs");
    assert_eq!(pays(&held(0.0, 40.0, 0.6)), (true, vec![0]), "the baseline's pays");
    assert_eq!(pays(&held(40.0, 30.0, 1.8)), (false, vec![0, 1]), "nothing to compare with");
    assert!(cells(&held(4.0, 0.0, 0.6), FindingKind::HeldIdle).is_empty());
    assert!(cells(&held(40.0, 0.0, 1.0), FindingKind::HeldIdle).is_empty(), "it costs nothing");
    let emulated = |depth: f64, in_flight: f64| {
        run("randread", move |cell, _, m| {
            let both = |depth, asked| [("emulate.depth", depth), ("device.aqu-sz", asked)];
            count(cell, m, &both(depth, in_flight), &both(1.0, 8.0));
            faster(m, if cell == 1 { 0.6 } else { 1.0 });
        })
    };
    assert_eq!(cells(&emulated(0.5, 8.0), FindingKind::HeldIdle), [1]);
    assert!(cells(&emulated(0.5, 0.6), FindingKind::HeldIdle).is_empty(), "nobody asks");
    let flushing = run("randwrite", |cell, _, m| {
        let names = ["emulate.depth", "device.aqu-sz", "device.f/s", "device.f_await"];
        let waits: Vec<_> = names.into_iter().zip([0.5, 2.0, 75.0, 13.0]).collect();
        count(cell, m, &waits, &[("emulate.depth", 1.0), ("device.aqu-sz", 8.0)]);
        faster(m, if cell == 1 { 0.6 } else { 1.0 });
    });
    assert!(cells(&flushing, FindingKind::HeldIdle).is_empty(), "flushes wait for each other");
}

#[test]
fn larger_requests() {
    let size = |kib: f64, merged: f64| {
        run("randread", move |cell, _, m| {
            let rates = |kib, merged| {
                [
                    ("device.rareq-sz", kib),
                    ("device.rrqm/s", merged),
                    ("device.wrqm/s", 0.0),
                    ("device.r/s", 1000.0),
                    ("device.w/s", 0.0),
                ]
            };
            count(cell, m, &rates(kib, merged), &rates(4.0, 0.0));
        })
    };
    assert_eq!(cells(&size(16.0, 0.0), FindingKind::LargerRequests), [1]);
    assert!(cells(&size(4.2, 0.0), FindingKind::LargerRequests).is_empty());
    assert!(cells(&size(16.0, 800.0), FindingKind::LargerRequests).is_empty(), "merged");
}

#[test]
fn latency_trade() {
    let trade = |times: f64, slow: u64| {
        run("randwrite", move |cell, _, m| {
            if cell == 1 {
                faster(m, times);
                m.job.writes.service.record_n(Nanos::from_millis(slow), 80);
            }
        })
    };
    assert_eq!(cells(&trade(1.5, 20), FindingKind::LatencyTrade), [1]);
    assert!(cells(&trade(1.5, 1), FindingKind::LatencyTrade).is_empty(), "nothing was paid");
    assert!(cells(&trade(0.5, 20), FindingKind::LatencyTrade).is_empty(), "nothing was bought");
}

#[test]
fn rotational_flag() {
    let run = |claim: &str, latency: Nanos, clients: u32, change: &dyn Fn(&mut RawPlan)| {
        let mut plan = raw("randread");
        plan.job.clients = Some(clients);
        change(&mut plan);
        let mut run = run_of(plan, 5, |_, _, m| {
            m.job.reads = std::mem::take(&mut m.job.writes);
            m.job.reads.service = Histogram::from_buckets([(latency, m.job.reads.operations)]);
        });
        run.environment.settings = vec![("rotational".to_owned(), claim.to_owned())];
        run
    };
    let same = |_: &mut RawPlan| ();
    let (fast, slow) = (Nanos::from_micros(90), Nanos::from_millis(6));
    let found = |run: &Run| cells(run, FindingKind::RotationalFlag);
    assert_eq!(found(&run("1", fast, 8, &same)), [0, 1], "no disk is so fast");
    assert!(found(&run("1", slow, 8, &same)).is_empty());
    assert_eq!(found(&run("0", slow, 1, &same)), [0, 1], "flash is faster");
    assert!(found(&run("0", fast, 1, &same)).is_empty());
    assert!(found(&run("0", slow, 8, &same)).is_empty(), "they wait for each other");
    let buffered = |plan: &mut RawPlan| plan.job.sync = Some("buffered".parse().unwrap());
    assert!(found(&run("1", fast, 8, &buffered)).is_empty(), "the page cache answers");
    let mut cached = run("1", fast, 8, &same);
    cached.environment.caveats.push(Caveat::Trap {
        id: "buffered-loop".to_owned(),
        title: String::new(),
        evidence: String::new(),
    });
    assert!(found(&cached).is_empty(), "the cache below the loop device answers");
}

#[test]
fn scheduler_cpu() {
    let costs = |system: f64, idle: f64| {
        run("randread", move |cell, _, m| {
            let shares =
                |system, idle| [("cpu.%system", system), ("cpu.%idle", idle), ("cpu.%iowait", 0.0)];
            count(cell, m, &shares(system, idle), &shares(60.0, 10.0));
            faster(m, if cell == 1 { 0.7 } else { 1.0 });
        })
    };
    assert_eq!(cells(&costs(70.0, 5.0), FindingKind::SchedulerCpu), [1]);
    assert!(cells(&costs(42.0, 5.0), FindingKind::SchedulerCpu).is_empty(), "each costs the same");
    assert!(cells(&costs(70.0, 60.0), FindingKind::SchedulerCpu).is_empty(), "CPUs are idle");
    let others = run("randread", |cell, _, m| {
        let shares = |system| [("cpu.%system", system), ("cpu.%idle", 2.0), ("cpu.%iowait", 3.0)];
        count(cell, m, &shares(22.0), &shares(20.0));
        faster(m, if cell == 1 { 0.7 } else { 1.0 });
    });
    assert!(cells(&others, FindingKind::SchedulerCpu).is_empty(), "other programs have the CPUs");
}

/// One client and sixteen under two schedulers; `counters` of the cells with sixteen clients, which make
/// `times` the throughput, by cell.
fn scaling(pattern: &str, times: [f64; 2], counters: &[(&str, f64)]) -> Run {
    let mut raw = raw(pattern);
    raw.factors.insert("clients".to_owned(), levels(&["1", "16"]));
    raw.factors.insert("scheduler".to_owned(), levels(&["none", "bfq"]));
    let plan = run_of(raw.clone(), 1, |_, _, _| ()).plan;
    let of = |cell: usize| {
        let level = |name: &str| plan.cells[cell].levels[&name.parse().unwrap()].0.clone();
        (level("clients") == "16", usize::from(level("scheduler") == "bfq"))
    };
    run_of(raw, 5, |cell, _, m| {
        let (many, scheduler) = of(cell);
        let one = [("device.aqu-sz", 1.0)];
        count(1, m, if many { counters } else { &one }, &[]);
        faster(m, if many { times[scheduler] } else { 1.0 });
    })
}

fn layer(run: &Run) -> Option<Layer> {
    findings(run, &Analysis::of(run)).into_iter().find_map(|found| match found.evidence {
        Evidence::Serialised { layer, .. } => Some(layer),
        _ => None,
    })
}

#[test]
fn serialised() {
    let alone = [("device.aqu-sz", 1.1)];
    let full = [("device.aqu-sz", 15.0)];
    let held = [
        ("device.aqu-sz", 15.0),
        ("sim.depth", 1.0),
        ("sim.queued", 14.0),
        ("sim.%room_while_waiting", 90.0),
    ];
    assert_eq!(layer(&scaling("randwrite", [1.05, 1.05], &alone)), Some(Layer::AboveTheQueue));
    assert_eq!(layer(&scaling("randwrite", [1.05, 1.05], &full)), Some(Layer::Device));
    assert_eq!(layer(&scaling("randwrite", [9.0, 1.05], &full)), Some(Layer::Scheduler));
    assert_eq!(layer(&scaling("randwrite", [1.05, 1.05], &held)), Some(Layer::Scheduler));
    assert_eq!(cells(&scaling("randwrite", [9.0, 1.05], &full), FindingKind::Serialised).len(), 1);
    assert!(cells(&scaling("randwrite", [9.0, 9.0], &full), FindingKind::Serialised).is_empty());
    let readers = scaling("randread", [1.05, 1.05], &alone);
    assert!(cells(&readers, FindingKind::Serialised).is_empty(), "no lock holds readers up");
}

#[test]
fn sorting() {
    let seeks = |sectors: f64, times: f64| {
        run("randread", move |cell, _, m| {
            let name = "sim.seek_sectors";
            count(cell, m, &[(name, sectors)], &[(name, 1e7)]);
            faster(m, if cell == 1 { times } else { 1.0 });
        })
    };
    assert_eq!(cells(&seeks(2e6, 1.5), FindingKind::Sorting), [1]);
    let traced = run("randread", |cell, _, m| {
        count(cell, m, &[("order.seek_sectors", 2e6)], &[("order.seek_sectors", 1e7)]);
        faster(m, if cell == 1 { 1.5 } else { 1.0 });
    });
    assert_eq!(cells(&traced, FindingKind::Sorting), [1], "on a device that is not simulated");
    assert_eq!(cells(&seeks(4e7, 0.6), FindingKind::Sorting), [1]);
    assert!(cells(&seeks(2e6, 0.6), FindingKind::Sorting).is_empty(), "shorter ways cost nothing");
    assert!(cells(&seeks(9e6, 1.5), FindingKind::Sorting).is_empty());
    let at_depth = |depth: f64| {
        run("randread", move |cell, _, m| {
            let counted = |seek, depth| [("sim.seek_sectors", seek), ("sim.depth", depth)];
            count(cell, m, &counted(2e6, depth), &counted(1e7, 8.0));
            faster(m, if cell == 1 { 1.5 } else { 1.0 });
        })
    };
    assert_eq!(cells(&at_depth(1.0), FindingKind::Sorting), [1], "the device had nothing to sort");
    assert!(cells(&at_depth(32.0), FindingKind::Sorting).is_empty(), "the device may have sorted");
}

#[test]
fn kept_together() {
    let shares = |here: f64, baseline: f64, times: f64| {
        run("read", move |cell, _, m| {
            let name = "order.%sequential";
            count(cell, m, &[(name, here)], &[(name, baseline)]);
            faster(m, if cell == 1 { times } else { 1.0 });
        })
    };
    let kind = FindingKind::KeptTogether;
    assert_eq!(cells(&shares(90.0, 5.0, 1.5), kind), [1]);
    assert_eq!(cells(&shares(5.0, 90.0, 0.6), kind), [1], "the baseline keeps them together");
    assert!(cells(&shares(90.0, 5.0, 0.6), kind).is_empty(), "it costs nothing");
    assert!(cells(&shares(20.0, 5.0, 1.5), kind).is_empty());
    let told = findings(&shares(5.0, 90.0, 0.6), &Analysis::of(&shares(5.0, 90.0, 0.6)));
    let found = told.iter().find(|it| it.kind == kind).unwrap();
    assert_eq!(found.evidence, Evidence::Sequential { cell: 5.0, baseline: 90.0 });
    // It is the cause of the shorter way, too.
    let both = run("read", |cell, _, m| {
        let counted = |seek, share| [("order.seek_sectors", seek), ("order.%sequential", share)];
        count(cell, m, &counted(2e6, 90.0), &counted(1e7, 5.0));
        faster(m, if cell == 1 { 1.5 } else { 1.0 });
    });
    assert_eq!(cells(&both, kind), [1]);
    assert!(cells(&both, FindingKind::Sorting).is_empty());
}

#[test]
fn starved_client() {
    let shares = |least: u64| {
        run("randread", move |cell, _, m| {
            let share = |operations| ClientShare { operations, bytes: Bytes(0) };
            let of_all = if cell == 1 { [least, 1000, 1000, 1000] } else { [1000; 4] };
            m.job.clients = of_all.map(share).to_vec();
        })
    };
    assert_eq!(cells(&shares(20), FindingKind::StarvedClient), [1]);
    assert!(cells(&shares(500), FindingKind::StarvedClient).is_empty());
}

#[test]
fn writeback_throttled() {
    let name = "writeback.throttled_ms/s";
    assert_eq!(cells(&with("randwrite", name, 300.0), FindingKind::WritebackThrottled), [1]);
    assert!(cells(&with("randwrite", name, 10.0), FindingKind::WritebackThrottled).is_empty());
    let factor = |times: f64| {
        let mut raw = raw("randwrite");
        raw.factors.insert("wbt_lat_usec".to_owned(), levels(&["2000", "0"]));
        run_of(raw, 5, move |cell, _, m| faster(m, if cell == 1 { times } else { 1.0 }))
    };
    assert_eq!(cells(&factor(1.4), FindingKind::WritebackThrottled), [1]);
    assert!(cells(&factor(1.0), FindingKind::WritebackThrottled).is_empty());
}

#[test]
fn no_free_request() {
    let in_flight = |requests: f64, clients: u32, queue: &str| {
        let mut plan = raw("randread");
        plan.job.clients = Some(clients);
        plan.factors = [("nr_requests".to_owned(), levels(&[queue, "128"]))].into();
        let name = counters::DEVICE_AQU_SZ.id;
        run_of(plan, 5, move |cell, _, m| count(cell, m, &[(name, 60.0)], &[(name, requests)]))
    };
    let found = |run: &Run| cells(run, FindingKind::NoFreeRequest);
    assert_eq!(found(&in_flight(3.9, 64, "4")), [0]);
    assert!(found(&in_flight(3.0, 64, "4")).is_empty(), "there is room");
    assert!(found(&in_flight(3.9, 4, "4")).is_empty(), "nobody waits");
    assert!(found(&in_flight(7.6, 64, "4")).is_empty(), "there are several queues");
}

#[test]
fn unexplained() {
    let slower = run("randwrite", |cell, _, m| faster(m, if cell == 1 { 0.6 } else { 1.0 }));
    assert_eq!(cells(&slower, FindingKind::Unexplained), [1]);
    let alike = run("randwrite", |_, _, _| ());
    assert!(cells(&alike, FindingKind::Unexplained).is_empty());
    let explained = run("randread", |cell, _, m| {
        let name = "sim.%idle_while_waiting";
        count(cell, m, &[(name, 40.0)], &[(name, 0.0)]);
        faster(m, if cell == 1 { 0.6 } else { 1.0 });
    });
    assert!(cells(&explained, FindingKind::Unexplained).is_empty(), "the device is held idle");
    let alike = run("randread", |cell, _, m| {
        let name = "sim.%idle_while_waiting";
        count(cell, m, &[(name, 40.0)], &[(name, 40.0)]);
        faster(m, if cell == 1 { 0.6 } else { 1.0 });
    });
    assert_eq!(cells(&alike, FindingKind::Unexplained), [1], "in both alike, it explains nothing");
    let waiting = |factor: &str, words: &[&str]| {
        let mut plan = raw("randread");
        plan.factors = [(factor.to_owned(), levels(words))].into();
        run_of(plan, 5, |cell, _, m| {
            let name = counters::SIM_TIME_ASLEEP.id;
            count(cell, m, &[(name, 5.0)], &[(name, 9.0)]);
            faster(m, if cell == 1 { 1.5 } else { 1.0 });
        })
    };
    let queues = waiting("nr_requests", &["64", "128"]);
    assert_eq!(cells(&queues, FindingKind::NoFreeRequest), [0, 1]);
    assert!(cells(&queues, FindingKind::Unexplained).is_empty(), "the queue's length is compared");
    let schedulers = waiting("scheduler", &["none", "bfq"]);
    assert_eq!(cells(&schedulers, FindingKind::Unexplained), [1], "the queue is the same");
}
