// How long after Enter the first step is on screen, in Chromium. The server runs from a binary of its own.
//   node first-step.js ../../target/release/polystep 20

import { spawn } from "node:child_process";

import { launch } from "./chromium.js";

const [binary, times = "20"] = process.argv.slice(2);
const server = spawn(binary, ["serve", "--port", "0"], { stdio: ["ignore", "pipe", "inherit"] });
const url = await new Promise((resolve) => server.stdout.once("data", (line) => resolve(String(line).trim())));
const browser = await launch();
const page = await browser.newPage();
await page.goto(url);
await page.waitForFunction(() => document.querySelector("#space").options.length > 0);

/** From the key to the frame after the one in which the step was painted. */
const measure = () =>
  page.evaluate(() => new Promise((resolve) => {
    let began;
    document.querySelector("#expr").addEventListener("keydown", (event) => { if (event.key === "Enter") began = event.timeStamp; }, { once: true });
    const watch = new MutationObserver(() => {
      if (began === undefined || !document.querySelector("#proof .step")) return;
      watch.disconnect();
      requestAnimationFrame(() => requestAnimationFrame(() => resolve(performance.now() - began)));
    });
    watch.observe(document.querySelector("#proof"), { childList: true });
  }));

const found = [];
for (let i = 0; i < Number(times); i++) {
  await page.fill("#expr", "(x+1)*(x+2)+3*x");
  const measured = measure();
  await page.press("#expr", "Enter");
  found.push(await measured);
  await page.waitForSelector("#answer p");
  await page.waitForTimeout(300);
}
await browser.close();
server.kill("SIGTERM");
const first = found[0];
found.sort((a, b) => a - b);
console.log(`first step on screen, ms after Enter: ${first.toFixed(0)} at first; median ${found[found.length >> 1].toFixed(0)}, worst ${found[found.length - 1].toFixed(0)} of ${found.length}`);
