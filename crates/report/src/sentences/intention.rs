//! What a run will change or make.

use plan::{EmulatedTransport, Intention};

/// An intention as the rest of a sentence that begins with "Will".
pub(crate) fn intention(intention: &Intention) -> String {
    match intention {
        Intention::LayOut { files: 1, size, folder } => format!(
            "lay out a scratch file of {size} in {}, and remove it at the end",
            folder.display()
        ),
        Intention::LayOut { files, size, folder } => format!(
            "lay out {files} scratch files of {size} each in {}, and remove them at the end",
            folder.display()
        ),
        Intention::Overwrite { device, size: Some(size) } => {
            format!("OVERWRITE the first {size} of {device}")
        }
        Intention::Overwrite { device, size: None } => {
            format!("OVERWRITE all of {device} with a filesystem")
        }
        Intention::Replay { file, requests, read, written, reaches, length } => format!(
            "replay the {requests} requests of {file} in each trial: {read} read, {written} written, within the \
             first {reaches}; they were recorded over {length}"
        ),
        Intention::AttachLoop { devices: 1 } => {
            "attach a loop device to it, and detach it at the end".to_owned()
        }
        Intention::AttachLoop { .. } => {
            "attach a loop device to each, and detach them at the end".to_owned()
        }
        Intention::MakeFilesystem { filesystem } => {
            format!("make and mount the filesystem {filesystem}, and unmount it at the end")
        }
        Intention::BoundPageCache { limit } => format!(
            "limit the page cache to {limit} with a control group, and remove the group at the end"
        ),
        Intention::WriteBack { limit } => format!(
            "wait before each trial until the dirty pages of the one before are written: up to {limit}, which \
             may take longer than the trial (--size bounds it)"
        ),
        Intention::LoadPrivate { data, size, server, kept, .. } => format!(
            "load {data} (about {size}) once into a private {server}, kept in {}; copy it fresh for \
             each trial and run a server on it, and remove all of it at the end",
            kept.display()
        ),
        Intention::LoadForeign { database, data, size } => format!(
            "load {data} (about {size}) into the database of {}, unless it is there, and drop the \
             tables that were made at the end",
            database.server
        ),
        Intention::ConfigureServer { server, settings } => {
            let each: Vec<String> =
                settings.iter().map(|(name, value)| format!("{name}={value}")).collect();
            format!("configure {server} with {}", each.join(" "))
        }
        Intention::Alternate => {
            "keep one server running and switch its variables between trials, if it \
             lets all that differ be changed while it runs; its data then go on from trial to trial"
                .to_owned()
        }
        Intention::ChangeSettings { factors, devices } => {
            let names: Vec<String> = factors.iter().map(ToString::to_string).collect();
            format!(
                "change {} of {}, and put it back at the end",
                names.join(", "),
                match devices.as_slice() {
                    [] => "that device".to_owned(),
                    all => all.join(" and "),
                }
            )
        }
        Intention::LoadSchedulers { schedulers } => format!(
            "have the kernel load {}, which stay{} loaded until a restart",
            match schedulers.as_slice() {
                [one] => format!("the module of {one}"),
                all => format!("the modules of {}", all.join(" and ")),
            },
            if schedulers.len() == 1 { "s" } else { "" }
        ),
        Intention::ThrottlingByHand { devices } => format!(
            "leave wbt_lat_usec of {} counted as set by hand, whatever its value: bfq then no longer switches \
             write-back throttling off there, until the device is made anew (after a restart)",
            devices.join(" and ")
        ),
        Intention::BfqUnthrottled => "compare bfq as it is: it switches write-back throttling off, so that its \
             buffered writes are not held back and those of other cells are (--wbt makes it a factor)"
            .to_owned(),
        Intention::Emulate { profile, size, transport, data } => {
            let made = match transport {
                EmulatedTransport::Ublk => "a ublk device",
                EmulatedTransport::FuseUring => {
                    "a FUSE mount (io_uring is enabled for it meanwhile), a loop device"
                }
                EmulatedTransport::Fuse => "a FUSE mount, a loop device",
            };
            let place = data.as_ref().map_or("memory".to_owned(), |folder| {
                format!("a sparse scratch file in {}", folder.display())
            });
            format!(
                "bring up an emulated {profile} ({size}): a server process, {made}, its data in \
                 {place}; and take them down at the end"
            )
        }
        Intention::Simulate { profile, kernel } => format!(
            "simulate {profile} behind the block layer of Linux {kernel}, in virtual time; the \
             storage of this host is not touched"
        ),
    }
}
