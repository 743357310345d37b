//! Long texts with prompts, outputs and sentences.

use super::{imported, run};
use plan::Factor;
use record::{Doubt, Quantity, Run};
use std::fmt::Write;

/// Random writes and reads a second, MiB/s; transactions and queries a second of two tests: what was
/// published of three schedulers in 2022.
const PUBLISHED: [(&str, [f64; 4], [f64; 4]); 3] = [
    ("deadline", [6935.37, 108.37, 7956.88, 124.33], [491.43, 2948.62, 393.13, 6290.13]),
    ("noop", [7057.60, 110.27, 8399.89, 131.25], [544.38, 3266.28, 379.97, 6079.59]),
    ("cfq", [6614.37, 103.35, 7481.39, 116.90], [498.54, 2991.25, 344.66, 5514.58]),
];

fn fileio(out: &mut String, mode: &str, rate: f64, amount: f64) {
    let (reads, writes) =
        if mode == "rndrd" { ((rate, amount), (0.0, 0.0)) } else { ((0.0, 0.0), (rate, amount)) };
    let test = if mode == "rndrd" { "random read" } else { "random write" };
    let events = (rate * 180.0).round();
    let mean = 24.0 / rate * 1000.0;
    let _ = write!(
        out,
        "[root@db1 ~]# sysbench fileio --file-num=4 --file-total-size=20G \\\n\
         > --file-block-size=16K \u{2013}\u{2013}file-extra-flags=direct --threads=24 \\\n\
         > --time=180 --file-test-mode={mode} run\n\
         sysbench 1.0.20 (using bundled LuaJIT 2.1.0-beta2)\n\n\
         Running the test with following options:\nNumber of threads: 24\n\
         Initializing random number generator from current time\n\n\n\
         Extra file open flags: directio\n4 files, 5GiB each\n20GiB total file size\n\
         Block size 16KiB\nNumber of IO requests: 0\nRead/Write ratio for combined random IO test: 1.50\n\
         Calling fsync() at the end of test, Enabled.\nUsing synchronous I/O mode\nDoing {test} test\n\
         Initializing worker threads...\n\nThreads started!\n\n\n\
         File operations:\n    reads/s:                      {:.2}\n    writes/s:                     {:.2}\n    \
         fsyncs/s:                     0.53\n\n\
         Throughput:\n    read, MiB/s:                  {:.2}\n    written, MiB/s:               {:.2}\n\n\
         General statistics:\n    total time:                          180.0031s\n    \
         total number of events:              {events}\n\n\
         Latency (ms):\n         min:                                    0.11\n         \
         avg:                                    {mean:.2}\n         max:                                  {:.2}\n         \
         95th percentile:                        {:.2}\n         sum:                              {:.2}\n\n\
         Threads fairness:\n    events (avg/stddev):           {:.4}/120.50\n    \
         execution time (avg/stddev):   179.9870/0.00\n\n",
        reads.0,
        writes.0,
        reads.1,
        writes.1,
        mean * 20.0,
        mean * 1.5,
        events * mean,
        events / 24.0
    );
}

fn oltp(out: &mut String, test: &str, rate: f64, queries: f64) {
    let (count, all) = ((rate * 300.0).round(), (queries * 300.0).round());
    let mean = 8.0 / rate * 1000.0;
    let _ = write!(
        out,
        "[root@db1 ~]# sysbench {test} --tables=10 --table-size=1000000 --threads=8 --time=300 run\n\
         sysbench 1.0.20 (using bundled LuaJIT 2.1.0-beta2)\n\nRunning the test with following options:\n\
         Number of threads: 8\nInitializing random number generator from current time\n\n\n\
         Initializing worker threads...\n\nThreads started!\n\nSQL statistics:\n    queries performed:\n        \
         read:                            0\n        write:                           {all}\n        \
         other:                           0\n        total:                           {all}\n    \
         transactions:                        {count} ({rate:.2} per sec.)\n    \
         queries:                             {all} ({queries:.2} per sec.)\n    \
         ignored errors:                      0      (0.00 per sec.)\n    \
         reconnects:                          0      (0.00 per sec.)\n\n\
         General statistics:\n    total time:                          300.0084s\n    \
         total number of events:              {count}\n\nLatency (ms):\n         min:  4.01\n         \
         avg:  {mean:.2}\n         max:  {:.2}\n         95th percentile:  {:.2}\n         sum:  {:.2}\n\n\
         Threads fairness:\n    events (avg/stddev):           {:.4}/10.50\n    \
         execution time (avg/stddev):   299.9870/0.00\n\n",
        mean * 20.0,
        mean * 1.5,
        count * mean,
        count / 8.0
    );
}

/// The whole post, with its own table at the end, in which a figure of noop is misprinted.
fn post() -> String {
    let mut text = "Which I/O scheduler for an SSD? CentOS 7.8, kernel 3.10.\n\n".to_owned();
    for (name, files, database) in PUBLISHED {
        let _ = write!(
            text,
            "Now we test {name}, as follows:\n\n\
             [root@db1 ~]# echo \u{201c}{name}\u{201d} &gt; /sys/block/sda/queue/scheduler\n\n"
        );
        fileio(&mut text, "rndwr", files[0], files[1]);
        fileio(&mut text, "rndrd", files[2], files[3]);
        text.push_str("The random reads are done. The same for the database:\n\n");
        oltp(&mut text, "oltp_write_only", database[0], database[1]);
        oltp(&mut text, "oltp_read_only", database[2], database[3]);
    }
    text.push_str(
        "Summary:\n\n\
         | scheduler | write/s | MiB/s | read/s | MiB/s | TPS | QPS | TPS | QPS |\n\
         |---|---|---|---|---|---|---|---|---|\n",
    );
    for (name, files, database) in PUBLISHED {
        let mut all = [files, database].concat();
        if name == "noop" {
            all[2] = 8339.89;
        }
        let figures: Vec<String> = all.iter().map(|value| format!("{value:.2}")).collect();
        let _ = writeln!(text, "| {name} | {} |", figures.join(" | "));
    }
    text.push_str("\nSo noop is the best scheduler for an SSD.\n");
    text
}

fn rate(run: &Run, scheduler: &str, benchmark: &str) -> f64 {
    let level = |cell: &plan::Cell, factor: &Factor| {
        cell.level(factor).map(|level| level.0.clone()).unwrap_or_default()
    };
    let trial = run.trials.iter().find(|trial| {
        let cell = &run.plan.cells[trial.id.cell];
        level(cell, &Factor::Scheduler) == scheduler
            && level(cell, &Factor::Benchmark) == format!("sysbench {benchmark}")
    });
    let imported = trial.unwrap().measurement().unwrap().imported.as_ref().unwrap();
    imported.rate.unwrap().value
}

#[test]
fn the_table_of_a_published_post_is_rebuilt() {
    let run = run(&[("post.txt", &post())]);
    assert_eq!(run.trials.len(), 12);
    assert_eq!(run.plan.compared(), [Factor::Scheduler]);
    for (name, files, database) in PUBLISHED {
        assert_eq!(rate(&run, name, "fileio rndwr"), files[0]);
        assert_eq!(rate(&run, name, "fileio rndrd"), files[2]);
        assert_eq!(rate(&run, name, "oltp_write_only"), database[0]);
        assert_eq!(rate(&run, name, "oltp_read_only"), database[2]);
    }
    let first = imported(&run, 0);
    assert_eq!(first.figure("queries", &Quantity::Rate), None);
    let written = first.figure("write", &Quantity::Bandwidth).unwrap().value / 1_048_576.0;
    assert!((written - 108.37).abs() < 1e-9);
    for trial in &run.trials {
        let doubts = &trial.measurement().unwrap().imported.as_ref().unwrap().doubts;
        let contradicts = |doubt: &Doubt| matches!(doubt, Doubt::Contradiction { .. });
        assert!(!doubts.iter().any(contradicts), "{doubts:?}");
    }
}

#[test]
fn the_misprinted_cell_is_named_with_the_line_it_contradicts() {
    let text = post();
    let run = run(&[("post.txt", &text)]);
    let found: Vec<(usize, &Doubt)> = run
        .trials
        .iter()
        .flat_map(|trial| {
            let imported = trial.measurement().unwrap().imported.as_ref().unwrap();
            imported.doubts.iter().map(|doubt| (trial.id.cell, doubt))
        })
        .filter(|(_, doubt)| matches!(doubt, Doubt::Misprint { .. }))
        .collect();
    let [(cell, Doubt::Misprint { stated, measured, at, against })] = found[..] else {
        panic!("{found:?}")
    };
    assert_eq!((*stated, *measured), (8339.89, 8399.89));
    assert_eq!(run.plan.cells[cell].level(&Factor::Scheduler).unwrap().0, "noop");
    let line = |number: u64| text.lines().nth(number as usize - 1).unwrap().trim();
    assert!(line(at.line).starts_with("| noop |"), "{at:?}");
    assert!(line(against.line).starts_with("reads/s:"), "{against:?}");
}

#[test]
fn repeats_of_a_cell_are_rounds() {
    let mut text = String::new();
    for (name, rates) in [("noop", [100.0, 101.0, 99.0]), ("cfq", [90.0, 91.0, 92.0])] {
        let _ = writeln!(text, "# echo {name} > /sys/block/sda/queue/scheduler");
        for rate in rates {
            oltp(&mut text, "oltp_read_only", rate, rate * 16.0);
        }
    }
    let run = run(&[("three.txt", &text)]);
    let ids: Vec<(usize, u32)> =
        run.trials.iter().map(|trial| (trial.id.cell, trial.id.round)).collect();
    assert_eq!(ids, [(0, 0), (0, 1), (0, 2), (1, 0), (1, 1), (1, 2)]);
    assert_eq!(run.plan.cells[1].baseline, Some(0));
}

#[test]
fn a_changed_figure_is_named_with_both_lines() {
    let mut text = String::new();
    oltp(&mut text, "oltp_read_only", 100.0, 1600.0);
    let text = text.replace("(100.00 per sec.)", "(190.00 per sec.)");
    let run = run(&[("changed.txt", &text)]);
    let doubts = &imported(&run, 0).doubts;
    let found = doubts.iter().find_map(|doubt| match doubt {
        Doubt::Contradiction { what, stated, at, against, .. } => {
            Some((what, *stated, at, against))
        }
        _ => None,
    });
    let (what, stated, at, against) = found.unwrap();
    assert_eq!((what.as_str(), stated), ("transactions a second", 190.0));
    assert!(at.text.contains("190.00") && against.text.contains("transactions"));
}

#[test]
fn file_names_say_what_a_transcript_does_not() {
    let mut text = String::new();
    oltp(&mut text, "oltp_read_only", 100.0, 1600.0);
    let run = run(&[("results/noop-ro.txt", &text), ("results/mq-deadline_ro.log", &text)]);
    let levels: Vec<&str> = run
        .plan
        .cells
        .iter()
        .map(|cell| cell.level(&Factor::Scheduler).unwrap().0.as_str())
        .collect();
    assert_eq!(levels, ["noop", "mq-deadline"]);
}

#[test]
fn counters_beside_a_run_are_of_that_run() {
    let mut text = "# echo noop > /sys/block/sda/queue/scheduler\n".to_owned();
    oltp(&mut text, "oltp_read_only", 100.0, 1600.0);
    text.push_str(
        "$ iostat -xy 1\n\
         Device:         rrqm/s   wrqm/s     r/s     w/s    rkB/s    wkB/s avgrq-sz avgqu-sz   await r_await w_await  svctm  %util\n\
         sda               0,00     0,00    10,00    20,00    40,00    80,00     8,00     0,30   10,00   10,00   10,00   1,00  30,00\n",
    );
    let run = run(&[("both.txt", &text)]);
    assert_eq!(run.trials.len(), 1);
    let counters = &run.trials[0].measurement().unwrap().counters;
    assert_eq!(counters.len(), 1);
    assert_eq!(counters[0].values["device.r/s"], 10.0);
    assert_eq!(counters[0].values["device.areq-sz"], 4.0);
    assert_eq!(counters[0].values["device.aqu-sz"], 0.3);
}
