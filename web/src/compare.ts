// Two runs on one page: what differs where they were made, and the cells that both have.

import { type Cell, type Document, figure as figureOf, fullName, metricName } from "./data.js";
import { h } from "./dom.js";
import { change, count, time } from "./format.js";
import type { Section } from "./sections.js";
import { decimate, lines } from "./charts/lines.js";
import { figure, plain, twin } from "./table.js";

/** The cells that both runs have, by their levels. */
function common(a: Document, b: Document): [Cell, Cell][] {
  const key = (cell: Cell) => JSON.stringify(Object.entries(cell.levels).sort(([x], [y]) => x.localeCompare(y)));
  const of = new Map(b.cells.map((cell) => [key(cell), cell]));
  return a.cells.flatMap((cell): [Cell, Cell][] => {
    const other = of.get(key(cell));
    return other ? [[cell, other]] : [];
  });
}

/** How far the runs' own trials let a difference between runs be seen. */
function said(run: Document, ratio: number, a: Cell, b: Cell): string {
  const low = (cell: Cell) => cell.throughput?.low ?? null;
  const high = (cell: Cell) => cell.throughput?.high ?? null;
  const [al, ah, bl, bh] = [low(a), high(a), low(b), high(b)];
  if (al === null || ah === null || bl === null || bh === null) return "open";
  const apart = ah < bl || bh < al;
  if (!apart) return "open";
  return Math.abs(Math.log(ratio)) < Math.log1p(run.margin) ? "within the margin" : ratio > 1 ? "more in the second" : "less in the second";
}

/** The sections of two runs together. */
export function compare(a: Document, b: Document): Section[] {
  const pairs = common(a, b);
  const differs = (x: string[][], y: string[][]) => {
    const names = [...new Set([...x, ...y].map(([name]) => name as string))];
    const value = (all: string[][], name: string) => all.find(([it]) => it === name)?.[1] ?? "–";
    return names.map((name) => [name, value(x, name), value(y, name)]).filter(([, one, two]) => one !== two);
  };
  const about = (run: Document) => [["workload", run.workload], ["timing", run.timing], ["world", run.world], ...(run.environment as [string, string][]), ...(run.settings as [string, string][])];
  const different = differs(about(a), about(b));
  return [
    {
      id: "together",
      short: "Together",
      title: `${pairs.length} cells are in both runs`,
      content: () => [
        h("p", {}, `First: ${a.name}, ${a.started}. Second: ${b.name}, ${b.started}. Between runs, everything that changed meanwhile is in a difference: intervals of each run alone do not cover that.`),
        plain({
          caption: "Throughput and latency of both runs",
          columns: ["cell", `first, ${metricName(a, "throughput")}`, "second", "difference", "the intervals say", "first, p99", "second, p99"],
          rows: pairs.map(([one, two]) => {
            const [x, y] = [figureOf(one, "throughput"), figureOf(two, "throughput")];
            const ratio = x && y ? y / x : null;
            return [
              fullName(a, one),
              figure(x, count(x)),
              figure(y, count(y)),
              figure(ratio, change(ratio)),
              ratio === null ? "no data" : said(a, ratio, one, two),
              figure(one.p99, time(one.p99)),
              figure(two.p99, time(two.p99)),
            ];
          }),
        }),
      ],
    },
    {
      id: "one-cursor",
      short: "One cursor",
      title: "Both runs second by second",
      content: () =>
        pairs.flatMap(([one, two]) => {
          const of = (run: Document, cell: Cell) => run.courses.find((it) => it.cell === cell.index);
          const [x, y] = [of(a, one), of(b, two)];
          if (!x || !y) return [null];
          const series = [
            { label: `first: ${a.name}`, ...decimate(x.at, x.operations, 2000) },
            { label: `second: ${b.name}`, ...decimate(y.at, y.operations, 2000) },
          ];
          return [
            h("h3", {}, fullName(a, one)),
            twin(
              lines({ title: fullName(a, one), x: "seconds from the end of warm-up", y: metricName(a, "throughput"), series, formatX: count, formatY: count, sync: "both", height: 180 }),
              {
                caption: `${fullName(a, one)}, second by second`,
                columns: ["run", "seconds", "mean of the seconds"],
                rows: [[`first: ${a.name}`, figure(x.at.length, String(x.at.length)), figure(mean(x.operations), count(mean(x.operations)))], [`second: ${b.name}`, figure(y.at.length, String(y.at.length)), figure(mean(y.operations), count(mean(y.operations)))]],
              },
            ),
          ];
        }),
    },
    {
      id: "differs",
      short: "What differs",
      title: different.length === 0 ? "Both were made alike" : `${different.length} things differ between the runs`,
      content: () => [plain({ caption: "What differs between the runs", columns: ["what", "first", "second"], rows: different as string[][] })],
    },
  ];
}

function mean(values: number[]): number {
  return values.reduce((x, y) => x + y, 0) / (values.length || 1);
}
