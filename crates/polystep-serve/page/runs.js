// Runs: the list, and the curves of one or two of them, which move while they train.

import { make } from "./formula.js";
import { ask, remember } from "./page.js";

const at = (id) => document.getElementById(id);
const SVG = "http://www.w3.org/2000/svg";
const EVERY = 2000;

let chosen = [];
let timer = null;

/** Shows the view; returns what stops it. */
export function showRuns(values) {
  chosen = [values.get("runs"), values.get("with")].filter(Boolean);
  refresh();
  return () => clearTimeout(timer);
}

async function refresh() {
  clearTimeout(timer);
  try {
    const runs = await ask("/api/runs");
    showList(runs);
    await showCurves();
    // A run that is started later appears too.
    timer = setTimeout(refresh, runs.some((run) => run.state === "training") ? EVERY : 5 * EVERY);
  } catch (error) {
    at("curves").replaceChildren(make("p", { role: "alert" }, error.message));
    timer = setTimeout(refresh, 5 * EVERY);
  }
}

function showList(runs) {
  at("no-runs").hidden = runs.length > 0;
  at("run-scroll").hidden = runs.length === 0;
  const held = document.activeElement?.dataset?.run;
  const rows = runs.map((run) => {
    const box = make("input", { type: "checkbox", "aria-label": `Show ${run.name}`, "data-run": run.name });
    box.checked = chosen.includes(run.name);
    box.addEventListener("change", () => choose(run.name, box.checked));
    const report = run.state === "finished" ? make("a", { href: `/api/runs/${encodeURIComponent(run.name)}/report`, target: "_blank", rel: "noopener" }, "open", make("span", { class: "unseen" }, ` the report of ${run.name}`)) : "–";
    return make("tr", { class: box.checked ? "chosen" : null },
      make("td", {}, box), make("th", { scope: "row" }, run.name),
      make("td", { class: `state-${run.state}` }, run.state, run.why ? make("span", { class: "why" }, run.why) : null),
      make("td", { class: "number" }, run.examples?.toLocaleString("en") ?? "–"),
      make("td", { class: "number" }, run.full_proof?.toFixed(2) ?? "–"),
      make("td", {}, report));
  });
  at("run-list").tBodies[0].replaceChildren(...rows);
  if (held) at("run-list").querySelector(`[data-run="${CSS.escape(held)}"]`)?.focus();
}

function choose(name, on) {
  chosen = chosen.filter((other) => other !== name);
  // The third one takes the place of the first.
  if (on) chosen = [...chosen, name].slice(-2);
  remember("runs", { runs: chosen[0], with: chosen[1] });
  refresh();
}

async function showCurves() {
  const details = await Promise.all(chosen.map((name) => ask(`/api/runs/${encodeURIComponent(name)}`)));
  at("curves").replaceChildren(...details.length ? curves(details) : []);
}

/** The curves and results of one or two runs. */
export function curves(details) {
  const series = (of) => details.map((detail) => of(detail));
  const names = details.map((detail, i) => make("li", {}, make("strong", { class: i ? "key-two" : "key-one" }, detail.name), ` ${detail.title} (${detail.state})`));
  const charts = [
    chart("Full proofs in validation, %", details, series((d) => d.valid.map(([x, full]) => [x, full])), [0, 100]),
    chart("Steps in validation, %", details, series((d) => d.valid.map(([x, , step]) => [x, step])), [0, 100]),
    chart("Loss in training, on a logarithmic scale", details, series((d) => d.train.filter(([, loss]) => loss > 0)), null),
  ];
  const notes = details.flatMap((detail) => detail.notes).map((note) => make("p", { class: "why" }, note));
  return [make("ul", {}, ...names), make("div", { class: "charts" }, ...charts), results(details), ...notes].filter(Boolean);
}

/** The test sets, ours with their intervals. */
function results(details) {
  const sets = [...new Set(details.flatMap((detail) => detail.tests.map((test) => test.set)))];
  if (!sets.length) return null;
  const cell = (values) => make("td", { class: "number" }, ...(values ? [values[0].toFixed(2), make("span", { class: "interval" }, `${values[1].toFixed(2)} to ${values[2].toFixed(2)}`)] : ["–"]));
  const head = details.flatMap((detail) => ["full proofs", "steps"].map((what) => make("th", { scope: "col", class: "number" }, details.length > 1 ? `${detail.name}: ${what}` : what)));
  const row = (set) => make("tr", {}, make("th", { scope: "row" }, set), ...details.flatMap((detail) => {
    const test = detail.tests.find((t) => t.set === set);
    return [cell(test?.full_proof), cell(test?.stepwise)];
  }));
  const table = make("table", {}, make("caption", {}, "Test sets, % with 95 % intervals"), make("thead", {}, make("tr", {}, make("th", { scope: "col" }, "test set"), ...head)), make("tbody", {}, ...sets.map(row)));
  return make("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "Results" }, table);
}

function svg(tag, attributes, ...children) {
  const element = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  element.append(...children);
  return element;
}

const short = (n) => n >= 1e6 ? `${+(n / 1e6).toFixed(1)}M` : n >= 1e3 ? `${+(n / 1e3).toFixed(1)}k` : String(+n.toPrecision(2));

/** A line for each run over the examples it has seen. Without a range the scale is logarithmic. */
function chart(title, details, series, range) {
  const width = 400, height = 220, left = 44, right = 10, top = 10, bottom = 28;
  const points = series.flat();
  const caption = make("figcaption", {}, title);
  if (!points.length) return make("figure", {}, caption, make("p", { class: "why" }, "No line of the log has this yet."));
  const most = Math.max(...points.map(([x]) => x), 1);
  const values = points.map(([, y]) => y);
  const [least, greatest] = range ?? [Math.min(...values) / 1.1, Math.max(...values) * 1.1];
  const [scale, back] = range ? [(v) => v, (v) => v] : [Math.log, Math.exp];
  const [low, high] = [scale(least), scale(greatest)];
  const x = (v) => left + (v / most) * (width - left - right);
  const y = (v) => top + (1 - (scale(v) - low) / (high - low)) * (height - top - bottom);
  const drawing = svg("svg", { class: "chart", viewBox: `0 0 ${width} ${height}`, role: "img" });
  const last = series.map((line, i) => line.length ? `${details[i].name}: ${line[line.length - 1][1].toFixed(2)} after ${short(line[line.length - 1][0])} examples` : "").filter(Boolean);
  drawing.setAttribute("aria-label", `${title}. ${last.join("; ")}`);
  for (let i = 0; i <= 4; i++) {
    const value = back(low + (i / 4) * (high - low));
    drawing.append(svg("line", { class: "grid", x1: left, x2: width - right, y1: y(value), y2: y(value) }));
    drawing.append(svg("text", { x: left - 6, y: y(value) + 4, "text-anchor": "end" }, short(value)));
    drawing.append(svg("text", { x: x((i / 4) * most), y: height - 8, "text-anchor": i === 4 ? "end" : i ? "middle" : "start" }, short((i / 4) * most)));
  }
  series.forEach((line, i) => {
    const path = line.map(([a, b]) => `${x(a).toFixed(1)},${y(Math.min(greatest, Math.max(least, b))).toFixed(1)}`).join(" ");
    drawing.append(svg("polyline", { class: `curve ${i ? "two" : "one"}`, points: path }));
  });
  return make("figure", {}, caption, drawing);
}
