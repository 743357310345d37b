use super::*;
use std::{fs, os::unix::fs::symlink};
use tempfile::TempDir;

/// A host with one disk of ATA's, sda, one of virtio's, vda, and what tests add.
struct Made(TempDir);

const SDA: &str = "sys/devices/pci0000:00/0000:00:1f.2/ata1/host0/target0:0:0/0:0:0:0/block/sda";
const VDA: &str = "sys/devices/pci0000:00/0000:00:05.0/virtio2/block/vda";

impl Made {
    fn new() -> Made {
        let made = Made(tempfile::tempdir().unwrap());
        for (folder, number) in [(SDA, "8:0"), (VDA, "254:0")] {
            made.write(&format!("{folder}/dev"), number);
            made.write(&format!("{folder}/uevent"), "DEVTYPE=disk\n");
            made.write(&format!("{folder}/queue/scheduler"), "none [mq-deadline] bfq\n");
            made.write(&format!("{folder}/queue/rotational"), "1\n");
            made.link(folder, &format!("sys/dev/block/{number}"));
        }
        let scsi = SDA.strip_suffix("/block/sda").unwrap();
        made.write(&format!("{scsi}/uevent"), "DRIVER=sd\n");
        made.write(&format!("{scsi}/vendor"), "NETAPP  \n");
        made.write("sys/bus/scsi/drivers/sd/x", "");
        made.link("sys/bus/scsi/drivers/sd", &format!("{scsi}/driver"));
        made.link("sys/bus/scsi", &format!("{scsi}/subsystem"));
        made.write(&format!("{VDA}/mq/0/nr_tags"), "256\n");
        made
    }

    fn write(&self, path: &str, text: &str) {
        let path = self.0.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    fn link(&self, to: &str, from: &str) {
        let (to, from) = (self.0.path().join(to), self.0.path().join(from));
        fs::create_dir_all(from.parent().unwrap()).unwrap();
        symlink(to, from).unwrap();
    }

    fn rules(&self, text: &str) {
        self.write("etc/udev/rules.d/60-io.rules", text);
    }

    fn owners(&self, number: &str) -> Vec<Owner> {
        owners(&Host::at(self.0.path()), &[number.parse().unwrap()])
    }

    /// "line setting=value", with what it depends on.
    fn short(&self, number: &str) -> Vec<String> {
        let one = |owner: Owner| {
            let set =
                |it: &OwnedSetting| format!("{}={}", it.name, it.value.as_deref().unwrap_or("?"));
            let all: Vec<String> = owner.settings.iter().map(set).collect();
            let unknown = match owner.unknown.as_slice() {
                [] => String::new(),
                some => format!(" if {}", some.join(" and ")),
            };
            format!("{} {}{unknown}", owner.line, all.join(" "))
        };
        self.owners(number).into_iter().map(one).collect()
    }
}

#[test]
fn a_rule_for_other_disks_is_not_blamed() {
    let made = Made::new();
    made.rules(
        "ACTION==\"add|change\", KERNEL==\"sd*[!0-9]\", \\\n  # solid state\n  \
         ATTR{queue/rotational}==\"0\", ATTR{queue/scheduler}=\"none\"\n\
         ACTION==\"add|change\", KERNEL==\"sd*[!0-9]\", \\\n  \
         ATTR{queue/rotational}==\"1\", ATTR{queue/scheduler}=\"bfq\", ATTR{queue/nr_requests}=\"64\"\n\
         SUBSYSTEM==\"net\", ATTR{queue/scheduler}=\"x\"\n\
         ACTION==\"remove\", ATTR{queue/scheduler}=\"x\"\n\
         ATTR{queue/no_such}==\"1\", ATTR{queue/scheduler}=\"x\"\n\
         ATTR{queue/no_such}!=\"1\", ATTR{queue/scheduler}=\"x\"\n",
    );
    assert_eq!(made.short("8:0"), ["4 scheduler=bfq nr_requests=64"]);
    assert!(made.short("254:0").is_empty());
    let owner = &made.owners("8:0")[0];
    assert_eq!(owner.file, Path::new("/etc/udev/rules.d/60-io.rules"));
    assert_eq!(owner.events, ["add", "change"]);
    assert!(!owner.active, "udev does not run");
    assert_eq!(owner.sets(&Setting::Scheduler), Some(Some("bfq")));
    assert_eq!(owner.sets(&Setting::WbtLatUsec), None);
}

#[test]
fn conditions_on_parents_hold_for_one_of_them() {
    let made = Made::new();
    made.rules(
        "SUBSYSTEMS==\"scsi\", ATTRS{vendor}==\"NETAPP\", DRIVERS==\"sd\", ATTR{queue/scheduler}=\"a\"\n\
         SUBSYSTEMS==\"block\", ATTRS{vendor}==\"NETAPP\", ATTR{queue/scheduler}=\"b\"\n\
         KERNELS==\"0:0:*\", ATTR{queue/scheduler}=\"c\"\n\
         DRIVER==\"sd\", ATTR{queue/scheduler}=\"d\"\n\
         SUBSYSTEMS==\"scsi\", ATTRS{vendor}!=\"NET*\", ATTR{queue/scheduler}=\"e\"\n\
         ATTRS{vendor}==i\"netapp\", ATTR{queue/scheduler}=\"f\"\n",
    );
    assert_eq!(made.short("8:0"), ["1 scheduler=a", "3 scheduler=c", "6 scheduler=f"]);
}

#[test]
fn properties_are_those_of_the_last_event_or_unknown() {
    let made = Made::new();
    made.rules(
        "ENV{ID_BUS}==\"ata\", ATTR{queue/scheduler}=\"a\"\n\
         ENV{ID_BUS}==\"usb\", ATTR{queue/scheduler}=\"b\"\n\
         ENV{DEVTYPE}==\"partition\", ATTR{queue/scheduler}=\"c\"\n\
         KERNEL==\"sda\", ENV{.MINE}=\"1\"\n\
         ENV{.MINE}==\"1\", ATTR{queue/scheduler}=\"d\"\n\
         PROGRAM==\"/bin/mine\", RESULT==\"x\", ATTR{queue/scheduler}=\"e\"\n\
         ENV{NEVER}==\"?*\", ATTR{queue/scheduler}=\"f\"\n",
    );
    let unknown = made.short("8:0");
    assert_eq!(unknown.len(), 5, "{unknown:?}");
    assert!(unknown[0].contains("ENV{ID_BUS}, as udev has no record"), "{unknown:?}");
    assert_eq!(unknown[2], "5 scheduler=d");
    made.write("run/udev/data/b8:0", "S:disk/by-id/x\nE:ID_BUS=ata\nG:systemd\n");
    let program = "6 scheduler=e if PROGRAM==\"/bin/mine\" and RESULT==\"x\"";
    assert_eq!(made.short("8:0"), ["1 scheduler=a", "5 scheduler=d", program]);
}

#[test]
fn a_goto_leaves_out_what_is_before_its_label() {
    let made = Made::new();
    let rules = |condition: &str| {
        format!(
            "{condition}, GOTO=\"end\"\nATTR{{queue/scheduler}}=\"a\"\nLABEL=\"end\"\n\
             ATTR{{queue/nr_requests}}=\"2\"\n"
        )
    };
    made.rules(&rules("KERNEL==\"sda\""));
    assert_eq!(made.short("8:0"), ["4 nr_requests=2"]);
    assert_eq!(made.short("254:0"), ["2 scheduler=a", "4 nr_requests=2"]);
    made.rules(&rules("PROGRAM==\"/bin/x\""));
    assert_eq!(made.short("8:0"), ["2 scheduler=a if PROGRAM==\"/bin/x\"", "4 nr_requests=2"]);
}

#[test]
fn programs_that_rules_run_are_read() {
    let made = Made::new();
    made.rules(
        "KERNEL==\"sd*\", RUN+=\"/bin/sh -c 'echo noop > /sys/block/%k/queue/scheduler'\"\n\
         KERNEL==\"sd*\", RUN+=\"/bin/sh -c 'echo 2 > /sys$devpath/queue/rq_affinity'\"\n\
         KERNEL==\"sd*\", RUN+=\"/usr/local/bin/tune $kernel\"\n\
         RUN+=\"/bin/sh -c 'echo x > /sys/block/sdb/queue/scheduler'\"\n\
         RUN+=\"/bin/echo none > /sys/block/%k/queue/scheduler\"\n\
         KERNEL==\"sda\", ATTR{bdi/read_ahead_kb}=\"$attr{queue/rotational}\"\n",
    );
    made.write(
        "usr/local/bin/tune",
        "#!/bin/sh\nDEVICE=\"$1\"\necho 64 > /sys/block/${DEVICE}/queue/nr_requests\n",
    );
    let wanted = ["1 scheduler=noop", "2 rq_affinity=2", "3 nr_requests=64", "6 read_ahead_kb=1"];
    assert_eq!(made.short("8:0"), wanted);
    let script = &made.owners("8:0")[2];
    assert_eq!(script.file, Path::new("/usr/local/bin/tune"));
    let place = script.run_by.as_ref().unwrap();
    assert_eq!((place.line, place.file.ends_with("60-io.rules")), (3, true));
    assert!(made.short("254:0").is_empty());
}

#[test]
fn files_of_one_name_hide_each_other() {
    let made = Made::new();
    let rule = "# a comment: ATTR{queue/scheduler}=\"x\"\nATTR{queue/scheduler}=\"bfq\"\n";
    made.write("usr/lib/udev/rules.d/60-io.rules", "ATTR{queue/nr_requests}=\"64\"\n");
    made.rules(rule);
    made.write("run/udev/control", "");
    assert_eq!(made.short("8:0"), ["2 scheduler=bfq"]);
    assert!(made.owners("8:0")[0].is_certain());
}

#[test]
fn services_that_something_starts() {
    let made = Made::new();
    let unit = "[Unit]\nDescription=x\n[Service]\nType=oneshot\nExecStart=-/bin/sh -c \\\n  \
                'for d in /sys/block/sd? /sys/block/nvme*; do echo none > $$d/queue/scheduler; done'\n\
                ExecStop=/bin/sh -c 'echo bfq > /sys/block/sda/queue/scheduler'\n";
    made.write("usr/lib/systemd/system/io.service", unit);
    made.write(
        "etc/systemd/system/depth@.service",
        "[Service]\nExecStart=/bin/sh -c 'echo 64 > /sys/block/%i/queue/nr_requests'\n",
    );
    made.link(
        "etc/systemd/system/depth@.service",
        "etc/systemd/system/multi-user.target.wants/depth@sda.service",
    );
    assert_eq!(made.short("8:0"), ["2 nr_requests=64", "5 scheduler=none"]);
    assert!(made.short("254:0").is_empty());
    let active = |made: &Made| made.owners("8:0").last().unwrap().active;
    assert!(!active(&made), "nothing starts it");
    made.link(
        "usr/lib/systemd/system/io.service",
        "etc/systemd/system/multi-user.target.wants/io.service",
    );
    assert!(active(&made));
    // An extension takes back what the unit does.
    made.write(
        "etc/systemd/system/io.service.d/own.conf",
        "[Service]\nExecStart=\nExecStart=/bin/sh -c 'echo 8 > /sys/block/sda/queue/nr_requests'\n",
    );
    assert_eq!(made.short("8:0"), ["2 nr_requests=64", "3 nr_requests=8"]);
}

#[test]
fn a_tuned_profile_is_merged_with_what_it_includes() {
    let made = Made::new();
    made.write("etc/tuned/active_profile", "mine\n");
    made.write("run/tuned/tuned.pid", "77\n");
    let own = "[main]\ninclude=base\n[variables]\nsched=bfq\n[disk]\nelevator=${sched}\n\
               [flash]\ntype=disk\ndevices=vd*,!vdb\nreadahead=256\n\
               [sysfs]\n/sys/block/vd*/queue/rq_affinity=2\n\
               [script]\nscript=${i:PROFILE_DIR}/own.sh\n[off]\ntype=disk\nenabled=false\nreadahead=1\n";
    made.write("etc/tuned/profiles/mine/tuned.conf", own);
    made.write(
        "etc/tuned/profiles/mine/own.sh",
        "#!/bin/sh\necho 1 > /sys/block/sda/queue/nomerges\n",
    );
    made.write(
        "usr/lib/tuned/base/tuned.conf",
        "[disk]\nelevator=none\nreadahead=>4096\n[vm]\nx=y\n",
    );
    assert_eq!(made.short("8:0"), ["3 read_ahead_kb=?", "6 scheduler=bfq", "2 nomerges=1"]);
    let vda = ["3 read_ahead_kb=?", "6 scheduler=bfq", "10 read_ahead_kb=256", "12 rq_affinity=2"];
    let mut found = made.short("254:0");
    found.sort();
    let mut wanted = vda.to_vec();
    wanted.sort_unstable();
    assert_eq!(found, wanted);
    assert!(!made.owners("8:0")[0].active, "there is no process 77");
    made.write("proc/77/comm", "tuned\n");
    assert!(made.owners("8:0")[0].active);
    let state = tuned_state(&Host::at(made.0.path())).unwrap();
    assert_eq!((state.profiles, state.runs), (vec!["mine".to_owned()], true));
    assert_eq!(state.files, [PathBuf::from("/etc/tuned/profiles/mine/tuned.conf")]);
}

#[test]
fn saptune_s_notes_with_what_overrides_them() {
    let made = Made::new();
    made.write("etc/sysconfig/saptune", "NOTE_APPLY_ORDER=\"941735 own\"\n");
    made.write(
        "var/lib/saptune/working/notes/941735",
        "[block]\nIO_SCHEDULER=noop, none\nNRREQ=1024\n[block:blkpat=nvme*]\nREAD_AHEAD_KB=1\n",
    );
    made.write("etc/saptune/override/941735", "[block]\nNRREQ=64 # less\n");
    made.write("etc/saptune/extra/own-Own_note.conf", "[block:vendor=x]\nMAX_SECTORS_KB=64\n");
    made.write("etc/saptune/extra/other.conf", "[block]\nMAX_SECTORS_KB=1\n");
    let wanted =
        ["2 nr_requests=64", "2 scheduler=none", "2 max_sectors_kb=64 if the note's tag vendor=x"];
    assert_eq!(made.short("8:0"), wanted);
}

#[test]
fn what_acts_at_boot() {
    let made = Made::new();
    made.write("proc/cmdline", "root=/dev/vda elevator=noop quiet\n");
    made.write("proc/sys/kernel/osrelease", "6.1.0\n");
    made.write(
        "etc/sysfs.d/io.conf",
        "# block/sda/queue/nomerges = 1\nblock/sda/queue/nr_requests = 256\nmode block/sda/queue/x = 1\n",
    );
    made.write(
        "etc/tmpfiles.d/io.conf",
        "w /sys/block/sd*/queue/read_ahead_kb - - - - 512\nd /sys/block/sda/queue/x - - - -\n",
    );
    made.write("etc/rc.local", "#!/bin/sh\necho 0 > /sys/block/sda/queue/wbt_lat_usec\nexit 0\n");
    made.write("usr/bin/google_guest_agent", "");
    let wanted =
        ["0 scheduler=noop", "2 nr_requests=256", "1 read_ahead_kb=512", "2 wbt_lat_usec=0"];
    assert_eq!(made.short("8:0"), wanted);
    assert!(made.owners("8:0").iter().all(|owner| !owner.active));
    // The agent is for devices with hardware queues.
    assert_eq!(made.short("254:0"), ["0 scheduler=noop", "0 scheduler=none"]);
    made.write("proc/sys/kernel/osrelease", "4.19.0\n");
    assert!(made.owners("8:0")[0].active, "kernels before 5.0 heed the boot line");
}

#[test]
fn one_statement_for_several_devices() {
    let made = Made::new();
    made.rules("ATTR{queue/scheduler}=\"none\"\n");
    let both = ["8:0", "254:0"].map(|number| number.parse().unwrap());
    let found = owners(&Host::at(made.0.path()), &both);
    assert_eq!(found.len(), 1);
    assert_eq!(found[0].devices, ["sda", "vda"]);
}
