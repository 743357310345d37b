// The page's functions that need no browser: how figures are spelled, what a cell is compared by, how a page is unpacked.

import assert from "node:assert/strict";
import { test } from "node:test";
import { gzipSync } from "node:zlib";
import { buildSync } from "esbuild";

/** A module of the page's, compiled as the page is. */
async function compiled(name) {
  const { outputFiles } = buildSync({
    entryPoints: [new URL(`../../src/${name}.ts`, import.meta.url).pathname],
    bundle: true, format: "esm", write: false, target: "node18",
  });
  return import(`data:text/javascript;base64,${Buffer.from(outputFiles[0].text).toString("base64")}`);
}

const format = await compiled("format");
const data = await compiled("data");

test("figures have three digits that matter, and thousands a comma", () => {
  const figures = [12345.4, 100.4, 12.34, 1.2345, 0.012345, 0, null, NaN];
  assert.deepEqual(figures.map(format.count), ["12,345", "100", "12.3", "1.23", "0.0123", "0", "–", "–"]);
});

test("a time is in the unit that reads best", () => {
  assert.deepEqual([0, 0.0256, 1.5, 999, 1500, null].map(format.time), ["0", "25.6 µs", "1.5 ms", "999 ms", "1.5 s", "–"]);
});

test("a change has its sign, and none where it rounds to nothing", () => {
  const ratios = [1.0527, 0.88, 1.0001, 0.9999, 5.09, Infinity, null];
  assert.deepEqual(ratios.map(format.change), ["+5.3 %", "−12 %", "0.0 %", "0.0 %", "+409 %", "any", "any"]);
});

test("bytes are in powers of 1024, other units as they are", () => {
  assert.equal(format.withUnit(1536, "B"), "1.5 KiB");
  assert.equal(format.withUnit(5 * 1024 ** 3, "B/s"), "5 GiB/s");
  assert.equal(format.withUnit(12, "ms"), "12.0 ms");
  assert.equal(format.withUnit(undefined, "B"), "–");
});

test("a cell of CSV is quoted where a reader would take it for several", () => {
  assert.deepEqual(["plain", "a,b", 'say "x"', "two\nlines"].map(format.csvCell), ["plain", '"a,b"', '"say ""x"""', '"two\nlines"']);
});

test("a share keeps a decimal while it is small", () => {
  assert.deepEqual([0.028, 0.5, 1, null].map(format.share), ["2.8 %", "50 %", "100 %", "–"]);
});

test("a cell's figure is that of the metric, and nothing where it was not measured", () => {
  const cell = { label: "none", condition: 1, throughput: { mean: 7 }, p99: null, fairness: 0.5, comparisons: { p99: "x" } };
  assert.deepEqual(data.METRICS.map((metric) => data.figure(cell, metric)), [7, null, 0.5]);
  assert.equal(data.comparison(cell, "p99"), "x");
  assert.equal(data.comparison(cell, "throughput"), undefined);
  const document = { unit: "IOPS", conditions: [{ name: "" }, { name: "16 clients" }] };
  assert.equal(data.fullName(document, cell), "none (16 clients)");
  assert.equal(data.fullName(document, { ...cell, condition: 0 }), "none");
  assert.equal(data.metricName(document, "throughput"), "IOPS/s");
});

test("a page of another form is refused with both numbers", async () => {
  const packed = (schema) => gzipSync(JSON.stringify({ documents: [{ schema }], together: null })).toString("base64");
  assert.equal((await data.unpack(packed(data.SCHEMA))).documents.length, 1);
  await assert.rejects(data.unpack(packed(99)), /form 1.*form 99/);
});
