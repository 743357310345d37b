//! What may change around the storage from one boot to the next, or with an upgrade, and that no setting of
//! a device shows.

use crate::{Chain, Host, LayerKind, tree};
use serde::{Deserialize, Serialize};
use std::{collections::BTreeMap, fs, path::Path};

/// What may change with a boot or an upgrade.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Surroundings {
    /// `/proc/sys/kernel/random/boot_id`.
    pub boot_id: String,
    /// When the kernel booted, in seconds since 1970.
    pub booted_at: Option<i64>,
    /// How the kernel was built: `uname -v`.
    pub kernel_build: String,
    /// The command line, without what names the kernel's own files.
    pub boot_line: String,
    /// The microcode of the first processor.
    pub microcode: Option<String>,
    /// What the kernel does about each vulnerability of the processor.
    pub mitigations: BTreeMap<String, String>,
    /// Firmware of the devices below the target, by their names.
    pub firmware: BTreeMap<String, String>,
    /// Options of the filesystems of the target, by mount point.
    pub mount_options: BTreeMap<String, String>,
    /// Parameters of the modules that carry block I/O: `nvme.poll_queues`.
    pub module_parameters: BTreeMap<String, String>,
    /// `vm.dirty_*`.
    pub sysctls: BTreeMap<String, String>,
    /// The kernel's package and its version, where dpkg knows it.
    pub kernel_package: Option<(String, String)>,
}

/// Modules that carry block I/O, and filesystems.
const MODULES: [&str; 21] = [
    "ata_piix",
    "ahci",
    "libata",
    "scsi_mod",
    "sd_mod",
    "scsi_debug",
    "mpt3sas",
    "megaraid_sas",
    "nvme",
    "nvme_core",
    "nvme_tcp",
    "virtio_blk",
    "virtio_scsi",
    "xen_blkfront",
    "null_blk",
    "ublk_drv",
    "loop",
    "dm_mod",
    "dm_multipath",
    "md_mod",
    "workqueue",
];

/// Files of `/proc/sys/vm` that say when written pages are written back.
const SYSCTLS: [&str; 6] = [
    "dirty_background_bytes",
    "dirty_background_ratio",
    "dirty_bytes",
    "dirty_ratio",
    "dirty_expire_centisecs",
    "dirty_writeback_centisecs",
];

impl Surroundings {
    /// Of a host and the devices of a target.
    pub fn read(host: &Host, chain: &Chain) -> Surroundings {
        let text = |path: &str| host.text(path).unwrap_or_default();
        let cpuinfo = text("/proc/cpuinfo");
        let microcode = cpuinfo.lines().find_map(|line| {
            let (name, value) = line.split_once(':')?;
            (name.trim() == "microcode").then(|| value.trim().to_owned())
        });
        let stat = text("/proc/stat");
        let release = text("/proc/sys/kernel/osrelease");
        Surroundings {
            boot_id: crate::journal::boot_id(host),
            booted_at: stat
                .lines()
                .find_map(|line| line.strip_prefix("btime ")?.trim().parse().ok()),
            kernel_build: text("/proc/sys/kernel/version"),
            boot_line: boot_line(&text("/proc/cmdline")),
            microcode,
            mitigations: folder(&host.path("/sys/devices/system/cpu/vulnerabilities")),
            firmware: firmware(host, chain),
            mount_options: chain
                .layers
                .iter()
                .filter_map(|layer| match &layer.what {
                    LayerKind::Filesystem(filesystem) => Some(&filesystem.mount),
                    LayerKind::Device(_) => None,
                })
                .map(|mount| {
                    let options = mount.options.iter().chain(&mount.filesystem_options);
                    let mut options: Vec<&str> = options.map(String::as_str).collect();
                    options.sort_unstable();
                    options.dedup();
                    (mount.point.display().to_string(), options.join(","))
                })
                .collect(),
            module_parameters: module_parameters(host),
            sysctls: SYSCTLS
                .iter()
                .filter_map(|name| {
                    let value = host.text(format!("/proc/sys/vm/{name}"))?;
                    Some((format!("vm.{name}"), value))
                })
                .collect(),
            kernel_package: package(host, &format!("linux-image-{release}")),
        }
    }
}

/// Without the words that name the kernel's own files, which differ between any two kernels.
fn boot_line(line: &str) -> String {
    let names_a_file =
        |word: &&str| !word.starts_with("BOOT_IMAGE=") && !word.starts_with("initrd=");
    line.split_whitespace().filter(names_a_file).collect::<Vec<_>>().join(" ")
}

/// The files of a folder that can be read, and what they say.
fn folder(path: &Path) -> BTreeMap<String, String> {
    tree::names(path)
        .into_iter()
        .filter_map(|name| Some((name.clone(), tree::text(path.join(&name))?)))
        .collect()
}

fn firmware(host: &Host, chain: &Chain) -> BTreeMap<String, String> {
    chain
        .devices()
        .filter_map(|device| {
            let disk = host.disk_folder(device.number).ok()?;
            // NVMe has the first, SCSI and ATA the second.
            let of_device = |file: &str| tree::words(disk.join("device").join(file));
            let revision = of_device("firmware_rev").or_else(|| of_device("rev"))?;
            Some((device.name.clone(), revision))
        })
        .collect()
}

fn module_parameters(host: &Host) -> BTreeMap<String, String> {
    MODULES
        .iter()
        .flat_map(|module| {
            let path = host.path(format!("/sys/module/{module}/parameters"));
            folder(&path).into_iter().map(move |(name, value)| (format!("{module}.{name}"), value))
        })
        .collect()
}

/// A package of dpkg's with its version, if it is installed.
fn package(host: &Host, name: &str) -> Option<(String, String)> {
    let status = host.text("/var/lib/dpkg/status")?;
    let stanza = status.split("\n\n").find(|stanza| {
        stanza.lines().next().and_then(|line| line.strip_prefix("Package: ")) == Some(name)
    })?;
    let version = stanza.lines().find_map(|line| line.strip_prefix("Version: "))?;
    Some((name.to_owned(), version.to_owned()))
}

/// The package of dpkg's that a file is from, with its version.
pub fn package_of(host: &Host, file: &Path) -> Option<(String, String)> {
    let lists = host.path("/var/lib/dpkg/info");
    // Where /bin is a link to /usr/bin, lists may have either.
    let file = fs::canonicalize(file).unwrap_or_else(|_| file.to_owned());
    let file = file.to_str()?;
    let older = file.strip_prefix("/usr").unwrap_or(file);
    let name = tree::names(&lists).into_iter().find_map(|name| {
        let package = name.strip_suffix(".list")?;
        let text = fs::read_to_string(lists.join(&name)).ok()?;
        text.lines().any(|line| line == file || line == older).then(|| package.to_owned())
    })?;
    package(host, name.split(':').next().unwrap_or(&name))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn host(files: &[(&str, &str)]) -> (tempfile::TempDir, Host) {
        let folder = tempfile::tempdir().unwrap();
        for (path, text) in files {
            let path = folder.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        let host = Host::at(folder.path());
        (folder, host)
    }

    #[test]
    fn what_dpkg_says() {
        let status = "Package: mariadb-server\nStatus: install ok installed\nVersion: 1:10.11.14-0\n\n\
                      Package: mariadb-server-core\nVersion: 1:10.11.14-0+deb12u2\n";
        let (_folder, host) = host(&[
            ("var/lib/dpkg/status", status),
            (
                "var/lib/dpkg/info/mariadb-server-core.list",
                "/.\n/usr\n/usr/sbin/mariadbd-of-a-test\n",
            ),
        ]);
        let core = Some(("mariadb-server-core".to_owned(), "1:10.11.14-0+deb12u2".to_owned()));
        assert_eq!(package_of(&host, Path::new("/usr/sbin/mariadbd-of-a-test")), core);
        assert_eq!(package_of(&host, Path::new("/opt/mariadbd")), None);
        assert_eq!(package(&host, "mariadb"), None);
    }

    #[test]
    fn a_boot_line_without_the_kernels_own_files() {
        let line = "BOOT_IMAGE=/vmlinuz-6.12 root=/dev/vda ro initrd=/initrd.img mitigations=off";
        assert_eq!(boot_line(line), "root=/dev/vda ro mitigations=off");
    }

    #[test]
    fn parameters_and_mitigations_are_read_by_name() {
        let (_folder, host) = host(&[
            ("sys/module/nvme/parameters/poll_queues", "0\n"),
            ("sys/devices/system/cpu/vulnerabilities/retbleed", "Not affected\n"),
        ]);
        assert_eq!(module_parameters(&host)["nvme.poll_queues"], "0");
        let found = folder(&host.path("/sys/devices/system/cpu/vulnerabilities"));
        assert_eq!(found["retbleed"], "Not affected");
    }
}
