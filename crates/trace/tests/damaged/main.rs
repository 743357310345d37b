//! Damaged traces: whatever a file holds, reading it ends without a panic. Mutations are drawn from a seeded
//! stream: a failure names the seed that repeats it. `SPINDLE_MUTATIONS` makes it any number of them.

use trace::{BlockEvent, BlockStage, Format, How, read, write_event};
use units::Nanos;

const CORPUS: [&str; 9] = [
    "8,0 0 1 0.0 1 Q FWFSM 64 + 8 [a]\n8,0 0 2 0.1 0 C WS 0 [0]\n8,0 0 3 0.2 1 D R 96 (12 00 ..) [u]\n8,0 0 4 0.3 1 A W 2148 + 8 <- (253,0) 100\nCPU0 (8,0):\n Reads Queued: 1\n8,1 0 9 0.5 1 D D 0 + 2048 [x]\n",
    "fio version 2 iolog\n/a add\n/a read 4096 8192\n/a wait 2000 0\n/a trim 0 4096\n",
    "fio version 3 iolog\n16 /a add\n141 /a read 249856 4096\n2658 /b write 0 4096\n",
    "Timestamp,Hostname,DiskNumber,Type,Offset,Size,ResponseTime\n128166372003061629,hm,1,Read,383496192,32768,413\n",
    "Timestamp,Response,IOType,LUN,Offset,Size\n1456095145.133076000,0.000806000,R,0,899056122368,131072\n",
    "0,20941264,8192,W,0.551706,Alpha\n2,30862016,4096,W,2 448003\n419,W,8792731648,16384,1577808144360767\n1538323200,12910952,128,0,1063\n",
    "0.5 0 100 8 1\n1e11 0 300 16 0\n2.0 1 5 1 3\n",
    "fio 1 [000] 5121.481510: block:block_bio_queue: 8,0 WS 1000 + 8 [fio]\nCPU:1 [LOST 5 EVENTS]\n",
    "TIME(s) COMM PID DISK T SECTOR BYTES LAT(ms)\n0.004 my p 1950 sda W 13192496 4096 0.26\n",
];

fn binary() -> Vec<u8> {
    let mut bytes = Vec::new();
    for number in 0..6 {
        let event = BlockEvent {
            stage: [BlockStage::Queued, BlockStage::Issued, BlockStage::Completed][number % 3],
            at: Nanos(number as u64 * 1000),
            cpu: 0,
            pid: 7,
            device: (8, 0),
            letters: "FWFS",
            sector: 64,
            sectors: 8,
        };
        write_event(&mut bytes, number as u32, &event);
    }
    bytes
}

#[test]
fn damaged_traces_are_read_or_refused_without_a_panic() {
    let wanted = std::env::var("SPINDLE_MUTATIONS").ok().and_then(|it| it.parse().ok());
    let count: u64 = wanted.unwrap_or(20_000);
    let binary = binary();
    for seed in 0..count {
        let mut stream = random::Stream::new(seed, "trace mutation");
        let chosen = stream.below(CORPUS.len() as u64 + 1) as usize;
        let mut bytes = CORPUS.get(chosen).map_or(binary.clone(), |text| text.as_bytes().to_vec());
        for _ in 0..1 + stream.below(5) {
            let at = stream.below(bytes.len().max(1) as u64) as usize;
            let length = (1 + stream.below(12) as usize).min(bytes.len().saturating_sub(at));
            match stream.below(5) {
                _ if bytes.is_empty() => break,
                0 => bytes[at] = stream.below(256) as u8,
                1 => drop(bytes.drain(at..at + length)),
                2 => {
                    let part = bytes[at..at + length].to_vec();
                    bytes.splice(at..at, part);
                }
                3 => bytes.truncate(at),
                _ => {
                    let words: [&[u8]; 7] =
                        [b"18446744073709551615", b"-1", b"1e300", b"0", b"+", b"\n", b"[0]"];
                    let word = words[stream.below(7) as usize];
                    bytes.splice(at..at + length, word.iter().copied());
                }
            }
        }
        let named = Format::ALL[stream.below(Format::ALL.len() as u64) as usize];
        let read = std::panic::catch_unwind(|| {
            for format in [None, Some(named)] {
                for skip_bad in [false, true] {
                    let _ = read("m", &bytes, &How { format, skip_bad, unit: None });
                }
            }
        });
        assert!(read.is_ok(), "seed {seed}: {:?}", String::from_utf8_lossy(&bytes));
    }
}
