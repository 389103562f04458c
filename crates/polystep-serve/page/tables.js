// Tables: ours beside the paper's, filtered and sorted; a row shows the run behind it.

import { make } from "./formula.js";
import { ask, remember } from "./page.js";
import { curves } from "./runs.js";

const at = (id) => document.getElementById(id);
let table = null;
let sorted = { column: null, down: true };

/** Shows the view. */
export async function showTables(values) {
  try {
    if (!at("table").options.length) {
      const tables = await ask("/api/tables");
      at("table").append(...tables.map(({ name, rows, filled }) => make("option", { value: name }, `${name} (${filled} of ${rows} rows ours)`)));
    }
    if (values.get("tables")) at("table").value = values.get("tables");
    if (values.get("recipe")) at("recipe").value = values.get("recipe");
    await load();
  } catch (error) {
    at("table-scroll").replaceChildren(make("p", { role: "alert" }, error.message));
  }
}

async function load() {
  const [name, recipe] = [at("table").value, at("recipe").value];
  remember("tables", { tables: name, recipe });
  table = await ask(`/api/tables/${encodeURIComponent(name)}?recipe=${recipe}`);
  sorted = { column: null, down: true };
  at("record").replaceChildren();
  at("notes").replaceChildren(...table.notes.map((note) => make("p", { class: "why" }, note)));
  draw();
}

at("table").addEventListener("change", load);
at("recipe").addEventListener("change", load);
at("filter").addEventListener("input", draw);
at("table-choice").addEventListener("submit", (event) => event.preventDefault());

function number(value, unit) {
  if (value === null || value === undefined) return "–";
  if (unit === "count") return value >= 1e6 ? `${(value / 1e6).toFixed(1)}M` : value.toLocaleString("en");
  return value.toFixed(2);
}

/** The paper's number as it prints it; counts are shortened. */
function printed(text, unit) {
  if (text === null) return "–";
  return unit === "count" && !Number.isNaN(Number(text)) ? number(Number(text), unit) : text;
}

function draw() {
  if (!table) return;
  const keys = [...new Set(table.rows.flatMap((row) => Object.keys(row.keys)))].filter((key) => table.rows.some((row) => row.keys[key]));
  const words = at("filter").value.toLowerCase().split(/\s+/).filter(Boolean);
  const text = (row) => Object.values(row.keys).join(" ").toLowerCase();
  let rows = table.rows.map((row, i) => ({ row, runs: table.runs[i] })).filter(({ row }) => words.every((word) => text(row).includes(word)));
  if (sorted.column !== null) {
    const value = ({ row }) => typeof sorted.column === "number" ? row.cells[sorted.column]?.ours ?? -Infinity : row.keys[sorted.column] ?? "";
    rows = rows.sort((a, b) => (value(a) < value(b) ? -1 : value(a) > value(b) ? 1 : 0) * (sorted.down ? -1 : 1));
  }
  const heading = (label, column, numeric) => {
    const mine = sorted.column === column;
    const button = make("button", { type: "button" }, `${label}${mine ? (sorted.down ? " ↓" : " ↑") : ""}`);
    button.addEventListener("click", () => {
      sorted = { column, down: mine ? !sorted.down : numeric };
      draw();
      at("table-scroll").querySelectorAll("th button")[[...keys, ...table.columns.keys()].indexOf(column)]?.focus();
    });
    return make("th", { scope: "col", class: numeric ? "number" : null, "aria-sort": mine ? (sorted.down ? "descending" : "ascending") : null }, button);
  };
  const head = make("tr", {}, ...keys.map((key) => heading(key, key, false)),
    ...table.columns.map((column, i) => heading(column.group ? `${column.group}: ${column.heading}` : column.heading, i, true)),
    make("th", { scope: "col" }, "Run"));
  const cell = (cell, column) => make("td", { class: "number" },
    make("span", { class: cell.lower ? "lower" : null }, `${number(cell.ours, column.unit)}${cell.lower ? " ▼" : ""}`),
    cell.interval ? make("span", { class: "interval" }, `${number(cell.interval[0], column.unit)} to ${number(cell.interval[1], column.unit)}`) : null,
    make("span", { class: "paper" }, `paper ${printed(cell.paper, column.unit)}`));
  const line = ({ row, runs }) => make("tr", {}, ...keys.map((key, i) => make(i ? "td" : "th", i ? {} : { scope: "row" }, row.keys[key] ?? "")),
    ...row.cells.map((c, i) => cell(c, table.columns[i])),
    make("td", {}, ...(runs.length ? runs.map((name) => make("button", { type: "button", on: { click: () => showRecord(name) } }, name)) : ["–"])));
  const caption = make("caption", {}, `${table.table}, ${rows.length} of ${table.rows.length} rows`);
  at("table-scroll").replaceChildren(make("table", {}, caption, make("thead", {}, head), make("tbody", {}, ...rows.map(line))));
}

async function showRecord(name) {
  const title = make("h2", { tabindex: "-1" }, `Run ${name}`);
  try {
    const detail = await ask(`/api/records/${encodeURIComponent(name)}`);
    at("record").replaceChildren(title, ...curves([detail]));
  } catch (error) {
    at("record").replaceChildren(title, make("p", { role: "alert" }, error.message));
  }
  title.focus();
}
