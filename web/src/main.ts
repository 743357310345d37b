// The page: reads the data that it carries and shows them.

import "uplot/dist/uPlot.min.css";
import "./style.css";
import { type Document, type Pages, unpack } from "./data.js";
import { button, h } from "./dom.js";
import { redraw } from "./charts/lines.js";
import { compare } from "./compare.js";
import {
  type Section,
  answer,
  course,
  environment,
  fairness,
  findings,
  latency,
  matrix,
  published,
  ranking,
  raw,
  requests,
  rounds,
  scaling,
} from "./sections.js";

function sections({ documents, together }: Pages): Section[] {
  const [run, other] = documents as [Document, Document | undefined];
  const all = [
    answer(run),
    ranking(run),
    findings(run),
    published(run),
    matrix(run),
    scaling(run),
    latency(run),
    course(run),
    fairness(run),
    rounds(run),
    requests(run),
    environment(run),
    raw(run),
  ].filter((section): section is Section => section !== null);
  return other && together ? [...compare(run, other, together), ...all] : all;
}

/** Light, dark, or as the system has it. */
function themeButton(): HTMLButtonElement {
  const names = ["system", "light", "dark"];
  let chosen = 0;
  const it: HTMLButtonElement = button("Theme: system", () => {
    chosen = (chosen + 1) % names.length;
    const name = names[chosen] as string;
    document.documentElement.dataset["theme"] = name;
    it.textContent = `Theme: ${name}`;
    redraw();
  });
  return it;
}

/** What was measured: the device, and the target where the device does not name it. */
function where(run: Document): string {
  const named = new Map(run.environment as [string, string][]);
  const [target, device] = [named.get("target") ?? "", named.get("device") ?? ""];
  const both = !target || device.includes(target) ? device : device ? `${target}: ${device}` : target;
  return `${both} (${run.world})`;
}

function show(pages: Pages): void {
  const run = pages.documents[0] as Document;
  const other = pages.documents[1];
  const all = sections(pages);
  document.title = other ? `${run.name} and ${other.name}` : `${run.name}: ${run.answer[0] ?? ""}`;
  const app = document.getElementById("app");
  app?.replaceChildren(
    h("a", { class: "skip", href: "#answer" }, "To the answer"),
    h(
      "header",
      {},
      h("p", { class: "name" }, "Spindle"),
      h("h1", {}, other ? `${run.name} and ${other.name}` : run.name),
      ...pages.documents.map((it) => h("p", { class: "about" }, where(it))),
      h("p", { class: "about" }, `${run.started}; ${run.workload}; ${run.timing}`),
      h("nav", { "aria-label": "Sections" }, h("ul", {}, ...all.map((section) => h("li", {}, h("a", { href: `#${section.id}` }, section.short))), h("li", {}, themeButton()))),
    ),
    h(
      "main",
      {},
      ...all.map((section) => h("section", { id: section.id, "aria-labelledby": `${section.id}-title` }, h("h2", { id: `${section.id}-title` }, section.title), ...section.content().filter((node): node is Node => node !== null))),
    ),
    h("footer", {}, h("p", {}, `Made by Spindle from the run file of ${run.name}. It says "open" where the trials do not tell.`)),
  );
}

/** While a run goes on: asks for newer data, and shows them unless the reader is in the middle of something. */
async function follow(pages: Pages): Promise<void> {
  let have = pages.documents[0]?.trials.length ?? 0;
  const status = h("p", { role: "status", class: "live" }, "Live: the run goes on.");
  const newer = button("Show new trials", () => update());
  let waiting: Pages | null = null;
  const place = () => document.querySelector("header")?.append(status);
  const update = () => {
    if (!waiting) return;
    const open = [...document.querySelectorAll("details")].map((it) => it.open);
    const at = scrollY;
    show(waiting);
    document.querySelectorAll("details").forEach((it, which) => (it.open = open[which] ?? it.open));
    scrollTo({ top: at, behavior: "instant" });
    waiting = null;
    newer.remove();
    place();
  };
  place();
  for (;;) {
    try {
      const answer = await fetch(`data?have=${have}`, { cache: "no-store" });
      if (!answer.ok) throw new Error(String(answer.status));
      const text = await answer.text();
      if (text === "") continue;
      waiting = await unpack(text);
      have = waiting.documents[0]?.trials.length ?? have;
      const complete = waiting.documents[0]?.complete ?? false;
      status.textContent = complete ? "The run is complete." : `Live: ${have} trials so far.`;
      // A reader who uses a control would lose it.
      if (document.querySelector("main")?.contains(document.activeElement)) status.append(" ", newer);
      else update();
      if (complete) return;
    } catch {
      status.textContent = "The program that made this page does not answer; trying again.";
      await new Promise((done) => setTimeout(done, 3000));
    }
  }
}

async function start(): Promise<void> {
  const data = document.getElementById("data");
  if (!data) return;
  try {
    const pages = await unpack(data.textContent ?? "");
    show(pages);
    document.documentElement.dataset["ready"] = "true";
    if (document.documentElement.dataset["live"] && !pages.documents[0]?.complete) void follow(pages);
  } catch (error) {
    document.getElementById("app")?.replaceChildren(h("p", { class: "warning" }, `This page cannot be shown: ${String(error)}. spindle report prints the run.`));
  }
}

// What is folded is printed, too; tables are not: a chart's numbers would fill books.
addEventListener("beforeprint", () => document.querySelectorAll<HTMLDetailsElement>("details.condition").forEach((it) => (it.open = true)));
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", redraw);
void start();
