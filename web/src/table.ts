// Tables: the twin of each chart, and the raw table that is sorted, filtered and copied.

import { button, copy, h, uniqueId } from "./dom.js";
import { csvCell } from "./format.js";

/** A table. Cells that are numbers are aligned to the right and sorted by value. */
export interface Table {
  caption: string;
  columns: string[];
  rows: (string | Figure)[][];
}

/** A number as it is shown, and its value. */
export interface Figure {
  text: string;
  value: number | null | undefined;
}

/** A number for a table. */
export function figure(value: number | null | undefined, text: string): Figure {
  return { text, value };
}

function text(cell: string | Figure): string {
  return typeof cell === "string" ? cell : cell.text;
}

function csv(table: Table, rows: Table["rows"]): string {
  const value = (cell: string | Figure) => (typeof cell === "string" ? cell : String(cell.value ?? ""));
  return [table.columns, ...rows.map((row) => row.map(value))].map((row) => row.map(csvCell).join(",")).join("\n") + "\n";
}

function body(rows: Table["rows"]): HTMLTableSectionElement {
  return h(
    "tbody",
    {},
    ...rows.map((row) =>
      h(
        "tr",
        {},
        ...row.map((cell, place) =>
          place === 0
            ? h("th", { scope: "row" }, text(cell))
            : h("td", { class: typeof cell === "string" ? null : "number" }, text(cell)),
        ),
      ),
    ),
  );
}

/** A plain table. */
export function plain(table: Table): HTMLElement {
  const numbers = table.columns.map((_, place) => table.rows.some((row) => typeof row[place] === "object"));
  return h(
    "div",
    { class: "scroll", tabindex: 0, role: "region", "aria-label": table.caption },
    h(
      "table",
      {},
      h("caption", {}, table.caption),
      h("thead", {}, h("tr", {}, ...table.columns.map((name, place) => h("th", { scope: "col", class: numbers[place] ? "number" : null }, name)))),
      body(table.rows),
    ),
  );
}

/** A chart and its table, which is closed at first. */
export function twin(chart: Element, table: Table): HTMLElement {
  return h("figure", {}, chart, h("details", { class: "twin" }, h("summary", {}, `Table: ${table.caption}`), plain(table)));
}

/** A table that can be sorted by each column, filtered and copied. */
export function interactive(table: Table): HTMLElement {
  let sorted = -1;
  let ascending = true;
  let filter = "";
  const shown = () => {
    const words = filter.toLowerCase().split(/\s+/).filter(Boolean);
    const rows = table.rows.filter((row) => {
      const whole = row.map(text).join(" ").toLowerCase();
      return words.every((word) => whole.includes(word));
    });
    if (sorted >= 0) {
      const key = (row: Table["rows"][number]) => {
        const cell = row[sorted] as string | Figure;
        return typeof cell === "string" ? cell : (cell.value ?? Number.NEGATIVE_INFINITY);
      };
      rows.sort((a, b) => {
        const [x, y] = [key(a), key(b)];
        const order = typeof x === "number" && typeof y === "number" ? x - y : String(x).localeCompare(String(y));
        return ascending ? order : -order;
      });
    }
    return rows;
  };
  const heads: HTMLTableCellElement[] = table.columns.map((name, place) =>
    h("th", { scope: "col" }, button(name, () => sort(place), { class: "sort" })),
  );
  const element = h("table", {}, h("caption", {}, table.caption), h("thead", {}, h("tr", {}, ...heads)), body(table.rows));
  const status = h("span", { role: "status" });
  const render = () => {
    const rows = shown();
    element.tBodies[0]?.replaceWith(body(rows));
    heads.forEach((head, place) => {
      if (place === sorted) head.setAttribute("aria-sort", ascending ? "ascending" : "descending");
      else head.removeAttribute("aria-sort");
    });
    status.textContent = `${rows.length} of ${table.rows.length} rows`;
  };
  const sort = (place: number) => {
    ascending = place === sorted ? !ascending : true;
    sorted = place;
    render();
  };
  const id = uniqueId("filter");
  const input = h("input", {
    id,
    type: "search",
    oninput: () => {
      filter = input.value;
      render();
    },
  });
  const copied: HTMLButtonElement = button("Copy as CSV", () => void copy(csv(table, shown()), copied));
  render();
  return h(
    "div",
    {},
    h("p", { class: "tools" }, h("label", { for: id }, "Filter"), input, copied, status),
    h("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": table.caption }, element),
  );
}
