// The document of a run, as the program put it into the page.

import type { Cell, Comparison, Document, Pages } from "./document.js";

export type { Cell, Condition, Document, Pages, Requests, Together } from "./document.js";

/** The form that this page reads; see docs/reference/report.schema.json. */
export const SCHEMA = 1;

/** What is compared, in the order of pages. */
export const METRICS = ["throughput", "p99", "fairness"] as const;
export type Metric = (typeof METRICS)[number];

/** A figure's name with its unit. */
export function metricName(document: Document, metric: Metric): string {
  switch (metric) {
    case "throughput":
      return `${document.unit}/s`;
    case "p99":
      return "99th percentile";
    case "fairness":
      return "fairness (Jain's index)";
  }
}

/** A cell's figure. */
export function figure(cell: Cell, metric: Metric): number | null {
  switch (metric) {
    case "throughput":
      return cell.throughput?.mean ?? null;
    case "p99":
      return cell.p99 ?? null;
    case "fairness":
      return cell.fairness ?? null;
  }
}

/** A cell against its baseline; none of the baseline itself. */
export function comparison(cell: Cell, metric: Metric): Comparison | undefined {
  return cell.comparisons[metric];
}

/** The name of a cell among all: with its condition where there are several. */
export function fullName(document: Document, cell: Cell): string {
  const condition = document.conditions[cell.condition]?.name ?? "";
  return condition ? `${cell.label} (${condition})` : cell.label;
}

/** Unpacks what a page shows: one run, or two that are compared. */
export async function unpack(text: string): Promise<Pages> {
  const packed = Uint8Array.from(atob(text.trim()), (c) => c.charCodeAt(0));
  const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("gzip"));
  const pages = JSON.parse(await new Response(stream).text()) as Pages;
  for (const document of pages.documents) {
    if (document.schema !== SCHEMA) throw new Error(`the page reads form ${SCHEMA}, and the run is of form ${document.schema}`);
  }
  return pages;
}
