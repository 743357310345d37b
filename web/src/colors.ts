// Colours that colour-blind readers tell apart (Okabe and Ito 2008), with dashes where lines cross.

const LINES = ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#7f7f7f", "#b8a000"];
const DASHES = [[], [8, 4], [2, 3], [10, 3, 2, 3]];

/** The colour of the line at a place. */
export function line(place: number): string {
  return LINES[place % LINES.length] as string;
}

/** Its dashes: another pattern each time the colours begin anew. */
export function dash(place: number): number[] {
  return DASHES[Math.floor(place / LINES.length) % DASHES.length] as number[];
}

/** Blue for better, orange for worse, by the size of a change (natural logarithm of a ratio). */
export function diverging(log: number, reach: number): string {
  const strength = Math.min(1, Math.abs(log) / (reach || 1));
  const alpha = (0.06 + 0.36 * strength).toFixed(3);
  return log >= 0 ? `rgba(0, 114, 178, ${alpha})` : `rgba(213, 94, 0, ${alpha})`;
}

/** A colour of the page's theme. */
export function themed(name: string): string {
  return getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();
}
