//! Each format in the versions that are not installed here, as their manuals show them.

use super::{has, ms, output, outputs, run, value};
use import::{DecodeError, Format, ImportError, PieceKind, Source, decode, parts};
use record::{Doubt, Quantity, RateUnit};

#[test]
fn sysbench_fileio_of_0_4_and_0_5() {
    let text = "\
sysbench 0.4.12:  multi-threaded system evaluation benchmark

Running the test with following options:
Number of threads: 16

Extra file open flags: 16384
128 files, 24Mb each
3Gb total file size
Block size 16Kb
Number of random requests for random IO: 10000
Doing random r/w test
Threads started!
Done.

Operations performed:  6000 Read, 4000 Write, 12800 Other = 22800 Total
Read 93.75Mb  Written 62.5Mb  Total transferred 156.25Mb  (2.3437Mb/sec)
  150.00 Requests/sec executed

Test execution summary:
    total time:                          66.6667s
    total number of events:              10000
    total time taken by event execution: 500.0000
    per-request statistics:
         min:                                  0.06ms
         avg:                                 50.00ms
         max:                                612.00ms
         approx.  95 percentile:             180.30ms

Threads fairness:
    events (avg/stddev):           625.0000/20.00
    execution time (avg/stddev):   31.2500/0.50
";
    let (tool, it) = output(text);
    assert_eq!(tool, "sysbench 0.4.12");
    assert_eq!(it.rate.unwrap().value, 150.0);
    assert_eq!((it.conditions.direct, it.conditions.block_size), (Some(true), Some(16384)));
    assert_eq!(value(&it, "read", Quantity::Count), Some(6000.0));
    assert_eq!(value(&it, "all", Quantity::Bandwidth), Some(2.3437 * 1_048_576.0));
    assert!(!has(&it, |doubt| matches!(doubt, Doubt::Contradiction { .. })), "{:?}", it.doubts);
    assert!(has(&it, |doubt| matches!(doubt, Doubt::CoarsePercentiles)));
    // The same with a rate that the counts do not give.
    let changed = text.replace("150.00 Requests", "250.00 Requests");
    let (_, it) = output(&changed);
    assert!(has(&it, |doubt| matches!(doubt, Doubt::Contradiction { .. })));
}

#[test]
fn sysbench_1_1() {
    let text = "\
sysbench 1.1.0-df89d34 (using bundled LuaJIT 2.1.0-beta3)

Running the test with following options:
Number of threads: 4

[ 1s ] reads: 94.00 MiB/s writes: 62.00 MiB/s fsyncs: 0.00/s latency (ms,95%): 1.2
Throughput:
         read:  IOPS=6029.56 94.21 MiB/s (98.79 MB/s)
         write: IOPS=4019.70 62.81 MiB/s (65.86 MB/s)
         fsync: IOPS=12867.13

Latency (ms):
         min:                                  0.01
         avg:                                  0.17
         max:                                 10.53
         95th percentile:                      0.55
         sum:                              39752.39

Threads fairness:
    events (avg/stddev):           57291.0000/200.00
    execution time (avg/stddev):   9.9381/0.00
";
    let (tool, it) = output(text);
    assert_eq!(tool, "sysbench 1.1.0-df89d34");
    assert_eq!(it.rate.unwrap().value, 6029.56 + 4019.70);
    assert_eq!(value(&it, "fsync", Quantity::Rate), Some(12867.13));
    assert_eq!(it.conditions.benchmark, "fileio reads and writes");
}

#[test]
fn fio_normal_text_of_2_and_3() {
    let two = "\
test: (g=0): rw=randwrite, bs=4K-4K/4K-4K/4K-4K, ioengine=libaio, iodepth=32
fio-2.2.10
Starting 1 process

test: (groupid=0, jobs=1): err= 0: pid=2512: Fri Nov 17 23:59:32 2017
  write: io=4096.0MB, bw=69905KB/s, iops=17476, runt= 60000msec
    slat (usec): min=3, max=999, avg= 5.51, stdev= 4.00
    clat (usec): min=101, max=15000, avg=1824.49, stdev=300.00
     lat (usec): min=110, max=15010, avg=1830.00, stdev=300.00
    clat percentiles (usec):
     |  1.00th=[  700],  5.00th=[  900], 10.00th=[ 1000], 20.00th=[ 1200],
     | 99.00th=[ 3000], 99.50th=[ 3500], 99.90th=[ 5000], 99.95th=[ 6000],
     | 99.99th=[14000]
    bw (KB  /s): min=60000, max=75000, per=100.00%, avg=69905.00, stdev=1000.00
  cpu          : usr=4.00%, sys=10.00%, ctx=1000, majf=0, minf=7
  IO depths    : 1=0.1%, 2=0.1%, 4=0.1%, 8=0.1%, 16=0.1%, 32=100.0%, >=64=0.0%
     issued    : total=r=0/w=1048576/d=0, short=r=0/w=0/d=0, drop=r=0/w=0/d=0

Run status group 0 (all jobs):
  WRITE: io=4096.0MB, aggrb=69905KB/s, minb=69905KB/s, maxb=69905KB/s, mint=60000msec, maxt=60000msec

Disk stats (read/write):
  sda: ios=0/1048000, merge=0/12, ticks=0/100, in_queue=100, util=99.90%
";
    let (tool, it) = output(two);
    assert_eq!(tool, "fio 2.2.10");
    assert_eq!(it.conditions.pattern.unwrap().to_string(), "randwrite");
    assert_eq!((it.conditions.block_size, it.conditions.depth), (Some(4096), Some(32)));
    assert_eq!(value(&it, "write", Quantity::Rate), Some(17476.0));
    assert_eq!(value(&it, "write", Quantity::Count), Some(1_048_576.0));
    assert_eq!(it.seconds, Some(60.0));
    assert_eq!(ms(&it, "write", Quantity::Percentile(99_990)), Some(14.0));
    assert_eq!(value(&it, "disk sda", Quantity::Column("util".to_owned())), Some(99.9));
    assert!(!has(&it, |doubt| matches!(doubt, Doubt::Contradiction { .. })), "{:?}", it.doubts);

    let three = "\
job: (g=0): rw=randrw, bs=(R) 16.0KiB-16.0KiB, (W) 16.0KiB-16.0KiB, (T) 16.0KiB-16.0KiB, ioengine=io_uring, iodepth=8
fio-3.33
Starting 1 process

job: (groupid=0, jobs=1): err= 0: pid=1: Mon Jan  1 00:00:00 2024
  read: IOPS=15.6k, BW=244MiB/s (256MB/s)(7313MiB/30001msec)
    clat (nsec): min=964, max=2611100, avg=81511.90, stdev=3262.83
    clat percentiles (usec):
     |  1.00th=[   58],  5.00th=[   60], 50.00th=[   80], 99.00th=[  110],
     | 99.99th=[ 2000]
  write: IOPS=6.7k, BW=105MiB/s (110MB/s)(3140MiB/30001msec); 0 zone resets
    clat (usec): min=9, max=2611, avg=90.00, stdev=3.00
     issued rwts: total=468032,200960,0,0 short=0,0,0,0 dropped=0,0,0,0
";
    let (_, it) = output(three);
    assert_eq!(value(&it, "read", Quantity::Rate), Some(15_600.0));
    assert_eq!(it.rate.unwrap().value, 22_300.0);
    assert_eq!(ms(&it, "read", Quantity::Percentile(99_000)), Some(0.11));
    assert_eq!(value(&it, "write", Quantity::LatencyMean), Some(90_000.0));
    assert!(!has(&it, |doubt| matches!(doubt, Doubt::Contradiction { .. })), "{:?}", it.doubts);
}

#[test]
fn reports_of_fio_that_count_from_the_beginning() {
    let part = |seconds: u64| {
        format!(
            "job: (groupid=0, jobs=1): err= 0: pid=1: Mon Jan  1 00:00:00 2024\n  \
             read: IOPS=1000, BW=4000KiB/s (4096kB/s)({}KiB/{}msec)\n",
            4000 * seconds,
            1000 * seconds
        )
    };
    let text = format!("{}{}{}", part(10), part(20), part(30));
    let run = run(&[("status.txt", &text)]);
    assert_eq!(run.trials.len(), 1);
    let imported = run.trials[0].measurement().unwrap().imported.clone().unwrap();
    assert!(imported.doubts.contains(&Doubt::Cumulative { reports: 3 }), "{:?}", imported.doubts);
    assert_eq!(imported.figure("read", &Quantity::Seconds).unwrap().value, 30.0);
}

#[test]
fn json_that_ends_in_the_middle_is_a_failure() {
    let text =
        "{\n  \"fio version\" : \"fio-3.33\",\n  \"jobs\" : [\n    {\n      \"jobname\" : \"a\",\n";
    let all = outputs(text);
    assert_eq!(all.len(), 1);
    assert!(all[0].1.failure.is_some());
}

#[test]
fn results_of_hammerdb_in_both_orders() {
    for text in [
        "Vuser 1:TEST RESULT : System achieved 28560 MySQL TPM at 12345 NOPM\n",
        "Vuser 1:TEST RESULT : System achieved 12345 NOPM from 28560 MySQL TPM\n",
    ] {
        let (_, it) = output(text);
        let rate = it.rate.unwrap();
        assert_eq!((rate.value, rate.unit), (12345.0, RateUnit::NewOrdersPerMinute));
        assert_eq!(value(&it, "transactions", Quantity::RatePerMinute), Some(28560.0));
        assert!(!has(&it, |doubt| matches!(doubt, Doubt::Contradiction { .. })));
    }
    let reversed = "System achieved 28560 NOPM from 12345 Oracle TPM\n";
    let (_, it) = output(reversed);
    assert!(has(&it, |doubt| matches!(doubt, Doubt::Contradiction { .. })));
}

#[test]
fn tpcc_mysql() {
    let text = "\
***************************************
*** ###easy### TPC-C Load Generator ***
***************************************
option w with value '100'
<Parameters>
  [warehouse]: 100
 [connection]: 16
     [rampup]: 10 (sec.)
    [measure]: 60 (sec.)

RAMP-UP TIME.(10 sec.)

MEASURING START.

  10, trx: 1000, 95%: 9.483, 99%: 18.738, max_rt: 213.169, 1000|98.778, 100|101.096, 100|443.955, 100|670.842
  20, trx: 1100, 95%: 9.483, 99%: 18.738, max_rt: 213.169, 1000|98.778, 100|101.096, 100|443.955, 100|670.842
  30, trx: 300, 95%: 9.483, 99%: 18.738, max_rt: 213.169, 1000|98.778, 100|101.096, 100|443.955, 100|670.842

<Raw Results>
  [0] sc:5000  lt:1000  rt:0  fl:2
  [1] sc:6000  lt:0  rt:0  fl:0
 in 60 sec.

<Raw Results2(sum ver.)>
  [0] sc:5000  lt:1000  rt:0  fl:2

<TpmC>
                 6000.000 TpmC
";
    let (_, it) = output(text);
    assert_eq!((it.conditions.scale, it.conditions.clients), (Some(100), Some(16)));
    assert_eq!(it.rate.unwrap().value, 6000.0);
    assert_eq!(it.samples.len(), 3);
    assert_eq!(value(&it, "NEW_ORDER", Quantity::Count), Some(6000.0));
    assert!(has(&it, |doubt| matches!(doubt, Doubt::Errors { count: 2, .. })));
    assert!(has(&it, |doubt| matches!(doubt, Doubt::Unsteady { .. })));
    assert!(!has(&it, |doubt| matches!(doubt, Doubt::Contradiction { .. })), "{:?}", it.doubts);
}

#[test]
fn variables_are_context_and_no_run() {
    let framed = "\
mysql> show global variables like 'innodb%';
+---------------------------+------------+
| Variable_name             | Value      |
+---------------------------+------------+
| innodb_buffer_pool_size   | 4294967296 |
| innodb_flush_method       |            |
+---------------------------+------------+
2 rows in set (0.00 sec)
";
    let tabbed = "Variable_name\tValue\ninnodb_buffer_pool_size\t4294967296\n";
    for text in [framed, tabbed] {
        let parts = parts(&decode(text.as_bytes()).unwrap());
        let [part] = &parts[..] else { panic!("{parts:?}") };
        let PieceKind::Variables(all) = &part.piece.kind else { panic!("{part:?}") };
        assert_eq!(all[0], ("innodb_buffer_pool_size".to_owned(), "4294967296".to_owned()));
        let source = Source { file: "v.txt".to_owned(), bytes: text.as_bytes(), cell: None };
        let error = import::import(&[source], "t", 0, "0").unwrap_err();
        assert!(matches!(error, ImportError::ContextAlone { .. }));
    }
}

#[test]
fn vmstat_with_and_without_times() {
    let text = "\
procs -----------memory---------- ---swap-- -----io---- -system-- ------cpu----- -----timestamp-----
 r  b   swpd   free   buff  cache   si   so    bi    bo   in   cs us sy id wa st                 UTC
 6  1      0 21077528  98860 3308236    0    0  7526 15223 1131 3985 69 15 11  5  1 2026-11-25 21:21:32
 6  0      0 21077528  98860 3308236    0    0  5176 19896 7760 52764 41 42 11  5  2 2026-11-25 21:21:33
";
    let run = run(&[("vmstat.txt", text)]);
    let imported = run.trials[0].measurement().unwrap().imported.clone().unwrap();
    assert_eq!(imported.rate.unwrap().value, 5176.0 + 19896.0);
    assert!(imported.doubts.iter().any(|doubt| matches!(doubt, Doubt::SinceBoot { .. })));
}

#[test]
fn decimal_commas_and_wide_text() {
    let text = "\
Device:         rrqm/s   wrqm/s     r/s     w/s    rkB/s    wkB/s avgrq-sz avgqu-sz   await r_await w_await  svctm  %util
sda               0,00     0,02    10,13     0,11     5,27     1,10    52,53     0,00    0,88    0,53    1,29   0,52   0,01
";
    let mut wide = vec![0xff, 0xfe];
    wide.extend(text.encode_utf16().flat_map(u16::to_le_bytes));
    let crlf = text.replace('\n', "\r\n").into_bytes();
    for bytes in [wide, crlf, [b"\xef\xbb\xbf", text.as_bytes()].concat()] {
        let parts = parts(&decode(&bytes).unwrap());
        let PieceKind::Devices(reports) = &parts[0].piece.kind else { panic!() };
        assert_eq!(reports[0].column("r/s"), Some(10.13));
    }
}

#[test]
fn what_is_no_output_is_refused_with_what_would_be() {
    for text in ["", "hello\n", "fio: command not found\n", "{\n\"a\": 1\n}\n"] {
        let source = Source { file: "x.txt".to_owned(), bytes: text.as_bytes(), cell: None };
        let error = import::import(&[source], "t", 0, "0").unwrap_err();
        assert!(error.to_string().starts_with("x.txt: no output that is known"), "{error}");
    }
    assert!(matches!(decode(b"\x7fELF\0\0"), Err(DecodeError::Binary { .. })));
}

#[test]
fn every_format_has_a_name_of_its_own() {
    let names: std::collections::BTreeSet<String> =
        Format::ALL.iter().map(Format::to_string).collect();
    assert_eq!(names.len(), Format::ALL.len());
}

/// Jobs of numjobs=2 print a terse line each, which are no repeats; a log and a container's name stand before lines.
#[test]
fn terse_lines_of_one_job_are_one_run_and_prefixes_of_containers_are_left_out() {
    let line = |name: &str, iops: u32| {
        let mut fields = vec!["3".to_owned(), "fio-3.33".to_owned(), name.to_owned()];
        fields.extend(["0", "0"].map(str::to_owned));
        for rate in [iops, 0] {
            fields.extend([rate * 40, rate * 4, rate, 10_000].map(|it| it.to_string()));
            fields.extend((0..8).map(|_| "100.0".to_owned()));
            fields.extend((0..20).map(|at| format!("{}.000000%=100", at * 5)));
            fields.extend((0..9).map(|_| "100.0".to_owned()));
        }
        fields.join(";")
    };
    let of = |lines: &[String]| outputs(&lines.join("\n"));
    let two = of(&[line("a", 100), line("a", 110)]);
    assert_eq!(two.len(), 1, "{two:#?}");
    let (_, run) = &two[0];
    assert_eq!(run.rate.unwrap().value, 210.0);
    assert!(has(run, |it| matches!(it, Doubt::TerseLines)));
    assert_eq!(of(&[line("a", 100), line("b", 110)]).len(), 2, "other names are other jobs");
    let text = "\
db-1  | job: (groupid=0, jobs=1): err= 0: pid=1: Sun May  3 2020
db-1  |   read: IOPS=188, BW=752KiB/s (770kB/s)(7520KiB/10000msec)
db-1  |     clat (usec): min=49, max=64333, avg=2223.37, stdev=10153.99
";
    let (_, fio) = output(text);
    assert_eq!(fio.rate.unwrap().value, 188.0);
    assert_eq!(fio.conditions.name.as_deref(), Some("job"));
    let text = "\
[ 10s ] reads: 12.50 MiB/s writes: 8.30 MiB/s fsyncs: 100.00/s latency (ms,95%): 3.20
[ 20s ] reads: 12.60 MiB/s writes: 8.40 MiB/s fsyncs: 100.00/s latency (ms,95%): 3.20
";
    let (_, fileio) = output(text);
    assert!(fileio.rate.is_none() && has(&fileio, |it| matches!(it, Doubt::Incomplete { .. })));
}
