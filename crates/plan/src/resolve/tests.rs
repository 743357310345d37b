use super::*;
use crate::{LoadingPace, RawLevel, SizeLimit};

fn level(text: &str) -> Level {
    Level(text.to_owned())
}

fn offer() -> Offer {
    let schedulers = ["none", "mq-deadline", "kyber", "bfq"].map(level).to_vec();
    Offer {
        current: [(Factor::Scheduler, level("mq-deadline")), (Factor::NrRequests, level("256"))]
            .into(),
        all: [(Factor::Scheduler, schedulers)].into(),
        missing: BTreeMap::new(),
        size_limit: Some((
            Bytes::from_gib(10),
            SizeLimit::Capacity {
                device: "the disk".to_owned(),
                size: Bytes::from_gib(10),
                journal: None,
            },
        )),
        own_loop: false,
        default_size: Bytes::from_gib(1),
        layout_bytes_per_second: 500_000_000,
        databases: LoadingPace::default(),
        slow: BTreeSet::new(),
        runs_servers: true,
        virtual_time: false,
        atomic_write: None,
    }
}

fn refuse(_: &Plan, cell: &Cell) -> Option<Refusal> {
    let queue: u64 = cell.level(&Factor::NrRequests)?.0.parse().ok()?;
    let none = cell.level(&Factor::Scheduler) == Some(&level("none"));
    match queue {
        2049.. => {
            Some(Refusal::KernelRounds { value: queue.to_string(), taken: "2048".to_owned() })
        }
        129.. if none => Some(Refusal::MoreThanTags {
            device: "sda".to_owned(),
            tags: 128,
            nr_requests: queue as u32,
        }),
        _ => None,
    }
}

fn raw(factors: &[(&str, &[&str])]) -> RawPlan {
    RawPlan {
        target: Some("/tmp".to_owned()),
        factors: factors
            .iter()
            .map(|(factor, levels)| {
                let levels = levels.iter().map(|text| RawLevel::Word((*text).to_owned()));
                ((*factor).to_owned(), levels.collect())
            })
            .collect(),
        ..RawPlan::default()
    }
}

fn labels(plan: &Plan) -> Vec<String> {
    plan.cells.iter().map(|cell| cell.label(&plan.factors)).collect()
}

#[test]
fn nothing_said_compares_the_schedulers_with_what_the_host_has() {
    let plan = raw(&[]).resolve(&offer(), &refuse).unwrap();
    assert_eq!(labels(&plan), ["mq-deadline", "none", "kyber", "bfq"]);
    assert_eq!(plan.baselines(), [0]);
    assert_eq!(plan.slots(), 5);
    assert!(plan.cells[1..].iter().all(|cell| cell.baseline == Some(0)));
}

#[test]
fn the_cell_that_is_the_baseline_stands_once_and_impossible_ones_are_refused() {
    let plan = raw(&[("scheduler", &["all"]), ("nr_requests", &["64", "256"])])
        .resolve(&offer(), &refuse)
        .unwrap();
    assert_eq!(plan.cells.len() + plan.refused.len(), 8);
    assert_eq!(plan.refused.len(), 1, "none with 256");
    assert!(matches!(plan.refused[0].reason, Refusal::MoreThanTags { tags: 128, .. }));
    assert_eq!(plan.cells[0].label(&plan.factors), "mq-deadline, queue 256");
}

#[test]
fn a_level_that_nothing_can_have_is_an_error_with_the_reason() {
    let error = raw(&[("nr_requests", &["100000"])]).resolve(&offer(), &refuse).unwrap_err();
    assert!(error.to_string().contains("2048"), "{error}");
}

#[test]
fn conditions_group_and_have_a_baseline_each() {
    let plan = raw(&[("scheduler", &["none", "bfq"]), ("clients", &["1", "16"])])
        .resolve(&offer(), &refuse)
        .unwrap();
    assert_eq!(plan.cells.len(), 6);
    assert_eq!(plan.baselines(), [0, 3]);
    assert_eq!(plan.cells[4].baseline, Some(3));
    assert_eq!(plan.cells[4].level(&Factor::Clients), Some(&level("16")));
}

#[test]
fn only_conditions_compare_with_the_first() {
    let plan = raw(&[("clients", &["1", "4", "16"])]).resolve(&offer(), &refuse).unwrap();
    assert_eq!(labels(&plan), ["1 client", "4 clients", "16 clients"]);
    assert_eq!(plan.baselines(), [0]);
}

#[test]
fn one_level_of_the_workload_is_no_comparison() {
    let plan = raw(&[("scheduler", &["all"]), ("block_size", &["4k"])])
        .resolve(&offer(), &refuse)
        .unwrap();
    assert_eq!(plan.factors, [Factor::Scheduler]);
    assert_eq!(plan.workload.job.block_size, Bytes::from_kib(4));
}

#[test]
fn one_level_of_the_workload_alone_compares_the_schedulers() {
    let plan = raw(&[("clients", &["16"])]).resolve(&offer(), &refuse).unwrap();
    assert_eq!(labels(&plan), ["mq-deadline", "none", "kyber", "bfq"]);
    assert_eq!(plan.workload.clients(), 16);
}

#[test]
fn a_tunable_is_only_in_its_schedulers_cells() {
    let plan =
        raw(&[("scheduler", &["none", "mq-deadline"]), ("mq-deadline.fifo_batch", &["1", "16"])])
            .resolve(&offer(), &refuse)
            .unwrap();
    assert_eq!(labels(&plan), ["mq-deadline, fifo_batch 1", "none", "mq-deadline, fifo_batch 16"]);
    let error = raw(&[("scheduler", &["none"]), ("bfq.low_latency", &["0", "1"])])
        .resolve(&offer(), &refuse)
        .unwrap_err();
    assert!(error.to_string().contains("needs its scheduler"), "{error}");
}

#[test]
fn a_factor_that_cannot_be_set_is_refused_also_beside_others() {
    let mut offer = offer();
    let message = "tmpfs has no device".to_owned();
    offer.missing.insert(Factor::Scheduler, Refusal::NoScheduledDevice { message });
    for more in [&[][..], &[("clients", &["1", "2"][..])]] {
        let named: Vec<_> =
            [("scheduler", &["none", "bfq"][..])].iter().chain(more).copied().collect();
        let error = raw(&named).resolve(&offer, &refuse).unwrap_err().to_string();
        assert!(error.contains("scheduler cannot be set here: tmpfs has no device"), "{error}");
    }
    let plan = raw(&[("clients", &["1", "2"])]).resolve(&offer, &refuse).unwrap();
    assert_eq!(plan.cells.len(), 2, "what is not named is not missed");
}

#[test]
fn with_nothing_named_the_schedulers_have_to_be_settable_by_this_user() {
    let mut offer = offer();
    let refusal = Refusal::NotPermitted {
        setting: "scheduler".to_owned(),
        message: "scheduler of vda may not be changed by this user: run it with sudo".to_owned(),
    };
    offer.missing.insert(Factor::Scheduler, refusal);
    offer.all.remove(&Factor::Scheduler);
    let error = raw(&[]).resolve(&offer, &refuse).unwrap_err().to_string();
    assert!(error.contains("sudo") && error.contains("--sync"), "{error}");
    assert!(raw(&[("sync", &["direct"])]).resolve(&offer, &refuse).is_ok());
}

#[test]
fn a_size_beyond_the_disk_is_refused() {
    let raw = RawPlan { size: Some(Bytes::from_gib(20)), ..raw(&[]) };
    let error = raw.resolve(&offer(), &refuse).unwrap_err().to_string();
    assert!(error.contains("the disk has 10 GiB") && error.contains("--size 10GiB"), "{error}");
}

#[test]
fn a_database_workload_is_one_level_or_a_condition() {
    let one = raw(&[("workload", &["oltp_read_write,tables=2,clients=4"])]);
    let plan = one.resolve(&offer(), &refuse).unwrap();
    assert_eq!(plan.factors, [Factor::Scheduler]);
    assert_eq!(plan.workload.database.as_ref().unwrap().tables, 2);
    assert_eq!(plan.workload.clients(), 4);
    let two = raw(&[
        ("workload", &["oltp_read_write", "tpcc,warehouses=1"]),
        ("scheduler", &["none", "mq-deadline"]),
        ("clients", &["3"]),
        ("server.innodb_io_capacity", &["200", "2000"]),
        ("server.sync_binlog", &["0"]),
    ]);
    let plan = two.resolve(&offer(), &refuse).unwrap();
    assert_eq!(plan.baselines().len(), 2);
    assert_eq!(plan.cells.len(), 8);
    assert_eq!(plan.databases().len(), 2);
    let (workload, _) = plan.workload_of(plan.cells.last().unwrap()).unwrap();
    assert_eq!(workload.database.as_ref().unwrap().warehouses, 1);
    assert_eq!(workload.clients(), 3);
    assert_eq!(workload.variables["sync_binlog"], "0");
    assert_eq!(workload.variables["innodb_io_capacity"], "2000");
}

#[test]
fn what_fits_no_database_workload_is_refused() {
    let complains = |factors: &[(&str, &[&str])], words: &[&str]| {
        let error = raw(factors).resolve(&offer(), &refuse).unwrap_err().to_string();
        assert!(words.iter().all(|word| error.contains(word)), "{error}");
    };
    let workload: (&str, &[&str]) = ("workload", &["oltp_insert"]);
    complains(&[("server.sync_binlog", &["0", "1"])], &["no database workload"]);
    complains(&[workload, ("sync", &["direct", "fsync"])], &["sync", "block workload"]);
    complains(&[workload, ("depth", &["4"])], &["depth", "block workload"]);
    let four: (&str, &[&str]) = ("workload", &["oltp_insert,clients=4"]);
    complains(&[four, ("clients", &["1", "8"])], &["clients", "one place"]);
    let think: (&str, &[&str]) = ("workload", &["tpcc,think=on"]);
    complains(&[think, ("rate", &["5/s"])], &["two different loads"]);
    let large: (&str, &[&str]) = ("workload", &["tpcc,warehouses=1000"]);
    complains(
        &[large],
        &["take about", "does not fit", "the disk has 10 GiB", "make the data smaller"],
    );
    let beside: (&str, &[&str]) = ("background", &["none", "read,block_size=1M"]);
    complains(&[large, beside], &["1 GiB for the job beside it"]);
    let small = RawPlan { size: Some(Bytes::from_mib(10)), ..raw(&[workload]) };
    let error = small.resolve(&offer(), &refuse).unwrap_err().to_string();
    assert!(error.contains("too small for oltp_insert"), "{error}");
}

#[test]
fn one_client_inserts_when_nothing_is_said() {
    let clients = |word: &str| {
        raw(&[("workload", &[word])]).resolve(&offer(), &refuse).unwrap().workload.clients()
    };
    assert_eq!((clients("insert"), clients("tpcc"), clients("insert,clients=5")), (1, 8, 5));
}

#[test]
fn a_job_beside_a_database_has_a_file_of_its_own() {
    let workload = Some("oltp_read_write,tables=1,rows=1M".parse().unwrap());
    let alone = RawPlan { workload, ..raw(&[]) };
    let size = |raw: &RawPlan| raw.resolve(&offer(), &refuse).unwrap().size;
    let beside = RawPlan { background: Some("read".parse().unwrap()), ..alone.clone() };
    let difference = size(&beside).0 - size(&alone).0;
    // As large as the data, but for a rounding to whole mebibytes.
    assert!(difference.abs_diff(250_000_000) <= 1 << 20, "{difference}");
}

#[test]
fn a_budget_knows_what_a_databases_trial_takes_beside() {
    let pace = LoadingPace {
        load_bytes_per_second: 10_000_000,
        copy_bytes_per_second: 100_000_000,
        server: Nanos::from_secs(2),
    };
    let offer = Offer { databases: pace, ..offer() };
    let raw = RawPlan {
        budget: Some(Nanos::from_secs(600)),
        // 500 MB.
        ..raw(&[("workload", &["oltp_insert,tables=2,rows=1M"]), ("placebo", &["0", "1"])])
    };
    let plan = raw.resolve(&offer, &refuse).unwrap();
    assert_eq!(plan.preparation, Nanos::from_secs(52));
    assert_eq!(plan.timing.overhead, Nanos::from_millis(7300));
    assert!(plan.total() <= Some(Nanos::from_secs(600)), "{:?}", plan.timing);
}

#[test]
fn cells_alternate_in_one_server_only_where_they_can() {
    let of = |factors: &[(&str, &[&str])], alternate: Option<bool>| {
        let workload = Some("oltp_read_write".parse().unwrap());
        let raw = RawPlan { workload, alternate, ..raw(factors) };
        raw.resolve(&offer(), &|_, _| None)
    };
    let capacity: (&str, &[&str]) = ("server.innodb_io_capacity", &["200", "1000"]);
    assert!(!of(&[capacity], None).unwrap().alternate, "asked for, or with a preset");
    let all = [capacity, ("clients", &["1", "8"][..]), ("scheduler", &["none", "bfq"][..])];
    assert!(of(&all, Some(true)).unwrap().alternate);
    let refused = |factors: &[(&str, &[&str])]| of(factors, Some(true)).unwrap_err().to_string();
    let filesystems = refused(&[capacity, ("filesystem", &["ext4", "xfs"])]);
    assert!(filesystems.contains("another level of filesystem"), "{filesystems}");
    let nowhere = Offer { runs_servers: false, ..offer() };
    let workload = Some("oltp_read_write".parse().unwrap());
    let raw = RawPlan { workload, alternate: Some(true), ..raw(&[capacity]) };
    let error = raw.resolve(&nowhere, &|_, _| None).unwrap_err().to_string();
    assert!(error.contains("simulated"), "{error}");
}

#[test]
fn variables_that_are_set_together_are_one_level() {
    let of = |factors: &[(&str, &[&str])]| {
        let workload = Some("oltp_read_write".parse().unwrap());
        RawPlan { workload, ..raw(factors) }.resolve(&offer(), &|_, _| None)
    };
    let sets: (&str, &[&str]) = ("variables", &["low: a=1+b=2", "b=9 + a=8", "as it is:"]);
    let plan = of(&[sets]).unwrap();
    assert_eq!(labels(&plan), ["low", "a 8, b 9", "as it is"]);
    let variables = |cell: usize| plan.workload_of(&plan.cells[cell]).unwrap().0.variables;
    assert_eq!(variables(1)["b"], "9");
    assert!(variables(2).is_empty());
    let twice = of(&[sets, ("server.b", &["1", "2"])]).unwrap_err().to_string();
    assert!(twice.contains("in one place"), "{twice}");
    let without = raw(&[sets]).resolve(&offer(), &|_, _| None).unwrap_err().to_string();
    assert!(without.contains("no database workload"), "{without}");
}

#[test]
fn what_is_slow_to_change_is_in_the_time_of_trials() {
    let factors: [(&str, &[&str]); 2] =
        [("filesystem", &["ext4", "xfs"]), ("scheduler", &["none", "mq-deadline"])];
    let of = |slow: bool| {
        let slow = if slow { [Factor::Filesystem].into() } else { BTreeSet::new() };
        raw(&factors).resolve(&Offer { slow, ..offer() }, &refuse).unwrap()
    };
    let (ready, in_turn) = (of(false), of(true));
    assert_eq!(ready.slow, []);
    assert_eq!(in_turn.slow, [Factor::Filesystem]);
    assert_eq!((ready.slow_changes(), in_turn.slow_changes()), (0, 2));
    // 1 GiB at 500 MB/s for each of two changes, in a round of five trials.
    let more = in_turn.timing.overhead.saturating_sub(ready.timing.overhead).as_secs_f64();
    assert!((more - 2.0 * 2.147 / 5.0).abs() < 0.01, "{more}");
    assert_eq!(in_turn.preparation, Nanos::ZERO);
    let alone = raw(&[("filesystem", &["ext4"]), ("scheduler", &["none", "mq-deadline"])]);
    let offer = Offer { slow: [Factor::Filesystem].into(), ..offer() };
    assert_eq!(alone.resolve(&offer, &refuse).unwrap().slow, [], "one level never changes");
}

#[test]
fn each_filesystem_on_a_loop_device_of_its_own_is_laid_out_before() {
    let offer = Offer { own_loop: true, ..offer() };
    let before = |filesystems: &[&str]| {
        let plan = raw(&[("filesystem", filesystems)]).resolve(&offer, &refuse).unwrap();
        plan.preparation.as_secs_f64()
    };
    assert!((before(&["ext4", "xfs"]) / before(&["ext4"]) - 2.0).abs() < 1e-6);
}
