//! iostat and `sar -d` of sysstat 9 to 12: text and JSON. Columns are known by their headings, never by their places.

use super::{Format, Line, Reading, quoted};
use crate::{
    DeviceReport, Piece, PieceKind,
    json::{self, Json},
    text::number,
};
use record::Doubt;

pub(super) fn begins(line: &str) -> bool {
    is_banner(line)
        || heading(line).is_some()
        || line.trim_start().starts_with("avg-cpu:")
        || is_json(line)
}

/// `Linux 5.8.0-53-generic (ubuntu) 12/02/2021 _x86_64_ (2 CPU)`.
fn is_banner(line: &str) -> bool {
    line.starts_with("Linux ") && line.contains('(') && line.trim_end().ends_with("CPU)")
}

fn is_json(line: &str) -> bool {
    line.trim_start().starts_with("{\"sysstat\"")
}

/// The headings of a table of devices.
struct Heading<'a> {
    columns: Vec<&'a str>,
    place: DeviceColumn,
    /// How far the line is indented: a group's name is by one more.
    indent: usize,
}

/// Where a row names its device.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
enum DeviceColumn {
    #[default]
    First,
    /// `-h`, `--human`.
    Last,
    /// Behind sar's time, of so many words.
    AfterTime(usize),
}

fn heading(line: &str) -> Option<Heading<'_>> {
    let mut columns: Vec<&str> = line.split_whitespace().collect();
    let indent = indent(line);
    let known = |name: &&str| {
        let names = ["tps", "r/s", "w/s", "d/s", "f/s", "%util", "rrqm/s", "kB_read/s"];
        names.contains(name)
    };
    let place = if columns.first()?.trim_end_matches(':') == "Device" {
        columns.remove(0);
        DeviceColumn::First
    } else if columns.last()?.trim_end_matches(':') == "Device" {
        columns.pop();
        DeviceColumn::Last
    } else {
        // `20:16:47 DEV tps …`, `08:16:47 PM DEV tps …`.
        let time =
            columns.iter().position(|word| *word == "DEV").filter(|at| (1..=2).contains(at))?;
        columns.drain(..=time);
        DeviceColumn::AfterTime(time)
    };
    columns.iter().any(known).then_some(Heading { columns, place, indent })
}

fn indent(line: &str) -> usize {
    line.len() - line.trim_start().len()
}

/// `0.23`, and of --human `47.9%`, and `1.5M` where the column counts kilobytes.
fn value(text: &str) -> Option<f64> {
    let text = text.strip_suffix('%').unwrap_or(text);
    let kilobytes = match text.chars().last()? {
        'k' => 1.0,
        'M' => 1024.0,
        'G' => 1024.0 * 1024.0,
        _ => return number(text),
    };
    Some(number(&text[..text.len() - 1])? * kilobytes)
}

pub(super) fn read(lines: &[Line<'_>]) -> Reading {
    if is_json(lines[0].text) {
        return read_json(lines);
    }
    let mut reader = Reader::default();
    let mut used = 0;
    for line in lines {
        let text = line.text;
        let is_other =
            Format::ALL.iter().any(|format| *format != Format::Iostat && format.begins(text));
        if used > 0 && (is_other || (is_banner(text) && !reader.reports.is_empty())) {
            break;
        }
        if !reader.line(line) && used > 0 && !text.trim().is_empty() && !is_time(text) {
            break;
        }
        used += 1;
    }
    reader
        .end(lines[0])
        .map(|piece| Reading { lines: used.max(1), pieces: vec![piece] })
        .unwrap_or(Reading { lines: used.max(1), pieces: Vec::new() })
}

/// The line with the time before each report (`-t`): 12 or 24 hours, of any country.
fn is_time(line: &str) -> bool {
    let line = line.trim();
    let digits = line.bytes().filter(u8::is_ascii_digit).count();
    let marks = line.bytes().filter(|byte| matches!(byte, b':' | b'/' | b'-' | b'.')).count();
    line.len() < 40 && digits >= 6 && marks >= 2
}

#[derive(Default)]
struct Reader {
    columns: Vec<String>,
    place: DeviceColumn,
    indent: usize,
    /// Headings of the report: one of them again begins the next.
    seen: Vec<String>,
    reports: Vec<DeviceReport>,
    report: u64,
    began: bool,
    is_sar: bool,
    has_banner: bool,
    expects_cpu: bool,
    /// A device whose name was too long for its line.
    alone: Option<String>,
    last: u64,
}

impl Reader {
    /// Whether the line is iostat's.
    fn line(&mut self, line: &Line<'_>) -> bool {
        let text = line.text;
        if is_banner(text) {
            self.has_banner = true;
            return true;
        }
        if text.trim_start().starts_with("avg-cpu:") {
            self.expects_cpu = true;
            self.columns.clear();
            return true;
        }
        if let Some(Heading { columns, place, indent }) = heading(text) {
            self.columns = columns.into_iter().map(str::to_owned).collect();
            (self.place, self.indent) = (place, indent);
            self.is_sar = matches!(place, DeviceColumn::AfterTime(_));
            // --human prints a report in several tables.
            if self.columns.iter().any(|name| self.seen.contains(name))
                || place == DeviceColumn::First
            {
                self.report += u64::from(self.began);
                self.seen.clear();
            }
            self.seen.extend(self.columns.iter().cloned());
            self.began = true;
            return true;
        }
        let words: Vec<&str> = text.split_whitespace().collect();
        if self.expects_cpu && !words.is_empty() && words.iter().all(|word| value(word).is_some()) {
            self.expects_cpu = false;
            return true;
        }
        self.row(&words, line)
    }

    fn row(&mut self, words: &[&str], line: &Line<'_>) -> bool {
        if self.columns.is_empty() || words.is_empty() {
            return false;
        }
        let words = match (self.place, words) {
            // sar's means at the end.
            (DeviceColumn::AfterTime(_), ["Average:", ..]) => return true,
            (DeviceColumn::AfterTime(time), words) => words.get(time..).unwrap_or_default(),
            (_, words) => words,
        };
        let (device, values) = match (self.alone.take(), words) {
            (_, [values @ .., device])
                if self.place == DeviceColumn::Last && values.len() == self.columns.len() =>
            {
                ((*device).to_owned(), values)
            }
            (Some(device), values) if values.len() == self.columns.len() => (device, values),
            (_, [device]) if line.text.starts_with(|c: char| !c.is_whitespace()) => {
                self.alone = Some((*device).to_owned());
                return true;
            }
            (_, [device, values @ ..]) if values.len() == self.columns.len() => {
                ((*device).to_owned(), values)
            }
            _ => return false,
        };
        let values: Option<Vec<f64>> = values.iter().map(|text| value(text)).collect();
        let Some(values) = values else { return false };
        // A group (-g) is no device, and its %util is wrong in sysstat: divided by the number of the report, too.
        if self.place == DeviceColumn::First && indent(line.text) > self.indent {
            return true;
        }
        let columns: Vec<(String, f64)> = self.columns.iter().cloned().zip(values).collect();
        let device = device.trim_end_matches(':').to_owned();
        self.last = line.number;
        let report = self.report;
        let before =
            self.reports.iter_mut().rev().take_while(|it| it.report == report).find(|it| {
                it.device == device && columns.iter().all(|(name, _)| it.column(name).is_none())
            });
        if let Some(before) = before {
            before.columns.extend(columns);
            return true;
        }
        self.reports.push(DeviceReport {
            device,
            line: line.number,
            report: self.report,
            since_boot: false,
            columns,
        });
        true
    }

    fn end(mut self, first: Line<'_>) -> Option<Piece> {
        if self.reports.is_empty() {
            return None;
        }
        // Without -y the first report is of the time since boot. A part that was cut out of the middle has no
        // banner.
        if self.has_banner && !self.is_sar {
            since_boot(&mut self.reports);
        }
        Some(Piece {
            format: Format::Iostat,
            tool: if self.is_sar { "sar -d" } else { "iostat" }.to_owned(),
            first: first.number,
            last: self.last,
            kind: PieceKind::Devices(self.reports),
        })
    }
}

/// Whether the first report is of the time since boot. Only a command says -y, but counts show it: those of an interval of
/// whole seconds are whole numbers, and those since boot divided by the seconds since then are not.
fn since_boot(reports: &mut [DeviceReport]) {
    let first = || reports.iter().filter(|report| report.report == 0);
    let rates: Vec<f64> = first()
        .flat_map(|report| ["r/s", "w/s", "d/s", "f/s", "tps"].map(|name| report.column(name)))
        .flatten()
        .filter(|rate| *rate > 0.0)
        .collect();
    // The kernel's clock of these counts has hundredths of a second, and the program wakes up to three of them late.
    let is_interval = [100, 200, 500, 1000].into_iter().any(|interval| {
        (interval..=interval + 3).any(|hundredths| {
            let seconds = f64::from(hundredths) / 100.0;
            let off = |rate: &f64| (rate * seconds - (rate * seconds).round()).abs();
            let last_digit = 0.005 * seconds + 1e-9;
            // By chance each is whole with this probability.
            let chance = (2.0 * last_digit).powi(rates.len() as i32);
            chance < 1e-3 && rates.iter().all(|rate| off(rate) <= last_digit)
        })
    });
    for report in reports.iter_mut().filter(|report| report.report == 0) {
        report.since_boot = !is_interval;
    }
}

fn read_json(lines: &[Line<'_>]) -> Reading {
    let Some((object, used)) = json::object(lines) else {
        return Reading { lines: 1, pieces: Vec::new() };
    };
    let hosts = object.get("sysstat").and_then(|it| it.get("hosts"));
    let mut reports = Vec::new();
    for host in list(hosts) {
        for (report, statistics) in list(host.get("statistics")).iter().enumerate() {
            for disk in list(statistics.get("disk")) {
                let Json::Object(members) = disk else { continue };
                let Some(device) = disk.get("disk_device").and_then(Json::text) else { continue };
                // A group.
                if device.starts_with(' ') {
                    continue;
                }
                let columns = members
                    .iter()
                    .filter_map(|(name, value)| {
                        // JSON leaves out the signs of shares.
                        let name = match name.as_str() {
                            "util" => "%util",
                            "rrqm" => "%rrqm",
                            "wrqm" => "%wrqm",
                            "drqm" => "%drqm",
                            other => other,
                        };
                        Some((name.to_owned(), value.as_number()?))
                    })
                    .collect();
                let line = lines
                    .iter()
                    .take(used)
                    .filter(|line| line.text.contains(&format!("\"{device}\"")))
                    .nth(report)
                    .map_or(lines[0].number, |line| line.number);
                reports.push(DeviceReport {
                    device: device.to_owned(),
                    line,
                    report: report as u64,
                    since_boot: false,
                    columns,
                });
            }
        }
    }
    since_boot(&mut reports);
    let (first, last) = (lines[0].number, lines[used - 1].number);
    let pieces = match reports.is_empty() {
        true => Vec::new(),
        false => vec![Piece {
            format: Format::Iostat,
            tool: "iostat".to_owned(),
            first,
            last,
            kind: PieceKind::Devices(reports),
        }],
    };
    Reading { lines: used, pieces }
}

fn list(value: Option<&Json>) -> &[Json] {
    match value {
        Some(Json::List(all)) => all,
        _ => &[],
    }
}

/// What a report says that its own columns contradict, and what its columns mean where they mislead.
pub(crate) fn doubts(report: &DeviceReport, lines: &[Line<'_>]) -> Vec<Doubt> {
    let mut doubts = Vec::new();
    let at = || quoted(lines, report.line);
    if report.since_boot {
        doubts.push(Doubt::SinceBoot { at: at() });
    }
    let column = |name: &str| report.column(name).unwrap_or(0.0);
    let waiting =
        |kind: char| column(&format!("{kind}/s")) * column(&format!("{kind}_await")) / 1e3;
    let Some(queue) = report.column("aqu-sz").or(report.column("avgqu-sz")) else { return doubts };
    let others = waiting('w') + waiting('d') + waiting('f');
    let all = waiting('r') + others;
    let reads_are_flushes = column("r/s") > 0.0
        && column("rkB/s") + column("rMB/s") == 0.0
        && column("f/s") > 0.0
        && (column("r/s") - column("f/s")).abs() < 0.02;
    if reads_are_flushes {
        let (device, flushes) = (report.device.clone(), column("f/s"));
        doubts.push(Doubt::FlushesCountedAsReads { device, flushes, queue: others });
    }
    let has_waits = report.column("r_await").is_some() && report.column("w_await").is_some();
    // Rates and waits are printed with two decimals.
    if has_waits && all.max(queue) > 0.1 && (all - queue).abs() > 0.05 * all.max(queue) + 0.02 {
        let against = at();
        doubts.push(Doubt::Contradiction {
            what: format!("aqu-sz of {} against rates and waits", report.device),
            stated: queue,
            computed: all,
            at: at(),
            against,
        });
    }
    let longest = ["r_await", "w_await", "f_await"].map(column).into_iter().fold(0.0, f64::max);
    let busy = column("%util");
    if queue >= 1.0 && longest > 100.0 && busy > 0.0 && queue / (busy / 100.0) > 100.0 {
        doubts.push(Doubt::Stalls { device: report.device.clone(), queue, busy });
    }
    doubts
}
