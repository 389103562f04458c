// The proof page in a real Chromium: type, watch, choose a step, bad input, links, phone, dark mode, keyboard only, no violation of
// axe's rules, no error in the console. With SCREENS=FOLDER it also takes the pictures of docs/page.md.

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { appendFileSync, cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";

import { launch } from "./chromium.js";

const root = new URL("../..", import.meta.url).pathname;
const binary = process.env.POLYSTEP ?? join(root, "target/debug/polystep");
const axe = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");
const EXAMPLE = "(x+1)*(x+2)+3*x";
const record = "large_coeff-1-coarse-infix", other = "medium_terms-1-coarse-infix";

let server, url, browser, runs, log;

before(async () => {
  runs = mkdtempSync(join(tmpdir(), "polystep-page-"));
  cpSync(join(root, "results/runs", record), join(runs, "finished"), { recursive: true });
  for (const name of ["training", "failed"]) {
    mkdirSync(join(runs, name));
    cpSync(join(root, "results/runs", other, "config.toml"), join(runs, name, "config.toml"));
  }
  // A process of which nothing is known is at one run. The other one has failed.
  writeFileSync(join(runs, "training/lease.json"), "{}");
  const holder = { host: "node1", place: "there", process: 1, started: 1, since: 1, every: 1, token: "t" };
  writeFileSync(join(runs, "failed/failed.json"), JSON.stringify({ why: "the disk is full", log: "train.log", holder }));
  log = readFileSync(join(root, "results/runs", other, "metrics.jsonl"), "utf8").split(/(?<=\n)/);
  grow(Math.floor(log.length / 2));
  server = spawn(binary, ["serve", "--port", "0", "--runs", runs], { stdio: ["ignore", "pipe", "inherit"] });
  url = await new Promise((resolve, reject) => {
    server.stdout.once("data", (line) => resolve(String(line).trim()));
    server.once("error", reject);
    server.once("exit", () => reject(new Error("the server ended")));
  });
  browser = await launch();
});

after(async () => {
  await browser?.close();
  if (server) {
    const ended = new Promise((resolve) => server.once("exit", (code) => resolve(code)));
    server.kill("SIGTERM");
    assert.equal(await ended, 0);
  }
  if (runs) rmSync(runs, { recursive: true });
});

/** The next lines of a real log are written to the run that trains. */
function grow(lines) {
  appendFileSync(join(runs, "training/metrics.jsonl"), log.splice(0, lines).join(""));
}

/** A tab on an address of the page; what its console says is an error of the test. */
async function tab(hash = "", options = {}) {
  const context = await browser.newContext({ viewport: { width: 1000, height: 800 }, reducedMotion: "reduce", ...options });
  await context.grantPermissions(["clipboard-read", "clipboard-write"], { origin: new URL(url).origin });
  const page = await context.newPage();
  page.complaints = [];
  page.on("console", (message) => ["error", "warning"].includes(message.type()) && page.complaints.push(message.text()));
  page.on("pageerror", (error) => page.complaints.push(String(error)));
  page.on("requestfailed", (request) => !request.failure()?.errorText.includes("ABORTED") && page.complaints.push(request.url()));
  await page.goto(`${url}${hash}`);
  return page;
}

/** Nothing complained, and axe finds no violation. */
async function well(page, { allowed = [] } = {}) {
  await page.evaluate(axe);
  const { violations } = await page.evaluate(() => globalThis.axe.run(document, { resultTypes: ["violations"] }));
  assert.deepEqual(violations.map((v) => `${v.id}: ${v.nodes[0].html}`), []);
  assert.deepEqual(page.complaints.filter((text) => !allowed.some((part) => text.includes(part))), []);
}

/** No part of the page is wider than the window. */
async function fits(page) {
  const [wide, window] = await page.evaluate(() => [document.documentElement.scrollWidth, innerWidth]);
  assert.ok(wide <= window, `${wide} px in a window of ${window} px`);
}

/** A picture of the window, with this element at its top. */
async function picture(page, name, top = "body", height = 800) {
  if (!process.env.SCREENS) return;
  await page.setViewportSize({ ...page.viewportSize(), height });
  await page.evaluate((selector) => document.querySelector(selector).scrollIntoView(), top);
  await page.screenshot({ path: join(process.env.SCREENS, `${name}.png`) });
}

const proved = (page) => page.waitForSelector("#answer p", { timeout: 20_000 });
const steps = (page) => page.locator("#proof .step");

test("type, watch, choose a step", async () => {
  const page = await tab();
  await page.waitForFunction(() => document.querySelector("#reading").textContent.match(/read/));
  await page.fill("#expr", "(x+1)(x+2) + 3x");
  await page.waitForFunction(() => document.querySelector("#reading").textContent.includes("read as"));
  await picture(page, "typed");
  await page.press("#expr", "Enter");
  await proved(page);
  assert.equal(await steps(page).count(), 2);
  // Mathematics is set: exponents are above the line, and both lines carry their marks.
  assert.equal(await page.locator("#proof .formula sup").first().textContent(), "2");
  assert.ok(await page.locator("#proof .rewritten").count() >= 2 && await page.locator("#proof .into").count() >= 2);
  assert.match(await steps(page).first().textContent(), /1\. (fac|mul|sum)step(model|beam \d|exact)/);
  assert.match(await page.locator("#answer").textContent(), /Exact answer: x2\+6\u2009x\+2/);
  await picture(page, "proved");
  await well(page);

  await steps(page).nth(1).click();
  await page.waitForSelector("#detail-1 tbody tr");
  assert.equal(await page.locator("#detail-1 tbody tr").count(), 5);
  assert.match(await page.locator("#detail-1 tbody tr").first().textContent(), /✓ right/);
  assert.match(await page.locator("#detail-1 .attention + p").textContent(), /^For .+ the model looked at .+ %/);
  await picture(page, "step", "#proof", 1000);
  await well(page);
  await page.context().close();
});

test("play, and copy as LaTeX, JSON and a link", async () => {
  const page = await tab(`#${new URLSearchParams({ expr: "(a+1)*(b+2)+(3)*(a)" })}`);
  await proved(page);
  const count = await steps(page).count();
  await page.click("#first");
  assert.equal(await page.locator("#proof > li:not([hidden])").count(), 1);
  await page.click("#next");
  assert.equal(await page.locator("#place").textContent(), `step 1 of ${count}`);
  await page.click("#all");
  assert.equal(await page.locator("#proof > li:not([hidden])").count(), count + 1);
  // Play begins again, and goes on by itself.
  await page.click("#play");
  assert.deepEqual([await page.locator("#place").textContent(), await page.locator("#play").textContent()], [`step 0 of ${count}`, "Pause"]);
  await page.waitForFunction(() => document.querySelector("#place").textContent.startsWith("step 1 of"));
  await page.click("#play");
  assert.equal(await page.locator("#play").textContent(), "Play");
  await page.click("#all");
  const copied = async (what) => {
    await page.click(`[data-copy=${what}]`);
    await page.waitForFunction(() => document.querySelector("#copied").textContent.includes("copied"));
    return page.evaluate(() => navigator.clipboard.readText());
  };
  const latex = await copied("latex");
  assert.ok(latex.startsWith("\\begin{align*}") && latex.includes("a b") && !latex.includes("x_{"), latex);
  const json = JSON.parse(await copied("json"));
  assert.deepEqual([json.steps.length, json.names], [count, { x1: "a", x2: "b" }]);
  const link = await copied("link");
  const other = await page.context().newPage();
  await other.goto(link);
  await proved(other);
  assert.equal(await other.inputValue("#expr"), "(a+1)*(b+2)+(3)*(a)");
  await page.context().close();
});

test("bad input gets a caret", async () => {
  const page = await tab();
  await page.fill("#expr", "2x/3 + 1");
  await page.waitForSelector("#expr[aria-invalid=true]");
  assert.equal(await page.locator("#reading pre").textContent(), "2x/3 + 1\n  ^");
  assert.match(await page.locator("#reading").textContent(), /division is not possible/);
  await picture(page, "wrong");
  await well(page);
  await page.press("#expr", "Enter");
  await page.waitForSelector("#said.wrong");
  // What was typed is never markup.
  await page.fill("#expr", "<img src=x onerror=alert(1)>");
  await page.waitForFunction(() => document.querySelector("#reading pre")?.textContent.startsWith("<img"));
  assert.equal(await page.locator("#reading img").count(), 0);
  await well(page, { allowed: ["422"] });
  await page.context().close();
});

test("a failure from the gallery, made again", async () => {
  const page = await tab();
  await page.click("#gallery summary");
  await page.waitForSelector("#failures button");
  await picture(page, "gallery");
  await page.locator("#failures button").first().click();
  await proved(page);
  assert.notEqual(await page.locator("#proof .badge").first().textContent(), "model");
  assert.match(await page.locator("#proof .why").first().textContent(), /The model's first answer was/);
  await page.waitForSelector("#detail-0 tbody tr");
  await picture(page, "failure", "#about", 1100);
  await well(page);
  await page.context().close();
});

test("keyboard only", async () => {
  const page = await tab();
  await page.waitForFunction(() => document.querySelector("#space").options.length > 0);
  const reach = async (selector) => {
    for (let i = 0; i < 60; i++) {
      await page.keyboard.press("Tab");
      if (await page.evaluate((s) => document.activeElement.matches(s), selector)) return;
    }
    assert.fail(`the keyboard does not reach ${selector}`);
  };
  await reach("#expr");
  await page.keyboard.press("Control+A");
  await page.keyboard.type(EXAMPLE);
  await page.keyboard.press("Enter");
  await proved(page);
  await reach("#next, #all, #play, #first, #back");
  await reach(".step");
  await page.keyboard.press("Enter");
  await page.waitForSelector("#detail-0 tbody tr");
  await reach(".attention button");
  await page.keyboard.press("Enter");
  assert.ok(await page.evaluate(() => document.activeElement.getAttribute("aria-pressed") === "true"));
  // A screen reader hears every step.
  assert.match(await page.locator("#news").textContent(), /Step 1, .+step, by .+: .*x squared plus/);
  await page.context().close();
});

test("a random polynomial of a space", async () => {
  const page = await tab();
  await page.waitForFunction(() => document.querySelector("#space").options.length > 0);
  await page.selectOption("#space", "small_coeff:2");
  await page.click("#random");
  await proved(page);
  assert.ok((await page.inputValue("#expr")).includes("("));
  await well(page);
  await page.context().close();
});

test("phone width and dark mode", async () => {
  const page = await tab(`#${new URLSearchParams({ expr: EXAMPLE, step: "0" })}`, { viewport: { width: 390, height: 800 }, colorScheme: "dark", hasTouch: true });
  await proved(page);
  await page.waitForSelector("#detail-0 tbody tr");
  assert.equal(await page.evaluate(() => getComputedStyle(document.body).backgroundColor), "rgb(16, 21, 29)");
  await fits(page);
  await picture(page, "phone", "#result", 1000);
  await well(page);
  for (const view of ["runs", "tables"]) {
    await page.goto(`${url}#${view}`);
    await page.waitForSelector(view === "runs" ? "#run-list tbody tr" : "#table-scroll tbody tr");
    await fits(page);
    await well(page);
  }
  await page.context().close();
});

test("runs: curves move while one trains, two are compared, the report opens", async () => {
  const page = await tab("#runs=training&with=finished");
  await page.waitForSelector("#curves svg");
  assert.match(await page.locator("#run-list").textContent(), /failedthe disk is full.*finished.*training/s);
  const label = () => page.locator("#curves svg").first().getAttribute("aria-label");
  const before = await label();
  assert.match(before, /training: [\d.]+ after [\d.]+M examples; finished: 98.10 after 7M examples/);
  grow(log.length - 9);
  await page.waitForFunction((old) => document.querySelector("#curves svg").getAttribute("aria-label") !== old, before, { timeout: 10_000 });
  await picture(page, "runs", "body", 1100);
  await well(page);
  const [report] = await Promise.all([page.context().waitForEvent("page"), page.click("#run-list a")]);
  await report.waitForLoadState();
  assert.match(await report.title(), /finished/);
  await page.context().close();
});

test("tables: filtered, sorted, and a click shows the run", async () => {
  const page = await tab("#tables=var1coarsefull");
  await page.waitForSelector("#table-scroll tbody tr");
  assert.equal(await page.locator("#table option").count(), 17);
  await page.fill("#filter", "prefix");
  const rows = await page.locator("#table-scroll tbody tr").allTextContents();
  assert.ok(rows.length > 0 && rows.every((row) => row.includes("prefix")));
  await page.fill("#filter", "");
  await page.locator("#table-scroll th.number button", { hasText: "Full proof" }).first().click();
  assert.equal(await page.locator("#table-scroll th[aria-sort=descending]").count(), 1);
  const column = await page.locator("#table-scroll th[aria-sort=descending]").evaluate((th) => th.cellIndex + 1);
  const values = await page.locator(`#table-scroll tbody tr > :nth-child(${column}) > span:first-child`).allTextContents();
  const numbers = values.map((text) => text.startsWith("–") ? -Infinity : parseFloat(text));
  assert.deepEqual(numbers, [...numbers].sort((a, b) => b - a));
  assert.match(await page.locator("#table-scroll .interval").first().textContent(), /^[\d.]+ to [\d.]+$/);
  await picture(page, "tables");
  await page.locator("#table-scroll td button").first().click();
  await page.waitForSelector("#record svg");
  await well(page);
  await page.context().close();
});

test("closing the page stops the work", async () => {
  const page = await tab();
  // Twenty products: a proof that is far from its end when the button is pressed.
  const products = Array.from({ length: 20 }, (_, i) => `(x+${i + 1})*(x+2)`);
  await page.fill("#expr", products.join("+"));
  await page.press("#expr", "Enter");
  await page.waitForSelector("#stop:not([hidden])");
  await page.click("#stop");
  await page.waitForFunction(() => document.querySelector("#said").textContent === "Stopped.");
  await page.context().close();
});
