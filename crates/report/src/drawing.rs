//! An event log as a picture: requests over time and place, the queue, the heads.

use crate::{Align, Table};
use record::{EventLog, RequestLife};
use std::{collections::BTreeMap, fmt::Write};
use units::Nanos;

/// Rows of the terminal's picture.
const ROWS: usize = 18;
/// Requests in a picture when no time is named.
const DEFAULT_REQUESTS: usize = 300;
/// Columns left of the terminal's picture.
const MARGIN: usize = 10;
/// Lives that are listed.
const LIVES: usize = 5;

/// What of a log is drawn: from its beginning until `end_ns`.
struct Window<'a> {
    requests: Vec<&'a RequestLife>,
    end_ns: i64,
    sectors: (u64, u64),
}

impl<'a> Window<'a> {
    fn of(log: &'a EventLog, length: Option<Nanos>) -> Option<Window<'a>> {
        let end_ns = match length {
            Some(length) => length.0 as i64,
            None => log.requests.get(DEFAULT_REQUESTS).or(log.requests.last())?.done_ns,
        };
        let inside = |r: &&RequestLife| r.queued_ns < end_ns && r.done_ns > 0;
        let requests: Vec<_> = log.requests.iter().filter(inside).collect();
        let moves = requests.iter().filter(|r| matches!(r.op, 'R' | 'W'));
        let low = moves.clone().map(|r| r.start).min()?;
        let high = moves.map(|r| r.start + r.sectors).max()?;
        Some(Window { requests, end_ns: end_ns.max(1), sectors: (low, high.max(low + 1)) })
    }

    /// 0 to 1 from the window's first to its last sector.
    fn place(&self, sector: u64) -> f64 {
        let (low, high) = self.sectors;
        sector.saturating_sub(low) as f64 / (high - low) as f64
    }

    /// 0 to 1 from the window's beginning to its end.
    fn time(&self, at_ns: i64) -> f64 {
        (at_ns.max(0) as f64 / self.end_ns as f64).min(1.0)
    }

    /// Requests (waiting before the device, at the device) at a moment.
    fn queue_at(&self, at_ns: i64) -> (u32, u32) {
        let in_between = |from: i64, to: i64| u32::from(from <= at_ns && at_ns < to);
        self.requests.iter().fold((0, 0), |(waiting, out), r| {
            (
                waiting + in_between(r.queued_ns, r.dispatched_ns),
                out + in_between(r.dispatched_ns, r.done_ns),
            )
        })
    }
}

/// A log for a terminal: where requests went to the device over time, the queue, the longest lives.
/// Without a `length` it shows the first few hundred requests.
pub fn events_terminal(log: &EventLog, label: &str, length: Option<Nanos>, width: usize) -> String {
    let mut text = format!("Events of: {label} (simulated)\nEvent hash {:016x}\n", log.hash);
    let Some(window) = Window::of(log, length) else {
        text.push_str("There were no requests in this time: name a longer one with --window.\n");
        return text;
    };
    let columns = width.saturating_sub(MARGIN + 1).max(10);
    let grid = grid(&window, columns);
    text.push_str(
        "\nRequests as they go to the device: r read, w write, x both, by place and time\n",
    );
    for (row, line) in grid.iter().enumerate() {
        let name = match row {
            0 => format!("{:>9}", sector_name(window.sectors.0)),
            _ if row + 1 == ROWS => format!("{:>9}", sector_name(window.sectors.1)),
            _ => " ".repeat(9),
        };
        let line: String = line.iter().collect();
        let _ = writeln!(text, "{name} |{}", line.trim_end());
    }
    // In 128 bits: a log says how long it is.
    let (end, parts) = (i128::from(window.end_ns), 2 * columns as i128);
    let moments = (0..columns).map(|c| ((c as i128 * 2 + 1) * end / parts) as i64);
    let (waiting, at_device): (Vec<u32>, Vec<u32>) = moments.map(|at| window.queue_at(at)).unzip();
    let _ = writeln!(text, "{:>9} |{}", "waiting", bars(&waiting));
    let _ = writeln!(text, "{:>9} |{}", "at device", bars(&at_device));
    let end = Nanos(window.end_ns as u64).to_string();
    let _ = writeln!(text, "{:>9}  0{end:>rest$}", "", rest = columns - 1);
    let most = |all: &[u32]| all.iter().max().copied().unwrap_or(0);
    let _ = writeln!(
        text,
        "{} requests; at most {} waiting and {} at the device.",
        window.requests.len(),
        most(&waiting),
        most(&at_device)
    );
    if log.cut {
        text.push_str("The log kept the first requests only.\n");
    }
    text.push_str("\nThe longest lives\n");
    text.push_str(&lives(&window, width));
    text
}

fn sector_name(sector: u64) -> String {
    format!("{:.1} GB", sector as f64 * 512.0 / 1e9)
}

/// The picture.
fn grid(window: &Window<'_>, columns: usize) -> Vec<Vec<char>> {
    let mut grid = vec![vec![' '; columns]; ROWS];
    let cell = |share: f64, of: usize| ((share * of as f64) as usize).min(of - 1);
    let sent = |r: &&&RequestLife| matches!(r.op, 'R' | 'W') && r.dispatched_ns < window.end_ns;
    for request in window.requests.iter().filter(sent) {
        let row = cell(window.place(request.start), ROWS);
        let column = cell(window.time(request.dispatched_ns), columns);
        let mark = if request.op == 'R' { 'r' } else { 'w' };
        let there = &mut grid[row][column];
        *there = if *there == ' ' || *there == mark { mark } else { 'x' };
    }
    grid
}

fn bars(values: &[u32]) -> String {
    const STEPS: [char; 9] = [' ', '▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
    let most = values.iter().max().copied().unwrap_or(0).max(1);
    let bar = |value: &u32| STEPS[(*value as usize * 8).div_ceil(most as usize)];
    values.iter().map(bar).collect::<String>().trim_end().to_owned()
}

fn lives(window: &Window<'_>, width: usize) -> String {
    let mut longest: Vec<&RequestLife> = window.requests.clone();
    longest.sort_by_key(|r| (std::cmp::Reverse(r.life()), r.queued_ns));
    let mut table = Table::new(&[
        ("op", Align::Left),
        ("sector", Align::Right),
        ("sectors", Align::Right),
        ("client", Align::Right),
        ("waited", Align::Right),
        ("at device", Align::Right),
        ("in all", Align::Right),
    ]);
    for life in longest.into_iter().take(LIVES) {
        let span = |from: i64, to: i64| Nanos((to - from).max(0) as u64).to_string();
        table.row([
            life.op.to_string(),
            life.start.to_string(),
            life.sectors.to_string(),
            life.process.to_string(),
            span(life.queued_ns, life.dispatched_ns),
            span(life.dispatched_ns, life.done_ns),
            span(life.queued_ns, life.done_ns),
        ]);
    }
    table.text(width)
}

/// Width of the picture's panels, px.
const WIDE: f64 = 1000.0;
/// Left margin, px.
const LEFT: f64 = 90.0;
/// One colour a drive.
const COLOURS: [&str; 8] =
    ["#1b6ca8", "#c0392b", "#27823b", "#8e44ad", "#b9770e", "#148f8f", "#5d6d7e", "#a04070"];

/// A log as an SVG picture: each request's life (grey waiting, coloured at the device) by place and
/// time, the ways of the heads, and the queue.
pub fn events_svg(log: &EventLog, label: &str, length: Option<Nanos>) -> Option<String> {
    let window = Window::of(log, length)?;
    let has_heads = !log.heads.is_empty();
    let heads_top = 520.0;
    let queue_top = if has_heads { 800.0 } else { 520.0 };
    let height = queue_top + 200.0;
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {} {height}\" \
         font-family=\"sans-serif\" font-size=\"14\">\n\
         <rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n\
         <text x=\"{LEFT}\" y=\"24\" font-size=\"17\">{} (simulated)</text>\n",
        LEFT + WIDE + 20.0,
        escaped(label)
    );
    let x = |at_ns: i64| LEFT + window.time(at_ns) * WIDE;
    panel(&mut svg, 60.0, 420.0, "Each request's life, by place: grey while it waits");
    side(&mut svg, 60.0, 420.0, &sector_name(window.sectors.0), &sector_name(window.sectors.1));
    for r in window.requests.iter().filter(|r| matches!(r.op, 'R' | 'W')) {
        let y = 60.0 + window.place(r.start) * 420.0;
        let colour = if r.op == 'R' { "#1b6ca8" } else { "#c0392b" };
        line(&mut svg, (x(r.queued_ns), x(r.dispatched_ns)), y, "#cccccc", 1.0);
        line(&mut svg, (x(r.dispatched_ns), x(r.done_ns)), y, colour, 2.0);
    }
    if has_heads {
        panel(&mut svg, heads_top + 20.0, 220.0, "The heads, a colour a drive");
        heads(&mut svg, log, &window, heads_top + 20.0);
    }
    panel(&mut svg, queue_top + 20.0, 140.0, "Requests: grey waiting, blue at the device");
    queue(&mut svg, &window, queue_top + 20.0);
    let _ = writeln!(
        svg,
        "<text x=\"{:.0}\" y=\"{:.0}\" text-anchor=\"end\">{}</text>\n</svg>",
        LEFT + WIDE,
        height - 8.0,
        Nanos(window.end_ns as u64)
    );
    Some(svg)
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

fn panel(svg: &mut String, top: f64, height: f64, title: &str) {
    let _ = writeln!(
        svg,
        "<text x=\"{LEFT}\" y=\"{:.0}\">{title}</text>\n<rect x=\"{LEFT}\" y=\"{top}\" \
         width=\"{WIDE}\" height=\"{height}\" fill=\"none\" stroke=\"#888\"/>",
        top - 6.0
    );
}

fn side(svg: &mut String, top: f64, height: f64, first: &str, last: &str) {
    for (y, name) in [(top + 12.0, first), (top + height, last)] {
        let _ = writeln!(
            svg,
            "<text x=\"{:.0}\" y=\"{y:.0}\" text-anchor=\"end\">{name}</text>",
            LEFT - 6.0
        );
    }
}

fn line(svg: &mut String, (from, to): (f64, f64), y: f64, colour: &str, wide: f64) {
    let _ = writeln!(
        svg,
        "<path d=\"M{from:.1} {y:.1}H{:.1}\" stroke=\"{colour}\" stroke-width=\"{wide}\"/>",
        to.max(from + 0.5)
    );
}

fn heads(svg: &mut String, log: &EventLog, window: &Window<'_>, top: f64) {
    let shown = || log.heads.iter().filter(|h| (0..=window.end_ns).contains(&h.at_ns));
    let most = shown().map(|h| h.cylinder).max().unwrap_or(0).max(1);
    side(svg, top, 220.0, "cyl. 0", &format!("{most}"));
    // By the drives that are there: a foreign file may name any number.
    let mut drives: BTreeMap<u32, Vec<String>> = BTreeMap::new();
    for head in shown() {
        let y = top + f64::from(head.cylinder) / f64::from(most) * 220.0;
        let point = format!("{:.1},{y:.1}", LEFT + window.time(head.at_ns) * WIDE);
        drives.entry(head.drive).or_default().push(point);
    }
    for (drive, points) in drives {
        let _ = writeln!(
            svg,
            "<polyline points=\"{}\" fill=\"none\" stroke=\"{}\"/>",
            points.join(" "),
            COLOURS[drive as usize % COLOURS.len()]
        );
    }
}

/// `part` of `whole` parts of a time, however long that is.
fn at_share(end_ns: i64, part: i64, whole: i64) -> i64 {
    (i128::from(end_ns) * i128::from(part) / i128::from(whole)) as i64
}

fn queue(svg: &mut String, window: &Window<'_>, top: f64) {
    const STEPS: i64 = 500;
    let moments: Vec<i64> = (0..=STEPS).map(|step| at_share(window.end_ns, step, STEPS)).collect();
    let levels: Vec<(u32, u32)> = moments.iter().map(|at| window.queue_at(*at)).collect();
    let most = levels.iter().map(|(waiting, out)| *waiting.max(out)).max().unwrap_or(0).max(1);
    side(svg, top, 140.0, &most.to_string(), "0");
    for (pick, colour) in [(0, "#999999"), (1, "#1b6ca8")] {
        let points: Vec<String> = moments
            .iter()
            .zip(&levels)
            .map(|(at, (waiting, out))| {
                let level = if pick == 0 { waiting } else { out };
                let y = top + 140.0 * (1.0 - f64::from(*level) / f64::from(most));
                format!("{:.1},{y:.1}", LEFT + window.time(*at) * WIDE)
            })
            .collect();
        let _ = writeln!(
            svg,
            "<polyline points=\"{}\" fill=\"none\" stroke=\"{colour}\"/>",
            points.join(" ")
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn log() -> EventLog {
        let life = |number: i64, op: char| RequestLife {
            process: number as u32 % 3,
            op,
            start: (number as u64 * 7919) % 1000 * 1000,
            sectors: 8,
            queued_ns: number * 1_000_000,
            dispatched_ns: number * 1_000_000 + 500_000,
            began_ns: number * 1_000_000 + 500_000,
            done_ns: number * 1_000_000 + 4_000_000,
            merged: 0,
        };
        let requests = (0..400).map(|n| life(n, if n % 4 == 0 { 'W' } else { 'R' })).collect();
        let heads = (0..400)
            .map(|n| record::HeadPosition { at_ns: n * 1_000_000, drive: 0, cylinder: 50 })
            .collect();
        EventLog { hash: 0xabc, requests, heads, cut: true }
    }

    #[test]
    fn the_terminal_shows_place_time_and_queue_within_80_columns() {
        let text = events_terminal(&log(), "noop", None, 80);
        assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
        for word in
            ["noop", "0000000000000abc", "waiting", "at device", "longest", "first requests"]
        {
            assert!(text.contains(word), "no '{word}' in:\n{text}");
        }
        // Between one and four are out at any time but the very ends.
        assert!(text.contains("4 at the device"), "{text}");
        let empty = events_terminal(&EventLog::default(), "noop", None, 80);
        assert!(empty.contains("no requests"), "{empty}");
    }

    #[test]
    fn a_foreign_files_numbers_are_drawn_in_no_time() {
        let mut log = log();
        log.heads[0].drive = u32::MAX;
        log.heads[0].cylinder = u32::MAX;
        log.requests[0].done_ns = i64::MAX;
        let longest = Some(Nanos(i64::MAX as u64));
        let svg = events_svg(&log, "", longest).unwrap();
        assert!(svg.ends_with("</svg>\n"));
        assert!(events_terminal(&log, "", longest, 80).contains("longest"));
    }

    #[test]
    fn the_picture_has_a_line_for_each_request_and_drive() {
        let svg = events_svg(&log(), "a < b", Some(Nanos::from_millis(100))).unwrap();
        assert!(svg.contains("a &lt; b") && svg.ends_with("</svg>\n"), "{svg}");
        assert_eq!(svg.matches("<path").count(), 2 * 100);
        assert_eq!(svg.matches("<polyline").count(), 3);
        assert!(events_svg(&EventLog::default(), "", None).is_none());
    }
}
