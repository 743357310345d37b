//! Reports of iostat and vmstat: beside a run, or by themselves.

use crate::{DeviceReport, formats::iostat_doubts, line::Line};
use record::{CounterSample, Doubt, RateUnit};
use std::collections::{BTreeMap, BTreeSet};

/// What a part's reports say of the device that was busiest.
pub(crate) struct Devices<'a> {
    /// Its name; empty for a whole host.
    pub device: String,
    /// Its reports that are samples; where there is none, that since boot.
    pub counted: Vec<&'a DeviceReport>,
    /// A few of each kind.
    pub doubts: Vec<Doubt>,
}

impl<'a> Devices<'a> {
    /// Of the reports of one output.
    pub fn of(reports: &'a [DeviceReport], lines: &[Line<'_>]) -> Devices<'a> {
        let device = busiest(reports);
        let of_device = || reports.iter().filter(|report| report.device == device);
        let samples: Vec<&DeviceReport> = of_device().filter(|it| !it.since_boot).collect();
        let counted = if samples.is_empty() { of_device().collect() } else { samples };
        Devices { doubts: doubts_of(reports, &device, lines), counted, device }
    }

    /// How many devices the reports have.
    pub fn count(reports: &[DeviceReport]) -> usize {
        reports.iter().map(|report| report.device.as_str()).collect::<BTreeSet<_>>().len()
    }

    /// Its counters, by the catalogue's names; none since boot.
    pub fn counters(&self) -> Vec<CounterSample> {
        let samples = self.counted.iter().filter(|report| !report.since_boot);
        samples
            .map(|report| CounterSample { at: report.report as f64, values: counters_of(report) })
            .collect()
    }

    /// Its mean rate, and the line of the first report.
    pub fn rate(&self) -> Option<(f64, RateUnit, u64)> {
        let rates: Vec<(f64, RateUnit)> =
            self.counted.iter().filter_map(|it| rate_of(it)).collect();
        let (_, unit) = *rates.first()?;
        let mean = rates.iter().map(|(rate, _)| rate).sum::<f64>() / rates.len() as f64;
        Some((mean, unit, self.counted.first()?.line))
    }
}

/// A few of each kind, of the device that matters.
fn doubts_of(reports: &[DeviceReport], device: &str, lines: &[Line<'_>]) -> Vec<Doubt> {
    let mut all: Vec<Doubt> = Vec::new();
    for report in reports.iter().filter(|report| report.device == device) {
        let cut = [("r/s", "w/s", "writes"), ("w/s", "r/s", "reads")].into_iter().find(
            |(there, missing, _)| {
                report.column(there).is_some() && report.column(missing).is_none()
            },
        );
        let missing = cut.map(|(_, _, what)| Doubt::Incomplete {
            missing: format!("the column of {what} a second"),
        });
        for doubt in missing.into_iter().chain(iostat_doubts(report, lines)) {
            let same = |it: &Doubt| std::mem::discriminant(it) == std::mem::discriminant(&doubt);
            if !all.iter().any(same) {
                all.push(doubt);
            }
        }
    }
    all
}

/// The device with the most requests; that of a partition or a mapping above it has no more.
fn busiest(reports: &[DeviceReport]) -> String {
    let mut sums: BTreeMap<&str, f64> = BTreeMap::new();
    let has_samples = reports.iter().any(|report| !report.since_boot);
    for report in reports.iter().filter(|report| !(has_samples && report.since_boot)) {
        *sums.entry(&report.device).or_default() += rate_of(report).map_or(0.0, |(rate, _)| rate);
    }
    let found = sums.into_iter().max_by(|a, b| a.1.total_cmp(&b.1).then(b.0.cmp(a.0)));
    found.map(|(device, _)| device.to_owned()).unwrap_or_default()
}

fn rate_of(report: &DeviceReport) -> Option<(f64, RateUnit)> {
    let iops = match (report.column("r/s"), report.column("w/s")) {
        // Columns may be cut out: reads alone, or writes.
        (None, None) => report.column("tps"),
        (reads, writes) => Some(reads.unwrap_or(0.0) + writes.unwrap_or(0.0)),
    };
    if let Some(iops) = iops {
        return Some((iops, RateUnit::Iops));
    }
    let blocks = report.column("bi")? + report.column("bo")?;
    Some((blocks, RateUnit::BlocksPerSecond))
}

/// Columns by the catalogue's names.
fn counters_of(report: &DeviceReport) -> BTreeMap<String, f64> {
    let mut values = BTreeMap::new();
    for (name, value) in &report.columns {
        // Amounts are kept in MiB.
        let (name, value) = match name.as_str() {
            "rkB/s" => ("rMB/s", value / 1024.0),
            "wkB/s" => ("wMB/s", value / 1024.0),
            "dkB/s" => ("dMB/s", value / 1024.0),
            other => (other, *value),
        };
        if let Some((counter, scale)) = counters::lookup(&format!("device.{name}")) {
            values.insert(counter.id.to_owned(), value * scale);
        }
    }
    values
}
