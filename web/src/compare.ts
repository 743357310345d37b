// Two runs on one page: the cells that both have, their courses on one cursor, and what differs where they
// were made. What may be said of two runs the program has said.

import { type Cell, type Document, type Together, figure as figureOf, metricName } from "./data.js";
import { h } from "./dom.js";
import { change, count, time } from "./format.js";
import type { Section } from "./sections.js";
import { decimate, lines } from "./charts/lines.js";
import { type Figure, figure, plain, twin } from "./table.js";

type Shift = NonNullable<Together["cells"][number]["throughput"]>;

/** A change with its interval, and what may be said of it. */
function shift(it: Shift | null | undefined): [Figure, string] {
  if (!it) return [figure(null, "–"), "no data"];
  return [figure(it.ratio, `${change(it.ratio)} (${change(it.low)} to ${change(it.high)})`), it.standing];
}

/** The sections of two runs together. */
export function compare(a: Document, b: Document, together: Together): Section[] {
  const cell = (run: Document, index: number) => run.cells.find((it) => it.index === index) as Cell;
  const differs = together.differs as unknown as string[][];
  return [
    {
      id: "together",
      short: "Together",
      title: `${together.cells.length} cells are in both runs`,
      content: () => [
        h("p", {}, `First: ${a.name}, ${a.started}. Second: ${b.name}, ${b.started}.`),
        plain({
          caption: "Throughput and latency of both runs",
          columns: ["cell", `first, ${metricName(a, "throughput")}`, "second", "difference", "verdict", "first, p99", "second, p99", "difference in p99", "verdict on p99"],
          rows: together.cells.map((it) => {
            const [one, two] = [cell(a, it.first), cell(b, it.second)];
            const [x, y] = [figureOf(one, "throughput"), figureOf(two, "throughput")];
            return [
              it.label,
              figure(x, count(x)),
              figure(y, count(y)),
              ...shift(it.throughput),
              figure(one.p99, time(one.p99)),
              figure(two.p99, time(two.p99)),
              ...shift(it.p99),
            ];
          }),
        }),
        ...together.notes.map((note) => h("p", {}, note)),
      ],
    },
    {
      id: "one-cursor",
      short: "One cursor",
      title: "Both runs second by second",
      content: () =>
        together.cells.flatMap((it) => {
          const x = a.courses.find((course) => course.cell === it.first);
          const y = b.courses.find((course) => course.cell === it.second);
          if (!x || !y) return [null];
          const series = [
            { label: `first: ${a.name}`, ...decimate(x.at, x.operations, 2000) },
            { label: `second: ${b.name}`, ...decimate(y.at, y.operations, 2000) },
          ];
          return [
            h("h3", {}, it.label),
            twin(
              lines({ title: it.label, x: "seconds from the end of warm-up", y: metricName(a, "throughput"), series, formatX: count, formatY: count, sync: "both", height: 180 }),
              {
                caption: `${it.label}, second by second`,
                columns: ["run", "seconds", "mean of the seconds"],
                rows: [
                  [`first: ${a.name}`, figure(x.at.length, String(x.at.length)), figure(mean(x.operations), count(mean(x.operations)))],
                  [`second: ${b.name}`, figure(y.at.length, String(y.at.length)), figure(mean(y.operations), count(mean(y.operations)))],
                ],
              },
            ),
          ];
        }),
    },
    {
      id: "differs",
      short: "What differs",
      title: differs.length === 0 ? "Both were made alike" : `${differs.length} things differ between the runs`,
      content: () => [plain({ caption: "What differs between the runs", columns: ["what", "first", "second"], rows: differs })],
    },
  ];
}

function mean(values: number[]): number {
  return values.reduce((x, y) => x + y, 0) / (values.length || 1);
}
