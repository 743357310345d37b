//! Layouts told as an index, and what accesses wait for, in drives that were never built.

use device::DriveFiles;
use device::disk::{Access, DiskSpec, Geometry};
use device::disksim::import;
use device::profile::Kind;
use device::{Device, Disk, Profile, Request};
use std::collections::BTreeSet;
use units::Nanos;

const SPECS: &str = include_str!("drive/small.diskspecs");
const MODEL: &str = include_str!("drive/bands.model");
const LAYOUT: &str = include_str!("drive/bands.layout");
const SEEKS: &str = include_str!("drive/bands.seeks");

fn drive(model: &str, layout: &str, seeks: &str) -> Result<DiskSpec, String> {
    let specs = SPECS.replace("small.model", "bands.model");
    let file = |name: &str, text: &str| (name.to_owned(), text.to_owned());
    let files = vec![
        file("bands.diskspecs", &specs),
        file("bands.model", model),
        file("bands.layout", layout),
        file("bands.seeks", seeks),
    ];
    import(&DriveFiles { files }, None)
        .map(|imported| imported.spec)
        .map_err(|error| error.to_string())
}

fn bands() -> DiskSpec {
    drive(MODEL, LAYOUT, SEEKS).unwrap()
}

#[test]
fn blocks_fill_a_band_surface_by_surface() {
    let geometry = Geometry::new(&bands().geometry).unwrap();
    assert_eq!(geometry.capacity(), 912 + 224 - 3);
    let turn = 10_000_000.0;
    for (block, cylinder, head, sector, angle) in [
        (0, 0, 0, 0, 0.0),
        (9, 0, 0, 9, 9.0 / 40.0),
        // Two places are slipped here, and one at place 45.
        (10, 0, 0, 12, 12.0 / 40.0),
        (38, 1, 0, 0, 0.25),
        (43, 1, 0, 6, 0.25 + 6.0 / 40.0),
        // The other surface, from the band's last cylinder back.
        (157, 3, 1, 0, 0.1),
        (157 + 36, 2, 1, 0, 0.35),
        // The next band.
        (301, 4, 0, 0, 0.15),
        // The inner bands, whose tracks hold blocks from sector 2 on.
        (909, 13, 0, 2, 0.3 + 0.5 + 2.0 / 30.0),
        (909 + 112 + 56, 16, 1, 2, 0.3 + 0.4 + 2.0 / 30.0),
        // A remapped block.
        (397, 17, 0, 3, 3.0 / 30.0),
    ] {
        let place = geometry.locate(block);
        assert_eq!((place.cylinder, place.head, place.sector), (cylinder, head, sector), "{block}");
        let off = (f64::from(place.angle_ns) / turn - angle).rem_euclid(1.0);
        assert!(off.min(1.0 - off) < 1e-6, "{block}: {} ns", place.angle_ns);
    }
}

#[test]
fn extents_are_what_lies_on_a_track_and_none_is_left_out() {
    let geometry = Geometry::new(&bands().geometry).unwrap();
    let places: BTreeSet<_> = (0..geometry.capacity())
        .map(|block| geometry.locate(block))
        .map(|place| (place.cylinder, place.head, place.sector))
        .collect();
    assert_eq!(places.len() as u64, geometry.capacity());
    for max in [1, 3, 7, u64::MAX] {
        let mut block = 0;
        while block < geometry.capacity() {
            let extent = geometry.extent(block, max);
            let (first, last) = (extent.place, geometry.locate(block + extent.blocks - 1));
            assert!((1..=max).contains(&extent.blocks));
            assert_eq!(first, geometry.locate(block));
            assert_eq!((first.cylinder, first.head), (last.cylinder, last.head), "{block}");
            assert_eq!(u64::from(last.sector - first.sector) + 1, extent.sectors, "{block}");
            block += extent.blocks;
        }
        assert_eq!(block, geometry.capacity());
    }
    // The slips lie inside one extent, the remapped block in one of its own.
    assert_eq!((geometry.extent(0, 100).blocks, geometry.extent(0, 100).sectors), (38, 40));
    assert_eq!(geometry.extent(397, 100).blocks, 1);
}

#[test]
fn an_index_and_its_seeks_become_a_profile_and_back() {
    for access in [Access::Positions, Access::HalfTurn, Access::Constant(7_000_000)] {
        let spec = DiskSpec { access, ..bands() };
        let toml = Profile::toml(
            "bands",
            Vec::new(),
            Default::default(),
            &device::profile::Kind::Disk(spec.clone()),
        )
        .unwrap();
        let profile = Profile::parse("bands.toml", &toml, &device::profile::find).unwrap();
        assert_eq!(profile.kind, Kind::Disk(spec));
    }
}

#[test]
fn a_drive_that_counts_other_blocks_than_it_holds_is_told_so() {
    let notes = |count: &str| {
        let specs = SPECS.replace("small.model", "bands.model");
        let model = MODEL.replace("= 1133", count);
        let file = |name: &str, text: &str| (name.to_owned(), text.to_owned());
        let files = vec![
            file("bands.diskspecs", &specs),
            file("bands.model", &model),
            file("bands.layout", LAYOUT),
            file("bands.seeks", SEEKS),
        ];
        import(&DriveFiles { files }, None).unwrap().notes
    };
    assert_eq!(notes("= 1133"), Vec::<String>::new());
    let told = notes("= 1100");
    assert!(told.len() == 1 && told[0].contains("1100") && told[0].contains("1133"), "{told:?}");
}

#[test]
fn wrong_indices_are_told_what_and_where() {
    let line = |needle: &str| LAYOUT.lines().position(|l| l.contains(needle)).unwrap() + 1;
    for (from, to, at, says) in [
        ("TRACK,     0,    0,", "TRICK,     0,    0,", "TRICK", "TRACK"),
        ("160,         4,     TRACK", "160,         four,  TRACK", "TRACK,     0,", "'four'"),
        ("IDX,     1 ]", "IDX ]", "IDX,     1 ]", "ends before child"),
        ("IDX,     1 ]", "IDX,     2 ]", "dm_layout_g4", "node 2"),
        ("TRACK,     0,    0,", "TRACK,     7,    0,", "dm_layout_g4", "track pattern 7"),
        ("TRACK,     0,    0,", "TRACK,     0,    2,", "dm_layout_g4", "head 2"),
        ("160,   3, 0.1", "161,   3, 0.1", "dm_layout_g4", "begins at 161"),
        ("160,   3, 0.1,  36", "160,   3, 0.1,  37", "dm_layout_g4", "holds 36"),
        ("0, 39, 40", "0, 40, 40", "dm_layout_g4", "track pattern 0"),
        // Both bands on the same cylinders, one step short of apart.
        ("304,      4, 0.15", "304,      3, 0.15", "dm_layout_g4", "holds two blocks"),
        ("912,  13, 0.3", "912,  11, 0.3", "dm_layout_g4", "holds two blocks"),
        ("10, 2, 45, 1", "10, 2, 11, 1", "dm_layout_g4", "slip of 1 at 11"),
        ("45, 1 ]", "2000, 1 ]", "dm_layout_g4", "slip of 1 at 2000"),
        ("45, 1 ]", "45 ]", "Slips", "ends before its length"),
        ("17, 0, 3, 30", "17, 0, 30, 30", "dm_layout_g4", "remap of 1 at 400"),
        ("17, 0, 3, 30", "0, 0, 5, 40", "dm_layout_g4", "holds two blocks"),
    ] {
        let layout = LAYOUT.replacen(from, to, 1);
        assert_ne!(layout, LAYOUT, "{from}");
        let at = if at == "TRICK" { "TRACK,     0," } else { at };
        let wrong = drive(MODEL, &layout, SEEKS).unwrap_err();
        let place = format!("bands.layout, line {}", line(at));
        assert!(wrong.starts_with(&place) && wrong.contains(says), "{place}, {says}: {wrong}");
    }
    let missing = MODEL.replace("bands.layout", "other.layout");
    let wrong = drive(&missing, LAYOUT, SEEKS).unwrap_err();
    assert!(wrong.contains("bands.model, line 5") && wrong.contains("other.layout"), "{wrong}");
    // What no published text describes is refused, and the message says so.
    let second = "dm_layout_g2 {\n Layout Map File = raw.layout,\n Zones = []\n}\n";
    let wrong = drive(MODEL, second, SEEKS).unwrap_err();
    assert!(wrong.starts_with("bands.layout, line 1") && wrong.contains("Layout Map"), "{wrong}");
    let wrong = drive(MODEL, LAYOUT, &SEEKS.replace("0.03, 2.5", "0.03")).unwrap_err();
    assert!(wrong.contains("bands.seeks, line 4") && wrong.contains("2 of 3"), "{wrong}");
}

/// The time of one request on a drive whose buffer and bus cost nothing.
fn alone(spec: &DiskSpec, request: Request) -> f64 {
    let mut spec = spec.clone();
    spec.overheads = Default::default();
    (spec.bus.read_sector_ns, spec.bus.write_sector_ns) = (0, 0);
    spec.write_cache = device::disk::WriteCache::Off;
    let mut disk = Disk::new(spec).unwrap();
    disk.submit(request, Nanos::ZERO);
    let mut done = Vec::new();
    while let Some(event) = disk.next_event() {
        disk.advance(event, &mut done);
    }
    (done[0].at - done[0].submitted).as_millis_f64()
}

#[test]
fn accesses_wait_for_what_their_type_says() {
    let kind = |name: &str| {
        let model = MODEL.replace("= trackSwitchPlusRotation", &format!("= {name}"));
        drive(&model, LAYOUT, SEEKS)
    };
    let near = |is: f64, wanted: f64| assert!((is - wanted).abs() < 1e-3, "{is}, not {wanted}");
    // Block 301 is 4 cylinders away: 1.75 ms, 2.25 ms to write. It comes round at 1.5 ms of a turn.
    let turns = bands();
    near(alone(&turns, Request::read(0, 301, 1)), 11.5 + 0.25);
    let half = kind("averageRotation").unwrap();
    assert_eq!(half.access, Access::HalfTurn);
    near(alone(&half, Request::read(0, 301, 4)), 1.75 + 5.0 + 1.0);
    near(alone(&half, Request::write(0, 301, 4)), 2.25 + 5.0 + 1.0);
    // Half a turn for the access, not for each of its tracks: 43 blocks on two, a seek apart.
    near(alone(&half, Request::read(0, 301, 43)), 1.75 + 5.0 + 10.0 + 1.0 + 0.75);
    let constant = kind("constant,\n Constant access time = 12.5").unwrap();
    assert_eq!(constant.access, Access::Constant(12_500_000));
    for request in [Request::read(0, 301, 4), Request::read(0, 900, 1), Request::write(0, 5, 80)] {
        near(alone(&constant, request), 12.5);
    }
    for (name, says) in [("constant", "no parameter 'Constant access time'"), ("guess", "'guess'")]
    {
        let wrong = kind(name).unwrap_err();
        assert!(wrong.starts_with("bands.model, line") && wrong.contains(says), "{wrong}");
    }
}
