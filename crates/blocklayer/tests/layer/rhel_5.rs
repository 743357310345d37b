//! cfq of 2.6.18's builds: who serialises direct writers and random readers.

use crate::world::{Logger, drive, read, write};
use blocklayer::{Bio, Config, Kernel};
use units::Nanos;

/// Requests out together, on average, when 16 tasks have one request each at random places, again and again.
fn depth(kernel: Kernel, make: fn(u64, u64, u32) -> Bio, tags_seen: bool) -> f64 {
    let mut config = Config::new(kernel, 32).with_scheduler("cfq");
    config.tags_seen = tags_seen;
    depth_behind(&config, make, 0)
}

/// The same when a process had so many reads out at once before.
fn depth_behind(config: &Config, make: fn(u64, u64, u32) -> Bio, burst: u64) -> f64 {
    let mut stream = random::Stream::new(1, "tasks");
    let mut next = move |id: u64, process: u32| {
        let mut bio = make(id, stream.below(1 << 27) * 8, process);
        // O_DIRECT: somebody waits.
        bio.sync = true;
        bio
    };
    let mut first: Vec<_> =
        (0..burst).map(|i| (Nanos::ZERO, read(99 << 32 | i, i * 1000, 99))).collect();
    first.extend((0..16).map(|p| (Nanos(p), next(p << 32, p as u32))));
    let run = drive(config, Logger::new(32, Nanos::from_millis(5)), &first, |done| {
        let bio = next(done.id + 1, done.process);
        let goes_on = done.process != 99 && done.at < Nanos::from_secs(20);
        if goes_on { vec![(Nanos(50_000), bio)] } else { Vec::new() }
    });
    run.layer.counters().depth_time as f64 / 20e9
}

#[test]
fn rhel_5_5_serialises_direct_writers_and_its_erratum_does_not() {
    // One shared queue sends 4 a visit; a queue for each process holds the device for its one write.
    assert!(depth(Kernel::V2_6_18, write, true) > 2.0);
    assert!(depth(Kernel::V2_6_18Rhel5_5, write, true) <= 1.01);
    assert!(depth(Kernel::V2_6_18Rhel5_5Erratum, write, true) > 10.0);
}

#[test]
fn random_readers_are_served_together_once_tags_were_seen() {
    for kernel in [Kernel::V2_6_18, Kernel::V2_6_18Rhel5_5, Kernel::V2_6_18Rhel5_5Erratum] {
        assert!(depth(kernel, read, false) <= 1.01, "{kernel}");
        assert!(depth(kernel, read, true) > 10.0, "{kernel}");
    }
}

#[test]
fn five_requests_at_once_end_the_waiting_for_random_readers() {
    let config = Config::new(Kernel::V2_6_18, 32).with_scheduler("cfq");
    assert!(depth_behind(&config, read, 4) <= 1.1);
    assert!(depth_behind(&config, read, 6) > 10.0);
    // And so does the end of all idle windows.
    assert!(depth_behind(&config.with("slice_idle", 0), read, 0) > 10.0);
}

#[test]
fn builds_have_their_names() {
    assert_eq!("2.6.18-92.el5".parse(), Ok(Kernel::V2_6_18));
    assert_eq!("2.6.18-194.8.1.el5".parse(), Ok(Kernel::V2_6_18Rhel5_5Erratum));
    let unknown = "2.6.18-93.el5".parse::<Kernel>().unwrap_err().to_string();
    assert!(unknown.contains("2.6.18-194.el5, 2.6.18-194.8.1.el5"), "{unknown}");
}
