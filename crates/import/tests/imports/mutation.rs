//! Damaged outputs: whatever a text holds, reading it ends, soon, without a panic.
//!
//! Mutations are drawn from a seeded stream: a failure names the seed that repeats it. `SPINDLE_MUTATIONS`
//! makes it any number of texts, such as 10000000; without it some thousand.

use import::{Source, decode, import};
use std::time::{Duration, Instant};

/// What takes longer hangs: a thousand times what these texts take on a slow machine.
const HANG: Duration = Duration::from_secs(60);

/// Texts of every format, short.
const CORPUS: [&str; 11] = [
    "sysbench 1.0.20 (using x)\nNumber of threads: 4\nBlock size 16KiB\nFile operations:\n reads/s: 8259.22\n writes/s: 1.0\n fsyncs/s: 2.0\nThroughput:\n read, MiB/s: 129.05\nGeneral statistics:\n total time: 0.7268s\n total number of events: 10000\nLatency (ms):\n min: 0.00\n avg: 0.18\n max: 1.98\n 95th percentile: 0.54\n sum: 100.0\nThreads fairness:\n events (avg/stddev): 1.0/2.0\n execution time (avg/stddev): 1.0/0.0\n",
    "OLTP test statistics:\n queries performed:\n read: 14\n transactions: 1414378 (23572.63 per sec.)\nTest execution summary:\n total time: 60.0s\n min: 18446744073709.55ms\n approx.  95 percentile: 0.87ms\n[ 10s ] thds: 8 tps: 491.43 qps: 2948.62\n",
    "{\n\"fio version\" : \"fio-2.2.10\",\n\"jobs\" : [ {\"jobname\" : \"test\", \"elapsed\": 661, \"write\" : {\"io_bytes\" : 37500272, \"bw\" : 62499, \"iops\" : 15624.70, \"runtime\" : 600008, \"total_ios\" : 9374944, \"clat\" : {\"min\" : 964, \"percentile\" : {\"99.0\" : 8640, \"0.00\" : 0, \"0.00\" : 0}}, \"bw_mean\": 1.5}, \"iodepth_level\": {\"1\": 200.0}} ],\n\"disk_util\" : [{\"name\": \"xvda\", \"write_ios\": 5}]\n}\n",
    "job: (g=0): rw=randrw, bs=4K-4K/4K-4K, ioengine=libaio, iodepth=32\nfio-3.33\njob: (groupid=0, jobs=1): err= 0: pid=1:\n  read: IOPS=15.6k, BW=244MiB/s (256MB/s)(7313MiB/30001msec)\n    clat (nsec): min=964, max=2611100, avg=81511.90, stdev=3262.83\n    clat percentiles (usec):\n     |  1.00th=[   58], 99.99th=[ 2000]\n  IO depths    : 1=0.1%, 2=110.0%\n     issued rwts: total=468032,200960,0,0 short=0\nDisk stats (read/write):\n  sda: ios=0/5, merge=0/1, util=99.90%\n",
    "3;fio-3.33;job;0;0;4096;2048;512;2000;1;2;1.5;0.5;10;20;15.0;1.0;1.000000%=11;5.000000%=12;0%=0;0%=0;0%=0;0%=0;0%=0;0%=0;0%=0;0%=0;0%=0;0%=0;0%=0;0%=0;0%=0;0%=0;0%=0;0%=0;0%=0;0%=0;10;20;16.0;1.0;0;0;0%;0;0;0;0;0;0\n",
    "Linux 5.8.0 (u) \t12/02/2021 \t_x86_64_\t(2 CPU)\n\navg-cpu:  %user %nice\n 0.39 0.04\n\nDevice            r/s     rkB/s   r_await w/s wkB/s w_await f/s f_await aqu-sz  %util\nsda 2.00 0.00 97.50 136.00 11552.00 0.94 2.00 97.50 0.52 27.10\n\nDevice r/s rkB/s\nsda 1,5 2\n",
    "{\"sysstat\": {\n\"hosts\": [ {\"statistics\": [ {\"disk\": [ {\"disk_device\": \"sda\", \"r/s\": 1.5, \"w/s\": 2.0, \"util\": 3.0}, ] }, ] } ]\n}}\n",
    "procs ----memory---- --io--\n r  b   swpd   bi    bo\n 6  1      0 7526 15223\n 6  1      0 7526 15223\n",
    "pgbench (15.2)\nprogress: 36.0 s, 615.5 tps, lat 13.039 ms stddev 11.438\ntransaction type: <builtin: TPC-B (sort of)>\nscaling factor: 1\nnumber of clients: 8\nnumber of threads: 1\nduration: 60 s\nnumber of transactions actually processed: 4,500,000\nlatency average = 12.293 ms\nlatency stddev = 18.234 ms\ntps = 650.597861 (without initial connection time)\n",
    "[Summary] NEW_ORDER - Takes(s): 299.3, Count: 17382, TPM: 3484.7, Sum(ms): 1944255.5, Avg(ms): 0.3, 50th(ms): 0.5, Max  (ms): 0.5\ntpmC: 362.5\n<Raw Results>\n [0] sc:5 lt:1 rt:0 fl:2\n<TpmC>\n 6000.000 TpmC\nSystem achieved 28560 MySQL TPM at 12345 NOPM\n",
    "[root@db ~]# echo noop > /sys/block/sda/queue/scheduler\n# sysbench fileio --threads=24 \\\n> --file-test-mode=rndwr run\nnoop [deadline] cfq\nmysql> show global variables like 'x';\n| Variable_name | Value |\n| innodb_x | 1 |\n\n| noop | 6935.37 | 108.37 |\n| cfq | 1.50 | 2.50 |\n",
];

/// Damages a text: bytes changed, taken away, doubled, moved; lines repeated; pieces of another inserted.
fn mutate(stream: &mut random::Stream, text: &str, other: &str) -> Vec<u8> {
    let mut bytes = text.as_bytes().to_vec();
    let rounds = 1 + stream.below(6);
    for _ in 0..rounds {
        if bytes.is_empty() {
            return bytes;
        }
        let at = stream.below(bytes.len() as u64) as usize;
        let length = (1 + stream.below(20) as usize).min(bytes.len() - at);
        match stream.below(8) {
            0 => bytes[at] = stream.below(256) as u8,
            1 => drop(bytes.drain(at..at + length)),
            2 => {
                let part = bytes[at..at + length].to_vec();
                bytes.splice(at..at, part);
            }
            3 => bytes.truncate(at),
            4 => {
                let from = stream.below(other.len() as u64) as usize;
                let part = other.as_bytes()[from..].iter().copied().take(200).collect::<Vec<u8>>();
                bytes.splice(at..at, part);
            }
            5 => {
                let words: [&[u8]; 8] =
                    [b"1e308", b"-1", b"99999999999999999999", b"0", b"%", b"\n", b"{", b"\xff"];
                let word = words[stream.below(8) as usize];
                bytes.splice(at..at + length, word.iter().copied());
            }
            6 => {
                let digit = bytes.iter().position(u8::is_ascii_digit).unwrap_or(at);
                bytes[digit] = b'0' + stream.below(10) as u8;
            }
            _ => {
                let again = bytes.clone();
                if bytes.len() < 20_000 {
                    bytes.extend_from_slice(&again);
                }
            }
        }
    }
    bytes
}

#[test]
fn damaged_outputs_are_read_or_refused_without_a_panic_or_a_hang() {
    let wanted = std::env::var("SPINDLE_MUTATIONS").ok().and_then(|it| it.parse().ok());
    let count: u64 = wanted.unwrap_or(4_000);
    for seed in 0..count {
        let mut stream = random::Stream::new(seed, "mutation");
        let text = CORPUS[stream.below(CORPUS.len() as u64) as usize];
        let other = CORPUS[stream.below(CORPUS.len() as u64) as usize];
        let bytes = mutate(&mut stream, text, other);
        let begun = Instant::now();
        let source = Source { file: "m.txt".to_owned(), bytes: &bytes, cell: None };
        let read = std::panic::catch_unwind(|| {
            let _ = decode(&bytes);
            let run = import(&[source], "m", 0, "0");
            if let Ok((run, asked)) = run {
                let _ = import::proposal(&run, &asked, "/tmp");
            }
        });
        assert!(read.is_ok(), "seed {seed}: {:?}", String::from_utf8_lossy(&bytes));
        assert!(begun.elapsed() < HANG, "seed {seed} takes too long");
    }
}

#[test]
fn long_texts_are_read_in_time_in_proportion_to_their_length() {
    // Each would take hours where every line is read again from every line before it.
    let line = |text: &str, times: usize| text.repeat(times);
    for text in [
        line("{\n\"fio version\" : \"fio-3\",\n", 40_000),
        line("{\n", 200_000),
        line("# sysbench --a \\\n", 50_000),
        line("Device r/s\nsda 1\n", 50_000),
        line("| noop | 1.50 | 2.50 |\n", 50_000),
        line("[Summary] A - Takes(s): 1, Count: 1, TPM: 1\n", 50_000),
        line("[", 300_000),
        line("progress: 1.0 s, 1.0 tps\n", 50_000),
    ] {
        let begun = Instant::now();
        let source = Source { file: "m.txt".to_owned(), bytes: text.as_bytes(), cell: None };
        let _ = import(&[source], "m", 0, "0");
        assert!(begun.elapsed() < HANG, "{:?}", &text[..20.min(text.len())]);
    }
}
