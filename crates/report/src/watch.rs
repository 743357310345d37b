//! What `spindle inspect --watch` says of each write.

use host::{SettingWrite, Writer};

/// A write in a line or two: when, of what, by whom.
pub fn setting_write(write: &SettingWrite) -> String {
    let value = |value: &Option<String>| value.clone().unwrap_or_else(|| "nothing".to_owned());
    let change = match write.before == write.after {
        // Also what the kernel refused.
        true => format!("written, and still {}", value(&write.after)),
        false => format!("{} → {}", value(&write.before), value(&write.after)),
    };
    let by = write.by.as_ref().map_or_else(
        || {
            "by nobody who was seen (the kernel itself, or a process with another /sys: that of \
             another network namespace)"
                .to_owned()
        },
        writer,
    );
    let said = write.said_in.as_ref().map_or(String::new(), |place| match place.line {
        0 => format!("; as {} does", place.file.display()),
        line => format!("; as {}:{line} says", place.file.display()),
    });
    let (device, setting) = (&write.device, &write.setting);
    format!("{} {device} {setting}: {change}, {by}{said}", time_of_day(write.at_unix_ms))
}

fn writer(writer: &Writer) -> String {
    let Writer { pid, name, command, unit, parents } = writer;
    let name = name.as_deref().unwrap_or("a process that had ended");
    let mut words = format!("by {name} ({pid})");
    if let Some(command) = command {
        words += &format!(" `{command}`");
    }
    if let Some(unit) = unit {
        words += &format!(" of {unit}");
    }
    if !parents.is_empty() {
        let all: Vec<String> = parents.iter().map(ToString::to_string).collect();
        words += &format!(", below {}", all.join(" below "));
    }
    words
}

/// Of UTC, with its milliseconds.
fn time_of_day(unix_ms: u64) -> String {
    let (seconds, ms) = (unix_ms / 1000 % 86400, unix_ms % 1000);
    format!("{:02}:{:02}:{:02}.{ms:03}", seconds / 3600, seconds / 60 % 60, seconds % 60)
}

#[cfg(test)]
mod tests {
    use super::*;
    use host::{Place, ProcessName};

    #[test]
    fn a_write_and_a_move() {
        let mut write = SettingWrite {
            at_unix_ms: 86_400_000 + 3_661_042,
            device: "sda".to_owned(),
            setting: "scheduler".to_owned(),
            before: Some("none".to_owned()),
            after: Some("bfq".to_owned()),
            by: Some(Writer {
                pid: 7,
                name: Some("sh".to_owned()),
                command: Some("sh -c x".to_owned()),
                unit: Some("systemd-udevd.service".to_owned()),
                parents: vec![ProcessName { pid: 6, name: "(udev-worker)".to_owned() }],
            }),
            said_in: Some(Place { file: "/etc/udev/rules.d/60.rules".into(), line: 3 }),
        };
        assert_eq!(
            setting_write(&write),
            "01:01:01.042 sda scheduler: none → bfq, by sh (7) `sh -c x` of systemd-udevd.service, \
             below (udev-worker) (6); as /etc/udev/rules.d/60.rules:3 says"
        );
        write = SettingWrite { after: write.before.clone(), by: None, said_in: None, ..write };
        let words = setting_write(&write);
        assert!(
            words.starts_with("01:01:01.042 sda scheduler: written, and still none, by nobody"),
            "{words}"
        );
    }
}
