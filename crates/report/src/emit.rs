//! Settings in the forms in which hosts are configured: a udev rule, a tuned profile, Ansible tasks,
//! sysfsutils, a shell script.

use host::{KeyedSettings, profile_text, udev_rule};
use std::fmt::Write;

/// The forms.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EmitFormat {
    /// A file of /etc/udev/rules.d.
    Udev,
    /// A tuned.conf that includes the active profile.
    Tuned,
    /// Tasks that write the udev rule and make udev act on it.
    Ansible,
    /// A file of /etc/sysfs.d, by the device's name.
    Sysfs,
    /// A script that finds the device by what it is.
    Shell,
}

/// Settings in a form; `None` where the form cannot say any of them. `about` says where they come from,
/// `active` is the tuned profile to include, `name` that of the rule file.
pub fn emit(
    format: EmitFormat,
    about: &str,
    devices: &[KeyedSettings],
    active: &str,
    name: &str,
) -> Option<String> {
    match format {
        EmitFormat::Udev => Some(udev_rule(about, devices)),
        EmitFormat::Tuned => profile_text(about, active, devices),
        EmitFormat::Ansible => Some(ansible(about, devices, name)),
        EmitFormat::Sysfs => Some(sysfs(about, devices)),
        EmitFormat::Shell => Some(shell(about, devices)),
    }
}

fn ansible(about: &str, devices: &[KeyedSettings], name: &str) -> String {
    let mut text = format!("# {about}\n");
    let _ = write!(
        text,
        "- name: I/O settings as a udev rule\n  ansible.builtin.copy:\n    dest: \
         /etc/udev/rules.d/{name}\n    owner: root\n    group: root\n    mode: \"0644\"\n    content: |\n"
    );
    for line in udev_rule(about, devices).lines() {
        let _ = writeln!(text, "      {line}");
    }
    text.push_str(
        "  register: spindle_rule\n\n- name: Make udev read the rule and apply it to these devices alone\n  \
         ansible.builtin.shell: |\n    set -eu\n    udevadm control --reload\n",
    );
    for keyed in devices {
        let found = for_device(keyed, "    udevadm trigger --action=change --settle \"$disk\"\n");
        for line in found.lines() {
            let _ = writeln!(text, "    {line}");
        }
    }
    text.push_str("  when: spindle_rule is changed\n");
    text
}

fn sysfs(about: &str, devices: &[KeyedSettings]) -> String {
    let mut text = format!(
        "# {about}\n# By the kernel's names, which may be another device's after a reboot: a udev rule is \
         safer.\n"
    );
    for KeyedSettings { device, settings, .. } in devices {
        for (setting, value) in settings {
            let _ = writeln!(text, "block/{}/queue/{setting} = {value}", device.name);
        }
    }
    text
}

fn shell(about: &str, devices: &[KeyedSettings]) -> String {
    let mut text = format!("#!/bin/sh\n# {about}\nset -eu\n");
    for keyed in devices {
        let mut sets = String::new();
        for (setting, value) in &keyed.settings {
            let value = self::quoted(value);
            let _ = writeln!(sets, "    echo '{value}' > \"$disk/queue/{setting}\"");
        }
        text.push_str(&for_device(keyed, &sets));
    }
    text
}

/// Lines of a shell that do something with `$disk`, which is found by what it is; they fail where it is not there.
fn for_device(KeyedSettings { device, key, .. }: &KeyedSettings, body: &str) -> String {
    let quoted = quoted(&key.value);
    format!(
        "\n# {}\nfound=\nfor disk in /sys/block/*; do\n    value={}\n    [ \"$value\" = '{quoted}' ] || \
         continue\n    found=$disk\n{body}done\n[ -n \"$found\" ] || {{ echo 'no device has {} {}' >&2; exit 1; }}\n",
        device.title(),
        read_key(&key.key),
        key.key.replace('\'', ""),
        quoted.replace("'\\''", "")
    )
}

/// Within single quotes, whatever is in it.
fn quoted(text: &str) -> String {
    text.replace('\'', r"'\''")
}

/// What a rule's match compares, as a shell reads it.
fn read_key(key: &str) -> String {
    let inside = |start: &str| Some(key.strip_prefix(start)?.strip_suffix('}')?.to_owned());
    let file = |path: String| {
        format!(
            "$(sed 's/^[[:space:]]*//; s/[[:space:]]*$//' \"$disk/{path}\" 2>/dev/null || true)"
        )
    };
    match (inside("ATTR{"), inside("ATTRS{"), inside("ENV{")) {
        (Some(name), ..) => file(name),
        (_, Some(name), _) => file(format!("device/{name}")),
        (.., Some(name)) => {
            format!("$(udevadm info --query=property --property={name} --value \"$disk\")")
        }
        _ => String::new(),
    }
}
