// Seek plots: requests by time and sector. From afar as a density in one image, near by as points; it is
// moved by dragging or with the arrow keys, and zoomed by the wheel or with + and −.

import type { Requests } from "../data.js";
import { themed } from "../colors.js";
import { h } from "../dom.js";
import { count, time } from "../format.js";

const HEIGHT = 300;
const LEFT = 84;
const BOTTOM = 28;
/** Fewer points than this are drawn one by one. */
const EXACT = 4000;

interface View {
  x0: number;
  x1: number;
  y0: number;
  y1: number;
}

/** The chart of a trial's requests; `label` names the cell. */
export function seeks(it: Requests, label: string): HTMLElement {
  const last = it.dispatched.length - 1;
  const whole: View = {
    x0: it.dispatched[0] ?? 0,
    x1: Math.max(it.dispatched[last] ?? 1, (it.dispatched[0] ?? 0) + 1),
    y0: least(it.sector),
    y1: most(it.sector) + 1,
  };
  const view = { ...whole };
  const canvas = h("canvas", {
    class: "seeks",
    tabindex: 0,
    role: "img",
    "aria-label": `${label}: ${count(it.sector.length)} requests by time and sector. Arrow keys move, + and − zoom, 0 shows all.`,
  });
  const box = h("div", { class: "plot" }, canvas);
  let asked = false;
  const draw = () => {
    if (asked) return;
    asked = true;
    requestAnimationFrame(() => {
      asked = false;
      paint(canvas, it, view);
    });
  };
  const move = (dx: number, dy: number) => {
    const w = view.x1 - view.x0;
    const v = view.y1 - view.y0;
    view.x0 += dx * w;
    view.x1 += dx * w;
    view.y0 += dy * v;
    view.y1 += dy * v;
    draw();
  };
  const zoom = (factor: number, cx: number, cy: number) => {
    const [w, v] = [view.x1 - view.x0, view.y1 - view.y0];
    const x = view.x0 + cx * w;
    const y = view.y0 + cy * v;
    Object.assign(view, { x0: x - cx * w * factor, x1: x + (1 - cx) * w * factor, y0: y - cy * v * factor, y1: y + (1 - cy) * v * factor });
    draw();
  };
  canvas.addEventListener("keydown", (event) => {
    const steps: Record<string, () => void> = {
      ArrowLeft: () => move(-0.1, 0),
      ArrowRight: () => move(0.1, 0),
      ArrowUp: () => move(0, 0.1),
      ArrowDown: () => move(0, -0.1),
      "+": () => zoom(0.7, 0.5, 0.5),
      "=": () => zoom(0.7, 0.5, 0.5),
      "-": () => zoom(1 / 0.7, 0.5, 0.5),
      "0": () => {
        Object.assign(view, whole);
        draw();
      },
    };
    const step = steps[event.key];
    if (!step) return;
    event.preventDefault();
    step();
  });
  // Only with the keys that a page's own scrolling does not take.
  canvas.addEventListener("wheel", (event) => {
    if (!event.ctrlKey && !event.metaKey && document.activeElement !== canvas) return;
    event.preventDefault();
    const at = canvas.getBoundingClientRect();
    const cx = (event.clientX - at.left - LEFT) / (at.width - LEFT);
    const cy = 1 - (event.clientY - at.top) / (at.height - BOTTOM);
    zoom(event.deltaY < 0 ? 0.8 : 1.25, cx, cy);
  }, { passive: false });
  canvas.addEventListener("pointerdown", (event) => {
    canvas.setPointerCapture(event.pointerId);
    let [x, y] = [event.clientX, event.clientY];
    const drag = (to: PointerEvent) => {
      const at = canvas.getBoundingClientRect();
      move(-(to.clientX - x) / (at.width - LEFT), (to.clientY - y) / (at.height - BOTTOM));
      [x, y] = [to.clientX, to.clientY];
    };
    canvas.addEventListener("pointermove", drag);
    canvas.addEventListener("pointerup", () => canvas.removeEventListener("pointermove", drag), { once: true });
  });
  new ResizeObserver(draw).observe(canvas);
  addEventListener("beforeprint", () => paint(canvas, it, view));
  return box;
}

function least(values: number[]): number {
  return values.reduce((a, b) => Math.min(a, b), Number.POSITIVE_INFINITY);
}

function most(values: number[]): number {
  return values.reduce((a, b) => Math.max(a, b), 0);
}

/** Where in an ascending list a value would stand. */
function place(sorted: number[], value: number): number {
  let [low, high] = [0, sorted.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if ((sorted[middle] as number) < value) low = middle + 1;
    else high = middle;
  }
  return low;
}

function paint(canvas: HTMLCanvasElement, it: Requests, view: View): void {
  const scale = devicePixelRatio || 1;
  const width = canvas.clientWidth;
  if (width === 0) return;
  const [w, v] = [Math.round(width * scale), Math.round(HEIGHT * scale)];
  if (canvas.width !== w || canvas.height !== v) {
    canvas.width = w;
    canvas.height = v;
  }
  const context = canvas.getContext("2d");
  if (!context) return;
  const left = Math.round(LEFT * scale);
  const [pw, pv] = [w - left, v - Math.round(BOTTOM * scale)];
  context.clearRect(0, 0, w, v);
  const from = place(it.dispatched, view.x0);
  const to = place(it.dispatched, view.x1);
  const x = (ms: number) => ((ms - view.x0) / (view.x1 - view.x0)) * pw;
  const y = (sector: number) => pv - ((sector - view.y0) / (view.y1 - view.y0)) * pv;
  if (to - from <= EXACT) {
    for (let at = from; at < to; at += 1) {
      const py = y(it.sector[at] as number);
      if (py < 0 || py > pv) continue;
      context.fillStyle = it.operations[at] === "R" ? "#0072b2" : "#d55e00";
      context.fillRect(left + x(it.dispatched[at] as number) - scale, py - scale, 2 * scale, 2 * scale);
    }
  } else {
    context.putImageData(density(it, from, to, pw, pv, x, y), left, 0);
  }
  axes(context, scale, left, w, v, pv, view);
}

/** Reads are blue and writes orange, the more of them in a pixel the darker. */
function density(
  it: Requests,
  from: number,
  to: number,
  width: number,
  height: number,
  x: (ms: number) => number,
  y: (sector: number) => number,
): ImageData {
  const reads = new Uint16Array(width * height);
  const writes = new Uint16Array(width * height);
  let largest = 1;
  for (let at = from; at < to; at += 1) {
    const px = Math.floor(x(it.dispatched[at] as number));
    const py = Math.floor(y(it.sector[at] as number));
    if (px < 0 || px >= width || py < 0 || py >= height) continue;
    const bin = py * width + px;
    const bins = it.operations[at] === "R" ? reads : writes;
    const now = (bins[bin] as number) + 1;
    bins[bin] = now;
    if (now > largest) largest = now;
  }
  const image = new ImageData(width, height);
  const steps = Math.log1p(largest);
  for (let bin = 0; bin < reads.length; bin += 1) {
    const [r, wr] = [reads[bin] as number, writes[bin] as number];
    if (r + wr === 0) continue;
    const isRead = r >= wr;
    image.data.set(isRead ? [0, 114, 178] : [213, 94, 0], bin * 4);
    image.data[bin * 4 + 3] = 90 + 165 * (Math.log1p(r + wr) / steps);
  }
  return image;
}

function axes(context: CanvasRenderingContext2D, scale: number, left: number, w: number, v: number, pv: number, view: View): void {
  context.fillStyle = themed("ink-soft");
  context.strokeStyle = themed("grid");
  context.font = `${12 * scale}px system-ui, sans-serif`;
  context.strokeRect(left, 0, w - left, pv);
  for (const part of [0, 0.5, 1]) {
    const align = part === 0 ? "left" : part === 1 ? "right" : "center";
    context.textAlign = align;
    context.textBaseline = "alphabetic";
    context.fillText(time(view.x0 + part * (view.x1 - view.x0)), left + part * (w - left), v - 8 * scale);
    context.textAlign = "right";
    context.textBaseline = part === 0 ? "bottom" : part === 1 ? "top" : "middle";
    const gib = ((view.y0 + part * (view.y1 - view.y0)) * 512) / 2 ** 30;
    context.fillText(`${count(gib)} GiB`, left - 6 * scale, pv * (1 - part));
  }
}
