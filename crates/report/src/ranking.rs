//! The ranking as a picture, for chats: what to do, and each cell against its baseline with its interval. The
//! page's ranking shows the same (web/src/charts/intervals.ts).

mod paper;

use crate::{
    Document,
    document::{Cell, Comparison, Condition},
    words,
};
use paper::{Colour, Fonts, Paper, Style, WIDTH};
use std::io;

/// Rows of cells in a picture: what is higher than it is wide, a chat makes small.
const MAX_ROWS: usize = 20;
/// Lines of the answer.
const MAX_ANSWER_LINES: usize = 8;

const MARGIN: f32 = 24.0;
const ROW: f32 = 30.0;
/// Where a cell's figure ends, the chart lies, and the verdict begins.
const FIGURE: f32 = 338.0;
const CHART: (f32, f32) = (356.0, 616.0);
const VERDICT: f32 = 628.0;

const INK: Colour = [0x1b, 0x1f, 0x24];
const SOFT: Colour = [0x56, 0x5d, 0x66];
const GRID: Colour = [0xd5, 0xda, 0xe0];
const BAND: Colour = [0xe4, 0xe8, 0xec];
/// Blue and orange, which colour-blind readers tell apart.
const BETTER: Colour = [0x00, 0x5a, 0x9c];
const WORSE: Colour = [0xa8, 0x43, 0x00];

const TITLE: Style = Style { size: 20.0, bold: true, colour: INK };
const HEADING: Style = Style { size: 17.0, bold: true, colour: INK };
const TEXT: Style = Style { size: 16.0, bold: false, colour: INK };
const NOTE: Style = Style { size: 14.0, bold: false, colour: SOFT };

/// What is ranked: the name in a cell's comparisons, and the one in a heading.
const THROUGHPUT: &str = "throughput";
const P99: &str = "p99";

/// The ranking of a run as a PNG, drawn with the program's own fonts. Fails only where a picture cannot be
/// encoded.
pub fn ranking_png(document: &Document) -> io::Result<Vec<u8>> {
    let fonts = Fonts::embedded()?;
    let (parts, height) = laid_out(document, &fonts);
    let mut paper = Paper::new(height, &fonts)?;
    for (part, y) in &parts {
        match part {
            Part::Line(text, style) => paper.text((MARGIN, *y), text, *style),
            Part::Panel(panel) => panel.draw(&mut paper, &fonts, *y),
        }
    }
    paper.png()
}

/// What a picture is made of, from top to bottom.
enum Part<'a> {
    /// At its base line.
    Line(String, Style),
    /// At its top.
    Panel(Panel<'a>),
}

/// All parts with their places, and the height of the picture.
fn laid_out<'a>(document: &'a Document, fonts: &Fonts) -> (Vec<(Part<'a>, f32)>, f32) {
    let mut parts = Vec::new();
    let mut y = MARGIN;
    let paragraph = |parts: &mut Vec<_>, y: &mut f32, text: &str, style: Style, most: usize| {
        let mut lines = fonts.wrap(text, style, WIDTH - 2.0 * MARGIN);
        if lines.len() > most {
            lines.truncate(most);
            lines.push("… (the page has all of it)".to_owned());
        }
        for line in lines {
            *y += style.size * 1.3;
            parts.push((Part::Line(line, style), *y));
        }
    };
    paragraph(&mut parts, &mut y, &document.answer.join(" "), TITLE, MAX_ANSWER_LINES);
    y += 6.0;
    let device = document.environment.iter().find(|(name, _)| name == "device");
    let about = format!(
        "{} ({}), {}; {}; {}",
        device.map_or(document.name.as_str(), |(_, device)| device),
        document.world,
        document.started,
        document.workload,
        document.timing
    );
    paragraph(&mut parts, &mut y, &about, NOTE, 4);
    let (panels, left_out) = panels(document);
    if panels.is_empty() {
        y += 10.0;
        for cell in document.cells.iter().take(MAX_ROWS) {
            paragraph(&mut parts, &mut y, &alone(document, cell), TEXT, 1);
        }
        return (parts, y + MARGIN);
    }
    for panel in panels {
        y += 16.0;
        let height = panel.height();
        parts.push((Part::Panel(panel), y));
        y += height;
    }
    y += 4.0;
    if left_out > 0 {
        let text = format!("Not drawn: {left_out} of {} conditions.", document.conditions.len());
        paragraph(&mut parts, &mut y, &text, NOTE, 1);
    }
    paragraph(&mut parts, &mut y, &legend(document), NOTE, 4);
    (parts, y + MARGIN)
}

/// The figures of a cell that is compared with none.
fn alone(document: &Document, cell: &Cell) -> String {
    let rate = cell.throughput.map(|it| format!("{} {}/s", words::count(it.mean), document.unit));
    let tail = cell.p99.map(|ms| format!("p99 latency {}", milliseconds(ms)));
    let figures: Vec<String> = rate.into_iter().chain(tail).collect();
    let figures = if figures.is_empty() { "no data".to_owned() } else { figures.join(", ") };
    format!("{}: {figures}", cell.label)
}

fn milliseconds(ms: f64) -> String {
    units::Nanos((ms * 1e6) as u64).to_string()
}

/// What shades and lines mean.
fn legend(document: &Document) -> String {
    format!(
        "Lines are intervals at 95 % for all cells together. Grey is too little for a cell's trials to tell \
         from no difference; at the baseline, the least difference that its two trials a round would show \
         four times in five. Within the dashed lines, ±{}, is the same.",
        words::share(document.margin)
    )
}

/// The panels that there is room for, and how many conditions have none: those whose baseline is to be kept
/// are the first to be left out. A second figure is shown where there is one condition.
fn panels(document: &Document) -> (Vec<Panel<'_>>, usize) {
    let metrics: &[&str] =
        if document.conditions.len() == 1 { &[THROUGHPUT, P99] } else { &[THROUGHPUT] };
    let mut groups: Vec<(usize, Vec<Panel>)> = document
        .conditions
        .iter()
        .enumerate()
        .map(|(place, _)| {
            let panels = metrics.iter().filter_map(|metric| Panel::of(document, place, metric));
            (place, panels.collect())
        })
        .collect();
    groups.retain(|(_, panels)| !panels.is_empty());
    let all = groups.len();
    let keeps = |place: usize| {
        let condition = &document.conditions[place];
        condition.decision == condition.baseline
    };
    groups.sort_by_key(|(place, _)| keeps(*place));
    let mut rows = 0;
    let mut room = |panels: &[Panel]| {
        rows += panels.iter().map(|panel| panel.rows.len()).sum::<usize>();
        rows <= MAX_ROWS
    };
    // One is always drawn.
    let drawn = groups.iter().take_while(|(_, panels)| room(panels)).count().max(1);
    groups.truncate(drawn);
    groups.sort_by_key(|(place, _)| *place);
    let left_out = all - groups.len();
    (groups.into_iter().flat_map(|(_, panels)| panels).collect(), left_out)
}

/// The cells of a condition in order of a figure.
struct Panel<'a> {
    heading: String,
    condition: &'a Condition,
    metric: &'static str,
    /// From the best to the worst; the baseline where it stands.
    rows: Vec<&'a Cell>,
    margin: f64,
}

impl<'a> Panel<'a> {
    /// None where nothing is compared.
    fn of(document: &'a Document, place: usize, metric: &'static str) -> Option<Panel<'a>> {
        let condition = &document.conditions[place];
        let mut rows: Vec<&Cell> =
            document.cells.iter().filter(|cell| cell.condition == place).collect();
        if !rows.iter().any(|cell| cell.comparisons.contains_key(metric)) {
            return None;
        }
        // What has no figure is last.
        let key = |cell: &Cell| {
            let own = cell.comparisons.get(metric).and_then(|it| it.ratio);
            let ratio = if cell.index == condition.baseline { Some(1.0) } else { own };
            ratio.map_or(f64::INFINITY, |ratio| if metric == P99 { ratio } else { -ratio })
        };
        rows.sort_by(|a, b| key(a).total_cmp(&key(b)));
        let name = match metric {
            P99 => "p99 latency".to_owned(),
            _ => format!("{} a second", document.unit),
        };
        let mut heading = match condition.name.as_str() {
            "" => format!("{name}, against the baseline"),
            with => format!("{name} with {with}"),
        };
        heading[..1].make_ascii_uppercase();
        Some(Panel { heading, condition, metric, rows, margin: document.margin })
    }

    fn height(&self) -> f32 {
        60.0 + self.rows.len() as f32 * ROW
    }

    fn comparisons(&self) -> impl Iterator<Item = &'a Comparison> {
        self.rows.iter().filter_map(|cell| cell.comparisons.get(self.metric))
    }

    /// How far the chart reaches to both sides, as the logarithm of a ratio.
    fn reach(&self) -> f64 {
        let ends = self.comparisons().flat_map(|it| [it.ratio, it.low, it.high]).flatten();
        let logs = ends.filter(|ratio| *ratio > 0.0).map(|ratio| ratio.ln().abs());
        // An interval without an end goes to the chart's edge.
        (logs.fold(0.02f64.max(self.margin.ln_1p()), f64::max) * 1.1).min(100f64.ln())
    }

    /// What a cell's trials cannot tell from no difference: half the width of its own interval. Of the
    /// baseline its noise floor. As the logarithm of a ratio.
    fn bound(&self, cell: &Cell) -> Option<f64> {
        if cell.index == self.condition.baseline {
            return Some(self.condition.noise.get(self.metric)?.detectable?.ln_1p());
        }
        let it = cell.comparisons.get(self.metric)?;
        match (it.low, it.high) {
            (Some(low), Some(high)) if low > 0.0 => Some((high / low).ln() / 2.0),
            _ => Some(f64::INFINITY),
        }
    }

    fn draw(&self, paper: &mut Paper<'_>, fonts: &Fonts, top: f32) {
        let heading = fonts.cut(&self.heading, HEADING, WIDTH - 2.0 * MARGIN);
        paper.text((MARGIN, top + 18.0), &heading, HEADING);
        let reach = self.reach();
        let x = |log: f64| {
            let share = (log.clamp(-reach, reach) + reach) / (2.0 * reach);
            CHART.0 + share as f32 * (CHART.1 - CHART.0)
        };
        let first = top + 52.0;
        let rows = self.rows.len() as f32 * ROW;
        for (place, cell) in self.rows.iter().enumerate() {
            let Some(half) = self.bound(cell) else { continue };
            let y = first + place as f32 * ROW + 2.0;
            paper.rect((x(-half), y), (x(half) - x(-half), ROW - 4.0), BAND);
        }
        for tick in ticks(reach) {
            let name = match tick {
                0.0 => "0 %".to_owned(),
                tick => format!("{:+.0} %", tick.exp_m1() * 100.0),
            };
            paper.text_around((x(tick), top + 44.0), &name, NOTE);
            let colour = if tick == 0.0 { SOFT } else { GRID };
            paper.rect((x(tick) - 0.5, first), (1.0, rows), colour);
        }
        for edge in [-self.margin.ln_1p(), self.margin.ln_1p()] {
            let dashes = (rows / 8.0) as usize;
            for dash in 0..dashes {
                paper.rect((x(edge) - 0.5, first + dash as f32 * 8.0), (1.0, 4.0), SOFT);
            }
        }
        for (place, cell) in self.rows.iter().enumerate() {
            self.row(paper, fonts, &x, cell, first + (place as f32 + 0.5) * ROW);
        }
    }

    fn row(
        &self,
        paper: &mut Paper<'_>,
        fonts: &Fonts,
        x: &dyn Fn(f64) -> f32,
        cell: &Cell,
        y: f32,
    ) {
        let base = y + TEXT.size * 0.36;
        let chosen = Style { bold: cell.index == self.condition.decision, ..TEXT };
        let figure = self.figure(cell);
        let figure_width = fonts.width(&figure, TEXT);
        let room = FIGURE - MARGIN - figure_width - 14.0;
        paper.text((MARGIN, base), &fonts.cut(&cell.label, chosen, room), chosen);
        paper.text_to((FIGURE, base), &figure, TEXT);
        let Some(it) = cell.comparisons.get(self.metric) else {
            if cell.index == self.condition.baseline {
                paper.rect((x(0.0) - 5.0, y - 5.0), (10.0, 10.0), SOFT);
                paper.text((VERDICT, base), "baseline", Style { colour: SOFT, ..TEXT });
            } else {
                paper.text((VERDICT, base), "no data", Style { colour: SOFT, ..TEXT });
            }
            return;
        };
        let colour = match it.verdict.as_str() {
            "better" => BETTER,
            "worse" => WORSE,
            _ => SOFT,
        };
        let low = x(it.low.filter(|low| *low > 0.0).map_or(f64::NEG_INFINITY, f64::ln));
        let high = x(it.high.map_or(f64::INFINITY, f64::ln));
        paper.rect((low, y - 1.5), (high - low, 3.0), colour);
        if let Some(ratio) = it.ratio.filter(|ratio| *ratio > 0.0) {
            paper.dot(x(ratio.ln()), y, 6.0, colour);
        }
        let change = it.ratio.map_or(String::new(), words::percent);
        let style = Style { colour, ..TEXT };
        paper.text((VERDICT, base), &change, style);
        paper.text((VERDICT + 86.0, base), &it.verdict, Style { bold: true, ..style });
    }

    fn figure(&self, cell: &Cell) -> String {
        let figure = match self.metric {
            P99 => cell.p99.map(milliseconds),
            _ => cell.throughput.map(|it| format!("{}/s", words::count(it.mean))),
        };
        figure.unwrap_or_else(|| "–".to_owned())
    }
}

/// A round change within reach, to both sides, and none.
fn ticks(reach: f64) -> Vec<f64> {
    let steps = [0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 3.0, 9.0];
    let step = steps.iter().rev().map(|it: &f64| it.ln_1p()).find(|log| *log < reach * 0.85);
    step.map_or(vec![0.0], |step| vec![-step, 0.0, step])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::run;
    use analysis::Analysis;
    use std::io::Read;

    /// Width, height and the pixels of a picture.
    fn decoded(png: &[u8]) -> (usize, usize, Vec<Colour>) {
        let number = |at: usize| u32::from_be_bytes(png[at..at + 4].try_into().unwrap()) as usize;
        let (width, height) = (number(16), number(20));
        assert_eq!(&png[37..41], b"IDAT");
        let mut lines = Vec::new();
        let packed = &png[41..41 + number(33)];
        flate2::read::ZlibDecoder::new(packed).read_to_end(&mut lines).unwrap();
        assert_eq!(lines.len(), height * (3 * width + 1));
        let pixels = lines.chunks_exact(3 * width + 1);
        let pixels = pixels.flat_map(|line| line[1..].chunks_exact(3));
        (width, height, pixels.map(|it| [it[0], it[1], it[2]]).collect())
    }

    fn document(clients: &[u64]) -> Document {
        let run = run(clients);
        crate::document(&run, &Analysis::of(&run))
    }

    #[test]
    fn what_is_better_is_blue_right_of_the_baseline_and_what_is_worse_orange_left_of_it() {
        let mut document = document(&[8]);
        for cell in &mut document.cells {
            cell.comparisons.remove(P99);
        }
        let (width, _, pixels) = decoded(&ranking_png(&document).unwrap());
        let scale = width as f32 / WIDTH;
        let columns = |colour: Colour| {
            let at = pixels.iter().enumerate().filter(|(_, pixel)| **pixel == colour);
            let columns = at.map(|(place, _)| (place % width) as f32 / scale);
            columns.filter(|x| (CHART.0..CHART.1).contains(x)).collect::<Vec<_>>()
        };
        let (better, worse) = (columns(BETTER), columns(WORSE));
        let middle = (CHART.0 + CHART.1) / 2.0;
        assert!(!better.is_empty() && better.iter().all(|x| *x > middle), "{better:?}");
        assert!(!worse.is_empty() && worse.iter().all(|x| *x < middle), "{worse:?}");
    }

    #[test]
    fn a_picture_of_many_conditions_is_not_higher_than_a_chat_shows() {
        let clients: Vec<u64> = (1..=24).collect();
        let many = document(&clients);
        let (panels, left_out) = panels(&many);
        assert_eq!((panels.len(), left_out), (5, 19));
        let (width, height, _) = decoded(&ranking_png(&many).unwrap());
        assert!(height < 2 * width, "{width} × {height}");
    }

    #[test]
    fn what_is_compared_with_nothing_has_its_figures() {
        let mut one = document(&[8]);
        one.cells.truncate(1);
        one.cells[0].comparisons.clear();
        let said = laid_out(&one, &Fonts::embedded().unwrap()).0;
        let is_said = |(part, _): &(Part, f32)| matches!(part, Part::Line(text, _) if text.contains(" operations/s, p99 latency 2"));
        assert!(said.iter().any(is_said));
        one.cells.clear();
        ranking_png(&one).unwrap();
    }

    #[test]
    fn any_text_can_be_drawn() {
        let mut odd = document(&[8]);
        odd.answer = vec!["\u{0}\u{202e}<svg>日本語 \u{1f600}".repeat(200), String::new()];
        odd.cells[0].label = "x".repeat(5000);
        odd.cells[1].label = String::new();
        ranking_png(&odd).unwrap();
    }
}
