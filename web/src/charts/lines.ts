// Lines over an axis, by uPlot: courses, scaling, distributions. Charts with one `sync` key share a cursor.

import uPlot from "uplot";
import { dash, line, themed } from "../colors.js";
import { h } from "../dom.js";

/** A line. */
export interface Series {
  label: string;
  x: number[];
  y: (number | null)[];
  /** Whether it is drawn bold: what one is to look at. */
  strong?: boolean;
}

/** What a chart shows. */
export interface Lines {
  /** A sentence: what one is to see. */
  title: string;
  x: string;
  y: string;
  series: Series[];
  logX?: boolean;
  logY?: boolean;
  /** From the first to the last of these, and no tick between. */
  splitsX?: number[];
  formatX: (value: number) => string;
  formatY: (value: number) => string;
  sync?: string;
  points?: boolean;
  height?: number;
}

const charts = new Set<() => void>();

/** Draws all charts anew: after a change of the theme or the width. */
export function redraw(): void {
  for (const draw of charts) draw();
}

/** A chart of lines. It is drawn when it comes into view. */
export function lines(it: Lines): HTMLElement {
  const box = h("div", { class: "plot", role: "img", "aria-label": `${it.title}. ${it.y} over ${it.x}.` });
  let plot: uPlot | null = null;
  const draw = () => {
    const width = Math.floor(box.clientWidth);
    if (width === 0) return;
    plot?.destroy();
    plot = new uPlot(options(it, width), data(it.series), box);
  };
  const seen = new IntersectionObserver((entries) => {
    if (entries.some((entry) => entry.isIntersecting)) {
      seen.disconnect();
      draw();
      charts.add(draw);
      new ResizeObserver(() => {
        if (plot && Math.abs(plot.width - Math.floor(box.clientWidth)) > 1) draw();
      }).observe(box);
    }
  }, { rootMargin: "400px" });
  seen.observe(box);
  addEventListener("beforeprint", draw);
  return box;
}

function data(series: Series[]): uPlot.AlignedData {
  const tables = series.map((it) => [it.x, it.y] as unknown as uPlot.AlignedData);
  return tables.length > 1 ? uPlot.join(tables) : (tables[0] ?? [[]]);
}

function options(it: Lines, width: number): uPlot.Options {
  const ink = themed("ink-soft");
  const grid = themed("grid");
  const axis = { stroke: ink, grid: { stroke: grid, width: 1 }, ticks: { stroke: grid, width: 1 } };
  return {
    width,
    height: it.height ?? 260,
    cursor: it.sync ? { sync: { key: it.sync } } : {},
    scales: {
      x: { time: false, ...(it.logX ? { distr: 3 as const } : {}) },
      y: it.logY ? { distr: 3 as const } : { range: (_: uPlot, low: number, high: number) => [Math.min(0, low), high * 1.05 || 1] },
    },
    legend: { live: true },
    axes: [
      {
        ...axis,
        label: it.x,
        // Without this, a logarithmic axis names powers of ten alone.
        ...(it.splitsX ? { splits: () => it.splitsX as number[], filter: (_: uPlot, splits: number[]) => splits } : {}),
        values: (_, values) => values.map((value) => (value === null ? "" : it.formatX(value))),
      },
      { ...axis, label: it.y, size: (_: uPlot, values: string[]) => Math.max(60, 7 * Math.max(0, ...(values ?? []).map((value) => value.length)) + 16), values: (_, values) => values.map((value) => (value === null ? "" : it.formatY(value))) },
    ],
    series: [
      { label: it.x, value: (_, value) => (value === null ? "–" : it.formatX(value)) },
      ...it.series.map((one, place) => ({
        label: one.label,
        stroke: line(place),
        dash: dash(place),
        width: one.strong ? 4 : 2,
        spanGaps: true,
        points: { show: it.points ?? false },
        value: (_: uPlot, value: number | null) => (value === null ? "–" : it.formatY(value)),
      })),
    ],
  };
}

/** At most so many points, of which each stretch keeps its least and its most. */
export function decimate(x: number[], y: (number | null)[], points: number): { x: number[]; y: (number | null)[] } {
  if (x.length <= points) return { x, y };
  const size = Math.ceil((2 * x.length) / points);
  const kept: number[] = [];
  for (let start = 0; start < x.length; start += size) {
    let least = -1;
    let most = -1;
    for (let at = start; at < Math.min(start + size, x.length); at += 1) {
      const value = y[at];
      if (value === null || value === undefined) continue;
      if (least < 0 || value < (y[least] as number)) least = at;
      if (most < 0 || value > (y[most] as number)) most = at;
    }
    if (least < 0) continue;
    kept.push(...(least === most ? [least] : [Math.min(least, most), Math.max(least, most)]));
  }
  return { x: kept.map((at) => x[at] as number), y: kept.map((at) => y[at] ?? null) };
}
