//! The disk model against five real drives: the response times that were measured on each against
//! the model's for the same requests, by the demerit figure. Nothing is fitted: the model gets the
//! drive's published description and no more.
//!
//! Needs the drives' files, which do not come with the program: `SPINDLE_SHARED`, or `../shared`
//! beside the repository. `cargo test -p device --test models validation -- --nocapture` prints the tables
//! of docs/science/device-models.md.

use device::DriveFiles;
use device::disk::{After, DiskSpec, Overheads, ReadAhead, WriteCache};
use device::disksim::{TraceEntry, import, parse_trace};
use device::{Disk, demerit_ms, replay};
use skipped::{Need, skip};
use std::path::PathBuf;
use units::Nanos;

/// Drive, and DiskSim 4.0's own figure for it (its validation), ms.
const DRIVES: [(&str, f64); 5] = [
    ("cheetah9LP", 0.107),
    ("atlas10k", 0.268),
    ("barracuda", 0.349),
    ("hp_c2247a", 0.090),
    ("dec_rz26", 0.340),
];

struct Drive {
    name: &'static str,
    disksim_ms: f64,
    spec: DiskSpec,
    trace: Vec<TraceEntry>,
}

impl Drive {
    fn figure_ms(&self, spec: DiskSpec) -> f64 {
        let mut disk = Disk::new(spec).unwrap();
        let result = replay(&mut disk, &self.trace);
        assert_eq!(result.out_of_range, 0, "{}", self.name);
        assert_eq!(result.service.len(), self.trace.len());
        demerit_ms(&self.measured(), &result.service)
    }

    fn measured(&self) -> Vec<Nanos> {
        self.trace.iter().map(|entry| entry.service).collect()
    }
}

fn mean_ms(times: &[Nanos]) -> f64 {
    times.iter().map(|time| time.as_millis_f64()).sum::<f64>() / times.len() as f64
}

fn drives() -> Vec<Drive> {
    let shared = std::env::var_os("SPINDLE_SHARED").map_or_else(
        || PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../../shared"),
        PathBuf::from,
    );
    let root = shared.join("data/drives");
    if !root.is_dir() {
        skip(Need::Data, &format!("published drives in {}, or SPINDLE_SHARED", root.display()));
        return Vec::new();
    }
    DRIVES.iter().map(|published| load(&root.join(published.0), *published)).collect()
}

fn load(folder: &std::path::Path, (name, disksim_ms): (&'static str, f64)) -> Drive {
    let mut files = DriveFiles::default();
    let mut trace = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let file = path.file_name().unwrap().to_string_lossy().into_owned();
        let text = std::fs::read_to_string(&path).unwrap();
        match file.ends_with(".trace") {
            true => trace = parse_trace(&file, &text).unwrap(),
            false => files.files.push((file, text)),
        }
    }
    Drive { name, disksim_ms, spec: import(&files, None).unwrap().spec, trace }
}

#[test]
fn the_five_drives_come_at_or_below_disksims_figures() {
    for drive in drives() {
        let mut disk = Disk::new(drive.spec.clone()).unwrap();
        let result = replay(&mut disk, &drive.trace);
        let measured = drive.measured();
        let figure = demerit_ms(&measured, &result.service);
        println!(
            "| {} | {:.3} | {:.3} | {:.1} % | {:.3} / {:.3} |",
            drive.name,
            figure,
            drive.disksim_ms,
            100.0 * figure / mean_ms(&measured),
            mean_ms(&measured),
            mean_ms(&result.service),
        );
        assert!(figure <= drive.disksim_ms, "{}: {figure:.3} ms", drive.name);
    }
}

type Change = fn(&mut DiskSpec);

/// Each part of the model, and how to leave it out.
const PARTS: [(&str, Change); 11] = [
    ("skews", |spec| {
        for zone in &mut spec.geometry.zones {
            (zone.track_skew, zone.cylinder_skew) = (0, 0);
        }
    }),
    ("slips", |spec| spec.geometry.zones.iter_mut().for_each(|zone| zone.slips.clear())),
    ("bus time", |spec| (spec.bus.read_sector_ns, spec.bus.write_sector_ns) = (0, 0)),
    ("command overheads", |spec| spec.overheads = Overheads::default()),
    ("hit and miss overheads apart", |spec| {
        let mean = |a: After, b: After| After {
            read_ns: a.read_ns.midpoint(b.read_ns),
            write_ns: a.write_ns.midpoint(b.write_ns),
        };
        let o = &mut spec.overheads;
        (o.read_hit, o.read_miss) = (mean(o.read_hit, o.read_miss), mean(o.read_hit, o.read_miss));
    }),
    ("read-ahead", |spec| spec.cache.read_ahead = ReadAhead::Off),
    ("early completion of writes", |spec| spec.write_cache = WriteCache::Off),
    ("blocks passed on the way kept", |spec| spec.cache.free_blocks = false),
    ("micro-jog after a write", |spec| spec.read_after_write_jog = false),
    ("write settling", |spec| spec.write_settle_ns = 0),
    ("data before the arm moves", |spec| spec.bus.write_holds_arm = false),
];

#[test]
fn each_part_of_the_model_earns_its_place() {
    let drives = drives();
    if drives.is_empty() {
        return;
    }
    let whole: Vec<f64> = drives.iter().map(|drive| drive.figure_ms(drive.spec.clone())).collect();
    let row = |name: &str, figures: &[f64]| {
        let figures: Vec<String> = figures.iter().map(|figure| format!("{figure:.3}")).collect();
        println!("| {name} | {} |", figures.join(" | "));
    };
    row("(nothing)", &whole);
    for (name, change) in PARTS {
        let figures: Vec<f64> = drives
            .iter()
            .map(|drive| {
                let mut spec = drive.spec.clone();
                change(&mut spec);
                drive.figure_ms(spec)
            })
            .collect();
        row(name, &figures);
        // Some drive must be the worse for it, by more than noise between runs of one model.
        let worst = figures.iter().zip(&whole).map(|(figure, whole)| figure / whole);
        let worst = worst.fold(0.0, f64::max);
        let wanted = if name == "slips" { 1.0 } else { 1.1 };
        assert!(worst >= wanted, "leaving out {name} changes nothing: {worst:.3}");
    }
}

#[test]
fn the_drives_maps_are_bijections() {
    for drive in drives() {
        let disk = Disk::new(drive.spec.clone()).unwrap();
        let geometry = disk.geometry();
        let mut runs = Vec::new();
        let mut lbn = 0;
        while lbn < geometry.capacity() {
            let extent = geometry.extent(lbn, u64::MAX);
            let place = extent.place;
            let last = geometry.locate(lbn + extent.blocks - 1);
            assert_eq!((last.cylinder, last.head), (place.cylinder, place.head));
            runs.push((place.cylinder, place.head, place.sector, last.sector));
            lbn += extent.blocks;
        }
        runs.sort_unstable();
        for pair in runs.windows(2) {
            let same_track = (pair[0].0, pair[0].1) == (pair[1].0, pair[1].1);
            assert!(!same_track || pair[0].3 < pair[1].2, "{}: {pair:?}", drive.name);
        }
    }
}

#[test]
fn a_replay_is_the_same_every_time() {
    for drive in drives().into_iter().take(1) {
        let run = || replay(&mut Disk::new(drive.spec.clone()).unwrap(), &drive.trace).service;
        assert_eq!(run(), run());
    }
}

#[test]
fn an_imported_drive_becomes_a_profile_and_back() {
    for drive in drives() {
        let toml = device::Profile::toml(
            drive.name,
            Vec::new(),
            Default::default(),
            &device::profile::Kind::Disk(drive.spec.clone()),
        )
        .unwrap();
        let file = format!("{}.toml", drive.name);
        let profile = device::Profile::parse(&file, &toml, &device::profile::find).unwrap();
        assert_eq!(profile.kind, device::profile::Kind::Disk(drive.spec), "{}", drive.name);
    }
}
