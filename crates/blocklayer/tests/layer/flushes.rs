//! Writes with FUA before devices that take it and that do not.

use crate::world::{Logger, ms, play, write};
use blocklayer::{Bio, Config, Kernel};
use device::Op;
use units::Nanos;

#[test]
fn a_flush_follows_a_write_with_fua_where_the_device_does_not_take_it() {
    let durable = |id, start| Bio { fua: true, sync: true, ..write(id, start, 1) };
    let arrivals = [(ms(0), durable(1, 0)), (ms(0), durable(2, 800)), (ms(0), write(3, 1600, 2))];
    for kernel in Kernel::ALL.into_iter().filter(|kernel| *kernel >= Kernel::V3_10) {
        for scheduler in kernel.schedulers() {
            let name = format!("{kernel} {scheduler}");
            let takes = Config::new(kernel, 1).with_scheduler(scheduler.name());
            let run = play(&takes, Logger::new(1, ms(10)), &arrivals);
            assert_eq!(run.commands.iter().filter(|(_, it)| it.fua).count(), 2, "{name}");
            assert!(run.commands.iter().all(|(_, it)| it.op == Op::Write), "{name}");

            let run = play(&Config { fua: false, ..takes }, Logger::new(1, ms(10)), &arrivals);
            assert!(run.commands.iter().all(|(_, it)| !it.fua), "{name}");
            assert_eq!(run.done.len(), 3, "{name}");
            let flushes: Vec<_> =
                run.commands.iter().filter(|(_, it)| it.op == Op::Flush).map(|it| it.0).collect();
            assert!((1..=2).contains(&flushes.len()), "{name}: {flushes:?}");
            // A flush ends the writes whose data were there before it began, and only those.
            for durable in run.done.iter().filter(|it| it.id < 3) {
                let written = durable.dispatched + ms(10);
                let mut behind = flushes.iter().filter(|begun| **begun >= written);
                let ended_by = |begun: &Nanos| durable.at >= *begun + ms(10);
                assert!(behind.any(ended_by), "{name}: {flushes:?} {durable:?}");
            }
        }
    }
}

/// From 3.10 on a flush waits until no write with FUA has its data at the device, so that one flush ends them all; not
/// for ever, though.
#[test]
fn a_flush_waits_for_the_data_of_other_writes_with_fua() {
    let durable = |id, start| Bio { fua: true, sync: true, ..write(id, start, 1) };
    // Each begins before the one before it has ended.
    let arrivals = |writes: u64| -> Vec<(Nanos, Bio)> {
        (0..writes).map(|at| (ms(6 * at), durable(at + 1, at * 800))).collect()
    };
    let flushes = |writes: u64, kernel| {
        let config = Config { fua: false, ..Config::new(kernel, 4096).with_scheduler("none") };
        let run = play(&config, Logger::new(2, ms(10)), &arrivals(writes));
        assert_eq!(run.done.len() as u64, writes);
        run.commands.iter().filter(|(_, it)| it.op == Op::Flush).count()
    };
    assert_eq!(flushes(20, Kernel::V6_12), 1);
    // 12 s of such writes: a flush after 5 s and another after 10.
    assert_eq!(flushes(2000, Kernel::V6_12), 3);
}
