//! What `spindle inspect` shows.

use crate::{Align, Table, page::Page};
use host::{
    BlockDevice, DeviceKind, DirectIoSupport, DriveHealth, Filesystem, Inspection, LayerKind,
    Machine, OwnedSetting, Owner, Queue, Role, Spare,
};
use units::Bytes;

/// The block devices of a host, a row each.
pub fn devices(devices: &[BlockDevice], width: usize) -> String {
    let mut table = Table::new(&[
        ("device", Align::Left),
        ("number", Align::Right),
        ("bus", Align::Left),
        ("size", Align::Right),
        ("scheduler", Align::Left),
        ("queue", Align::Right),
        ("model or file", Align::Left),
    ]);
    for device in devices {
        let queue = device.queue.as_ref();
        let scheduler = queue.and_then(|queue| queue.scheduler.as_ref());
        table.row([
            device.name.clone(),
            device.number.to_string(),
            device.bus.to_string(),
            device.size.to_string(),
            scheduler.map_or("-".to_owned(), |choice| choice.current.clone()),
            queue.and_then(|it| it.nr_requests).map_or("-".to_owned(), |it| it.to_string()),
            device.model.clone().unwrap_or_else(|| kind(device)),
        ]);
    }
    table.text(width)
}

/// All that is known of a target.
pub fn inspection(inspection: &Inspection, width: usize) -> String {
    let mut page = Page::new(width);
    page.line(0, &inspection.chain.target.display().to_string());
    for layer in &inspection.chain.layers {
        let indent = 2 * (layer.depth as usize + 1);
        match &layer.what {
            LayerKind::Filesystem(layer) => page.line(indent, &filesystem(layer)),
            LayerKind::Device(device) => {
                let role =
                    layer.role.map_or(String::new(), |role| format!("{}: ", role_name(role)));
                page.line(indent, &format!("{role}{}", device_line(device)));
            }
        }
    }
    if let Some(no_device) = &inspection.chain.no_device {
        page.line(2, &format!("no device: {}", no_device.reason));
    }
    direct_io(&mut page, inspection);
    for device in inspection.chain.varied_devices() {
        if let Some(queue) = &device.queue {
            page.head(&format!("Settings of {}", device.title()));
            settings(&mut page, queue, inspection.filesystem_read_ahead_kb);
        }
    }
    if let Some(probe) = &inspection.probe {
        page.head("Medium");
        page.item("answers like", &format!("{} ({})", probe.medium, probe.evidence));
    }
    if !inspection.health.is_empty() {
        page.head("Drives");
        inspection.health.iter().for_each(|drive| health(&mut page, drive));
    }
    page.head("Host");
    machine(&mut page, &inspection.machine);
    page.head("What else sets these settings");
    owners(&mut page, &inspection.owners);
    if !inspection.missing.is_empty() {
        page.head("Unknown");
        inspection.missing.iter().for_each(|line| page.line(2, line));
    }
    page.head("Traps");
    if inspection.traps.is_empty() {
        page.line(2, "none of the known ones applies here");
    }
    for trap in &inspection.traps {
        page.line(2, &format!("{}: {}", trap.id(), trap.title()));
        page.line(6, &format!("seen: {}", trap.evidence()));
        page.line(6, &format!("fix: {}", trap.fix()));
    }
    page.text()
}

fn health(page: &mut Page, drive: &DriveHealth) {
    for sensor in &drive.temperatures {
        let limit = |what: &str, limit: Option<f64>| {
            limit.map_or(String::new(), |limit| format!(", {what} {limit:.0} °C"))
        };
        let text = format!(
            "{:.0} °C{}{}{} ({})",
            sensor.celsius,
            if sensor.alarm { ", its alarm is on" } else { "" },
            limit("warns from", sensor.warning),
            limit("critical from", sensor.critical),
            sensor.read_from.display()
        );
        page.item(&drive.device, &text);
    }
    if let Some(wear) = &drive.wear {
        let life = match wear.used_percent_max {
            Some(percent @ ..=100) => vec![format!("at most {percent} % of its life used")],
            Some(_) => vec!["more than its life used".to_owned()],
            None => vec![],
        };
        let spare = wear.spare.map(|spare| match spare {
            Spare::Normal => "spare blocks normal",
            Spare::Warning => "80 % of its spare blocks used",
            Spare::Urgent => "90 % of its spare blocks used",
        });
        let words: Vec<String> = life.into_iter().chain(spare.map(str::to_owned)).collect();
        let files: Vec<String> =
            wear.read_from.iter().map(|file| file.display().to_string()).collect();
        page.item(&drive.device, &format!("{} ({})", words.join(", "), files.join(", ")));
    }
}

fn role_name(role: Role) -> &'static str {
    match role {
        Role::Member => "member",
        Role::Path => "path",
        Role::Backing => "backing device",
        Role::Cache => "cache",
    }
}

fn filesystem(filesystem: &Filesystem) -> String {
    let Filesystem { mount, block_size, size, available } = filesystem;
    let mut options = mount.options.clone();
    options
        .extend(mount.filesystem_options.iter().filter(|it| !mount.options.contains(it)).cloned());
    format!(
        "{} on {} ({}); blocks of {block_size}, {available} of {size} free",
        mount.kind,
        mount.point.display(),
        options.join(",")
    )
}

fn device_line(device: &BlockDevice) -> String {
    let mut words = vec![device.title(), kind(device), device.bus.to_string()];
    words.extend(device.model.clone());
    words.extend(device.serial.as_ref().map(|serial| format!("serial {serial}")));
    words.push(device.size.to_string());
    if device.read_only {
        words.push("read-only".to_owned());
    }
    if let Some(choice) = device.queue.as_ref().and_then(|queue| queue.scheduler.as_ref()) {
        // A partition shares the queue of its disk, which follows.
        if !matches!(device.kind, DeviceKind::Partition { .. }) {
            words.push(format!("scheduler {}", choice.current));
        }
    }
    words.retain(|word| !word.is_empty());
    words.dedup();
    words.join(", ")
}

fn kind(device: &BlockDevice) -> String {
    match &device.kind {
        DeviceKind::Disk => String::new(),
        DeviceKind::Partition { index, disk, .. } => format!("partition {index} of {disk}"),
        DeviceKind::Mapper { name, flavour } => match flavour.as_str() {
            "LVM" => format!("logical volume {name}"),
            "CRYPT" => format!("encrypted, {name}"),
            _ => format!("mapped, {name}"),
        },
        DeviceKind::Md { level } => format!("array, {level}"),
        DeviceKind::Loop(state) => match &state.backing_file {
            Some(file) => format!(
                "loop on {}{} with {}",
                file.display(),
                if state.deleted { " (deleted)" } else { "" },
                if state.direct_io { "direct I/O" } else { "buffered I/O" }
            ),
            None => "loop, nothing attached".to_owned(),
        },
        DeviceKind::Memory => "memory".to_owned(),
        DeviceKind::Network => "on another machine".to_owned(),
    }
}

fn direct_io(page: &mut Page, inspection: &Inspection) {
    let Some(direct) = &inspection.chain.direct_io else { return };
    let support = match direct.support {
        DirectIoSupport::Aligned { memory, offset } => {
            format!("offset and length in multiples of {offset}, memory of {memory}")
        }
        DirectIoSupport::No => "not possible here".to_owned(),
        DirectIoSupport::Unknown => "the kernel does not say for this target".to_owned(),
    };
    page.line(2, &format!("O_DIRECT: {support}"));
}

fn settings(page: &mut Page, queue: &Queue, filesystem_read_ahead: Option<u32>) {
    if let Some(choice) = &queue.scheduler {
        let mark = |name: &String| {
            if *name == choice.current { format!("[{name}]") } else { name.clone() }
        };
        let names: Vec<String> = choice.available.iter().map(mark).collect();
        page.item("scheduler", &names.join(" "));
    }
    if let Some(requests) = queue.nr_requests {
        let ceiling = queue.nr_requests_ceiling.as_ref();
        let limit =
            ceiling.map_or(String::new(), |it| format!(" (up to {}: {})", it.value, it.why));
        page.item("nr_requests", &format!("{requests}{limit}"));
    }
    if let Some(depth) = queue.async_depth {
        page.item("async_depth", &depth.to_string());
    }
    for (name, value) in &queue.tunables {
        page.item(&format!("iosched/{name}"), value);
    }
    let tags = queue.hardware_tags.map_or("? tags".to_owned(), |tags| format!("{tags} tags each"));
    page.item("hardware queues", &format!("{}, {tags}", queue.hardware_queues));
    if let Some(depth) = queue.device_queue_depth {
        page.item("device/queue_depth", &format!("{depth} (what the device is given at once)"));
    }
    let mut number = |name: &str, value: Option<String>| {
        if let Some(value) = value {
            page.item(name, &value);
        }
    };
    number("wbt_lat_usec", queue.wbt_lat_usec.map(|it| it.to_string()));
    let read_ahead = queue.read_ahead_kb.map(|device| match filesystem_read_ahead {
        Some(own) if own != device => format!("{device} (the filesystem reads ahead {own} itself)"),
        _ => device.to_string(),
    });
    number("read_ahead_kb", read_ahead);
    number("rotational", queue.rotational.map(|it| u8::from(it).to_string()));
    number("write_cache", queue.write_cache.clone());
    let sectors = queue.logical_block.zip(queue.physical_block);
    number("sectors", sectors.map(|(logical, physical)| format!("{logical}, physical {physical}")));
    let request = queue.max_sectors_kb.zip(queue.max_hw_sectors_kb);
    number("max_sectors_kb", request.map(|(now, most)| format!("{now} of {most}")));
    number("nomerges", queue.nomerges.map(|it| it.to_string()));
    number("rq_affinity", queue.rq_affinity.map(|it| it.to_string()));
    let discards = queue.discard_max.filter(|most| *most > Bytes::ZERO);
    number("discards", discards.map(|most| format!("up to {most}")));
    number("zoned", queue.zoned.clone().filter(|it| it != "none"));
}

fn machine(page: &mut Page, machine: &Machine) {
    page.item("kernel", &machine.kernel);
    let cpus = match &machine.virtual_machine {
        Some(vendor) => format!("{} × {} (virtual machine: {vendor})", machine.cpus, machine.cpu),
        None => format!("{} × {}", machine.cpus, machine.cpu),
    };
    page.item("CPUs", &cpus);
    page.item(
        "memory",
        &format!(
            "{}, {} available, page cache {}",
            machine.memory, machine.memory_available, machine.page_cache
        ),
    );
    let dirty = &machine.dirty;
    let limit = |bytes: Bytes, percent: u64| match bytes {
        Bytes::ZERO => format!("{percent} %"),
        bytes => bytes.to_string(),
    };
    page.item(
        "dirty pages",
        &format!(
            "written back from {} on, writers slowed at {}, after {}",
            limit(dirty.background, dirty.background_percent),
            limit(dirty.limit, dirty.limit_percent),
            dirty.expire
        ),
    );
    page.item("pressure", if machine.io_pressure.is_some() { "counted" } else { "not counted" });
}

fn owners(page: &mut Page, owners: &[Owner]) {
    if owners.is_empty() {
        page.line(2, "nothing that is known to do so: no udev rule, unit, profile or boot option");
    }
    for owner in owners {
        let state = if owner.active { "" } else { ", not running now" };
        let (file, line) = (owner.file.display(), owner.line);
        let set = |it: &OwnedSetting| match &it.value {
            Some(value) => format!("{}={value}", it.name),
            None => it.name.clone(),
        };
        let settings: Vec<String> = owner.settings.iter().map(set).collect();
        let place = if line == 0 { file.to_string() } else { format!("{file}:{line}") };
        page.line(
            2,
            &format!(
                "{} of {} by {}{state} ({place})",
                settings.join(", "),
                owner.devices.join(", "),
                owner.by.name()
            ),
        );
        page.line(4, &owner.text);
        if let Some(place) = &owner.run_by {
            page.line(4, &format!("run by {}:{}", place.file.display(), place.line));
        }
        if let [only] = owner.events.as_slice() {
            page.line(4, &format!("only at \"{only}\" events"));
        }
        for condition in &owner.unknown {
            page.line(4, &format!("it depends on {condition}"));
        }
    }
}
