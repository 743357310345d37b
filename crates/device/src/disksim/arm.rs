//! The arm: seek curves and measured seek tables.

use super::DriveFileError;
use super::import::DriveFiles;
use super::parse::Value;
use super::reader::Reader;
use crate::disk::SeekCurve;

pub(super) fn seek_curve(
    files: &DriveFiles,
    mechanics: &Reader<'_>,
    cylinders: u32,
) -> Result<SeekCurve, DriveFileError> {
    let word = |name: &str| match mechanics.block.get(name) {
        Some((Value::Word(text) | Value::Source(text), line)) => Ok((text.clone(), line)),
        _ => Err(mechanics.missing(name)),
    };
    let (access, line) = word("Access time type")?;
    if access != "trackSwitchPlusRotation" {
        let what = format!(
            "the access time type '{access}' is not modelled: expected trackSwitchPlusRotation"
        );
        return Err(mechanics.wrong(line, what));
    }
    let (kind, line) = word("Seek type")?;
    let three_points = || -> Result<(f64, f64, f64), DriveFileError> {
        Ok((
            mechanics.number("Single cylinder seek time")?,
            mechanics.number("Average seek time")?,
            mechanics.number("Full strobe seek time")?,
        ))
    };
    match kind.as_str() {
        "extracted" => {
            let (name, line) = word("Full seek curve")?;
            let text = files.text(&name).ok_or_else(|| {
                mechanics.wrong(line, format!("names the seek file '{name}', which is not there"))
            })?;
            seek_table(&name, text)
        }
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

fn seek_table(file: &str, text: &str) -> Result<SeekCurve, DriveFileError> {
    let wrong = |line: usize, what: String| DriveFileError::new(file, line, what);
    let mut lines = text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty());
    let header = "Seek distances measured:";
    let expected: usize = lines
        .next()
        .and_then(|(_, line)| line.trim().strip_prefix(header))
        .and_then(|number| number.trim().parse().ok())
        .ok_or_else(|| wrong(1, format!("expected '{header} N'")))?;
    let mut points: Vec<(u32, f64)> = Vec::with_capacity(expected);
    for (number, line) in lines {
        let point = line
            .split_once(',')
            .and_then(|(d, ms)| Some((d.trim().parse().ok()?, ms.trim().parse::<f64>().ok()?)))
            .filter(|(_, ms)| (0.0..1000.0).contains(ms))
            // Whole nanoseconds: no arm is better known.
            .map(|(d, ms)| (d, (ms * 1e6).round() / 1e6))
            .ok_or_else(|| {
                wrong(number + 1, format!("expected 'cylinders, ms', found '{}'", line.trim()))
            })?;
        if points.last().is_some_and(|last| last.0 >= point.0) {
            let what = format!("distance {} does not ascend", point.0);
            return Err(wrong(number + 1, what));
        }
        points.push(point);
    }
    if points.len() != expected {
        let what =
            format!("announces {expected} distances and has {}: is it cut short?", points.len());
        return Err(wrong(text.lines().count(), what));
    }
    Ok(SeekCurve::Table(points))
}
