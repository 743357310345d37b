//! The profiles that come with the program, and what is said of profiles and files that are wrong.

use device::DriveFiles;
use device::disksim::{import, parse_trace};
use device::profile::{builtin_names, find, load, measure};
use device::{Profile, ProfileError};
use std::path::PathBuf;

fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../..")
}

#[test]
fn every_profile_in_the_folder_comes_with_the_program() {
    let mut files: Vec<String> = std::fs::read_dir(root().join("profiles"))
        .unwrap()
        .map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned())
        .filter_map(|name| name.strip_suffix(".toml").map(str::to_owned))
        .collect();
    files.sort();
    assert_eq!(files, builtin_names().collect::<Vec<_>>());
}

#[test]
fn every_number_of_every_profile_has_a_source() {
    for name in builtin_names() {
        let profile = find(name).unwrap();
        let table: toml::Table = profile.text.parse().unwrap();
        let sections = ["disk", "array", "flash"];
        let section = sections.iter().find_map(|s| table.get(*s)?.as_table()).unwrap();
        for field in section.keys() {
            assert!(profile.sources.contains_key(field), "{name}: no source for {field}");
        }
        for field in profile.sources.keys() {
            assert!(
                section.contains_key(field),
                "{name}: a source for {field}, which is not there"
            );
        }
    }
}

#[test]
fn every_kind_of_device_has_a_page() {
    for kind in ["disk", "array", "flash"] {
        let page = root().join(format!("docs/reference/devices/{kind}.md"));
        assert!(page.is_file(), "{} is missing", page.display());
    }
}

#[test]
fn profiles_build_and_do_what_their_class_does() {
    // Published figures that each profile's class is known for, in wide brackets.
    let sheet = |name: &str| measure(&find(name).unwrap(), 1).unwrap();
    let disk = sheet("hdd-15k");
    let at = |sheet: &device::profile::Sheet, depth: u32| {
        sheet.random.iter().find(|row| row.depth == depth).unwrap().clone()
    };
    assert!((disk.capacity.0 as f64 / 146e9 - 1.0).abs() < 0.05);
    assert!((170.0..182.0).contains(&at(&disk, 1).read_iops), "3.5 + 2 + 0.2 ms");
    // 73 to 125 MB/s by the data sheet.
    assert!((110.0..135.0).contains(&disk.sequential[0].read_mb_s));
    assert!((68.0..85.0).contains(&disk.sequential[4].read_mb_s));

    let x25e = sheet("ssd-x25e");
    let mean = at(&x25e, 1).read_mean.as_micros_f64();
    assert!((mean - 75.0).abs() < 3.0, "{mean} µs, data sheet 75");
    assert!((at(&x25e, 32).read_iops / 35_000.0 - 1.0).abs() < 0.03);
    assert!((x25e.sequential[0].read_mb_s / 250.0 - 1.0).abs() < 0.03);

    let sata = sheet("ssd-sata-2018");
    assert!((at(&sata, 1).read_iops / 10_000.0 - 1.0).abs() < 0.05);
    assert!((at(&sata, 32).read_iops / 98_000.0 - 1.0).abs() < 0.05);
    assert!((sata.sequential[0].read_mb_s / 550.0 - 1.0).abs() < 0.03);

    // The sheet is the same every time.
    assert_eq!(sata, sheet("ssd-sata-2018"));
}

#[test]
fn every_profile_builds() {
    for name in builtin_names() {
        let profile = find(name).unwrap();
        let device = profile.build(1).unwrap();
        assert!(device.capacity().0 > 0, "{name}");
        assert!(!profile.kind_name().is_empty());
    }
}

/// The message for the disk profile with `from` replaced by `to`.
fn message(from: &str, to: &str) -> String {
    let text = find("hdd-15k").unwrap().text;
    assert!(text.contains(from));
    let text = text.replace(from, to);
    Profile::parse("mine.toml", &text, &find).unwrap_err().to_string()
}

#[test]
fn wrong_profiles_are_told_what_and_where() {
    let line = |needle: &str| {
        let text = find("hdd-15k").unwrap().text;
        text.lines().position(|line| line.contains(needle)).unwrap() + 1
    };
    for (from, to, says) in [
        ("head_switch = \"0.2 ms\"", "head_switch = 0.2", "with its unit"),
        ("head_switch = \"0.2 ms\"", "head_switch = \"0.2\"", "no unit"),
        ("head_switch = \"0.2 ms\"", "head_switch = \"0.2 parsecs\"", "parsecs"),
        ("head_switch = \"0.2 ms\"", "head_swich = \"0.2 ms\"", "head_swich"),
        ("rotation = \"15000 rpm\"", "rotation = \"15000\"", "unit"),
        ("rotation = \"15000 rpm\"", "rotation = \"0 rpm\"", "out of range"),
    ] {
        let message = message(from, to);
        let place = format!("mine.toml, line {}", line(from));
        assert!(message.contains(&place) && message.contains(says), "{message}");
    }
    for (from, to, says) in [
        ("heads = 4", "heads = 0", "expected 1 to 1024"),
        ("count = 14", "count = 0", "0 zones"),
        ("policy = \"sptf\", depth = 64", "policy = \"sptf\", depth = 0", "depth of 0"),
        ("full = \"7 ms\"", "full = \"2000 ms\"", "expected 0 to 1000 ms"),
    ] {
        let message = message(from, to);
        let place = format!("mine.toml, line {}", line("[disk]"));
        assert!(message.contains(&place) && message.contains(says), "{message}");
    }
}

#[test]
fn unknown_names_are_told_near_ones() {
    let message = load("hdd15k").unwrap_err().to_string();
    assert!(message.contains("did you mean hdd-15k"), "{message}");
    let error = load("/nowhere/at/all.toml").unwrap_err();
    assert!(matches!(error, ProfileError::Unreadable { .. }), "{error}");
}

const SPECS: &str = include_str!("drive/small.diskspecs");
const MODEL: &str = include_str!("drive/small.model");
const SEEK: &str = include_str!("drive/small.seek");

fn drive(specs: &str, model: &str, seek: &str) -> Result<device::disk::DiskSpec, String> {
    let file = |name: &str, text: &str| (name.to_owned(), text.to_owned());
    let files =
        vec![file("small.diskspecs", specs), file("small.model", model), file("small.seek", seek)];
    import(&DriveFiles { files }, None)
        .map(|imported| imported.spec)
        .map_err(|error| error.to_string())
}

#[test]
fn a_drive_of_every_published_code_can_be_read() {
    for (name, codes) in [
        ("Sparing scheme used", &[0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10][..]),
        ("LBN-to-PBN mapping scheme", &[0, 1, 2]),
    ] {
        for code in codes {
            // What is a spare depends on the scheme.
            let model = MODEL.replace("5, 1166,", "");
            let model = replace_value(&model, name, &code.to_string());
            let spec = drive(SPECS, &model, SEEK).unwrap_or_else(|e| panic!("{name} {code}: {e}"));
            device::Disk::new(spec).unwrap();
        }
    }
    for (name, codes) in
        [("Buffer continuous read", &[0, 1, 2, 3, 4][..]), ("Fast write level", &[0, 1, 2])]
    {
        for code in codes {
            let specs = replace_value(SPECS, name, &code.to_string());
            drive(&specs, MODEL, SEEK).unwrap_or_else(|e| panic!("{name} {code}: {e}"));
        }
    }
}

#[test]
fn switches_take_all_numbers_that_the_manual_allows() {
    for (name, values, on) in [
        ("Enable caching in buffer", ["1", "2"], true),
        ("Read-ahead over requested", ["-1", "1"], true),
        ("Immediate buffer read", ["1", "2"], true),
    ] {
        for value in values {
            let spec = drive(&replace_value(SPECS, name, value), MODEL, SEEK).unwrap();
            let read = match name {
                "Enable caching in buffer" => spec.cache.segments > 0,
                "Read-ahead over requested" => spec.cache.over_requested,
                _ => spec.cache.read_on_arrival,
            };
            assert_eq!(read, on, "{name} = {value}");
        }
        let wrong = drive(&replace_value(SPECS, name, "3"), MODEL, SEEK).unwrap_err();
        assert!(wrong.contains(name) && wrong.contains("small.diskspecs, line"), "{wrong}");
    }
}

#[test]
fn skews_may_be_told_in_revolutions() {
    let model = MODEL
        .replace(
            "Rangesize for sparing = 4,",
            "Rangesize for sparing = 4, Skew units = revolutions,",
        )
        .replace("= 7.000000", "= 0.175")
        .replace("= 9.000000", "= 0.225")
        .replace("Offset of first block = 3,", "Offset of first block = 3, Skew units = sectors,");
    let (turns, sectors) =
        (drive(SPECS, &model, SEEK).unwrap(), drive(SPECS, MODEL, SEEK).unwrap());
    assert_eq!(turns.geometry, sectors.geometry);
    let wrong = drive(SPECS, &model.replace("= revolutions", "= furlongs"), SEEK).unwrap_err();
    assert!(wrong.contains("'Skew units'") && wrong.contains("revolutions"), "{wrong}");
}

#[test]
fn every_seek_type_gives_its_published_points() {
    let with = |kind: &str, more: &str| {
        let model = replace_value(MODEL, "Seek type", kind).replace(
            "Full strobe seek time = 4.0,",
            &format!("Full strobe seek time = 4.0, Average seek time = 2.0, {more}"),
        );
        let spec = drive(SPECS, &model, SEEK).unwrap_or_else(|e| panic!("{kind}: {e}"));
        device::disk::SeekTable::new(&spec.seek, 30).unwrap()
    };
    let linear = with("linear", "");
    assert_eq!([1, 10, 29].map(|d| linear.time_ns(d)), [1_000_000, 2_000_000, 4_000_000]);
    let constant = with("constant", "Constant seek time = 3.5,");
    assert_eq!([1, 29].map(|d| constant.time_ns(d)), [3_500_000, 3_500_000]);
    let curve = with("curve", "");
    assert_eq!(curve.time_ns(1), 1_000_000);
    let hpl = with("hpl", "HPL seek equation values = [ 10, 1.0, 0.5, 2.0, 0.01, -1.0 ],");
    assert_eq!([4, 20].map(|d| hpl.time_ns(d)), [2_000_000, 2_200_000]);
    let ten = "HPL seek equation values = [ 10, 1.0, 0.5, 2.0, 0.01, -1.0 ], \
               First ten seek times = [ 1, 2, 3, 4, 5, 6, 7, 8, 9, 10 ],";
    assert_eq!(with("hplplus10", ten).time_ns(3), 3_000_000);
}

#[test]
fn overheads_are_scaled_and_every_request_has_its_own() {
    let specs = SPECS.replace(
        "Never disconnect = 0,",
        "Never disconnect = 0, Time scale for overheads = 2.0, Per-request overhead time = 0.01,",
    );
    let spec = drive(&specs, MODEL, SEEK).unwrap();
    assert_eq!(spec.overheads.read_hit.read_ns, 220_000);
    assert_eq!(spec.overheads.write_miss.write_ns, 1_020_000);
}

#[test]
fn a_folder_of_several_drives_asks_for_a_name() {
    let other =
        SPECS.replace("SMALL", "OTHER").replace("Max queue length = 1", "Max queue length = 4");
    let bus = |source: &str, time: f64| {
        format!("source {source}\ndisksim_bus BUS1 {{ Read block transfer time = {time} }}\n")
    };
    let file = |name: &str, text: &str| (name.to_owned(), text.to_owned());
    let files = DriveFiles {
        files: vec![
            file("valid/small.diskspecs", SPECS),
            file("valid/other.diskspecs", &other),
            file("valid/small.parv", &bus("small.diskspecs", 0.1)),
            file("valid/other.parv", &bus("other.diskspecs", 0.2)),
            file("valid/small.model", MODEL),
            file("valid/small.seek", SEEK),
        ],
    };
    let message = import(&files, None).unwrap_err().to_string();
    assert!(message.contains("2 drives") && message.contains("small, other"), "{message}");
    for (name, depth, sector_ns) in
        [("small", 1, 100_000), ("other", 4, 200_000), ("OTHER", 4, 200_000)]
    {
        let imported = import(&files, Some(name)).unwrap();
        let (is, bus) = (imported.spec.depth, imported.spec.bus.read_sector_ns);
        assert_eq!((is, bus), (depth, sector_ns), "{name}");
    }
    let message = import(&files, Some("third")).unwrap_err().to_string();
    assert!(message.contains("no drive 'third'") && message.contains("small"), "{message}");
}

#[test]
fn what_a_drive_asks_for_in_vain_is_told() {
    let specs =
        SPECS.replace("Never disconnect = 0,", "Never disconnect = 0, Preseeking level = 2,");
    let file = |name: &str, text: &str| (name.to_owned(), text.to_owned());
    let files =
        vec![file("small.diskspecs", &specs), file("small.model", MODEL), file("small.seek", SEEK)];
    let notes = import(&DriveFiles { files }, None).unwrap().notes;
    assert_eq!(notes, ["'Preseeking level = 2' is not modelled: taken as 0"]);
}

fn replace_value(text: &str, name: &str, value: &str) -> String {
    text.lines()
        .map(|line| match line.trim_start().starts_with(name) {
            true => format!("{name} = {value},\n"),
            false => format!("{line}\n"),
        })
        .collect()
}

#[test]
fn wrong_drive_files_are_told_what_and_where() {
    let line =
        |text: &str, needle: &str| text.lines().position(|line| line.contains(needle)).unwrap() + 1;
    let check = |error: String, says: &[&str]| {
        for part in says {
            assert!(error.contains(part), "'{part}' is not in: {error}");
        }
    };
    let name = "Sparing scheme used";
    let wrong = drive(SPECS, &replace_value(MODEL, name, "42"), SEEK).unwrap_err();
    let place = format!("small.model, line {}", line(MODEL, name));
    check(wrong, &[&place, "unknown code 42", "9 zone"]);

    let name = "Buffer continuous read";
    let wrong = drive(&replace_value(SPECS, name, "7"), MODEL, SEEK).unwrap_err();
    let place = format!("small.diskspecs, line {}", line(SPECS, name));
    check(wrong, &[&place, "unknown code 7", "4 next track"]);

    let name = "Head switch time";
    let wrong = drive(SPECS, &replace_value(MODEL, name, "soon"), SEEK).unwrap_err();
    check(wrong, &["small.model, line", "expected a number", "'soon'"]);

    let cut = &MODEL[..MODEL.len() / 2];
    check(drive(SPECS, cut, SEEK).unwrap_err(), &["small.model, line", "cut short"]);
    let cut = &SPECS[..SPECS.len() / 2];
    check(drive(cut, MODEL, SEEK).unwrap_err(), &["small.diskspecs, line", "cut short"]);
    let cut: String = SEEK.lines().take(3).map(|line| format!("{line}\n")).collect();
    check(drive(SPECS, MODEL, &cut).unwrap_err(), &["small.seek, line 3", "cut short"]);
    let odd = SEEK.replace("10,", "ten,");
    check(drive(SPECS, MODEL, &odd).unwrap_err(), &["small.seek, line", "cylinders, ms"]);

    let none = import(&DriveFiles::default(), None).unwrap_err().to_string();
    check(none, &["no .diskspecs"]);
    let trace = parse_trace("t.trace", "R Hit 10 4 100.0 5.0\nR Hit 10\n").unwrap_err();
    check(trace.to_string(), &["t.trace, line 2", "6 columns"]);
    let trace = parse_trace("t.trace", "X Hit 10 4 100.0 5.0\n").unwrap_err();
    check(trace.to_string(), &["t.trace, line 1", "expected R or W"]);
}
