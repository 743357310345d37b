//! Counters of a real device, against what was really done and against iostat's own columns.

use crate::machine::{machine, run};
use host::{Rates, Sampler};
use std::{
    fs::OpenOptions,
    os::unix::fs::{FileExt, OpenOptionsExt},
    process::{Command, Stdio},
};
use units::Bytes;

#[test]
fn what_was_written_and_flushed_is_counted() {
    let Some(mut machine) = machine() else { return };
    let device = machine.loop_device("disk", Bytes::from_mib(64));
    let mut sampler = Sampler::new(&machine.host, &[device.number]).unwrap();
    let before = sampler.sample();
    let file =
        OpenOptions::new().write(true).custom_flags(libc::O_SYNC).open(&device.node).unwrap();
    for place in 0..50 {
        file.write_all_at(&[1; 4096], place * 65536).unwrap();
    }
    let after = sampler.sample();
    let (b, a) = (before.device.unwrap(), after.device.unwrap());
    assert_eq!(a.writes.sectors.0 - b.writes.sectors.0, 50 * 8);
    let flushes = a.flushes - b.flushes;
    assert!(flushes >= 50, "each O_SYNC write is followed by a flush");
    // A flush without data is counted among the writes too, on kernels that do so (6.18 does).
    let writes = a.writes.completed - b.writes.completed;
    assert!(writes == 50 || writes == 50 + flushes, "{writes} writes, {flushes} flushes");
    let rates = Rates::between(&before, &after).device.unwrap();
    assert!(rates.w_await_ms < 1000.0 && rates.f_s > 0.0);
}

#[test]
fn the_columns_are_those_of_iostat() {
    let Some(mut machine) = machine() else { return };
    if run("iostat", &["-V"]).is_none() || run("fio", &["--version"]).is_none() {
        return;
    }
    let device = machine.loop_device("disk", Bytes::from_mib(64));
    let name = device.node.file_name().unwrap().to_str().unwrap().to_owned();
    // iostat's first report is since boot: on this fresh device both look at one interval each,
    // begun within some milliseconds of each other.
    let iostat = Command::new("iostat")
        .args(["-x", "-m", "-y", "-d", "2", "1", &name])
        .env("LC_ALL", "C")
        .env("S_TIME_FORMAT", "ISO")
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut sampler = Sampler::new(&machine.host, &[device.number]).unwrap();
    let before = sampler.sample();
    // A steady rate, so that the two intervals need not be the same to the millisecond.
    let filename = format!("--filename={}", device.node.display());
    let mut fio = Command::new("fio")
        .args(["--name=x", &filename, "--direct=1", "--rw=randrw", "--rwmixread=70", "--bs=8k"])
        .args(["--rate_iops=700,300", "--runtime=3", "--time_based", "--allow_mounted_write=0"])
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    let output = iostat.wait_with_output().unwrap();
    let after = sampler.sample();
    let _ended = fio.kill();
    fio.wait().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let header: Vec<&str> =
        text.lines().find(|it| it.starts_with("Device")).unwrap().split_whitespace().collect();
    let line: Vec<&str> =
        text.lines().find(|it| it.starts_with(&name)).unwrap().split_whitespace().collect();
    let column = |name: &str| {
        let at = header.iter().position(|it| *it == name)?;
        line[at].parse::<f64>().ok()
    };
    let ours = Rates::between(&before, &after).device.unwrap();
    let close = |name: &str, ours: f64, share: f64, least: f64| {
        let Some(theirs) = column(name) else {
            eprintln!("iostat here has no column {name}");
            return;
        };
        let far = (ours - theirs).abs() > share * theirs.abs() + least;
        assert!(!far, "{name}: iostat says {theirs}, we say {ours}\n{text}\n{ours:?}");
    };
    assert!(ours.r_s > 100.0 && ours.w_s > 50.0, "{ours:?}");
    close("r/s", ours.r_s, 0.15, 5.0);
    close("w/s", ours.w_s, 0.15, 5.0);
    close("rMB/s", ours.r_mb_s, 0.15, 0.1);
    close("wMB/s", ours.w_mb_s, 0.15, 0.1);
    close("r_await", ours.r_await_ms, 0.25, 0.05);
    close("w_await", ours.w_await_ms, 0.25, 0.05);
    close("aqu-sz", ours.aqu_sz, 0.25, 0.05);
    close("%util", ours.util_percent, 0.25, 3.0);
    close("rareq-sz", ours.r_mb_s * 1024.0 / ours.r_s, 0.02, 0.05);
}
