//! The arm: what an access waits for, seek curves and measured seek tables.

use super::parse::Value;
use super::reader::Reader;
use crate::disk::{Access, SeekCurve};
use crate::drive_files::{DriveFileError, DriveFiles};

fn word(mechanics: &Reader<'_>, name: &str) -> Result<(String, usize), DriveFileError> {
    match mechanics.block.get(name) {
        Some((Value::Word(text) | Value::Source(text), line)) => Ok((text.clone(), line)),
        _ => Err(mechanics.missing(name)),
    }
}

pub(super) fn access(mechanics: &Reader<'_>) -> Result<Access, DriveFileError> {
    let (access, line) = word(mechanics, "Access time type")?;
    match access.as_str() {
        "trackSwitchPlusRotation" => Ok(Access::Positions),
        "averageRotation" => Ok(Access::HalfTurn),
        "constant" => {
            mechanics.number("Constant access time")?;
            Ok(Access::Constant(mechanics.time_ns("Constant access time")?))
        }
        other => {
            let what = format!(
                "unknown access time type '{other}': expected trackSwitchPlusRotation, \
                 averageRotation, constant"
            );
            Err(mechanics.wrong(line, what))
        }
    }
}

/// The seek curve to read, and that to write where the drive's table has one of its own.
pub(super) fn seek_curves(
    files: &DriveFiles,
    mechanics: &Reader<'_>,
    cylinders: u32,
) -> Result<(SeekCurve, Option<SeekCurve>), DriveFileError> {
    let (kind, line) = word(mechanics, "Seek type")?;
    if kind == "extracted" {
        let (name, line) = word(mechanics, "Full seek curve")?;
        let text = files.text(&name).ok_or_else(|| {
            mechanics.wrong(line, format!("names the seek file '{name}', which is not there"))
        })?;
        return seek_table(&name, text);
    }
    Ok((equation(mechanics, (&kind, line), cylinders)?, None))
}

fn equation(
    mechanics: &Reader<'_>,
    (kind, line): (&str, usize),
    cylinders: u32,
) -> Result<SeekCurve, DriveFileError> {
    let three_points = || -> Result<(f64, f64, f64), DriveFileError> {
        Ok((
            mechanics.number("Single cylinder seek time")?,
            mechanics.number("Average seek time")?,
            mechanics.number("Full strobe seek time")?,
        ))
    };
    match kind {
        "curve" => {
            let (single, average, full) = three_points()?;
            Ok(SeekCurve::ThreePoint { single, average, full })
        }
        "linear" => {
            let (single, average, full) = three_points()?;
            let cylinders = cylinders.max(4);
            // The mean distance of uniform random seeks is a third of the span.
            Ok(SeekCurve::Table(vec![(1, single), (cylinders / 3, average), (cylinders - 1, full)]))
        }
        "constant" => Ok(SeekCurve::Constant(match mechanics.optional("Constant seek time")? {
            Some(time) => time,
            None => mechanics.number("Average seek time")?,
        })),
        "hpl" | "hplplus10" => hpl_curve(mechanics, kind == "hplplus10"),
        other => {
            let what = format!(
                "unknown seek type '{other}': expected extracted, curve, linear, constant, hpl, \
                 hplplus10"
            );
            Err(mechanics.wrong(line, what))
        }
    }
}

/// The HPL equation: its values are (threshold,) base, root factor, base, linear factor, and the
/// time of one cylinder or −1. Files that leave the threshold out mean 300 cylinders.
fn hpl_curve(mechanics: &Reader<'_>, ten: bool) -> Result<SeekCurve, DriveFileError> {
    let name = "HPL seek equation values";
    let values: Vec<f64> = mechanics.numbers(name)?.into_iter().map(|(v, _)| v).collect();
    let (threshold, rest) = match values.len() {
        5 => (300.0, &values[..]),
        6 => (values[0], &values[1..]),
        n => {
            let what = format!("expected 5 or 6 numbers for '{name}', found {n}");
            return Err(mechanics.wrong(mechanics.line(name), what));
        }
    };
    let listed = "First ten seek times";
    let first: Vec<f64> = match ten {
        true => mechanics.numbers(listed)?.into_iter().map(|(v, _)| v).collect(),
        false if rest[4] >= 0.0 => vec![rest[4]],
        false => Vec::new(),
    };
    if ten && first.len() != 10 {
        let what = format!("expected 10 numbers for '{listed}', found {}", first.len());
        return Err(mechanics.wrong(mechanics.line(listed), what));
    }
    Ok(SeekCurve::RootLinear {
        first,
        threshold: threshold.max(0.0) as u32,
        root_base: rest[0],
        root_factor: rest[1],
        linear_base: rest[2],
        linear_factor: rest[3],
    })
}

/// Lines of cylinders, ms; of a spread in ms, which is not used; and of the ms to write.
fn seek_table(file: &str, text: &str) -> Result<(SeekCurve, Option<SeekCurve>), DriveFileError> {
    let wrong = |line: usize, what: String| DriveFileError::new(file, line, what);
    let mut lines = text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty());
    let header = "Seek distances measured:";
    let expected: usize = lines
        .next()
        .and_then(|(_, line)| line.trim().strip_prefix(header))
        .and_then(|number| number.trim().parse().ok())
        .ok_or_else(|| wrong(1, format!("expected '{header} N'")))?;
    let mut points: Vec<(u32, f64)> = Vec::new();
    let mut writes: Vec<(u32, f64)> = Vec::new();
    for (number, line) in lines {
        let (distance, times) = seek_point(line).ok_or_else(|| {
            let what = format!("expected 'cylinders, ms', found '{}'", line.trim());
            wrong(number + 1, what)
        })?;
        if points.last().is_some_and(|last| last.0 >= distance) {
            return Err(wrong(number + 1, format!("distance {distance} does not ascend")));
        }
        points.push((distance, times[0]));
        writes.extend(times.get(2).map(|ms| (distance, *ms)));
    }
    if points.len() != expected {
        let what =
            format!("announces {expected} distances and has {}: is it cut short?", points.len());
        return Err(wrong(text.lines().count(), what));
    }
    if !writes.is_empty() && writes.len() != points.len() {
        let what = format!("{} of {} distances have a time to write", writes.len(), points.len());
        return Err(wrong(text.lines().count(), what));
    }
    let writes = (!writes.is_empty()).then_some(SeekCurve::Table(writes));
    Ok((SeekCurve::Table(points), writes))
}

/// A distance and one to three times in ms.
fn seek_point(line: &str) -> Option<(u32, Vec<f64>)> {
    let (distance, rest) = line.split_once(',')?;
    let times = rest
        .split(',')
        .map(|word| word.trim().parse::<f64>().ok().filter(|ms| (0.0..1000.0).contains(ms)))
        // Whole nanoseconds: no arm is better known.
        .map(|ms| ms.map(|ms| (ms * 1e6).round() / 1e6))
        .collect::<Option<Vec<f64>>>()?;
    let distance = distance.trim().parse().ok()?;
    (1..=3).contains(&times.len()).then_some((distance, times))
}
