//! Models of databases: what they ask of storage, and why.

use crate::{Trial, counter};
use blocklayer::{Config, Kernel};
use record::Transactions;
use simulate::{Database, Simulated, Stack};
use units::{Bytes, Nanos, Sectors};

fn trial(workload: &str, variables: &[(&str, &str)], kernel: Kernel, seconds: u64) -> Trial {
    let scheduler = if kernel.multi_queue() { "mq-deadline" } else { "deadline" };
    let queue = Config::new(kernel, 64).with_scheduler(scheduler);
    let mut trial = Trial::of("randread", queue, seconds);
    trial.workload.database = Some(workload.parse().unwrap());
    for (name, value) in variables {
        trial.workload.variables.insert((*name).to_owned(), (*value).to_owned());
    }
    trial.turnaround = Nanos::from_micros(100);
    trial
}

fn transactions(simulated: &Simulated) -> &Transactions {
    simulated.measurement.transactions.as_ref().unwrap()
}

fn per_second(simulated: &Simulated, trial: &Trial) -> f64 {
    transactions(simulated).completed() as f64 / trial.measure.as_secs_f64()
}

#[test]
fn rows_are_inserted_at_the_servers_pace_until_the_index_outgrows_memory() {
    let run = |prefill: &str, memory: u64, seconds: u64| {
        let workload = format!("insert,engine=myisam,clients=1,prefill={prefill}");
        let mut trial = trial(&workload, &[("key_buffer_size", "8M")], Kernel::V2_6_18, seconds);
        trial.stack = Stack { page_cache: Bytes::from_mib(memory), ..Stack::default() };
        let simulated = trial.on_profile("raid1-2x15k");
        (per_second(&simulated, &trial), counter(&simulated.measurement, "mariadb.Key_reads/s"))
    };
    // A hundred microseconds a statement, and everything in memory.
    let (small, reads) = run("10k", 512, 4);
    assert!((small / 10_000.0 - 1.0).abs() < 0.01, "{small}");
    assert!(reads < 1.0);
    let (large, reads) = run("8M", 64, 40);
    assert!(large < small / 10.0, "{large}");
    assert!(reads > 2.0 * large, "{reads} blocks for {large} rows");
}

#[test]
fn commits_are_grouped_and_cost_a_flush() {
    let run = |clients: u32, flush_log: &str| {
        let workload = format!("oltp_write_only,clients={clients},rows=10k,tables=1");
        let variables = [("innodb_flush_log_at_trx_commit", flush_log)];
        let trial = trial(&workload, &variables, Kernel::V6_12, 20);
        let simulated = trial.on_profile("hdd-15k");
        let m = &simulated.measurement;
        let syncs = counter(m, "mariadb.log_syncs/s");
        (per_second(&simulated, &trial), syncs, counter(m, "mariadb.commits/s"))
    };
    let (one, syncs, commits) = run(1, "1");
    assert!((syncs / commits - 1.0).abs() < 0.05, "{syncs} for {commits}");
    assert!((50.0..300.0).contains(&one), "{one}: a revolution or so each");
    let (many, syncs, commits) = run(32, "1");
    assert!(syncs < commits / 4.0, "{syncs} for {commits}");
    assert!(many > one * 4.0, "{one} and {many}");
    let (lazy, syncs, _) = run(1, "0");
    assert!(lazy > many && syncs < 2.0, "{lazy}, {syncs}");
}

#[test]
fn a_larger_buffer_pool_reads_less() {
    let run = |pool: &str| {
        let workload = format!("oltp_read_only,clients=16,rows=1M,tables=2,buffer_pool={pool}");
        let trial = trial(&workload, &[], Kernel::V6_12, 10);
        let simulated = trial.on_profile("ssd-sata-2018");
        let reads = counter(&simulated.measurement, "mariadb.Innodb_buffer_pool_reads/s");
        (per_second(&simulated, &trial), reads)
    };
    let ((slow, many), (fast, few)) = (run("64M"), run("1G"));
    assert!(fast > slow * 2.0, "{slow} and {fast} a second");
    assert!(few / fast < many / slow / 10.0, "{many} and {few} reads a second");
}

#[test]
fn dirty_pages_are_written_twice_with_the_doublewrite_buffer() {
    let run = |doublewrite: &str| {
        let workload = "oltp_write_only,clients=8,rows=200k,tables=4,rate=400/s";
        let variables = [("innodb_doublewrite", doublewrite), ("innodb_io_capacity", "1000")];
        let trial = trial(workload, &variables, Kernel::V6_12, 60);
        let m = trial.on_profile("ssd-sata-2018").measurement;
        (counter(&m, "mariadb.Innodb_pages_written/s"), counter(&m, "device.wMB/s") * 64.0)
    };
    let (pages, written) = run("ON");
    assert!(pages > 20.0 && written > 1.9 * pages, "{pages} pages, {written} written");
    let (pages, written) = run("OFF");
    assert!(written < 1.9 * pages, "{pages} pages, {written} written");
}

#[test]
fn every_kind_of_work_runs_on_files_and_raw_and_repeats() {
    let kinds = [
        "oltp_read_only",
        "oltp_write_only",
        "oltp_read_write",
        "oltp_point_select",
        "oltp_insert",
        "tpcc",
        "insert",
        "insert,engine=myisam",
    ];
    for (nth, kind) in kinds.iter().enumerate() {
        let mut trial = trial(&format!("{kind},clients=4"), &[], Kernel::V4_19, 5);
        if nth % 2 == 0 {
            trial.stack.filesystem = Some("xfs".parse().unwrap());
            trial.span = Some(Sectors(1 << 28));
            if !kind.contains("myisam") {
                trial.workload.variables.insert("innodb_flush_method".into(), "fsync".into());
            }
        }
        let runs = [(); 2].map(|()| trial.on_profile("raid10-8x15k-bbu"));
        assert_eq!(runs[0].event_hash(), runs[1].event_hash(), "{kind}");
        assert!(per_second(&runs[0], &trial) > 5.0, "{kind}");
        let seconds: u64 = runs[0]
            .measurement
            .seconds
            .iter()
            .filter(|second| second.at > 0.0)
            .map(|second| second.transactions)
            .sum();
        assert_eq!(seconds, transactions(&runs[0]).completed(), "{kind}");
    }
}

#[test]
fn what_the_models_do_not_know_is_refused() {
    let refused = |workload: &str, variables: &[(&str, &str)]| {
        let trial = trial(workload, variables, Kernel::V6_12, 1);
        Database::of(&trial.workload).unwrap_err().to_string()
    };
    assert!(refused("oltp_read_only,server=postgresql", &[]).contains("MariaDB"));
    assert!(refused("insert,engine=aria", &[]).contains("aria"));
    assert!(refused("tpcc", &[("innodb_flush_method", "O_DSYNC")]).contains("O_DSYNC"));
    assert!(refused("tpcc", &[("join_buffer_size", "1M")]).contains("join_buffer_size"));
    assert!(refused("insert,engine=myisam", &[("key_buffer_size", "much")]).contains("much"));
}

/// A backup slows transactions, in the idle class less: its file is its own, so that neither reads what the
/// other has in memory.
#[test]
fn a_job_beside_a_database_competes_with_it_by_its_priority() {
    let run = |beside: Option<&str>| {
        let workload = "oltp_read_only,clients=8,rows=1M,tables=2,buffer_pool=64M";
        let mut trial = trial(workload, &[], Kernel::V2_6_18, 20);
        trial.queue = Config::new(Kernel::V2_6_18, 128).with_scheduler("cfq");
        trial.workload.background = beside.map(|job| job.parse().unwrap());
        let simulated = trial.on_profile("hdd-15k");
        let read = simulated.measurement.background.as_ref().map(|job| job.bytes().0);
        (per_second(&simulated, &trial), read.unwrap_or(0))
    };
    let ((alone, none), (beside, whole)) = (run(None), run(Some("read,block_size=1M")));
    let (idle, least) = run(Some("read,block_size=1M,io_priority=idle"));
    assert_eq!(none, 0);
    assert!(beside < alone * 0.95, "{beside} a second beside it, {alone} alone");
    assert!(idle > beside * 1.05, "{idle} a second beside an idle one, {beside} beside another");
    assert!(whole > 10 * Bytes::from_mib(20).0 && least < whole, "{whole} and {least} bytes");
}

#[test]
fn a_block_beside_a_database_must_fit_its_own_file() {
    // The data take 5 MB, the file beside them 64 MiB.
    let mut trial = trial("oltp_read_only,rows=10k,tables=2", &[], Kernel::V6_12, 1);
    trial.workload.background = Some("read,block_size=512M".parse().unwrap());
    let disk = device::profile::find("hdd-15k").unwrap().build(1).unwrap();
    let error = trial.attempt(disk).unwrap_err().to_string();
    assert!(error.contains("does not fit into 64 MiB"), "{error}");
}
