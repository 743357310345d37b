// The page in Debian's Chromium, from a file, without network. SPINDLE names the program that makes it.

import assert from "node:assert/strict";
import { execFileSync, spawn } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { get } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { gunzipSync, gzipSync } from "node:zlib";
import { chromium } from "playwright-core";

const AXE = readFileSync(new URL("../node_modules/axe-core/axe.min.js", import.meta.url), "utf8");
const folder = mkdtempSync(join(tmpdir(), "spindle-page-"));
const spindle = (...words) =>
  execFileSync(process.env.SPINDLE, words, { env: { ...process.env, SPINDLE_STATE: folder }, encoding: "utf8", stdio: ["ignore", "pipe", "pipe"], maxBuffer: 1 << 28 });

/** The documents of a page, and the page with others. */
function data(html) {
  const found = /id="data">([^<]*)</.exec(html);
  return JSON.parse(gunzipSync(Buffer.from(found[1], "base64")).toString()).documents;
}
function withData(html, documents) {
  const packed = gzipSync(JSON.stringify({ documents, together: null })).toString("base64");
  return html.replace(/id="data">[^<]*</, `id="data">${packed}<`);
}

let browser;
const file = {};

/** Opens a page; whatever it says on the console fails the test. */
async function open(path, options = {}) {
  const context = await browser.newContext({ offline: true, viewport: { width: 1200, height: 900 }, ...options });
  const page = await context.newPage();
  const said = [];
  page.on("console", (message) => said.push(message.text()));
  page.on("pageerror", (error) => said.push(String(error)));
  page.on("request", (request) => {
    if (!request.url().startsWith("file:") && !request.url().startsWith("data:") && !request.url().startsWith("blob:")) said.push(`asked for ${request.url()}`);
  });
  await page.goto(`file://${path}`);
  await page.waitForSelector("html[data-ready]");
  return { page, said, done: () => context.close() };
}

before(async () => {
  spindle("compare", "simulated:hdd-15k@2.6.18", "--schedulers", "all", "--clients", "1,4,16", "--patterns", "randread,randwrite", "--rounds", "4", "--measure", "3s", "--events", "-q", "-o", join(folder, "matrix.spindle"));
  spindle("compare", "simulated:hdd-15k@2.6.18", "--schedulers", "all", "--clients", "1,4,16", "--patterns", "randread,randwrite", "--rounds", "4", "--measure", "3s", "--seed", "2", "-q", "-o", join(folder, "other.spindle"));
  for (const [name, runs] of [["one", ["matrix"]], ["two", ["matrix", "other"]]]) {
    file[name] = join(folder, `${name}.html`);
    spindle("report", ...runs.map((it) => join(folder, `${it}.spindle`)), "--html", file[name]);
  }
  browser = await chromium.launch({ executablePath: "/usr/bin/chromium", args: ["--no-sandbox"] });
});

after(async () => {
  await browser?.close();
  rmSync(folder, { recursive: true });
});

/** A comparison with its page; gives the address. */
function live(words) {
  const child = spawn(process.env.SPINDLE, words, { env: { ...process.env, SPINDLE_STATE: folder }, stdio: ["ignore", "ignore", "pipe"] });
  const address = new Promise((found, failed) => {
    let said = "";
    child.stderr.on("data", (text) => {
      said += text;
      const at = /(http:\/\/127\.0\.0\.1:\d+\/[0-9a-f]{32}\/)/.exec(said);
      if (at) found(at[1]);
    });
    child.on("exit", () => failed(new Error(said)));
  });
  const ended = new Promise((done) => child.on("exit", done));
  return { child, address, ended };
}

describe("what is built", () => {
  const web = new URL("..", import.meta.url).pathname;
  const { scripts } = JSON.parse(readFileSync(join(web, "package.json"), "utf8"));
  const made = (script, from, to) => execFileSync("npx", ["--no-install", ...scripts[script].replace(from, to).split(" ")], { cwd: web, stdio: "pipe" });
  test("dist is what the source makes", () => {
    made("build", "dist/page.js", join(folder, "page.js"));
    for (const name of ["page.js", "page.css"]) assert.ok(readFileSync(join(folder, name)).equals(readFileSync(join(web, "dist", name))), `make page: dist/${name} is not what src makes`);
  });
  test("types are those of the schema", () => {
    made("types", "src/document.ts", join(folder, "document.ts"));
    assert.equal(readFileSync(join(folder, "document.ts"), "utf8"), readFileSync(join(web, "src/document.ts"), "utf8"), "make page: src/document.ts is not what the schema makes");
  });
});

describe("the live page", () => {
  test("follows a comparison, answers only whoever has its word, and a closed laptop catches up", async () => {
    const run = live(["compare", "simulated:hdd-15k", "--schedulers", "none,mq-deadline", "--rounds", "5000", "--measure", "20s", "--live", "--quiet", "-o", join(folder, "live.spindle")]);
    const address = await run.address;
    const context = await browser.newContext();
    const page = await context.newPage();
    const said = [];
    page.on("console", (message) => said.push(message.text()));
    page.on("pageerror", (error) => said.push(String(error)));
    await page.goto(address);
    await page.waitForSelector("html[data-ready]");
    const trials = async () => Number(/(\d+) trials so far/.exec(await page.locator(".live").textContent())?.[1] ?? 0);
    await page.waitForFunction(() => /\d+ trials so far|complete/.test(document.querySelector(".live")?.textContent ?? ""), null, { timeout: 30_000 });
    assert.deepEqual(said, []);
    const { port } = new URL(address);
    const status = async (path, headers = {}) =>
      new Promise((done, failed) => {
        get({ host: "127.0.0.1", port, path, headers: { host: `127.0.0.1:${port}`, ...headers } }, (answer) => {
          answer.resume();
          done(answer.statusCode);
        }).on("error", failed);
      });
    const path = new URL(address).pathname;
    assert.equal(await status(path), 200);
    assert.equal(await status("/"), 404);
    assert.equal(await status("/0123456789abcdef0123456789abcdef/"), 404);
    assert.equal(await status(`${path}data?have=0`, { origin: "http://evil.example" }), 404);
    assert.equal(await status(path, { host: "evil.example" }), 404);
    assert.equal(await status(path, { "sec-fetch-site": "cross-site" }), 404);
    assert.equal(await status(`${path}../../etc/passwd`), 404);
    // Away for a while, then everything at once.
    const before = await trials();
    await context.setOffline(true);
    await new Promise((done) => setTimeout(done, 2000));
    await context.setOffline(false);
    await page.waitForFunction((had) => { const now = /(\d+) trials so far|complete/.exec(document.querySelector(".live")?.textContent ?? ""); return now && (!now[1] || Number(now[1]) > had); }, before, { timeout: 30_000 });
    run.child.kill("SIGINT");
    await run.ended;
    await context.close();
  });
});

describe("the page", () => {
  test("draws each section, without a word on the console", async () => {
    const { page, said, done } = await open(file.one);
    const sections = await page.$$eval("main > section", (all) => all.map((it) => it.id));
    assert.deepEqual(sections, ["answer", "ranking", "findings", "matrix", "scaling", "latency", "course", "fairness", "rounds", "seeks", "environment", "raw"]);
    assert.equal(sections[0], "answer", "what it says first is the answer");
    for (const id of sections) {
      await page.locator(`#${id}`).scrollIntoViewIfNeeded();
      await page.waitForTimeout(60);
    }
    const drawn = await page.$$eval(".plot canvas, svg.chart, canvas.seeks, canvas.heads, canvas.heat", (all) => all.map((it) => it.getBoundingClientRect().width > 100));
    assert.ok(drawn.length > 20 && drawn.every(Boolean), `${drawn.filter(Boolean).length} of ${drawn.length} charts`);
    assert.deepEqual(said, []);
    await done();
  });

  test("says what was measured, and heatmaps have something to see", async () => {
    const { page, done } = await open(file.one);
    assert.match(await page.locator("header").textContent(), /simulated:hdd-15k@2\.6\.18/);
    for (const id of ["latency", "course"]) {
      await page.locator(`#${id} canvas.heat`).first().scrollIntoViewIfNeeded();
      await page.waitForTimeout(100);
      const inked = await page.locator(`#${id} canvas.heat`).first().evaluate((canvas) => {
        const { data } = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
        // Blue: more blue than red, and seen.
        let blue = 0;
        for (let at = 0; at < data.length; at += 4) if (data[at + 3] > 40 && data[at + 2] > data[at] + 60) blue += 1;
        return blue / (data.length / 4);
      });
      assert.ok(inked > 0.05, `${id}: ${inked} of the pixels are blue`);
    }
    await done();
  });

  test("the grey behind a cell agrees with its verdict", async () => {
    const { page, done } = await open(file.one);
    const rows = await page.$$eval("svg.intervals circle.point", (points) => points.map((point) => {
      const [x, y] = [point.cx.baseVal.value, point.cy.baseVal.value];
      const grey = [...point.ownerSVGElement.querySelectorAll(".band")].find((it) => it.y.baseVal.value <= y && y <= it.y.baseVal.value + it.height.baseVal.value);
      const [from, width] = [grey.x.baseVal.value, grey.width.baseVal.value];
      return { verdict: [...point.classList].find((it) => it !== "point"), inside: from <= x && x <= from + width };
    }));
    const of = (verdicts) => rows.filter((it) => verdicts.includes(it.verdict));
    assert.ok(of(["better", "worse"]).length > 5 && of(["open"]).length > 5, JSON.stringify(rows));
    assert.ok(of(["better", "worse"]).every((it) => !it.inside), "what is told from none lies outside");
    assert.ok(of(["open"]).every((it) => it.inside), "what is open lies inside");
    await done();
  });

  test("every chart has a table, and a name", async () => {
    const { page, done } = await open(file.one);
    const alone = await page.$$eval("figure", (all) => all.filter((it) => !it.querySelector("table") && !it.querySelector("figcaption")).length);
    assert.equal(alone, 0);
    const nameless = await page.$$eval('[role="img"]', (all) => all.filter((it) => !it.getAttribute("aria-label")).length);
    assert.equal(nameless, 0);
    await done();
  });

  for (const [name, options] of [
    ["light", { colorScheme: "light" }],
    ["dark", { colorScheme: "dark" }],
    ["a phone's width", { viewport: { width: 390, height: 800 } }],
  ]) {
    test(`axe finds nothing: ${name}`, async () => {
      for (const which of ["one", "two"]) {
        const { page, said, done } = await open(file[which], options);
        await page.$$eval("details", (all) => all.forEach((it) => (it.open = true)));
        await page.evaluate(AXE);
        const found = await page.evaluate(async () => (await globalThis.axe.run(document, { resultTypes: ["violations"] })).violations.map((it) => `${it.id}: ${it.nodes.slice(0, 3).map((node) => node.target.join(" ")).join("; ")}`));
        assert.deepEqual(found, []);
        assert.deepEqual(said, []);
        await done();
      }
    });
  }

  test("nothing is wider than a phone", async () => {
    const { page, done } = await open(file.one, { viewport: { width: 390, height: 800 } });
    const width = await page.evaluate(() => document.documentElement.scrollWidth);
    assert.ok(width <= 390, `${width} pixels`);
    // Text of charts is as large as that of tables.
    const sizes = await page.$$eval("svg.chart text", (all) => all.map((it) => it.getBoundingClientRect().height).filter(Boolean));
    assert.ok(sizes.length > 20 && Math.min(...sizes) >= 10, `${Math.min(...sizes)} pixels high`);
    await done();
  });

  test("the keyboard reaches everything", async () => {
    const { page, done } = await open(file.one);
    await page.keyboard.press("Tab");
    assert.equal(await page.evaluate(() => document.activeElement.textContent), "To the answer");
    const all = await page.$$eval("a, button, select, input, summary, canvas[tabindex]", (them) => them.filter((it) => it.tabIndex < 0).length);
    assert.equal(all, 0);
    // Sorting, filtering and the theme by keys alone.
    const sort = page.locator("#raw button.sort").nth(1);
    await sort.focus();
    await page.keyboard.press("Enter");
    assert.equal(await page.locator("#raw th").nth(1).getAttribute("aria-sort"), "ascending");
    const shown = () => page.locator("#raw tbody tr").count();
    const before = await shown();
    await page.locator("#raw input").fill("16 randread cfq");
    assert.ok((await shown()) < before && (await shown()) > 0);
    const theme = page.getByRole("button", { name: /Theme/ });
    await theme.focus();
    await page.keyboard.press("Enter");
    await page.keyboard.press("Enter");
    assert.equal(await page.evaluate(() => document.documentElement.dataset.theme), "dark");
    await done();
  });

  test("prints", async () => {
    const { page, done } = await open(file.one);
    const pdf = await page.pdf({ format: "A4" });
    assert.ok(pdf.length > 20_000);
    await page.emulateMedia({ media: "print" });
    assert.equal(await page.locator("nav").isVisible(), false);
    await done();
  });

  test("two runs have one cursor and say what differs", async () => {
    const { page, said, done } = await open(file.two);
    const cells = data(readFileSync(file.two, "utf8")).map((run) => run.cells.length);
    assert.equal(await page.locator("#together tbody tr").count(), cells[0]);
    const differs = await page.$$eval("#differs tbody tr", (rows) => rows.map((row) => [...row.cells].map((cell) => cell.textContent)));
    assert.deepEqual(differs.filter(([what]) => what === "seed"), [["seed", "1", "2"]]);
    await page.locator("#one-cursor").scrollIntoViewIfNeeded();
    await page.waitForSelector("#one-cursor canvas");
    assert.deepEqual(said, []);
    await done();
  });

  test("hostile text is text", async () => {
    const html = readFileSync(file.one, "utf8");
    const corpus = ["<img src=x onerror=alert(1)>", "</script><script>alert(2)</script>", "<svg onload=alert(3)>", '"><b>x', "javascript:alert(4)", "{{7*7}}", "\u202e\u0000<!--"];
    const poison = (value, at) => {
      if (typeof value === "string") return corpus[at % corpus.length] + value;
      if (Array.isArray(value)) return value.map((it, place) => poison(it, at + place));
      if (value && typeof value === "object") return Object.fromEntries(Object.entries(value).map(([key, it], place) => [key, poison(it, at + place)]));
      return value;
    };
    const keep = new Set(["verdict", "operations", "unit", "world"]);
    const documents = data(html).map((it, place) => {
      const other = poison(it, place);
      for (const key of keep) if (key in it) other[key] = it[key];
      other.requests = it.requests;
      return other;
    });
    const path = join(folder, "hostile.html");
    writeFileSync(path, withData(html, documents));
    const { page, said, done } = await open(path);
    page.on("dialog", () => said.push("a dialog"));
    await page.waitForTimeout(300);
    assert.equal(await page.locator("#app img, #app script, #app b").count(), 0);
    assert.deepEqual(said, []);
    await done();
  });

  test("a large run is small, and how long it takes to open is told", async () => {
    const html = readFileSync(file.one, "utf8");
    const [run] = data(html);
    // 10 conditions × 8 cells × 12 rounds.
    const wobble = (value, at) => (typeof value === "number" ? value * (1 + 0.2 * Math.sin(at * 12.9898)) : value);
    const [condition] = run.conditions;
    const samples = run.cells.filter((it) => it.condition === 0);
    const big = { ...run, conditions: [], cells: [], trials: [], courses: [], requests: [] };
    for (let c = 0; c < 10; c += 1) {
      big.conditions.push({ ...condition, name: `condition ${c}`, baseline: c * 8, decision: c * 8 });
      for (let k = 0; k < 8; k += 1) {
        const index = c * 8 + k;
        const sample = samples[k % samples.length];
        const counters = Object.fromEntries(Object.entries(sample.counters).map(([name, value], place) => [name, wobble(value, index + place)]));
        big.cells.push({ ...sample, index, condition: c, label: `cell ${k}`, counters, distribution: sample.distribution.map(([ms, below], place) => [wobble(ms, place + index), below]).sort((a, b) => a[0] - b[0]) });
        const course = run.courses.find((it) => it.cell === sample.index);
        const measured = run.trials.find((it) => it.cell === sample.index && it.latency).latency;
        const latency = (round) => ({ first: measured.first, counts: measured.counts.map((it, place) => Math.round(wobble(it, round + place + index))) });
        const long = Array.from({ length: 30 }, (_, at) => at - 2);
        big.courses.push({ ...course, cell: index, at: long, counters_at: long, ...Object.fromEntries(["operations", "p50", "p99", "max"].map((name) => [name, long.map((at) => wobble(100, at + index))])), counters: Object.fromEntries(Object.keys(course.counters).map((name, place) => [name, long.map((at) => Number(wobble(50, at * 7 + index + place).toPrecision(4)))])) });
        for (let round = 0; round < 12; round += 1) big.trials.push({ cell: index, round, replica: 0, at: round * 60 + k, throughput: wobble(100, round + index), p99: wobble(5, round), latency: latency(round), lost: null });
      }
    }
    const path = join(folder, "large.html");
    writeFileSync(path, withData(html, [big]));
    assert.ok(statSync(path).size <= 2 * 1024 * 1024, `${statSync(path).size} bytes`);
    const { page, said, done } = await open(path);
    const took = await page.evaluate(() => performance.now());
    console.log(`${big.trials.length} trials, ${statSync(path).size} bytes, opened in ${Math.round(took)} ms`);
    assert.deepEqual(said, []);
    await done();
  });

  test("a seek plot of a hundred thousand points pans", async () => {
    const html = readFileSync(file.one, "utf8");
    const [run] = data(html);
    const count = 100_000;
    const list = (of) => Array.from({ length: count }, (_, at) => of(at));
    run.requests = [{ cell: 0, queued: list((at) => at * 0.5), dispatched: list((at) => at * 0.5 + 1), done: list((at) => at * 0.5 + 3), sector: list((at) => (at * 7919) % 100_000_007), operations: "RW".repeat(count / 2), process: list(() => 1), heads_at: [], heads_drive: [], heads_cylinder: [], cut: false }];
    const path = join(folder, "seeks.html");
    writeFileSync(path, withData(html, [run]));
    const { page, done } = await open(path);
    await page.locator("canvas.seeks").first().scrollIntoViewIfNeeded();
    const frames = await page.evaluate(async () => {
      const canvas = document.querySelector("canvas.seeks");
      const begun = performance.now();
      let frames = 0;
      while (performance.now() - begun < 1500) {
        canvas.dispatchEvent(new KeyboardEvent("keydown", { key: frames % 2 ? "ArrowLeft" : "ArrowRight" }));
        await new Promise(requestAnimationFrame);
        frames += 1;
      }
      return (1000 * frames) / (performance.now() - begun);
    });
    console.log(`${Math.round(frames)} frames a second`);
    assert.ok(frames > 5, `${frames} frames a second`);
    await done();
  });
});
