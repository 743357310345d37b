//! Where the devices of a trace lie in the one that it is replayed on.

use crate::entry::Request;
use std::collections::BTreeMap;

/// Devices of a trace begin at multiples of this many sectors: 1 MiB.
const ALIGNMENT: u64 = 2048;

/// The first sector of each device, and the sectors of all. Devices lie one behind the other, in the order
/// of their first lines. Partitions of one disk are one device: the kernel reports their requests in sectors
/// of the disk.
pub(crate) fn bases(devices: &[String], requests: &[(Request, usize)]) -> (Vec<u64>, u64) {
    let mut disks: BTreeMap<String, usize> = BTreeMap::new();
    let of_disk: Vec<usize> = devices
        .iter()
        .map(|device| {
            let next = disks.len();
            *disks.entry(disk(device)).or_insert(next)
        })
        .collect();
    let mut spans = vec![0u64; disks.len()];
    for (request, device) in requests {
        let span = &mut spans[of_disk[*device]];
        *span = (*span).max(request.start.saturating_add(request.count));
    }
    let mut span = 0u64;
    let bases: Vec<u64> = spans
        .iter()
        .map(|sectors| {
            let base = span;
            span = span.saturating_add(sectors.div_ceil(ALIGNMENT).saturating_mul(ALIGNMENT));
            base
        })
        .collect();
    (of_disk.into_iter().map(|disk| bases[disk]).collect(), span)
}

/// The disk of a partition, where its number says it (Documentation/admin-guide/devices.txt): SCSI disks and
/// Xen's have 16 numbers each, IDE disks 64. Other names are disks of their own.
fn disk(device: &str) -> String {
    let numbers = device.split_once(',');
    let numbers = numbers
        .and_then(|(major, minor)| Some((major.parse::<u32>().ok()?, minor.parse::<u32>().ok()?)));
    let Some((major, minor)) = numbers else { return device.to_owned() };
    let partitions = match major {
        8 | 65..=71 | 128..=135 | 202 => 16,
        3 | 22 | 33 | 34 => 64,
        _ => 1,
    };
    format!("{major},{}", minor / partitions * partitions)
}
