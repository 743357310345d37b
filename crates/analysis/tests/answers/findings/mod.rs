//! Each finding: a run that shows it, and one close by that does not.

mod causes;
mod course;
mod runs;

use analysis::FindingKind;
use record::{Outcome, SharePermille};
use runs::{cells, count, raw, run, run_of, with};
use units::Nanos;

#[test]
fn cache() {
    // A thousand writes of 4 KiB a second are 3.9 MiB/s.
    let moved = |share: f64| {
        run("randwrite", move |cell, _, m| {
            let rates = |share: f64| [("device.rMB/s", 0.0), ("device.wMB/s", 3.9 * share)];
            count(cell, m, &rates(share), &rates(1.0));
        })
    };
    assert_eq!(cells(&moved(0.5), FindingKind::Cache), [1]);
    assert!(cells(&moved(0.97), FindingKind::Cache).is_empty());
    // A trace that is through in a second, however long it might have taken.
    let mut short = moved(0.5);
    for trial in &mut short.trials {
        let Outcome::Valid(measurement) = &mut trial.outcome else { continue };
        measurement.span = Nanos::from_millis(1000);
        measurement.job.writes.operations /= 4;
        measurement.job.writes.bytes.0 /= 4;
    }
    assert!(cells(&short, FindingKind::Cache).is_empty());
}

#[test]
fn cpu_wait() {
    let name = "clients.cpu_wait_us";
    assert_eq!(cells(&with("randwrite", name, 150.0), FindingKind::CpuWait), [1]);
    assert!(cells(&with("randwrite", name, 90.0), FindingKind::CpuWait).is_empty());
}

#[test]
fn generator() {
    let busy = |permille: u32| {
        run("randwrite", move |cell, _, m| {
            m.generator.busiest = SharePermille(if cell == 1 { permille } else { 100 });
        })
    };
    assert_eq!(cells(&busy(950), FindingKind::Generator), [1]);
    assert!(cells(&busy(880), FindingKind::Generator).is_empty());
}

#[test]
fn merging() {
    // A tenth of the requests is merged, and throughput differs or does not.
    let merged = |faster: f64| {
        run("randwrite", move |cell, _, m| {
            let rates = |merged: f64| {
                [
                    ("device.rrqm/s", 0.0),
                    ("device.wrqm/s", merged),
                    ("device.r/s", 0.0),
                    ("device.w/s", 900.0),
                ]
            };
            count(cell, m, &rates(100.0), &rates(0.0));
            if cell == 1 {
                m.job.writes.operations = (m.job.writes.operations as f64 * faster) as u64;
            }
        })
    };
    assert_eq!(cells(&merged(1.2), FindingKind::Merging), [1]);
    assert!(cells(&merged(1.0), FindingKind::Merging).is_empty(), "it made no difference");
}

#[test]
fn no_free_request() {
    // Of 4 MB a second.
    let name = "uring.punted/s";
    assert_eq!(cells(&with("randwrite", name, 1e5), FindingKind::NoFreeRequest), [1]);
    assert!(cells(&with("randwrite", name, 2e4), FindingKind::NoFreeRequest).is_empty());
    let mut buffered = raw("randwrite");
    buffered.job.sync = Some("fdatasync".parse().unwrap());
    let run = run_of(buffered, 5, |cell, _, m| count(cell, m, &[(name, 4e6)], &[(name, 4e6)]));
    assert!(cells(&run, FindingKind::NoFreeRequest).is_empty(), "the page cache is why");
}

#[test]
fn read_before_write() {
    let name = "device.r/s";
    assert_eq!(cells(&with("randwrite", name, 200.0), FindingKind::ReadBeforeWrite), [1]);
    assert!(cells(&with("randwrite", name, 20.0), FindingKind::ReadBeforeWrite).is_empty());
    let reads = with("randrw:70", name, 200.0);
    assert!(cells(&reads, FindingKind::ReadBeforeWrite).is_empty(), "the clients read themselves");
}

#[test]
fn stolen_cpu() {
    let name = "cpu.%steal";
    assert_eq!(cells(&with("randwrite", name, 12.0), FindingKind::StolenCpu), [1]);
    assert!(cells(&with("randwrite", name, 3.0), FindingKind::StolenCpu).is_empty());
}

#[test]
fn unsteady() {
    let fading = |share: f64| {
        run("randwrite", move |cell, round, m| {
            for second in m.seconds.iter_mut().filter(|it| cell == 1 && it.at > 2.0) {
                let noise = 1.0 + 0.001 * f64::from(round);
                second.writes = (second.writes as f64 * share * noise) as u64;
            }
        })
    };
    assert_eq!(cells(&fading(0.8), FindingKind::Unsteady), [1]);
    assert!(cells(&fading(0.98), FindingKind::Unsteady).is_empty(), "too little to matter");
}
