//! What the kernel's log says of devices: why one hangs, or has gone, is often there and nowhere else.

use std::{
    fs::{File, OpenOptions},
    io::{ErrorKind, Read},
    os::unix::fs::OpenOptionsExt,
};
use units::Nanos;

/// The last lines are told; a device that hangs repeats itself.
const LINES: usize = 5;
/// The longest record that the kernel gives in one read (dev-kmsg in Documentation/ABI/testing).
const RECORD: usize = 8192;
/// What the kernel says of tasks that wait for a device, without its name.
const OF_ANY_DEVICE: [&str; 2] = ["blocked for more than", "blk_update_request"];

/// The last lines that name one of `devices`, or that tell of tasks which wait, since a moment of
/// CLOCK_MONOTONIC. None when there are none, or when the log is not readable for us.
pub fn kernel_said(since: Nanos, devices: &[String]) -> Vec<String> {
    let log = OpenOptions::new().read(true).custom_flags(libc::O_NONBLOCK).open("/dev/kmsg");
    let mut lines: Vec<String> = log
        .map(records)
        .unwrap_or_default()
        .iter()
        .filter_map(|record| said(record, since, devices))
        .collect();
    lines.split_off(lines.len().saturating_sub(LINES))
}

/// All records that the log holds.
fn records(mut log: File) -> Vec<String> {
    let mut records = Vec::new();
    let mut buffer = [0; RECORD];
    loop {
        match log.read(&mut buffer) {
            Ok(0) => break,
            Ok(read) => records.push(String::from_utf8_lossy(&buffer[..read]).into_owned()),
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            // Records were overwritten before they were read: the next read gives the oldest there is.
            Err(error) if error.raw_os_error() == Some(libc::EPIPE) => {}
            Err(_) => break,
        }
    }
    records
}

/// The message of a record such as `6,1234,5678901,-;sda: timed out`, if it is wanted. Its third field is
/// the time in microseconds.
fn said(record: &str, since: Nanos, devices: &[String]) -> Option<String> {
    let (head, rest) = record.split_once(';')?;
    let at: u64 = head.split(',').nth(2)?.parse().ok()?;
    let message = rest.lines().next()?.trim();
    let names = |word: &str| devices.iter().any(|it| it == word || is_controller(word, it));
    let wanted = message.split(|c: char| !c.is_ascii_alphanumeric() && c != '-').any(names)
        || OF_ANY_DEVICE.iter().any(|it| message.contains(it));
    (wanted && Nanos::from_micros(at) >= since).then(|| message.to_owned())
}

/// `nvme0` is the controller of `nvme0n1`, and of the path `nvme0c0n1`.
fn is_controller(word: &str, device: &str) -> bool {
    let rest = device.strip_prefix(word).filter(|_| word.starts_with("nvme"));
    rest.is_some_and(|rest| rest.starts_with(['n', 'c']))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_the_device_since_a_moment_are_told() {
        let devices = ["nvme0n1".to_owned()];
        let told = |record: &str| said(record, Nanos::from_secs(10), &devices);
        let timeout = "4,7,11000000,-;nvme nvme0: I/O 5 QID 1 timeout\n SUBSYSTEM=block\n";
        assert_eq!(told(timeout).as_deref(), Some("nvme nvme0: I/O 5 QID 1 timeout"));
        assert_eq!(told("4,7,11000000,-;nvme nvme1: I/O 5 QID 1 timeout\n"), None);
        let error = "3,8,11000000,-;I/O error, dev nvme0n1, sector 8 op 0x1\n";
        assert_eq!(told(error).as_deref(), Some("I/O error, dev nvme0n1, sector 8 op 0x1"));
        assert_eq!(told("3,8,9000000,-;I/O error, dev nvme0n1, sector 8\n"), None, "earlier");
        assert_eq!(told("3,8,11000000,-;I/O error, dev nvme0n12, sector 8\n"), None);
        let task = "3,9,11000000,-;INFO: task spindle:7 blocked for more than 120 seconds.\n";
        assert!(told(task).is_some());
        assert_eq!(told("no record"), None);
    }
}
