// Every fault that `layout.js` knows is found on a page that has it, and a page without faults has none.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";

import { launch } from "./chromium.js";
import { faults } from "./layout.js";

let browser, tab;
before(async () => {
  browser = await launch();
  tab = await browser.newPage({ viewport: { width: 390, height: 800 } });
});
after(() => browser?.close());

const filler = "<p>word</p>".repeat(60);
const found = async (html) => {
  await tab.setContent(`<!doctype html><body style="margin:0">${html}${filler}`);
  return tab.evaluate(faults);
};

const labels = (x, turn) =>
  `<figure style="margin:0;width:300px"><svg overflow="visible" viewBox="0 0 300 100" width="300"><text x="20" y="50">80–159</text><text x="${x}" y="50"${turn}>160–319</text></svg></figure>`;

test("a page without faults", async () => {
  assert.deepEqual(await found(`<h1>Title</h1>${labels(90, "")}<table><tbody><tr><th>a</th><td>1</td></tr></tbody></table>`), []);
});

for (const [name, html, sentence] of [
  ["labels that collide", labels(50, ""), "texts overlap: “80–159” and “160–319”"],
  ["a turned label over another one", labels(50, ' transform="rotate(-35 50 50)"'), "texts overlap: “160–319” and “80–159”"],
  ["a label outside of its figure", labels(280, ""), "a text leaves its figure: “160–319”"],
  ["text over text", `<p>under</p><p style="margin-top:-2.2em">over</p>`, "texts overlap: “over” and “under”"],
  ["text that is cut off", `<div style="width:40px;overflow:hidden;white-space:nowrap">a long sentence</div>`, "a text is cut off: “a long sentence”"],
  ["a wide page", `<div style="width:500px">wide</div>`, "the page is 500 px wide in a window of 390 px: "],
  ["a caption that must be scrolled to", `<div style="overflow-x:auto" tabindex="0"><p style="width:600px;text-align:right">far</p></div>`, "a text leaves the window: “far”"],
  ["a box that only a mouse scrolls", `<div style="overflow-x:auto"><pre>${"far ".repeat(90)}</pre></div>`, `only a mouse can scroll to a text: “${"far ".repeat(15)}”`],
  ["small print", `<p style="font-size:6px">small</p>`, "a text of 6.0 px is too small to read: “small”"],
  ["a table whose numbers are far away", `<div style="overflow-x:auto" tabindex="0"><table><tbody><tr><th style="min-width:500px">a</th><td>1</td></tr></tbody></table></div>`, "a table shows no number: “a1”"],
  ["a hole beside a chart", `<div class="charts"><figure style="width:100px;margin:0">x</figure></div>`, "a row of charts has a hole: “x”"],
  ["a page that is nearly empty", `<style>p { display:none; }</style>`, "only 0 texts were found: "],
]) {
  test(name, async () => assert.deepEqual(await found(html), [sentence]));
}
