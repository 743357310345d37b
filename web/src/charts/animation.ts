// Simulated trials as they happen: the queue, the device and the head, of one or two cells on one clock.

import type { Requests } from "../data.js";
import { themed } from "../colors.js";
import { button, choice, h, uniqueId } from "../dom.js";
import { time } from "../format.js";

const HEIGHT = 190;

/** The animation; `label` names a cell. */
export function animation(all: Requests[], label: (cell: number) => string): HTMLElement {
  const chosen = [0, Math.min(1, all.length - 1)];
  const canvases = chosen.map(() => h("canvas", { class: "heads", role: "img" }));
  const begin = Math.min(...all.map((it) => it.dispatched[0] ?? 0));
  const end = Math.max(...all.map((it) => it.dispatched.at(-1) ?? 1));
  let now = begin;
  let playing = false;
  let speed = 0.1;
  const id = uniqueId("time");
  const slider = h("input", {
    id,
    type: "range",
    min: 0,
    max: 1000,
    value: 0,
    oninput: () => {
      now = begin + ((end - begin) * Number(slider.value)) / 1000;
      draw();
    },
  });
  const clock = h("output", { for: id });
  const draw = () => {
    clock.textContent = time(now - begin);
    slider.value = String(Math.round((1000 * (now - begin)) / (end - begin || 1)));
    slider.setAttribute("aria-valuetext", clock.textContent);
    shown().forEach((which, place) => {
      const it = all[which] as Requests;
      const canvas = canvases[place] as HTMLCanvasElement;
      canvas.setAttribute("aria-label", `${label(it.cell)} at ${time(now - begin)}`);
      paint(canvas, it, label(it.cell), now);
    });
  };
  const shown = () => (all.length > 1 ? chosen : chosen.slice(0, 1));
  let last = 0;
  const step = (at: number) => {
    if (!playing) return;
    now += last ? (at - last) * speed : 0;
    last = at;
    if (now >= end) now = begin;
    draw();
    requestAnimationFrame(step);
  };
  const play: HTMLButtonElement = button("Play", () => {
    playing = !playing;
    play.textContent = playing ? "Pause" : "Play";
    last = 0;
    if (playing) requestAnimationFrame(step);
  });
  const speeds = [0.01, 0.1, 0.5, 1];
  const names = all.map((it) => label(it.cell));
  const box = h(
    "div",
    { class: "animation" },
    h(
      "p",
      { class: "tools" },
      play,
      h("label", { for: id }, "Time"),
      slider,
      clock,
      choice("Speed", speeds.map((it) => `${it} ×`), 1, (at) => (speed = speeds[at] as number)),
      ...(all.length > 1 ? [0, 1].map((place) => choice(place === 0 ? "Above" : "Below", names, chosen[place] as number, (at) => { chosen[place] = at; draw(); })) : []),
    ),
    h("p", {}, "Rings wait in the queue, full marks are at the device, the line is the head on its way; reads blue, writes orange."),
    ...canvases.slice(0, shown().length),
  );
  for (const canvas of canvases) new ResizeObserver(draw).observe(canvas);
  return box;
}

/** What waits, what is at the device and where the head is, at a moment. Above, the places on the device. */
function paint(canvas: HTMLCanvasElement, it: Requests, label: string, now: number): void {
  const scale = devicePixelRatio || 1;
  const width = canvas.clientWidth;
  if (width === 0) return;
  canvas.width = Math.round(width * scale);
  canvas.height = Math.round(HEIGHT * scale);
  const context = canvas.getContext("2d");
  if (!context) return;
  context.scale(scale, scale);
  context.clearRect(0, 0, width, HEIGHT);
  const last = it.sector.reduce((a, b) => Math.max(a, b), 1);
  const x = (sector: number) => 8 + (sector / last) * (width - 16);
  context.fillStyle = themed("ink");
  context.font = "13px system-ui, sans-serif";
  context.fillText(label, 8, 16);
  context.strokeStyle = themed("grid");
  context.strokeRect(8, 120, width - 16, 30);
  let waiting = 0;
  let working = 0;
  let head: number | null = null;
  for (let at = 0; at < it.sector.length; at += 1) {
    const [queued, dispatched, done] = [it.queued[at] as number, it.dispatched[at] as number, it.done[at] as number];
    const color = it.operations[at] === "R" ? "#0072b2" : "#d55e00";
    const px = x(it.sector[at] as number);
    if (done <= now) {
      head = px;
    } else if (dispatched <= now) {
      working += 1;
      context.fillStyle = color;
      context.fillRect(px - 2, 120, 4, 30);
    } else if (queued <= now) {
      waiting += 1;
      context.strokeStyle = color;
      context.beginPath();
      context.arc(px, 108 - ((waiting * 7) % 80), 3, 0, 2 * Math.PI);
      context.stroke();
    }
    // They are in the order of dispatch: nothing later can have been made long before.
    if (dispatched > now + 10_000) break;
  }
  if (head !== null) {
    context.strokeStyle = themed("ink");
    context.lineWidth = 2;
    context.beginPath();
    context.moveTo(head, 114);
    context.lineTo(head, 156);
    context.stroke();
    context.lineWidth = 1;
  }
  context.fillStyle = themed("ink-soft");
  context.fillText(`${waiting} waiting, ${working} at the device`, 8, 176);
}
