//! The machine around the storage: kernel, processors, memory and what it does with dirty pages.

use crate::{Host, tree};
use serde::{Deserialize, Serialize};
use units::{Bytes, Nanos};

/// What of the machine bears on I/O.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Machine {
    /// Its name.
    pub hostname: String,
    /// The kernel's release.
    pub kernel: String,
    /// The kernel's command line.
    pub boot_line: String,
    /// The processor's model.
    pub cpu: String,
    /// Processors online.
    pub cpus: u32,
    /// How frequencies are chosen; `None` where the machine does not choose (virtual machines).
    pub governor: Option<String>,
    /// What measures time; hpet and acpi_pm cost a microsecond a reading.
    pub clock_source: Option<String>,
    /// Whose virtual machine this is, as far as it says.
    pub virtual_machine: Option<String>,
    /// All memory.
    pub memory: Bytes,
    /// What programs and the page cache could have now.
    pub memory_available: Bytes,
    /// The page cache now.
    pub page_cache: Bytes,
    /// When written pages are written back.
    pub dirty: DirtyLimits,
    /// Runnable and waiting tasks, mean of the last minute.
    pub load: f64,
    /// Time stolen by other virtual machines since boot, percent.
    pub steal_percent: f64,
    /// Time that some task waited for I/O, in percent of the last ten seconds; `None` without
    /// pressure information.
    pub io_pressure: Option<f64>,
}

/// `/proc/sys/vm/dirty_*` (Documentation/admin-guide/sysctl/vm). Bytes win over ratios when set.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct DirtyLimits {
    /// Background write-back begins at this share of available memory, percent.
    pub background_percent: u64,
    /// Writers are slowed at this share, percent.
    pub limit_percent: u64,
    /// As `background_percent`, in bytes, when not zero.
    pub background: Bytes,
    /// As `limit_percent`, in bytes, when not zero.
    pub limit: Bytes,
    /// A page that is dirty for longer is written back.
    pub expire: Nanos,
    /// How often that is looked for.
    pub wakeup: Nanos,
}

impl Machine {
    /// What this host says of itself.
    pub fn read(host: &Host) -> Machine {
        let meminfo = host.text("/proc/meminfo").unwrap_or_default();
        let kib = |name: &str| {
            let line = meminfo.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
            let value = line.and_then(|line| line.split_whitespace().next()?.parse().ok());
            Bytes::from_kib(value.unwrap_or(0))
        };
        let cpuinfo = host.text("/proc/cpuinfo").unwrap_or_default();
        let of_cpu = |key: &str| {
            let line = cpuinfo.lines().find(|line| line.starts_with(key))?;
            line.split_once(':').map(|(_, value)| value.trim().to_owned())
        };
        let stat = host.text("/proc/stat").unwrap_or_default();
        let pressure = host.text("/proc/pressure/io").and_then(|text| {
            let (_, rest) = text.split_once("some avg10=")?;
            rest.split(' ').next()?.parse().ok()
        });
        let load = host.text("/proc/loadavg").unwrap_or_default();
        let cpu = |file: &str| tree::words(host.path("/sys/devices/system").join(file));
        Machine {
            hostname: host.text("/proc/sys/kernel/hostname").unwrap_or_default(),
            kernel: host.text("/proc/sys/kernel/osrelease").unwrap_or_default(),
            boot_line: host.text("/proc/cmdline").unwrap_or_default(),
            cpu: of_cpu("model name").or_else(|| of_cpu("CPU implementer")).unwrap_or_default(),
            cpus: stat
                .lines()
                .filter(|line| line.starts_with("cpu") && !line.starts_with("cpu "))
                .count() as u32,
            governor: cpu("cpu/cpu0/cpufreq/scaling_governor"),
            clock_source: cpu("clocksource/clocksource0/current_clocksource"),
            virtual_machine: virtual_machine(host, of_cpu("flags").as_deref()),
            memory: kib("MemTotal"),
            memory_available: kib("MemAvailable"),
            page_cache: kib("Cached"),
            dirty: DirtyLimits::read(host),
            load: load.split(' ').next().and_then(|it| it.parse().ok()).unwrap_or(0.0),
            steal_percent: steal_percent(&stat),
            io_pressure: pressure,
        }
    }
}

impl DirtyLimits {
    /// How much may be dirty where so much memory is available.
    pub fn most(&self, available: Bytes) -> Bytes {
        if self.limit > Bytes::ZERO {
            self.limit
        } else {
            Bytes(available.0 / 100 * self.limit_percent)
        }
    }

    fn read(host: &Host) -> DirtyLimits {
        let of =
            |name: &str| -> u64 { tree::number(host.path("/proc/sys/vm").join(name)).unwrap_or(0) };
        let centis = |name: &str| Nanos(of(name) * 10_000_000);
        DirtyLimits {
            background_percent: of("dirty_background_ratio"),
            limit_percent: of("dirty_ratio"),
            background: Bytes(of("dirty_background_bytes")),
            limit: Bytes(of("dirty_bytes")),
            expire: centis("dirty_expire_centisecs"),
            wakeup: centis("dirty_writeback_centisecs"),
        }
    }
}

/// A hypervisor shows itself in the processor's flags; its name is in the firmware's tables.
fn virtual_machine(host: &Host, flags: Option<&str>) -> Option<String> {
    let vendor = tree::words(host.path("/sys/class/dmi/id/sys_vendor"));
    let flagged = flags.is_some_and(|flags| flags.split(' ').any(|flag| flag == "hypervisor"));
    let known =
        ["QEMU", "Amazon EC2", "Google", "Microsoft Corporation", "VMware", "Xen", "innotek"];
    let by_vendor =
        vendor.as_deref().is_some_and(|it| known.iter().any(|name| it.starts_with(name)));
    (flagged || by_vendor).then(|| vendor.unwrap_or_else(|| "unnamed hypervisor".to_owned()))
}

fn steal_percent(stat: &str) -> f64 {
    let line = stat.lines().next().unwrap_or_default();
    let ticks: Vec<f64> =
        line.split_whitespace().skip(1).filter_map(|it| it.parse().ok()).collect();
    // user nice system idle iowait irq softirq steal; guests after that are in user already.
    let total: f64 = ticks.iter().take(8).sum();
    if total > 0.0 { 100.0 * ticks.get(7).unwrap_or(&0.0) / total } else { 0.0 }
}
