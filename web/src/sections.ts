// What the page shows of one run, in its order: the answer first, and what a doubter asks after it.

import { diverging } from "./colors.js";
import { type Cell, type Condition, type Document, METRICS, type Metric, comparison, figure as figureOf, fullName, metricName } from "./data.js";
import { button, choice, copy, h } from "./dom.js";
import { change, count, share, time, withUnit } from "./format.js";
import { intervals, meaning, table as intervalTable } from "./charts/intervals.js";
import { decimate, lines } from "./charts/lines.js";
import { legend, points } from "./charts/points.js";
import { seeks } from "./charts/seeks.js";
import { animation } from "./charts/animation.js";
import { ofSeconds, ofTrials, quantile } from "./charts/heat.js";
import { type Table, figure, interactive, plain, twin } from "./table.js";

/** A section: its heading is a conclusion where there is one. */
export interface Section {
  id: string;
  /** Its name in the list of sections. */
  short: string;
  title: string;
  content: () => (Node | null)[];
}

function cellsOf(run: Document, condition: number): Cell[] {
  return run.cells.filter((cell) => cell.condition === condition);
}

function within(condition: Condition): string {
  return condition.name ? `With ${condition.name}` : "";
}

/** More conditions than this are folded, but those in which the baseline is not to be kept. */
const UNFOLDED = 8;

/** Each condition below its name. */
function byCondition(run: Document, content: (condition: Condition, place: number) => (Node | null)[]): Node[] {
  const many = run.conditions.length > UNFOLDED;
  return run.conditions.flatMap((condition, place) => {
    const shown = content(condition, place).filter((node): node is Node => node !== null);
    if (shown.length === 0) return [];
    if (!many) return condition.name ? [h("h3", {}, within(condition)), ...shown] : shown;
    const open = place === 0 || condition.decision !== condition.baseline;
    return [h("details", { class: "condition", open }, h("summary", {}, within(condition)), ...shown)];
  });
}

/** The decision, as a ticket would have it. */
export function answer(run: Document): Section {
  const paragraphs = run.answer;
  const copied: HTMLButtonElement = button("Copy for a ticket", () => void copy(ticket(run), copied));
  const costs = run.cells
    .filter((cell) => cell.losses.length > 0)
    .map((cell) => h("li", {}, `${fullName(run, cell)} can lose ${cell.losses.join("; ")}.`));
  return {
    id: "answer",
    short: "Answer",
    title: "What to do",
    content: () => [
      ...paragraphs.map((text) => h("p", { class: "answer" }, text)),
      h("p", { class: "tools" }, copied),
      costs.length > 0 ? h("div", {}, h("h3", {}, "What settings can lose"), h("ul", {}, ...costs)) : null,
      run.complete ? null : h("p", { class: "warning" }, "The run is not complete: what is shown is what was measured so far."),
      run.warnings.length > 0
        ? h("details", { open: run.warnings.length < 3 }, h("summary", {}, `${run.warnings.length} warning${run.warnings.length === 1 ? "" : "s"}`), h("ul", {}, ...run.warnings.map((text) => h("li", {}, text))))
        : null,
      run.notes.length > 0 ? h("ul", {}, ...run.notes.map((text) => h("li", {}, text))) : null,
    ],
  };
}

/** The answer and where it was found, as plain text. */
export function ticket(run: Document): string {
  const where = run.environment.map(([name, value]) => `${name}: ${value}`).join("\n");
  return `${run.answer.join("\n")}\n\nRun ${run.name} (${run.world}), ${run.started}\n${run.workload}; ${run.timing}\n${where}\n`;
}

/** Cells in order, with intervals and the noise floor. */
export function ranking(run: Document): Section {
  const compared = run.cells.some((cell) => Object.keys(cell.comparisons).length > 0);
  const judged = run.cells.map((cell) => comparison(cell, "throughput")?.verdict);
  const settled = judged.filter((verdict) => verdict && verdict !== "open").length;
  const all = judged.filter(Boolean).length;
  return {
    id: "ranking",
    short: "Ranking",
    title: compared ? `${settled} of ${all} differences in throughput are settled` : "What each cell did",
    content: () => {
      if (!compared) return [plain(figures(run, run.cells, ""))];
      const panels = byCondition(run, (condition, place) => {
        const cells = cellsOf(run, place);
        const shown = METRICS.filter((metric) => cells.some((cell) => comparison(cell, metric)));
        // Where there is one condition, a figure's name is the heading below the section's.
        const level = condition.name ? "h4" : "h3";
        return shown.flatMap((metric) => [
          h(level, {}, metricName(run, metric)),
          twin(intervals(run, condition, cells, metric), intervalTable(run, condition, cells, metric)),
        ]);
      });
      return [h("p", { class: "note" }, meaning(run)), ...panels];
    },
  };
}

function figures(run: Document, cells: Cell[], of: string): Table {
  return {
    caption: `Figures of all cells${of ? `, ${of}` : ""}`,
    columns: ["cell", `${run.unit}/s`, "MiB/s", "p50", "p99", "p99.9", "longest", "fairness"],
    rows: cells.map((cell) => [
      fullName(run, cell),
      figure(cell.throughput?.mean, count(cell.throughput?.mean)),
      figure(cell.mebibytes, count(cell.mebibytes)),
      figure(cell.p50, time(cell.p50)),
      figure(cell.p99, time(cell.p99)),
      figure(cell.p999, time(cell.p999)),
      figure(cell.max, time(cell.max)),
      figure(cell.fairness, cell.fairness === null ? "–" : count(cell.fairness)),
    ]),
  };
}

/** Two factors as a heatmap, the others as small multiples. */
export function matrix(run: Document): Section | null {
  const factors = run.factors.filter((factor) => factor.levels.length > 1);
  if (factors.length < 2) return null;
  let [row, column] = [0, 1];
  let metric: Metric = "throughput";
  const out = h("div", { class: "multiples" });
  const render = () => {
    if (row === column) column = (row + 1) % factors.length;
    const [down, across] = [factors[row], factors[column]];
    if (!down || !across) return;
    const others = factors.filter((factor) => factor !== down && factor !== across);
    const groups = new Map<string, Cell[]>();
    for (const cell of run.cells) {
      const key = others.map((factor) => `${factor.name} ${cell.levels[factor.name] ?? "–"}`).join(", ");
      groups.set(key, [...(groups.get(key) ?? []), cell]);
    }
    const logs = run.cells.map((cell) => Math.log(figureOf(cell, metric) ?? Number.NaN));
    out.replaceChildren(
      ...[...groups].map(([name, cells]) => {
        const at = (r: string, c: string) => cells.find((cell) => cell.levels[down.name] === r && cell.levels[across.name] === c);
        const own = cells.map((cell) => logs[run.cells.indexOf(cell)] as number).filter(Number.isFinite);
        const middle = own.reduce((a, b) => a + b, 0) / (own.length || 1);
        const reach = Math.max(...own.map((log) => Math.abs(log - middle)), 0.02);
        const sign = metric === "p99" ? -1 : 1;
        return h(
          "div",
          { class: "scroll", tabindex: 0, role: "region", "aria-label": name || "matrix" },
          h(
            "table",
            { class: "heat" },
            h("caption", {}, name || `${metricName(run, metric)}, blue is better`),
            h("thead", {}, h("tr", {}, h("th", { scope: "col" }, `${down.name} \\ ${across.name}`), ...across.levels.map((level) => h("th", { scope: "col" }, level)))),
            h(
              "tbody",
              {},
              ...down.levels.map((r) =>
                h(
                  "tr",
                  {},
                  h("th", { scope: "row" }, r),
                  ...across.levels.map((c) => {
                    const cell = at(r, c);
                    const value = cell ? figureOf(cell, metric) : null;
                    const log = value === null ? Number.NaN : Math.log(value);
                    const color = Number.isFinite(log) ? `background-color: ${diverging(sign * (log - middle), reach)}` : null;
                    return h("td", { class: "number", style: color }, value === null ? "–" : metric === "p99" ? time(value) : count(value));
                  }),
                ),
              ),
            ),
          ),
        );
      }),
    );
  };
  const names = factors.map((factor) => factor.name);
  return {
    id: "matrix",
    short: "Matrix",
    title: `${names.slice(0, -1).join(", ")} and ${names.at(-1)} together`,
    content: () => {
      render();
      const set = (change: () => void) => {
        change();
        render();
      };
      return [
        h(
          "p",
          { class: "tools" },
          choice("Down", names, row, (at) => set(() => (row = at))),
          choice("Across", names, column, (at) => set(() => (column = at))),
          choice("Figure", METRICS.map((it) => metricName(run, it)), 0, (at) => set(() => (metric = METRICS[at] as Metric))),
        ),
        out,
      ];
    },
  };
}

/** The classic series over clients, the device's figures and memory beside it. */
export function scaling(run: Document): Section | null {
  const clients = run.factors.find((factor) => factor.name === "clients" && factor.levels.length > 1);
  if (!clients) return null;
  const levels = clients.levels.map(Number).sort((a, b) => a - b);
  const rest = (cell: Cell) =>
    run.factors
      .filter((factor) => factor.name !== "clients" && factor.levels.length > 1)
      .map((factor) => cell.levels[factor.name] ?? "–")
      .join(", ") || "all";
  const names = [...new Set(run.cells.map(rest))];
  const at = (name: string, level: number) => run.cells.find((cell) => rest(cell) === name && cell.levels["clients"] === String(level));
  const views: [string, (cell: Cell) => number | null, (value: number) => string][] = [
    [`${run.unit}/s of the clients`, (cell) => cell.throughput?.mean ?? null, count],
    ["requests/s at the device", (cell) => sum(cell.counters["device.r/s"], cell.counters["device.w/s"]), count],
    ["requests in flight", (cell) => cell.counters["device.aqu-sz"] ?? null, count],
    ["99th percentile", (cell) => cell.p99 ?? null, time],
    ["page cache, growth in a second", (cell) => cell.counters["memory.cached_growth"] ?? null, (value) => withUnit(value, "B")],
  ];
  return {
    id: "scaling",
    short: "Scaling",
    title: scalingTitle(run, names, levels, at),
    content: () => [
      h(
        "div",
        { class: "two" },
        ...views
          .filter(([, of]) => run.cells.some((cell) => of(cell) !== null))
          .map(([name, of, format]) =>
            twin(
              lines({
                title: name,
                x: "clients",
                y: name,
                series: names.map((label) => ({ label, x: levels, y: levels.map((level) => { const cell = at(label, level); return cell ? of(cell) : null; }) })),
                logX: true,
                splitsX: levels,
                formatX: String,
                formatY: format,
                points: true,
              }),
              {
                caption: `${name} by clients`,
                columns: ["cell", ...levels.map(String)],
                rows: names.map((label) => [label, ...levels.map((level) => { const cell = at(label, level); const value = cell ? of(cell) : null; return figure(value, value === null ? "–" : format(value)); })]),
              },
            ),
          ),
      ),
    ],
  };
}

function sum(a: number | undefined, b: number | undefined): number | null {
  return a === undefined && b === undefined ? null : (a ?? 0) + (b ?? 0);
}

function scalingTitle(run: Document, names: string[], levels: number[], at: (name: string, level: number) => Cell | undefined): string {
  const [first, last] = [levels[0] as number, levels.at(-1) as number];
  const growth = names.map((name) => {
    const [few, many] = [at(name, first)?.throughput?.mean, at(name, last)?.throughput?.mean];
    return few && many ? many / few : Number.NaN;
  });
  const known = growth.filter(Number.isFinite);
  if (known.length === 0) return `From ${first} to ${last} clients`;
  const [least, most] = [Math.min(...known), Math.max(...known)];
  const range = least.toFixed(1) === most.toFixed(1) ? most.toFixed(1) : `${least.toFixed(1)} to ${most.toFixed(1)}`;
  return `From ${first} to ${last} clients, ${run.unit} grow ${range} times`;
}

/** Distributions of latency, and how they change from trial to trial. */
export function latency(run: Document): Section {
  return {
    id: "latency",
    short: "Latency",
    title: latencyTitle(run),
    content: () =>
      byCondition(run, (condition, place) => {
        const cells = cellsOf(run, place).filter((cell) => cell.distribution.length > 1);
        if (cells.length === 0) return [];
        // The tail is what differs: the axis is the share that takes longer.
        const series = cells.map((cell) => ({
          label: cell.label,
          x: cell.distribution.map(([ms]) => ms as number),
          y: cell.distribution.map(([, below]) => Math.max(1e-5, 1 - (below as number))),
        }));
        return [
          twin(
            lines({
              title: `Latency${condition.name ? `, ${condition.name}` : ""}`,
              x: "latency",
              y: "share that takes longer",
              series,
              logX: true,
              logY: true,
              formatX: time,
              formatY: (value) => (value >= 0.01 ? share(value) : `${count(value * 100)} %`),
              height: 300,
            }),
            figures(run, cells, condition.name),
          ),
          ...latencyOverTrials(run, cells),
        ];
      }),
  };
}

/** Which cells have the shortest and the longest tail, where there is one condition. */
function latencyTitle(run: Document): string {
  const known = run.cells.filter((cell) => typeof cell.p99 === "number").sort((a, b) => (a.p99 as number) - (b.p99 as number));
  const [least, most] = [known[0], known.at(-1)];
  if (!least || !most || least === most) return "How long operations take";
  return `99 of 100 operations take up to ${time(least.p99)} (${fullName(run, least)}) to ${time(most.p99)} (${fullName(run, most)})`;
}

/** A column for each trial of a cell: what changes in the course of the run. */
function latencyOverTrials(run: Document, cells: Cell[]): Node[] {
  const shown = cells
    .map((cell) => ({ cell, trials: run.trials.filter((trial) => trial.cell === cell.index && trial.latency) }))
    .filter(({ trials }) => trials.length > 1);
  if (shown.length === 0) return [];
  const charts = ofTrials(shown.map(({ cell, trials }) => ({ label: fullName(run, cell), trials: trials.flatMap((trial) => trial.latency ?? []) })));
  return [
    h("h4", {}, "Over the run"),
    h("p", { class: "note" }, "Each trial is a column, in the order in which they ran: the darker, the more of its operations took so long; the line is the median."),
    h(
      "div",
      { class: "multiples" },
      ...shown.map(({ cell, trials }, place) =>
        captioned(cell.label, charts[place] as HTMLElement, {
          caption: `${fullName(run, cell)}, trial by trial`,
          columns: ["round", "median at most", "99th percentile", "longest at most"],
          rows: trials.map((trial) => {
            const [half, all] = [0.5, 1].map((wanted) => (trial.latency ? quantile(trial.latency, wanted) : null));
            return [String(trial.round + 1), figure(half, time(half)), figure(trial.p99, time(trial.p99)), figure(all, time(all))];
          }),
        }),
      ),
    ),
  ];
}

/** A chart with its name above it, and its table. */
function captioned(name: string, chart: Element, table: Table): HTMLElement {
  const it = twin(chart, table);
  it.prepend(h("figcaption", {}, name));
  return it;
}

/** Rows of a table of seconds: a trial of twelve hours has 43,200. */
const MOST_ROWS = 600;

/** Where counters are read, and by which names. */
const LAYERS: [string, (name: string) => boolean][] = [
  ["Device", (name) => /^(device|sim|emulate|cache)\./.test(name)],
  ["Host", (name) => /^(cpu|memory|pressure|vm|kernel|writeback|irq)\./.test(name)],
  ["Server and others", () => true],
];

/** The course of trials: figures of the clients, and counters of device, host and server, on one cursor. */
export function course(run: Document): Section | null {
  if (run.courses.length === 0) return null;
  const seen = new Set(run.findings.flatMap((finding) => finding.counters));
  let left = [...new Set(run.courses.flatMap((it) => Object.keys(it.counters)))];
  // What findings speak of comes first.
  left.sort((a, b) => Number(seen.has(b)) - Number(seen.has(a)) || a.localeCompare(b));
  const layers = LAYERS.map(([layer, has]) => {
    const names = left.filter(has);
    left = left.filter((name) => !has(name));
    const queue = names.indexOf("device.aqu-sz");
    return { layer, names, chosen: seen.has(names[0] ?? "") || queue < 0 ? 0 : queue };
  }).filter(({ names }) => names.length > 0);
  let condition = 0;
  const out = h("div", {});
  const key = "course";
  const render = () => {
    const cells = cellsOf(run, condition);
    const courses = run.courses.filter((it) => cells.some((cell) => cell.index === it.cell));
    const label = (cell: number) => run.cells.find((it) => it.index === cell)?.label ?? "";
    const chart = (name: string, of: (it: (typeof courses)[number]) => [number[], (number | null)[]], format: (value: number) => string, showing: Set<number>, logY = false) => {
      const series = courses.map((it) => ({ label: label(it.cell), strong: showing.has(it.cell), ...decimate(...of(it), 2000) }));
      return twin(
        lines({ title: name, x: "seconds from the end of warm-up", y: name, series, formatX: (value) => String(Number(value.toPrecision(6))), formatY: format, sync: key, logY, height: 200 }),
        {
          caption: `${name}, second by second`,
          columns: ["second", ...series.map((it) => it.label)],
          rows: (series[0]?.x ?? []).map((at, place) => [count(at), ...series.map((it) => figure(it.y[place], it.y[place] === null || it.y[place] === undefined ? "–" : format(it.y[place] as number)))]),
        },
      );
    };
    const counters = layers.flatMap(({ names, chosen }) => {
      const name = names[chosen] as string;
      const about = run.counters[name];
      const findings = run.findings.filter((finding) => finding.counters.includes(name) && finding.cells.some((cell) => cells.some((it) => it.index === cell)));
      return [
        h("h3", {}, `${name}: ${about?.meaning ?? ""}`),
        ...findings.map((finding) => h("p", { class: "finding" }, h("strong", {}, `${finding.id}: `), `${finding.statement} (${finding.evidence}) In bold: ${finding.cells.map(label).join(", ")}.`)),
        chart(name, (it) => [it.counters_at, it.counters[name] ?? []], (value) => withUnit(value, about?.unit ?? ""), new Set(findings.flatMap((finding) => finding.cells))),
      ];
    });
    const shown = courses.filter((it) => it.max.some((value) => value > 0));
    const seconds = ofSeconds(shown.map((it) => ({ label: label(it.cell), course: it })));
    const none = new Set<number>();
    out.replaceChildren(
      h("h3", {}, `${run.unit} in each second`),
      chart(`${run.unit}/s`, (it) => [it.at, it.operations], count, none),
      h("h3", {}, "99th percentile of each second"),
      chart("99th percentile", (it) => [it.at, it.p99.map((value) => (value > 0 ? value : null))], time, none, true),
      ...counters,
      ...(shown.length > 0
        ? [
            h("h3", {}, "Latency in each second"),
            h("p", { class: "note" }, "Of each second three percentiles are kept, and shades are drawn from these: the line is the median, half of the operations are above it; dark up to the 99th percentile, light up to the longest."),
            h(
              "div",
              { class: "multiples" },
              ...shown.map((it, place) =>
                captioned(label(it.cell), seconds[place] as HTMLElement, {
                  caption: `${label(it.cell)}, latency second by second`,
                  columns: ["second", "median", "99th percentile", "longest"],
                  rows: it.at.slice(0, MOST_ROWS).map((at, row) => [count(at), ...[it.p50, it.p99, it.max].map((values) => figure(values[row], time(values[row])))]),
                }),
              ),
            ),
          ]
        : []),
    );
  };
  return {
    id: "course",
    short: "Course",
    title: "What happened within a trial",
    content: () => {
      render();
      return [
        h("p", {}, "The trial of each cell with its median throughput. The cursor is one for all charts."),
        h(
          "p",
          { class: "tools" },
          run.conditions.length > 1 ? choice("Condition", run.conditions.map((it) => it.name), 0, (at) => { condition = at; render(); }) : null,
          ...layers.map((it) => choice(it.layer, it.names.map((name) => (seen.has(name) ? `${name} (finding)` : name)), it.chosen, (at) => { it.chosen = at; render(); })),
        ),
        out,
      ];
    },
  };
}

/** Probable causes. */
export function findings(run: Document): Section | null {
  if (run.findings.length === 0) return null;
  return {
    id: "findings",
    short: "Findings",
    title: `${run.findings.length} finding${run.findings.length === 1 ? "" : "s"}`,
    content: () =>
      run.findings.map((finding) =>
        h(
          "article",
          { class: "finding" },
          h("h3", {}, finding.id),
          h("p", {}, finding.statement),
          h("p", {}, h("strong", {}, "Evidence: "), `${finding.evidence}.`),
          h("p", {}, h("strong", {}, "What could prove it wrong: "), `${finding.check}. `, h("code", {}, `spindle check ${run.name} --finding ${finding.id}`)),
        ),
      ),
  };
}

/** Who gets how much. */
export function fairness(run: Document): Section | null {
  const cells = run.cells.filter((cell) => cell.shares.length > 1 && cell.shares.length <= 256);
  if (cells.length === 0) return null;
  const worst = [...cells].sort((a, b) => (a.fairness ?? 1) - (b.fairness ?? 1))[0] as Cell;
  return {
    id: "fairness",
    short: "Fairness",
    title: `Clients' shares: Jain's index ${count(worst.fairness)} at the least, under ${fullName(run, worst)}`,
    content: () => [
      h(
        "div",
        { class: "multiples" },
        ...cells.map((cell) => {
          const most = Math.max(...cell.shares);
          const fair = 1 / cell.shares.length;
          const bars = cell.shares.map((it) => h("span", { class: "bar", style: `height: ${((100 * it) / most).toFixed(1)}%`, title: share(it) }));
          const least = share(cell.shares[0]);
          return h(
            "figure",
            { class: "shares" },
            h("div", { class: "bars", role: "img", "aria-label": `${fullName(run, cell)}: from ${least} to ${share(most)} of all operations` }, ...bars),
            h("figcaption", {}, `${fullName(run, cell)}: ${least} to ${share(most)} each, fair is ${share(fair)}`),
          );
        }),
      ),
    ],
  };
}

/** Every trial. */
export function rounds(run: Document): Section {
  const lost = run.trials.filter((trial) => trial.throughput === null).length;
  return {
    id: "rounds",
    short: "Rounds",
    title: lost > 0 ? `${run.trials.length} trials, of which ${lost} do not count` : `All ${run.trials.length} trials`,
    content: () =>
      byCondition(run, (condition, place) => {
        const cells = cellsOf(run, place);
        const names = legend(cells);
        const table: Table = {
          caption: `Trials${condition.name ? `, ${condition.name}` : ""}`,
          columns: ["cell", "round", `${run.unit}/s`, "p99", "does not count because"],
          rows: run.trials
            .filter((trial) => cells.some((cell) => cell.index === trial.cell))
            .map((trial) => [
              cells.find((cell) => cell.index === trial.cell)?.label ?? "",
              figure(trial.round + 1, String(trial.round + 1)),
              figure(trial.throughput, count(trial.throughput)),
              figure(trial.p99, time(trial.p99)),
              trial.lost ?? "",
            ]),
        };
        return [
          h("ul", { class: "legend" }, ...cells.map((cell, at) => h("li", {}, names[at] as Node, cell.label))),
          twin(points(run, cells), table),
        ];
      }),
  };
}

/** Requests by time and place. */
export function requests(run: Document): Section | null {
  if (run.requests.length === 0) return null;
  const label = (index: number) => {
    const cell = run.cells.find((it) => it.index === index);
    return cell ? fullName(run, cell) : "";
  };
  const chosen = [0, Math.min(1, run.requests.length - 1)];
  const names = run.requests.map((it) => label(it.cell));
  const out = h("div", {});
  const render = () => {
    const shown = run.requests.length > 1 ? chosen : [0];
    out.replaceChildren(
      ...shown.flatMap((which) => {
        const it = run.requests[which] as (typeof run.requests)[number];
        return [h("h3", {}, `${label(it.cell)}${it.cut ? " (the first requests)" : ""}`), seeks(it, label(it.cell))];
      }),
    );
  };
  const set = (place: number) => (at: number) => {
    chosen[place] = at;
    render();
  };
  return {
    id: "seeks",
    short: "Seeks",
    title: "Where requests went",
    content: () => {
      render();
      return [
        h("p", {}, "Each request where it lies on the device, when it was dispatched: reads blue, writes orange. Drag or use the arrow keys to move, + and − to zoom, 0 to see all."),
        run.requests.length > 1 ? h("p", { class: "tools" }, choice("Above", names, 0, set(0)), choice("Below", names, chosen[1] as number, set(1))) : null,
        out,
        h("h3", {}, "Queue and dispatch"),
        animation(run.requests, label),
      ];
    },
  };
}

/** What others published. */
export function published(run: Document): Section | null {
  if (run.published.length === 0) return null;
  const measured = run.published.filter((it) => typeof it.ours === "number");
  const ratios = measured.map((it) => Math.abs(Math.log((it.ours as number) / Math.min(Math.max(it.ours as number, it.low), it.high))));
  const close = ratios.filter((log) => log <= Math.log(1.25)).length;
  return {
    id: "published",
    short: "Published",
    title: `${close} of ${measured.length} published figures are within a quarter of ours`,
    content: () => [
      plain({
        caption: "Beside what was published",
        columns: ["cell", "figure", "published", "ours", "ratio"],
        rows: run.published.map((it) => {
          const cell = run.cells.find((other) => other.index === it.cell);
          const ours = it.ours ?? null;
          const ratio = ours === null ? null : ours / Math.min(Math.max(ours, it.low), it.high);
          return [
            cell ? fullName(run, cell) : "",
            it.figure,
            figure(it.low, it.low === it.high ? count(it.low) : `${count(it.low)}–${count(it.high)}`),
            figure(ours, count(ours)),
            figure(ratio, ratio === null ? "–" : ratio.toFixed(2)),
          ];
        }),
      }),
      ...[...new Set(run.published.map((it) => it.source))].map((source) => h("p", {}, `Published: ${source}.`)),
    ],
  };
}

/** Where and how. */
export function environment(run: Document): Section {
  const pairs = (rows: [string, string][], caption: string) => plain({ caption, columns: ["name", "value"], rows });
  const settings = run.settings as [string, string][];
  return {
    id: "environment",
    short: "Environment",
    title: `${run.world === "real" ? "Measured" : run.world === "emulated" ? "Emulated" : run.world === "simulated" ? "Simulated" : "Imported"}: ${run.environment.find(([name]) => name === "device")?.[1] ?? ""}`,
    content: () => [
      pairs([["workload", run.workload], ["timing", run.timing], ...(run.environment as [string, string][])], "Where and what"),
      run.factors.length > 0
        ? plain({
            caption: "The plan: what varies",
            columns: ["factor", "is", "levels"],
            rows: run.factors.map((it) => [it.name, { setting: "a setting of the host", choice: "a choice", condition: "a condition" }[it.role] ?? it.role, it.levels.join(", ")]),
          })
        : null,
      settings.length > 0 ? pairs(settings, "Settings before the run; they are put back after it") : null,
    ],
  };
}

/** All figures. */
export function raw(run: Document): Section {
  const names = [...new Set(run.cells.flatMap((cell) => Object.keys(cell.counters)))].sort();
  const metrics: Table = figures(run, run.cells, "");
  return {
    id: "raw",
    short: "Raw table",
    title: "All figures",
    content: () => [
      interactive({
        caption: "Figures, differences and counters of all cells",
        columns: [...metrics.columns, "difference", "verdict", ...names],
        rows: run.cells.map((cell, place) => {
          const it = comparison(cell, "throughput");
          return [
            ...(metrics.rows[place] ?? []),
            figure(it?.ratio, it ? change(it.ratio) : ""),
            it?.verdict ?? "",
            ...names.map((name) => figure(cell.counters[name], withUnit(cell.counters[name], run.counters[name]?.unit ?? ""))),
          ];
        }),
      }),
    ],
  };
}
