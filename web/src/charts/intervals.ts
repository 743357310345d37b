// Cells in order of a figure: each one's difference from the baseline with its interval, and behind it in grey
// what the verdict on it goes by: differences that its own trials cannot tell from none. The program draws the same
// picture for chats (crates/report/src/ranking.rs).

import { type Cell, type Condition, type Document, type Metric, comparison, figure as figureOf, metricName } from "../data.js";
import { s } from "../dom.js";
import { change, count, share, time } from "../format.js";
import { type Table, figure } from "../table.js";

/** Widths of the chart, its names and its words, and how long a name may be: text is not to shrink on a phone. */
const WIDE = { width: 760, names: 250, words: 140, letters: 31 };
const NARROW = { width: 430, names: 142, words: 126, letters: 15 };
const ROW = 26;
const HEAD = 26;

/** Cells from the best to the worst; the baseline where it stands. */
export function ranked(cells: Cell[], condition: Condition, metric: Metric): Cell[] {
  const ratio = (cell: Cell) => (cell.index === condition.baseline ? 1 : (comparison(cell, metric)?.ratio ?? Number.NaN));
  const sign = metric === "p99" ? 1 : -1;
  const key = (cell: Cell) => (Number.isNaN(ratio(cell)) ? Number.POSITIVE_INFINITY : sign * ratio(cell));
  return [...cells].sort((a, b) => key(a) - key(b));
}

/** The chart of one condition. */
export function intervals(run: Document, condition: Condition, cells: Cell[], metric: Metric): SVGElement {
  const rows = ranked(cells, condition, metric);
  const logs = rows.flatMap((cell) => {
    const it = comparison(cell, metric);
    return [it?.ratio, it?.low, it?.high].filter((x): x is number => typeof x === "number" && x > 0).map(Math.log);
  });
  const margin = Math.log1p(run.margin);
  // An interval without an end goes to the chart's edge.
  const reach = Math.min(Math.max(...logs.map(Math.abs), 0.02, margin) * 1.1, Math.log(100));
  const size = innerWidth < 600 ? NARROW : WIDE;
  const left = size.names;
  const right = size.width - size.words;
  const x = (log: number) => left + ((Math.max(-reach, Math.min(reach, log)) + reach) / (2 * reach)) * (right - left);
  const height = HEAD + rows.length * ROW + 8;
  const label = `${metricName(run, metric)} against ${name(cells, condition)}: ${rows
    .map((cell) => `${cell.label} ${words(cell, condition, metric)}`)
    .join("; ")}`;
  const chart = s("svg", { viewBox: `0 0 ${size.width} ${height}`, class: "chart intervals", role: "img", "aria-label": label });
  rows.forEach((cell, place) => {
    const half = bound(cell, condition, metric);
    if (half === null) return;
    chart.append(s("rect", { class: "band", x: x(-half), y: HEAD + place * ROW + 2, width: x(half) - x(-half), height: ROW - 4 }));
  });
  for (const tick of ticks(reach)) {
    chart.append(
      s("line", { class: tick === 0 ? "zero" : "grid", x1: x(tick), x2: x(tick), y1: HEAD - 6, y2: height - 8 }),
      s("text", { class: "tick", x: x(tick), y: 14, "text-anchor": "middle" }, tick === 0 ? "0 %" : change(Math.exp(tick))),
    );
  }
  for (const edge of [-margin, margin]) chart.append(s("line", { class: "margin", x1: x(edge), x2: x(edge), y1: HEAD, y2: height - 8 }));
  rows.forEach((cell, place) => {
    const y = HEAD + place * ROW + ROW / 2;
    const it = comparison(cell, metric);
    const chosen = cell.index === condition.decision ? "chosen" : "";
    chart.append(s("text", { class: `name ${chosen}`, x: left - 10, y: y + 4, "text-anchor": "end" }, short(cell.label, size.letters)));
    chart.append(s("text", { class: `word ${it?.verdict ?? ""}`, x: right + 8, y: y + 4 }, outcome(cell, condition, metric)));
    if (it) {
      const low = x(it.low && it.low > 0 ? Math.log(it.low) : -reach);
      const high = x(it.high ? Math.log(it.high) : reach);
      chart.append(s("line", { class: `interval ${it.verdict}`, x1: low, x2: high, y1: y, y2: y }));
      if (it.ratio) chart.append(s("circle", { class: `point ${it.verdict}`, cx: x(Math.log(it.ratio)), cy: y, r: 5 }));
    } else if (cell.index === condition.baseline) {
      chart.append(s("rect", { class: "point", x: x(0) - 4.5, y: y - 4.5, width: 9, height: 9 }));
    }
  });
  return chart;
}

/** What a cell's trials cannot tell from no difference: half the width of its own interval. Of the baseline its noise
 *  floor. As the logarithm of a ratio. */
function bound(cell: Cell, condition: Condition, metric: Metric): number | null {
  const floor = condition.noise[metric]?.detectable;
  if (cell.index === condition.baseline) return floor ? Math.log1p(floor) : null;
  const it = comparison(cell, metric);
  if (!it) return null;
  return it.low && it.high && it.low > 0 ? Math.log(it.high / it.low) / 2 : Number.POSITIVE_INFINITY;
}

/** What grey and lines mean. */
export function meaning(run: Document): string {
  return `Lines are intervals at 95 % for all cells together. Grey is too little for a cell's trials to tell from no difference; at the baseline, the least difference that its two trials a round would show four times in five. Within the dashed lines, ±${share(run.margin)}, is the same.`;
}

function name(cells: Cell[], condition: Condition): string {
  return cells.find((cell) => cell.index === condition.baseline)?.label ?? "the baseline";
}

/** What tells one label from another is often its end: the middle goes. */
function short(label: string, letters: number): string {
  const start = Math.floor((letters - 1) / 3);
  return label.length > letters ? `${label.slice(0, start)}…${label.slice(start + 1 - letters)}` : label;
}

function verdict(cell: Cell, condition: Condition, metric: Metric): string {
  if (cell.index === condition.baseline) return "baseline";
  return comparison(cell, metric)?.verdict ?? "no data";
}

/** The change and its verdict, beside the chart. */
function outcome(cell: Cell, condition: Condition, metric: Metric): string {
  const it = comparison(cell, metric);
  const word = verdict(cell, condition, metric);
  return it && it.ratio ? `${change(it.ratio)} ${word}` : word;
}

function words(cell: Cell, condition: Condition, metric: Metric): string {
  if (cell.index === condition.baseline) return "is the baseline";
  const it = comparison(cell, metric);
  return it ? `${change(it.ratio)}, from ${change(it.low)} to ${change(it.high)}, ${it.verdict}` : "has no data";
}

/** Round changes within reach, around none. */
function ticks(reach: number): number[] {
  const steps = [0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 3, 9];
  const step = steps.find((it) => Math.log1p(it) > reach / 2.5) ?? 99;
  return [-Math.log1p(step), 0, Math.log1p(step)].filter((tick) => Math.abs(tick) <= reach);
}

/** The same as a table. */
export function table(run: Document, condition: Condition, cells: Cell[], metric: Metric): Table {
  return {
    caption: `${metricName(run, metric)} against the baseline${condition.name ? `, ${condition.name}` : ""}`,
    columns: ["cell", metricName(run, metric), "difference", "from", "to", "verdict", "smallest detectable"],
    rows: ranked(cells, condition, metric).map((cell) => {
      const it = comparison(cell, metric);
      const own = figureOf(cell, metric);
      const seen = cell.index === condition.baseline ? condition.noise[metric]?.detectable : it?.detectable;
      return [
        cell.label,
        figure(own, metric === "p99" ? time(own) : count(own)),
        figure(it?.ratio, it ? change(it.ratio) : ""),
        figure(it?.low, it ? change(it.low) : ""),
        figure(it?.high, it ? change(it.high) : ""),
        verdict(cell, condition, metric),
        figure(seen, share(seen)),
      ];
    }),
  };
}
