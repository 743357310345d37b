//! In which order requests go to a device.

use crate::machine::machine;
use random::Stream;
use skipped::{Need, skip};
use std::{
    fs::OpenOptions,
    os::unix::fs::{FileExt, OpenOptionsExt},
    time::{Duration, Instant},
};
use units::Bytes;

/// Four KiB that may be read around the page cache.
#[repr(align(4096))]
struct Block([u8; 4096]);

#[test]
fn distances_are_those_of_what_is_read() {
    let Some(mut machine) = machine() else { return };
    let device = machine.loop_device("disk", Bytes::from_mib(64));
    let order = match machine.changes.watch_order(&[device.number]) {
        Ok(order) => order,
        Err(error) => return skip(Need::Kernel, &error.to_string()),
    };
    let file =
        OpenOptions::new().read(true).custom_flags(libc::O_DIRECT).open(&device.node).unwrap();
    let mut block = Block([0; 4096]);
    // At least two of the pieces in which it looks.
    let mut read = |place: &mut dyn FnMut() -> u64| {
        order.take();
        let begun = Instant::now();
        while begun.elapsed() < Duration::from_millis(2500) {
            file.read_exact_at(&mut block.0, place() * 4096).unwrap();
        }
        order.take()
    };
    let blocks = (64 << 20) / 4096;
    let mut next = 0;
    let forth = read(&mut || {
        next = (next + 1) % blocks;
        next
    });
    assert!(forth.pairs > 100, "{forth:?}");
    assert!(forth.sequential as f64 > 0.98 * forth.pairs as f64, "{forth:?}");
    let mut stream = Stream::new(1, "places");
    let anywhere = read(&mut || stream.below(blocks));
    assert!(anywhere.pairs > 100, "{anywhere:?}");
    assert!((anywhere.sequential as f64) < 0.02 * anywhere.pairs as f64, "{anywhere:?}");
    // A third of the device, as two places drawn from it lie apart.
    let mean = anywhere.distance as f64 / anywhere.pairs as f64;
    let third = f64::from(64 << 20) / 512.0 / 3.0;
    assert!((0.7..1.3).contains(&(mean / third)), "{mean} sectors");
    // However many there are, some hundreds are looked at in a second.
    assert!(anywhere.pairs < 5000, "{anywhere:?}");
    drop(file);
    machine.changes.end_order(order).unwrap();
    machine.changes.detach(device).unwrap();
}
