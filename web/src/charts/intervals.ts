// Cells in order of a figure: each one's difference from the baseline with its interval, over the band in
// which differences cannot be told from noise.

import { type Cell, type Condition, type Document, type Metric, comparison, figure as figureOf, metricName } from "../data.js";
import { s } from "../dom.js";
import { change, count, share, time } from "../format.js";
import { type Table, figure } from "../table.js";

const WIDTH = 760;
const NAMES = 210;
const WORDS = 100;
const ROW = 26;
const HEAD = 40;

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
  const band = condition.noise[metric]?.detectable ?? null;
  const logs = rows.flatMap((cell) => {
    const it = comparison(cell, metric);
    return [it?.ratio, it?.low, it?.high].filter((x): x is number => typeof x === "number" && x > 0).map(Math.log);
  });
  if (band !== null) logs.push(Math.log1p(band));
  // An interval without an end goes to the chart's edge.
  const reach = Math.min(Math.max(...logs.map(Math.abs), 0.02) * 1.1, Math.log(100));
  const left = NAMES;
  const right = WIDTH - WORDS;
  const x = (log: number) => left + ((Math.max(-reach, Math.min(reach, log)) + reach) / (2 * reach)) * (right - left);
  const height = HEAD + rows.length * ROW + 8;
  const label = `${metricName(run, metric)} against ${name(cells, condition)}: ${rows
    .map((cell) => `${cell.label} ${words(cell, condition, metric)}`)
    .join("; ")}`;
  const chart = s("svg", { viewBox: `0 0 ${WIDTH} ${height}`, class: "chart intervals", role: "img", "aria-label": label });
  if (band !== null) {
    const half = Math.log1p(band);
    chart.append(
      s("rect", { class: "band", x: x(-half), y: HEAD - 6, width: x(half) - x(-half), height: height - HEAD }),
      s("text", { class: "note", x: x(0), y: 12, "text-anchor": "middle" }, `within ±${share(band)}: too little to be seen`),
    );
  }
  for (const tick of ticks(reach)) {
    chart.append(
      s("line", { class: tick === 0 ? "zero" : "grid", x1: x(tick), x2: x(tick), y1: HEAD - 6, y2: height - 8 }),
      s("text", { class: "tick", x: x(tick), y: 30, "text-anchor": "middle" }, tick === 0 ? "baseline" : change(Math.exp(tick))),
    );
  }
  rows.forEach((cell, place) => {
    const y = HEAD + place * ROW + ROW / 2;
    const it = comparison(cell, metric);
    const chosen = cell.index === condition.decision ? "chosen" : "";
    chart.append(s("text", { class: `name ${chosen}`, x: left - 10, y: y + 4, "text-anchor": "end" }, short(cell.label)));
    chart.append(s("text", { class: `word ${it?.verdict ?? ""}`, x: right + 8, y: y + 4 }, verdict(cell, condition, metric)));
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

function name(cells: Cell[], condition: Condition): string {
  return cells.find((cell) => cell.index === condition.baseline)?.label ?? "the baseline";
}

function short(label: string): string {
  return label.length > 30 ? `${label.slice(0, 29)}…` : label;
}

function verdict(cell: Cell, condition: Condition, metric: Metric): string {
  if (cell.index === condition.baseline) return "baseline";
  return comparison(cell, metric)?.verdict ?? "no data";
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
      return [
        cell.label,
        figure(own, metric === "p99" ? time(own) : count(own)),
        figure(it?.ratio, it ? change(it.ratio) : ""),
        figure(it?.low, it ? change(it.low) : ""),
        figure(it?.high, it ? change(it.high) : ""),
        verdict(cell, condition, metric),
        figure(it?.detectable, it ? share(it.detectable) : ""),
      ];
    }),
  };
}
