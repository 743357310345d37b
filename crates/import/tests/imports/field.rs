//! Outputs that people posted, with the numbers that their folders name.

use super::{has, imported, ms, output, outputs, run, value};
use import::{PieceKind, decode, parts};
use record::{CacheSign, Doubt, EditSign, Quantity};
use skipped::Need;
use std::path::Path;

/// A file beside the project.
fn field(name: &str) -> Option<String> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data/field").join(name);
    let text = std::fs::read_to_string(&path).ok();
    if text.is_none() {
        skipped::skip(Need::Data, &format!("{} is not there", path.display()));
    }
    text
}

#[test]
fn sysbench_0_4_of_a_database() {
    let Some(text) = field("17-sysbench-0.4-oltp/out.txt") else { return };
    let (tool, it) = output(&text);
    assert_eq!(tool, "sysbench 0.4.12");
    assert_eq!(it.conditions.benchmark, "oltp simple read-only");
    assert_eq!((it.conditions.clients, it.seconds), (Some(16), Some(60.0009)));
    assert_eq!(it.rate.unwrap().value, 23572.63);
    assert_eq!(value(&it, "transactions", Quantity::Count), Some(1_414_378.0));
    let counts = ["queries read", "queries write", "queries other", "queries"]
        .map(|subject| value(&it, subject, Quantity::Count).unwrap());
    assert_eq!(counts, [1_414_378.0, 0.0, 1_414_378.0, 2_828_756.0]);
    assert_eq!(value(&it, "read/write requests", Quantity::Rate), Some(23572.63));
    assert_eq!(value(&it, "deadlocks", Quantity::Count), Some(0.0));
    let latencies = [
        Quantity::LatencyMin,
        Quantity::LatencyMean,
        Quantity::LatencyMax,
        Quantity::Percentile(95_000),
    ]
    .map(|quantity| ms(&it, "events", quantity).unwrap());
    assert_eq!(latencies, [0.21, 0.68, 2.66, 0.87]);
    assert_eq!(value(&it, "events", Quantity::PerThread), Some(88_398.625));
    assert_eq!(value(&it, "events", Quantity::PerThreadDeviation), Some(1456.06));
    assert!(!has(&it, |doubt| matches!(doubt, Doubt::Contradiction { .. })), "{:?}", it.doubts);
    assert!(has(&it, |doubt| matches!(doubt, Doubt::CoarsePercentiles)));
    assert!(has(&it, |doubt| matches!(doubt, Doubt::OnePercentile { percent: 95.0 })));
}

#[test]
fn sysbench_fileio_in_a_cache_and_far_too_short() {
    let Some(text) = field("19-sysbench-fileio/issue72.txt") else { return };
    let (_, it) = output(&text);
    assert_eq!(it.conditions.benchmark, "fileio rndrw");
    assert_eq!((it.conditions.clients, it.conditions.block_size), (Some(8), Some(16384)));
    let rates = ["read", "write", "fsync"].map(|kind| value(&it, kind, Quantity::Rate).unwrap());
    assert_eq!(rates, [8259.22, 5499.26, 17610.85]);
    let amounts = ["read", "write"].map(|kind| value(&it, kind, Quantity::Bandwidth).unwrap());
    assert_eq!(amounts.map(|bytes| bytes / 1_048_576.0), [129.05, 85.93]);
    assert_eq!(it.seconds, Some(0.7268));
    assert_eq!(value(&it, "events", Quantity::Count), Some(10_000.0));
    let latencies = [Quantity::LatencyMean, Quantity::LatencyMax, Quantity::Percentile(95_000)]
        .map(|quantity| ms(&it, "events", quantity).unwrap());
    assert_eq!(latencies, [0.18, 1.98, 0.54]);
    assert!(has(&it, |doubt| matches!(doubt, Doubt::TooShort { .. })));
    let more = |doubt: &Doubt| {
        matches!(doubt, Doubt::MoreSyncsThanWrites { syncs: 17610.85, writes: 5499.26 })
    };
    assert!(it.doubts.iter().any(more), "{:?}", it.doubts);
    let cache =
        |doubt: &Doubt| matches!(doubt, Doubt::Cache { sign: CacheSign::Latency { .. }, .. });
    assert!(it.doubts.iter().any(cache));
    assert!(!has(&it, |doubt| matches!(doubt, Doubt::Contradiction { .. })), "{:?}", it.doubts);
}

#[test]
fn sysbench_events_that_mix_writes_with_syncs() {
    let Some(text) = field("19-sysbench-fileio/issue18-kellabyte.txt") else { return };
    let (_, it) = output(&text);
    assert_eq!(it.rate.unwrap().value, 15273.0);
    let amount = value(&it, "write", Quantity::Bandwidth).unwrap();
    assert_eq!(amount / 1_048_576.0, 238.64);
    assert_eq!(ms(&it, "events", Quantity::LatencyMin), Some(0.0));
    assert_eq!(value(&it, "fsync", Quantity::Rate), Some(19538.85));
    assert_eq!(value(&it, "events", Quantity::Count), Some(348_278.0));
    assert_eq!(it.seconds, Some(10.003));
    let latencies = [Quantity::LatencyMean, Quantity::Percentile(99_000), Quantity::LatencyMax]
        .map(|quantity| ms(&it, "events", quantity).unwrap());
    assert_eq!(latencies, [0.11, 1.23, 16.29]);
    assert!(has(&it, |doubt| matches!(doubt, Doubt::MixedLatencies { .. })));
    assert!(has(&it, |doubt| matches!(doubt, Doubt::OnePercentile { percent: 99.0 })));
    assert!(has(&it, |doubt| matches!(doubt, Doubt::Cache { .. })));
    assert!(!has(&it, |doubt| matches!(doubt, Doubt::TooShort { .. })));
}

#[test]
fn a_run_of_sysbench_that_failed_is_no_result() {
    let Some(text) = field("19-sysbench-fileio/issue29-failed.txt") else { return };
    let (_, it) = output(&text);
    let failure = it.failure.clone().unwrap();
    assert_eq!(failure.line, 22);
    assert!(failure.text.starts_with("FATAL: Failed to read file!"));
    assert_eq!(value(&it, "events", Quantity::Count), Some(0.0));
    assert_eq!(value(&it, "events", Quantity::LatencyMin), None);
    assert!(has(&it, |doubt| matches!(doubt, Doubt::Impossible { .. })));
    let run = run(&[("issue29.txt", &text)]);
    assert!(
        matches!(&run.trials[0].outcome, record::Outcome::Failed { error } if error.contains("FATAL"))
    );
}

#[test]
fn fio_2_has_other_units() {
    let Some(text) = field("22-fio-2.2-json/test.json") else { return };
    let (tool, it) = output(&text);
    assert_eq!(tool, "fio 2.2.10");
    assert_eq!(it.conditions.name.as_deref(), Some("test"));
    assert_eq!(value(&it, "write", Quantity::Rate), Some(15624.70));
    assert_eq!(value(&it, "write", Quantity::Bandwidth), Some(62499.0 * 1024.0));
    assert_eq!(value(&it, "write", Quantity::Bytes), Some(37_500_272.0 * 1024.0));
    assert_eq!(value(&it, "write", Quantity::Count), Some(9_374_944.0));
    assert_eq!(it.seconds, Some(600.008));
    let micros = |subject: &str, quantity: Quantity| {
        value(&it, subject, quantity).map(|ns| (ns / 10.0).round() / 100.0)
    };
    for (subject, min, mean, max) in [
        ("write slat", 17.0, 32.18, 9602.0),
        ("write", 964.0, 8151.19, 261_110.0),
        ("write lat", 989.0, 8182.26, 261_142.0),
    ] {
        assert_eq!(micros(subject, Quantity::LatencyMin), Some(min), "{subject}");
        assert_eq!(micros(subject, Quantity::LatencyMean), Some(mean), "{subject}");
        assert_eq!(micros(subject, Quantity::LatencyMax), Some(max), "{subject}");
    }
    for (milli, wanted) in [
        (50_000, 8160.0),
        (95_000, 8256.0),
        (99_000, 8640.0),
        (99_900, 14_912.0),
        (99_990, 150_528.0),
    ] {
        assert_eq!(micros("write", Quantity::Percentile(milli)), Some(wanted), "{milli}");
    }
    let disk = |name: &str| value(&it, "disk xvda", Quantity::Column(name.to_owned()));
    assert_eq!(disk("write ios"), Some(645_585.0));
    assert_eq!(disk("write merges"), Some(9_682_645.0));
    assert_eq!(disk("util"), Some(100.0));
    let repeated =
        |doubt: &Doubt| matches!(doubt, Doubt::RepeatedName { name, times: 3 } if name == "0.00");
    assert!(it.doubts.iter().any(repeated), "{:?}", it.doubts);
    let above = |doubt: &Doubt| matches!(doubt, Doubt::SharesAboveWhole { percent, .. } if (percent - 110.26).abs() < 0.01);
    assert!(it.doubts.iter().any(above));
    assert!(has(&it, |doubt| matches!(doubt, Doubt::Merged { requests: 645_585.0, .. })));
    // 661 s: the device was looked at while the job ramped up, too.
    let elapsed = it.doubts.iter().find_map(|doubt| match doubt {
        Doubt::DeviceTimeDiffers { measured, elapsed } => {
            Some((measured.0 / 1_000_000_000, elapsed.0 / 1_000_000_000))
        }
        _ => None,
    });
    assert_eq!(elapsed, Some((600, 661)));
    let contradictions: Vec<(f64, u64, u64)> = it
        .doubts
        .iter()
        .filter_map(|doubt| match doubt {
            Doubt::Contradiction { stated, at, against, .. } => {
                Some((*stated, at.line, against.line))
            }
            _ => None,
        })
        .collect();
    assert_eq!(contradictions, [(15639.50, 104, 55), (25.02, 103, 55)]);
}

#[test]
fn iostat_of_four_generations_is_read_by_its_headings() {
    for (file, device, columns) in [
        (
            "centos-7.7-iostat-x.txt",
            "sda",
            vec![
                ("r/s", 0.13),
                ("w/s", 0.11),
                ("rkB/s", 5.27),
                ("wkB/s", 1.10),
                ("rrqm/s", 0.0),
                ("wrqm/s", 0.02),
                ("avgrq-sz", 52.53),
                ("avgqu-sz", 0.0),
                ("await", 0.88),
                ("r_await", 0.53),
                ("w_await", 1.29),
                ("svctm", 0.52),
                ("%util", 0.01),
            ],
        ),
        (
            "centos-7.7-iostat-mx.txt",
            "sda",
            vec![("rMB/s", 0.01), ("await", 0.88), ("%util", 0.01)],
        ),
        (
            "ubuntu-18.04-iostat-mx.txt",
            "sda",
            vec![
                ("r/s", 40.74),
                ("w/s", 44.66),
                ("rMB/s", 1.93),
                ("wMB/s", 3.43),
                ("aqu-sz", 0.20),
                ("rareq-sz", 48.60),
                ("wareq-sz", 78.55),
                ("svctm", 0.55),
            ],
        ),
        (
            "ubuntu-20.10-iostat-x.txt",
            "sda",
            vec![
                ("r/s", 2.67),
                ("rkB/s", 100.76),
                ("w/s", 2.81),
                ("wkB/s", 129.44),
                ("%util", 0.41),
            ],
        ),
    ] {
        let Some(text) = field(&format!("26-iostat-four-versions/{file}")) else { return };
        let parts = parts(&decode(text.as_bytes()).unwrap());
        let [part] = &parts[..] else { panic!("{file}: {} parts", parts.len()) };
        let PieceKind::Devices(reports) = &part.piece.kind else { panic!("{file}") };
        let report = reports.iter().find(|report| report.device == device).unwrap();
        for (name, value) in columns {
            assert_eq!(report.column(name), Some(value), "{file}: {name}");
        }
        assert!(report.since_boot, "{file}: one report after the banner is of the time since boot");
    }
}

#[test]
fn iostat_says_what_its_own_figures_contradict() {
    let Some(text) = field("26-iostat-four-versions/little-law-nvme.txt") else { return };
    let stalls = run(&[("iostat.txt", &text)]);
    let doubts = &imported(&stalls, 0).doubts;
    let found = |doubt: &Doubt| matches!(doubt, Doubt::Stalls { device, queue: 37.84, busy: 5.72 } if device == "nvme0n1");
    assert!(doubts.iter().any(found), "{doubts:?}");
    assert!(!doubts.iter().any(|doubt| matches!(doubt, Doubt::Contradiction { .. })), "{doubts:?}");
    let Some(text) = field("26-iostat-four-versions/zfs-14337-flush.txt") else { return };
    let flushes = run(&[("iostat.txt", &text)]);
    let doubts = &imported(&flushes, 0).doubts;
    let found = |doubt: &Doubt| match doubt {
        Doubt::FlushesCountedAsReads { flushes, queue, .. } => {
            *flushes == 2.0 && (queue - 0.323).abs() < 0.001
        }
        _ => false,
    };
    assert!(doubts.iter().any(found), "{doubts:?}");
}

#[test]
fn iostat_of_several_reports() {
    let Some(text) = field("26-iostat-four-versions/ubuntu-18.04-iostat-1.txt") else { return };
    let parts = parts(&decode(text.as_bytes()).unwrap());
    assert_eq!(parts.len(), 1);
    let PieceKind::Devices(reports) = &parts[0].piece.kind else { panic!() };
    let sda: Vec<_> = reports.iter().filter(|report| report.device == "sda").collect();
    assert!(sda.len() > 1);
    assert_eq!(sda[0].column("tps"), Some(82.01));
    assert!(sda[0].since_boot && !sda[1].since_boot);
    assert_eq!(sda[1].column("tps"), Some(0.0));
}

#[test]
fn go_tpc_of_today_and_of_before() {
    let Some(text) = field("28-go-tpc/new.txt") else { return };
    let (_, it) = output(&text);
    assert_eq!(it.rate.unwrap().value, 93826.9);
    assert_eq!(value(&it, "NEW_ORDER", Quantity::Count), Some(5_629_221.0));
    assert_eq!(it.seconds, Some(3599.7));
    let latencies = [
        Quantity::LatencyMean,
        Quantity::Percentile(50_000),
        Quantity::Percentile(90_000),
        Quantity::Percentile(95_000),
        Quantity::Percentile(99_000),
        Quantity::Percentile(99_900),
        Quantity::LatencyMax,
    ]
    .map(|quantity| ms(&it, "NEW_ORDER", quantity).unwrap());
    assert_eq!(latencies, [64.6, 62.9, 88.1, 100.7, 130.0, 184.5, 570.4]);
    assert_eq!(value(&it, "NEW_ORDER_ERR", Quantity::Count), Some(20.0));
    assert!(has(&it, |doubt| matches!(doubt, Doubt::Errors { count: 34, .. })));
    assert!(has(&it, |doubt| matches!(doubt, Doubt::Incomplete { .. })));
    assert!(has(&it, |doubt| matches!(doubt, Doubt::NotTpc)));
    assert!(!has(&it, |doubt| matches!(doubt, Doubt::Contradiction { .. })), "{:?}", it.doubts);

    let Some(text) = field("28-go-tpc/old.txt") else { return };
    let (_, it) = output(&text);
    assert_eq!(it.rate.unwrap().value, 362.5);
    assert_eq!(value(&it, "tpmC", Quantity::RatePerMinute), Some(362.5));
    for absent in [Quantity::Percentile(50_000), Quantity::Percentile(95_000), Quantity::LatencyMax]
    {
        assert_eq!(value(&it, "NEW_ORDER", absent.clone()), None, "{absent:?}");
    }
    let ends = [Quantity::Percentile(90_000), Quantity::Percentile(99_000)]
        .map(|quantity| ms(&it, "NEW_ORDER", quantity).unwrap());
    assert_eq!(ends, [192.0, 512.0]);
    let ends = [Quantity::Percentile(90_000), Quantity::Percentile(99_000)]
        .map(|quantity| ms(&it, "DELIVERY", quantity).unwrap());
    assert_eq!(ends, [96.0, 192.0]);
    assert!(has(&it, |doubt| matches!(doubt, Doubt::NotTpc)));
    assert!(has(&it, |doubt| matches!(doubt, Doubt::CoarsePercentiles)));
    let unequal = |doubt: &Doubt| matches!(doubt, Doubt::UnequalTimes { low: 55.6, high: 59.4 });
    assert!(it.doubts.iter().any(unequal), "{:?}", it.doubts);
    assert!(!has(&it, |doubt| matches!(doubt, Doubt::Contradiction { .. })), "{:?}", it.doubts);
}

#[test]
fn go_tpc_whose_latencies_are_impossible() {
    let Some(text) = field("28-go-tpc/impossible.txt") else { return };
    let (_, it) = output(&text);
    let found = it.doubts.iter().find_map(|doubt| match doubt {
        Doubt::Contradiction { stated, computed, .. } => Some((*stated, *computed)),
        _ => None,
    });
    let (stated, computed) = found.unwrap();
    assert_eq!((stated, (computed * 10.0).round()), (0.3, 1119.0));
    assert!(has(&it, |doubt| matches!(doubt, Doubt::NotTpc)));
    let is_latency = |quantity: &Quantity| {
        matches!(quantity, Quantity::LatencyMean | Quantity::LatencyMax | Quantity::Percentile(_))
    };
    assert!(!it.figures.iter().any(|figure| is_latency(&figure.quantity)));
}

#[test]
fn pgbench_of_four_versions() {
    let Some(text) = field("35-pgbench/v9.4.txt") else { return };
    let (_, it) = output(&text);
    assert_eq!((it.conditions.clients, it.seconds), (Some(20), Some(50.0)));
    assert_eq!(value(&it, "transactions", Quantity::Count), Some(95_324.0));
    assert_eq!(it.rate.unwrap().value, 1910.579339);
    assert_eq!(value(&it, "transactions and connections", Quantity::Rate), Some(1905.733296));
    assert_eq!(ms(&it, "transactions", Quantity::LatencyMean), Some(10.491));
    assert!(!has(&it, |doubt| matches!(doubt, Doubt::Contradiction { .. })), "{:?}", it.doubts);

    let Some(text) = field("35-pgbench/v12-rds.txt") else { return };
    let (_, it) = output(&text);
    assert_eq!((it.conditions.clients, it.seconds), (Some(100), Some(300.0)));
    assert_eq!(value(&it, "transactions", Quantity::Count), Some(1_400_465.0));
    assert_eq!(ms(&it, "transactions", Quantity::LatencyMean), Some(21.392));
    assert_eq!(ms(&it, "transactions", Quantity::LatencyDeviation), Some(21.357));
    assert_eq!(it.rate.unwrap().value, 4667.865967);
    assert_eq!(value(&it, "transactions and connections", Quantity::Rate), Some(4667.600630));
    assert!(!has(&it, |doubt| matches!(doubt, Doubt::Edited { .. })));

    let Some(text) = field("35-pgbench/v15-progress.txt") else { return };
    let (_, it) = output(&text);
    assert_eq!((it.conditions.clients, it.seconds), (Some(8), Some(60.0)));
    assert_eq!(value(&it, "transactions", Quantity::Count), Some(39_051.0));
    assert_eq!(ms(&it, "transactions", Quantity::LatencyMean), Some(12.293));
    assert_eq!(ms(&it, "transactions", Quantity::LatencyDeviation), Some(18.234));
    assert_eq!(it.rate.unwrap().value, 650.597861);
    assert_eq!(value(&it, "errors", Quantity::Count), Some(0.0));
    let rates: Vec<f64> = it.samples.iter().map(|(_, rate)| *rate).collect();
    assert_eq!(rates, [615.5, 729.5, 621.7, 767.3, 493.2]);
    assert!(has(&it, |doubt| matches!(doubt, Doubt::Unsteady { low: 493.2, high: 767.3 })));
    assert!(has(&it, |doubt| matches!(doubt, Doubt::SmallScale { scale: 1, clients: 8 })));
}

#[test]
fn pgbench_that_was_edited_by_hand() {
    let Some(text) = field("35-pgbench/edited-by-hand.txt") else { return };
    let (_, it) = output(&text);
    let signs: Vec<EditSign> = it
        .doubts
        .iter()
        .filter_map(|doubt| match doubt {
            Doubt::Edited { sign, .. } => Some(*sign),
            _ => None,
        })
        .collect();
    assert_eq!(signs, [EditSign::GroupedDigits, EditSign::TooExact]);
}

#[test]
fn several_outputs_in_several_files_are_one_run() {
    let (Some(a), Some(b)) = (field("35-pgbench/v12-rds.txt"), field("35-pgbench/v9.4.txt")) else {
        return;
    };
    assert_eq!(outputs(&format!("{a}\n\n{b}")).len(), 2);
    let run = run(&[("a.txt", &a), ("b.txt", &b)]);
    assert_eq!(run.trials.len(), 2);
    let labels: Vec<String> =
        run.plan.cells.iter().map(|cell| cell.label(&run.plan.compared())).collect();
    assert_eq!(labels, ["a.txt", "b.txt"]);
}

#[test]
fn jobs_of_fio_that_ran_together_are_one_run() {
    let folder = "64-fio-jobs-that-ran-together";
    let read = |name: &str| field(&format!("{folder}/{name}"));
    let (Some(none), Some(bfq), Some(text)) =
        (read("none.json"), read("bfq.json"), read("text.txt"))
    else {
        return;
    };
    for (json, rate) in [(&none, 1999.7), (&bfq, 1879.7)] {
        let (_, it) = output(json);
        assert_eq!((it.rate.unwrap().value * 10.0).round() / 10.0, rate);
        assert_eq!((it.conditions.clients, it.conditions.depth), (Some(4), Some(4)));
        assert!(
            it.doubts.contains(&Doubt::JobsTogether { jobs: 4, of_one: true }),
            "{:?}",
            it.doubts
        );
        assert!(!has(&it, |doubt| matches!(doubt, Doubt::Contradiction { .. })), "{:?}", it.doubts);
    }
    let (_, it) = output(&text);
    assert_eq!((it.rate.unwrap().value, it.conditions.clients), (1997.0, Some(4)));
    // A stated rate is no effect of a scheduler.
    let run = run(&[("none.json", &none), ("bfq.json", &bfq)]);
    assert_eq!(run.trials.len(), 2);
    assert!(run.plan.cells.iter().all(|cell| cell.baseline.is_none()), "two conditions");
}

#[test]
fn directions_of_fio_that_are_reported_together() {
    let folder = "65-fio-mixed-directions";
    let (Some(mixed), Some(both)) =
        (field(&format!("{folder}/mixed.json")), field(&format!("{folder}/both.json")))
    else {
        return;
    };
    for (text, rate, mean) in [(mixed, 599.7, 227.5), (both, 600.2, 226.3)] {
        let run = run(&[("a.json", &text)]);
        let imported = imported(&run, 0);
        assert_eq!((imported.rate.unwrap().value * 10.0).round() / 10.0, rate);
        let latency = imported.latency(&Quantity::LatencyMean).unwrap().as_micros_f64();
        assert!((latency - mean).abs() < 0.1, "{latency}");
        let bandwidth = imported.bandwidth().unwrap();
        assert!((bandwidth / 4096.0 / rate - 1.0).abs() < 0.01, "{bandwidth}");
    }
}

#[test]
fn latencies_that_fio_did_not_measure_are_missing() {
    let Some(text) = field("66-fio-gtod-reduce/gtod.json") else { return };
    let (_, it) = output(&text);
    assert_eq!(it.rate.unwrap().value.round(), 1000.0);
    let latency = it.figures.iter().find(|it| it.quantity.to_string().starts_with("latency"));
    assert_eq!(latency, None);
}

#[test]
fn trims_of_fio() {
    let folder = "67-fio-trims";
    let read = |name: &str| field(&format!("{folder}/{name}"));
    let (Some(json), Some(text), Some(both)) =
        (read("trim.json"), read("trim.txt"), read("trimwrite.json"))
    else {
        return;
    };
    // The second has the run in both forms.
    for text in [&json, &text] {
        let run = run(&[("a", text)]);
        assert_eq!(run.trials.len(), 1);
        let imported = imported(&run, 0);
        assert_eq!(imported.rate.unwrap().value.round(), 50.0);
        assert_eq!((imported.bandwidth().unwrap() / 10485.76).round() / 100.0, 3.12);
        assert!(imported.latency(&Quantity::LatencyMean).is_some());
    }
    let (_, it) = output(&both);
    let of = |subject| value(&it, subject, Quantity::Rate).unwrap().round();
    assert_eq!(
        (of("trim"), of("write"), it.conditions.benchmark.as_str()),
        (50.0, 50.0, "randtrimwrite")
    );
    assert!(has(&it, |doubt| matches!(doubt, Doubt::LatenciesOfOne { .. })), "{:?}", it.doubts);
}

/// Mail marks all lines of a quotation, those without a colon, too; a log writes its clock before each.
#[test]
fn quotations_and_logs_are_read_as_what_they_quote() {
    let Some(text) = field("43-fio-mail-quoted/fio-2.2.10-quoted.txt") else { return };
    let (_, fio) = output(&text);
    assert_eq!(fio.rate.unwrap().value, 4999.0);
    let percentile = |milli| value(&fio, "write", Quantity::Percentile(milli)).map(|ns| ns / 1e3);
    let wanted = [(50_000, 1.0), (99_000, 96.0), (99_900, 137.0), (99_990, 141.0)];
    for (milli, micros) in wanted {
        assert_eq!(percentile(milli), Some(micros), "{milli}");
    }
    let text = field("43-fio-mail-quoted/avocado-log.txt").unwrap();
    let (_, fio) = output(&text);
    assert_eq!(fio.rate.unwrap().value, 188.0);
    assert_eq!(value(&fio, "read", Quantity::LatencyMean), Some(2_223_370.0));
    assert_eq!(fio.conditions.name.as_deref(), Some("seq-readwrite"));
    let text = field("43-fio-mail-quoted/iostat-quoted.txt").unwrap();
    let all = parts(&decode(text.as_bytes()).unwrap());
    let PieceKind::Devices(reports) = &all[0].piece.kind else { panic!("{all:#?}") };
    let sdb = reports.iter().find(|it| it.device == "sdb").unwrap();
    let columns = ["r/s", "w/s", "avgqu-sz", "%util"].map(|name| sdb.column(name).unwrap());
    assert_eq!(columns, [2744.28, 1.63, 9.10, 43.74]);
}

/// A program that was killed, or still runs, printed intervals alone.
#[test]
fn intervals_alone_are_a_run_and_their_mean_is_its_rate() {
    let Some(text) = field("47-sysbench-intervals-alone/only-intervals.txt") else { return };
    let (_, sysbench) = output(&text);
    assert_eq!(sysbench.samples.len(), 5);
    assert_eq!(sysbench.conditions.clients, Some(100));
    assert!((sysbench.rate.unwrap().value - 2034.048).abs() < 1e-9);
    assert!(has(&sysbench, |it| matches!(it, Doubt::MeanOfSamples { samples: 5, left_out: 0 })));
    let (_, drain) = output(&field("47-sysbench-intervals-alone/drain.txt").unwrap());
    assert_eq!(drain.conditions.clients, Some(512));
    assert!((drain.rate.unwrap().value - (100.0 + 200.0 + 200.98) / 3.0).abs() < 1e-9);
    assert!(has(&drain, |it| matches!(it, Doubt::MeanOfSamples { left_out: 2, .. })));
    let (_, odd) = output(&field("47-sysbench-intervals-alone/impossible.txt").unwrap());
    assert_eq!(odd.rate.unwrap().value, 1385.03);
    assert!(has(&odd, |it| matches!(it, Doubt::Impossible { .. })));
    let (_, pgbench) = output(&field("49-pgbench-retries/pg15-progress.txt").unwrap());
    assert_eq!(pgbench.samples.len(), 12);
    assert!((pgbench.rate.unwrap().value - 363.79).abs() < 0.005);
    assert!(!has(&pgbench, |it| matches!(it, Doubt::Incomplete { .. })));
}

/// The mean is of transactions that succeeded, and clients spent time on the others, too.
#[test]
fn failed_transactions_contradict_no_mean() {
    let Some(text) = field("49-pgbench-retries/pg15-serializable.txt") else { return };
    let (_, pgbench) = output(&text);
    assert!(!has(&pgbench, |it| matches!(it, Doubt::Contradiction { .. })), "{pgbench:#?}");
    assert!(has(&pgbench, |it| matches!(it, Doubt::Errors { count: 3683, .. })));
}

/// fio's histogram ends at 17.1 s: what is printed there is no percentile.
#[test]
fn what_a_histogram_could_not_hold_is_left_out() {
    let Some(text) = field("59-fio-percentiles-capped/fio-3.35.txt") else { return };
    let (_, fio) = output(&text);
    assert_eq!(value(&fio, "write", Quantity::Percentile(10_000)), Some(12_550e6));
    assert_eq!(value(&fio, "write", Quantity::Percentile(20_000)), None);
    assert_eq!(value(&fio, "write", Quantity::Percentile(99_000)), None);
    assert!(has(&fio, |it| matches!(it, Doubt::CappedLatency { .. })));
    let contradictions = fio.doubts.iter().filter(|it| matches!(it, Doubt::Contradiction { .. }));
    assert_eq!(contradictions.count(), 1, "{:#?}", fio.doubts);
    // What completes cannot take longer than the whole.
    let (_, fio) = output(&field("59-fio-percentiles-capped/clat-above-lat.txt").unwrap());
    assert_eq!(value(&fio, "read", Quantity::LatencyMean), Some(100_460.0));
    assert_eq!(value(&fio, "read", Quantity::Percentile(99_000)), None);
    assert!(has(&fio, |it| matches!(it, Doubt::Impossible { .. })));
}

/// What `iostat -h`, `-g`, cut columns and `sar -d` print.
#[test]
fn other_forms_of_device_reports() {
    let Some(text) = field("68-iostat-groups-human/group.txt") else { return };
    let devices = |text: &str| {
        let all = parts(&decode(text.as_bytes()).unwrap());
        let PieceKind::Devices(reports) = &all[0].piece.kind else { panic!("{all:#?}") };
        reports.clone()
    };
    let mean = |reports: &[import::DeviceReport], device: &str, name: &str| {
        let of = reports.iter().filter(|it| it.device == device && !it.since_boot);
        let values: Vec<f64> = of.map(|it| it.column(name).unwrap()).collect();
        values.iter().sum::<f64>() / values.len() as f64
    };
    let group = devices(&text);
    assert!(group.iter().all(|it| it.device.starts_with("loop")), "a group is no device");
    assert!((mean(&group, "loop3", "%util") - 28.96).abs() < 0.005);
    assert!(group.iter().all(|it| it.since_boot == (it.report == 0)));
    let json = devices(&field("68-iostat-groups-human/group.json").unwrap());
    assert!(json.iter().all(|it| it.device.starts_with("loop")));
    let human = devices(&field("68-iostat-groups-human/human.txt").unwrap());
    assert_eq!(human.len(), 6, "four tables are one report");
    // It was made with -y, and says so by whole numbers.
    assert!(human.iter().all(|it| !it.since_boot));
    let first =
        ["r/s", "w/s", "rkB/s", "%util", "aqu-sz"].map(|name| human[0].column(name).unwrap());
    assert_eq!(first, [395.05, 397.03, 1536.0, 47.9, 0.52]);
    let imported = |name: &str| {
        let run = run(&[("file", &field(name).unwrap())]);
        let found = imported(&run, 0).clone();
        (found.rate.unwrap().value, run.plan.cells[0].label(&run.plan.factors), found.doubts)
    };
    let (rate, _, doubts) = imported("51-iostat-reads-alone/cut-columns.txt");
    assert_eq!(rate, 54.0, "nvme5n1 is the busiest");
    assert!(doubts.iter().any(|it| matches!(it, Doubt::Incomplete { .. })), "{doubts:?}");
    assert_eq!(imported("51-iostat-reads-alone/d2.txt").0, 1701.5);
    assert!((imported("51-iostat-reads-alone/h2.txt").0 - 2745.91).abs() < 1e-9);
    let (rate, ..) = imported("56-outputs-not-known/sar-d-12.6.1.txt");
    assert_eq!(rate, f64::midpoint(7701.0, 12038.0));
}

/// Counts of an interval of whole seconds are whole, whether the command is there or not.
#[test]
fn a_first_report_is_of_an_interval_where_its_counts_say_so() {
    for name in ["63-iostat-y-saved/saved.txt", "63-iostat-y-saved/with-command.txt"] {
        let Some(text) = field(name) else { return };
        let run = run(&[("file", &text)]);
        let found = imported(&run, 0);
        assert_eq!(found.rate.unwrap().value, 15.0, "{name}");
        assert!(!found.doubts.iter().any(|it| matches!(it, Doubt::SinceBoot { .. })), "{name}");
    }
}

/// A part of fio's output is read, and what is known and not read is named.
#[test]
fn fragments_are_read_and_other_programs_named() {
    let Some(text) = field("56-outputs-not-known/fio-two-lines.txt") else { return };
    let (_, fio) = output(&text);
    assert_eq!(value(&fio, "read", Quantity::Rate), Some(20_500.0));
    assert_eq!(value(&fio, "write", Quantity::Rate), Some(6860.0));
    let (_, fio) = output(&field("56-outputs-not-known/fio-sync-only.txt").unwrap());
    assert_eq!(fio.rate.unwrap().value, 18.0);
    let percentile = |milli| value(&fio, "fsync", Quantity::Percentile(milli)).map(|ns| ns / 1e6);
    assert_eq!([50_000, 99_000, 99_900].map(percentile), [37.0, 169.0, 2022.0].map(Some));
    for (name, program) in [
        ("dd.txt", "dd,"),
        ("pg_test_fsync.txt", "pg_test_fsync"),
        ("fio-status-only.txt", "the sums at the end of fio's output"),
    ] {
        let text = field(&format!("56-outputs-not-known/{name}")).unwrap();
        let source = import::Source { file: name.to_owned(), bytes: text.as_bytes(), cell: None };
        let error = import::import(&[source], "t", 0, "0").unwrap_err().to_string();
        assert!(error.contains(program) && error.contains("line "), "{error}");
        assert!(error.contains("explain importing"), "{error}");
    }
}
