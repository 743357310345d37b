// Every trial as a point, in the order in which they ran: repeats, drift and outliers are seen at once.

import type { Cell, Document } from "../data.js";
import { line } from "../colors.js";
import { s } from "../dom.js";
import { count } from "../format.js";

const HEIGHT = 260;
const LEFT = 64;
const BOTTOM = 34;

/** The trials of some cells. */
export function points(run: Document, cells: Cell[]): SVGElement {
  // Text is not to shrink on a phone.
  const width = innerWidth < 600 ? 430 : 760;
  const of = new Map(cells.map((cell, place) => [cell.index, place]));
  const trials = run.trials.filter((trial) => of.has(trial.cell));
  const values = trials.map((trial) => trial.throughput).filter((it): it is number => typeof it === "number");
  const most = Math.max(...values, 0) * 1.06 || 1;
  const x = (place: number) => LEFT + 8 + (place / Math.max(1, trials.length - 1)) * (width - LEFT - 20);
  const y = (value: number) => HEIGHT - BOTTOM - (value / most) * (HEIGHT - BOTTOM - 12);
  const rounds = new Set(trials.map((trial) => trial.round)).size;
  const label = `${values.length} trials in ${rounds} rounds, in the order in which they ran; ${run.unit}/s`;
  const chart = s("svg", { viewBox: `0 0 ${width} ${HEIGHT}`, class: "chart", role: "img", "aria-label": label });
  for (const part of [0, 0.5, 1]) {
    const value = (most / 1.06) * part;
    chart.append(
      s("line", { class: "grid", x1: LEFT, x2: width - 8, y1: y(value), y2: y(value) }),
      s("text", { class: "tick", x: LEFT - 8, y: y(value) + 4, "text-anchor": "end" }, count(value)),
    );
  }
  let before = -1;
  trials.forEach((trial, place) => {
    if (trial.round !== before) {
      before = trial.round;
      const at = x(place) - (place > 0 ? (x(1) - x(0)) / 2 : 6);
      chart.append(s("line", { class: "round", x1: at, x2: at, y1: 8, y2: HEIGHT - BOTTOM }));
    }
    const cell = of.get(trial.cell) as number;
    const name = cells[cell]?.label ?? "";
    if (typeof trial.throughput === "number") {
      const text = `${name}, round ${trial.round + 1}: ${count(trial.throughput)} ${run.unit}/s`;
      chart.append(mark(cell, x(place), y(trial.throughput), text));
    } else {
      const text = `${name}, round ${trial.round + 1}: ${trial.lost ?? "not counted"}`;
      chart.append(s("text", { class: "lost", x: x(place), y: HEIGHT - BOTTOM - 4, "text-anchor": "middle" }, "×", s("title", {}, text)));
    }
  });
  chart.append(s("text", { class: "tick", x: width / 2, y: HEIGHT - 8, "text-anchor": "middle" }, "trials as they ran; a line begins each round"));
  return chart;
}

/** Shapes tell cells apart where colours do not. */
function mark(cell: number, x: number, y: number, text: string): SVGElement {
  const fill = line(cell);
  const title = s("title", {}, text);
  switch (cell % 3) {
    case 0:
      return s("circle", { cx: x, cy: y, r: 4, fill }, title);
    case 1:
      return s("rect", { x: x - 3.6, y: y - 3.6, width: 7.2, height: 7.2, fill }, title);
    default:
      return s("path", { d: `M${x},${y - 5} l4.6,8.4 h-9.2 z`, fill }, title);
  }
}

/** What shape and colour stand for. */
export function legend(cells: Cell[]): SVGElement[] {
  return cells.map((_, place) => s("svg", { viewBox: "0 0 14 14", width: 14, height: 14, "aria-hidden": "true" }, mark(place, 7, 7, "")));
}
