// How figures are spelled: sensible digits, units, the sign of a change.

/** 12,345; three significant digits below 100. */
export function count(value: number | null | undefined): string {
  if (value === null || value === undefined || !Number.isFinite(value)) return "–";
  const size = Math.abs(value);
  if (size >= 100) return Math.round(value).toLocaleString("en-US");
  if (size >= 10) return value.toFixed(1);
  if (size === 0) return "0";
  return Number(value.toPrecision(3)).toString();
}

/** Milliseconds in the unit that reads best. */
export function time(ms: number | null | undefined): string {
  if (ms === null || ms === undefined || !Number.isFinite(ms)) return "–";
  const size = Math.abs(ms);
  if (size === 0) return "0";
  if (size < 1) return `${count(ms * 1000)} µs`;
  if (size < 1000) return `${count(ms)} ms`;
  return `${count(ms / 1000)} s`;
}

/** A ratio as a change: +5.3 %, −12 %. */
export function change(ratio: number | null | undefined): string {
  if (ratio === null || ratio === undefined || !Number.isFinite(ratio)) return "any";
  const percent = (ratio - 1) * 100;
  const digits = Math.abs(percent) < 9.95 ? 1 : 0;
  const text = Math.abs(percent).toFixed(digits);
  if (Number(text) === 0) return `${text} %`;
  return `${percent < 0 ? "−" : "+"}${text} %`;
}

/** A share: 2.8 %. */
export function share(value: number | null | undefined): string {
  if (value === null || value === undefined || !Number.isFinite(value)) return "–";
  const percent = value * 100;
  return `${percent < 9.95 ? percent.toFixed(1) : percent.toFixed(0)} %`;
}

/** A figure with the unit of its counter. */
export function withUnit(value: number | null | undefined, unit: string): string {
  if (value === null || value === undefined || !Number.isFinite(value)) return "–";
  if (unit === "B" || unit === "B/s") return bytes(value) + (unit === "B/s" ? "/s" : "");
  return unit ? `${count(value)} ${unit}` : count(value);
}

function bytes(value: number): string {
  const units = ["B", "KiB", "MiB", "GiB", "TiB"];
  let place = 0;
  while (Math.abs(value) >= 1024 && place < units.length - 1) {
    value /= 1024;
    place += 1;
  }
  return `${count(value)} ${units[place]}`;
}

/** A cell of CSV. */
export function csvCell(text: string): string {
  return /[",\n\r]/.test(text) ? `"${text.replace(/"/g, '""')}"` : text;
}
