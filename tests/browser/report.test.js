// Reports of committed records and of made-up runs, at three widths, light and dark: no text overlaps another one, is cut off,
// leaves the page or is too small to read; axe finds no barrier.

import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { after, before, test } from "node:test";
import { pathToFileURL } from "node:url";

import { launch } from "./chromium.js";
import { faults } from "./layout.js";

const root = resolve(import.meta.dirname, "../..");
const built = resolve(root, process.env.POLYSTEP_BUILT ?? "target/debug");
const record = (name) => join(root, "results/runs", name);
const axe = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");

const PAGES = {
  curriculum: ["no_backtrack-1-coarse-infix-C2-bare"],
  "all-spaces": ["all-spaces"],
  calibration: ["large_coeff-1-coarse-infix-calculator"],
  comparison: ["large_coeff-1-coarse-infix", "large_coeff-1-coarse-prefix", "large_coeff-1-endpoint-infix"],
};
const MADE_UP = ["one", "three", "annotated"];
const WIDTHS = [1280, 768, 390];

const folder = mkdtempSync(join(tmpdir(), "polystep-pages-"));
let browser;
before(async () => {
  execFileSync(join(built, "examples/synthetic_report"), [folder]);
  for (const [page, runs] of Object.entries(PAGES)) {
    execFileSync(join(built, "polystep"), ["report", ...runs.map(record), "--out", join(folder, `${page}.html`)]);
  }
  browser = await launch();
});
after(async () => {
  await browser?.close();
  rmSync(folder, { recursive: true });
});

for (const page of [...Object.keys(PAGES), ...MADE_UP]) {
  for (const colorScheme of ["light", "dark"]) {
    test(`${page}, ${colorScheme}`, async () => {
      const context = await browser.newContext({ colorScheme });
      const tab = await context.newPage();
      const found = [];
      tab.on("pageerror", (error) => found.push(`the script fails: ${error}`));
      await tab.goto(pathToFileURL(join(folder, `${page}.html`)).href);
      for (const width of WIDTHS) {
        await tab.setViewportSize({ width, height: 900 });
        found.push(...(await tab.evaluate(faults)).map((fault) => `${width} px: ${fault}`));
      }
      await tab.evaluate(axe);
      const { violations } = await tab.evaluate(() => globalThis.axe.run());
      found.push(...violations.map((v) => `axe: ${v.help}: ${v.nodes[0].html.slice(0, 100)} (${v.nodes.length} in all)`));
      if (process.env.SHOTS) {
        for (const width of WIDTHS) {
          await tab.setViewportSize({ width, height: 900 });
          await tab.screenshot({ path: join(process.env.SHOTS, `${page}-${colorScheme}-${width}.png`), fullPage: true });
        }
      }
      await context.close();
      assert.ok(found.length === 0, found.join("\n"));
    });
  }
}
