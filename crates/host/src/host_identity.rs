//! Which host wrote something: a state folder on the network may be that of several, and what one of them changed
//! is nothing that another can put back.

use crate::Host;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

/// What tells a host from another, in every boot of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HostIdentity {
    /// Its name, for people.
    pub name: String,
    /// Of its machine-id, which machine-id(5) wants nobody to give away: a hash. `None` where it has none.
    pub machine: Option<String>,
}

/// Goes into the hash, so that it is another one than other programs'.
const PURPOSE: &[u8] = b"spindle change journal";

impl HostIdentity {
    /// Of this host.
    pub fn read(host: &Host) -> HostIdentity {
        let id = ["/etc/machine-id", "/var/lib/dbus/machine-id"]
            .into_iter()
            .filter_map(|file| host.text(file))
            // While a first boot goes on it says "uninitialized".
            .find(|id| id.len() == 32 && id.bytes().all(|it| it.is_ascii_hexdigit()));
        let machine = id.map(|id| {
            let hash = Sha256::new().chain_update(PURPOSE).chain_update(id).finalize();
            hash.iter().take(16).map(|byte| format!("{byte:02x}")).collect()
        });
        let name = host.text("/proc/sys/kernel/hostname").unwrap_or_default();
        HostIdentity { name, machine }
    }

    /// Whether it is not that host. A name may change, an id does not.
    pub fn is_other_than(&self, here: &HostIdentity) -> bool {
        match (&self.machine, &here.machine) {
            (Some(its), Some(own)) => its != own,
            _ => self.name != here.name,
        }
    }

    /// A short word for names of files.
    pub(crate) fn word(&self) -> String {
        let id = self.machine.as_ref().unwrap_or(&self.name);
        id.chars().filter(char::is_ascii_alphanumeric).take(8).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_is_told_by_its_id_and_without_one_by_its_name() {
        let host = |name: &str, machine: Option<&str>| HostIdentity {
            name: name.to_owned(),
            machine: machine.map(str::to_owned),
        };
        let here = host("a", Some("1"));
        assert!(!host("renamed", Some("1")).is_other_than(&here));
        assert!(host("a", Some("2")).is_other_than(&here), "a clone's name");
        assert!(host("b", None).is_other_than(&here) && !host("a", None).is_other_than(&here));
    }

    #[test]
    fn this_host_is_the_same_each_time_and_its_id_is_not_given_away() {
        let here = HostIdentity::read(&Host::here());
        assert_eq!(here, HostIdentity::read(&Host::here()));
        let id = Host::here().text("/etc/machine-id");
        assert!(id.is_none() || id != here.machine);
    }
}
