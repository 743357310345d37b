//! Agents of clouds.

use super::{OwnedSetting, Owner, OwnerKind, View, systemd::Units};
use std::path::Path;

/// Google's guest agent sets the scheduler of every device with hardware queues to `none` whenever it
/// starts, after udev's rules (GoogleCloudPlatform/guest-agent, instance_setup and pull request 302).
pub(super) fn gce_agent(view: &View<'_>, units: &Units) -> Option<Owner> {
    const FILE: &str = "/usr/bin/google_guest_agent";
    if !view.host.path(FILE).is_file() || !view.folder.join("mq").is_dir() {
        return None;
    }
    let active = units.is_started("google-guest-agent");
    let settings =
        vec![OwnedSetting { name: "scheduler".to_owned(), value: Some("none".to_owned()) }];
    let text = "when it starts: none for every device that has hardware queues";
    Some(view.owner(OwnerKind::GceAgent, (Path::new(FILE), 0), text, settings, active))
}
