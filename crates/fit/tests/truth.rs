//! Fits of models whose numbers are known.

#![allow(clippy::unwrap_used)]

use device::disk::{Geometry, SeekTable};
use device::profile::{self, Kind, Profile};
use fit::{Fit, Model, Quantity, fit};
use random::Stream;
use std::collections::BTreeMap;

fn fitted(name: &str, seed: u64) -> (Kind, Fit) {
    let profile = profile::find(name).unwrap();
    let mut model = Model::new(profile.build(seed).unwrap());
    let fit = fit(&mut model, seed, &mut |_| ()).unwrap();
    for number in &fit.numbers {
        let it = number.estimate;
        println!("{name} {:?}: {:.4} ({:.4} to {:.4})", number.quantity, it.value, it.low, it.high);
    }
    for cell in &fit.predictions {
        println!(
            "{name} {:?} {} x{}: {:.1} measured, {:.1} predicted, {:+.1} %",
            cell.kind,
            cell.block,
            cell.depth,
            cell.measured,
            cell.predicted,
            100.0 * cell.error()
        );
    }
    println!("{name} {:?}", fit.doubts);
    (profile.kind, fit)
}

fn value(fit: &Fit, quantity: Quantity) -> f64 {
    fit.numbers.iter().find(|number| number.quantity == quantity).unwrap().estimate.value
}

fn near(what: &str, found: f64, truth: f64, share: f64) {
    assert!((found / truth - 1.0).abs() <= share, "{what}: {found} for {truth}");
}

fn disk(name: &str) {
    let (Kind::Disk(truth), fit) = fitted(name, 3) else { panic!("no disk") };
    let Kind::Disk(found) = &fit.kind else { panic!("not taken for a disk") };
    near("turn", value(&fit, Quantity::Turn), truth.geometry.turn_ns as f64 / 1e6, 0.05);
    assert_eq!(found.policy, truth.policy);
    near("depth", found.depth.into(), truth.depth.into(), 0.05);
    let sides = [&truth, found].map(|spec| {
        let geometry = Geometry::new(&spec.geometry).unwrap();
        let table = SeekTable::new(&spec.seek, spec.geometry.cylinders).unwrap();
        (geometry, table)
    });
    let capacity = sides.iter().map(|(geometry, _)| geometry.capacity()).min().unwrap();
    for share in [0.003, 0.01, 0.1, 0.33, 0.6, 0.95] {
        let distance = (capacity as f64 * share) as u64;
        let mut stream = Stream::new(1, "pairs");
        let mut sums = [0.0; 2];
        for _ in 0..500 {
            let from = stream.below(capacity - distance);
            for (sum, (geometry, table)) in sums.iter_mut().zip(&sides) {
                let [from, to] = [from, from + distance].map(|at| geometry.locate(at).cylinder);
                *sum += f64::from(table.time_ns(from.abs_diff(to)));
            }
        }
        near(&format!("{name}: a seek over {share}"), sums[1], sums[0], 0.05);
    }
    let toml = Profile::toml("fitted", Vec::new(), BTreeMap::new(), &fit.kind).unwrap();
    let written = Profile::parse("fitted.toml", &toml, &profile::find).unwrap();
    let [truth, found] = [profile::find(name).unwrap(), written]
        .map(|profile| profile::measure(&profile, 1).unwrap().sequential);
    for (truth, found) in truth.iter().zip(&found) {
        let what = format!("{name}: the rate at {}", truth.position);
        near(&what, found.read_mb_s, truth.read_mb_s, 0.05);
    }
}

#[test]
fn a_disk_of_15000_rpm() {
    disk("hdd-15k");
}

#[test]
fn a_disk_of_7200_rpm() {
    disk("hdd-7200");
}

fn flash(name: &str) {
    let (_, fit) = fitted(name, 3);
    assert!(matches!(fit.kind, Kind::Flash(_)));
    for cell in &fit.predictions {
        assert!(cell.error().abs() < 0.15, "{name}: {cell:?}");
    }
}

#[test]
fn flash_of_2008() {
    flash("ssd-x25e");
}

#[test]
fn flash_behind_sata() {
    flash("ssd-sata-2018");
}

#[test]
fn flash_behind_nvme() {
    flash("ssd-nvme");
}
