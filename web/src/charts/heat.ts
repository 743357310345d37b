// Latency over time on a canvas: of whole trials from their counts, of the seconds of one trial from the percentiles that
// are kept of each.

import type { Document } from "../data.js";
import { themed } from "../colors.js";
import { h } from "../dom.js";
import { time } from "../format.js";

const HEIGHT = 190;
const LEFT = 62;
const BOTTOM = 26;

type Latency = NonNullable<Document["trials"][number]["latency"]>;
export type Course = Document["courses"][number];

/** Part of a column: latencies in ms, and how dark. */
interface Shade {
  from: number;
  to: number;
  strength: number;
}

/** What a heatmap shows: columns of shades, and a line. */
interface Heat {
  label: string;
  columns: Shade[][];
  line: (number | null)[];
  /** Below the first and the last column, and what columns are. */
  ends: [string, string, string];
}

/** The ends of a step of a trial's counts, ms. */
function step(n: number): [number, number] {
  return [2 ** (n / 4) / 1000, 2 ** ((n + 1) / 4) / 1000];
}

/** The latency that a share of the counts does not exceed, ms. */
export function quantile(it: Latency, wanted: number): number {
  const all = it.counts.reduce((a, b) => a + b, 0);
  let below = 0;
  for (const [place, count] of it.counts.entries()) {
    below += count;
    if (below >= wanted * all) return step(it.first + place)[1];
  }
  return step(it.first + it.counts.length)[0];
}

/** Latencies of many of these, from the least to the most: the axis that they share. */
function range(all: Heat[]): [number, number] {
  let [low, high] = [Number.POSITIVE_INFINITY, 0];
  for (const shade of all.flatMap((it) => it.columns.flat())) {
    if (shade.from > 0) low = Math.min(low, shade.from);
    high = Math.max(high, shade.to);
  }
  return high > 0 && low < high ? [low, high] : [0.01, 1000];
}

/** Trials of some cells, each a column: the darker, the more of its operations took so long. */
export function ofTrials(cells: { label: string; trials: Latency[] }[]): HTMLElement[] {
  const heats = cells.map(({ label, trials }) => ({
    label: `${label}: ${trials.length} trials`,
    columns: trials.map((trial) => {
      const all = trial.counts.reduce((a, b) => a + b, 0) || 1;
      return trial.counts.flatMap((count, place) => {
        const [from, to] = step(trial.first + place);
        // One operation of a hundred thousand is to be seen, too.
        return count > 0 ? [{ from, to, strength: 0.12 + 0.88 * Math.max(0, 1 + Math.log10(count / all) / 5) ** 2 }] : [];
      });
    }),
    line: trials.map((trial) => quantile(trial, 0.5)),
    ends: ["first trial", "last trial", "trials"] as [string, string, string],
  }));
  return drawn(heats);
}

/** The seconds of a trial of some cells: three percentiles are kept of each, so shades are between these. */
export function ofSeconds(cells: { label: string; course: Course }[]): HTMLElement[] {
  const heats = cells.map(({ label, course }) => ({
    label,
    columns: course.at.map((_, place) => {
      const [p50, p99, max] = [course.p50[place] ?? 0, course.p99[place] ?? 0, course.max[place] ?? 0];
      return max > 0 ? [{ from: p50, to: p99, strength: 0.6 }, { from: p99, to: max, strength: 0.2 }] : [];
    }),
    line: course.p50.map((value) => (value > 0 ? value : null)),
    ends: [`${course.at[0] ?? 0} s`, `${course.at.at(-1) ?? 0} s`, "seconds"] as [string, string, string],
  }));
  return drawn(heats);
}

function drawn(heats: Heat[]): HTMLElement[] {
  const shared = range(heats);
  return heats.map((it) => {
    const canvas = h("canvas", { class: "heat", role: "img", "aria-label": `${it.label}: latency from ${time(shared[0])} to ${time(shared[1])} over ${it.columns.length} ${it.ends[2]}` });
    const draw = () => paint(canvas, it, shared);
    new ResizeObserver(draw).observe(canvas);
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", draw);
    addEventListener("beforeprint", draw);
    return canvas;
  });
}

function paint(canvas: HTMLCanvasElement, it: Heat, [low, high]: [number, number]): void {
  const scale = devicePixelRatio || 1;
  const width = canvas.clientWidth;
  if (width === 0) return;
  canvas.width = Math.round(width * scale);
  canvas.height = Math.round(HEIGHT * scale);
  const context = canvas.getContext("2d");
  if (!context) return;
  context.scale(scale, scale);
  const [w, v] = [width - LEFT - 4, HEIGHT - BOTTOM - 6];
  const y = (ms: number) => 6 + v - (Math.log(Math.max(ms, low) / low) / Math.log(high / low)) * v;
  const wide = w / Math.max(1, it.columns.length);
  context.fillStyle = "#0072b2";
  it.columns.forEach((column, place) => {
    // From whole pixel to whole pixel: no seams between columns.
    const [from, to] = [Math.round(LEFT + place * wide), Math.round(LEFT + (place + 1) * wide)];
    for (const shade of column) {
      context.globalAlpha = shade.strength;
      const top = y(shade.to);
      context.fillRect(from, top, Math.max(1, to - from), Math.max(1, y(shade.from) - top));
    }
  });
  context.globalAlpha = 1;
  context.strokeStyle = themed("worse");
  context.lineWidth = 2;
  context.beginPath();
  let open = false;
  it.line.forEach((value, place) => {
    if (value === null) {
      open = false;
      return;
    }
    const [from, to] = [LEFT + place * wide, LEFT + (place + 1) * wide];
    if (open) context.lineTo(from, y(value));
    else context.moveTo(from, y(value));
    context.lineTo(to, y(value));
    open = true;
  });
  context.stroke();
  context.lineWidth = 1;
  context.strokeStyle = themed("grid");
  context.strokeRect(LEFT, 6, w, v);
  context.fillStyle = themed("ink-soft");
  context.font = "12px system-ui, sans-serif";
  context.textAlign = "right";
  context.textBaseline = "middle";
  for (const value of decades(low, high)) context.fillText(time(value), LEFT - 6, Math.min(Math.max(y(value), 12), v));
  context.textBaseline = "alphabetic";
  context.textAlign = "left";
  context.fillText(it.ends[0], LEFT, HEIGHT - 6);
  context.textAlign = "right";
  context.fillText(it.ends[1], LEFT + w, HEIGHT - 6);
}

/** Round latencies within a range: powers of ten, or the ends where there is at most one. */
function decades(low: number, high: number): number[] {
  const all: number[] = [];
  for (let power = Math.ceil(Math.log10(low)); 10 ** power <= high; power += 1) all.push(10 ** power);
  return all.length > 1 ? all : [low, high];
}
