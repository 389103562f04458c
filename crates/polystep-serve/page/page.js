// The page: which view is shown, and how it talks to the server. Each view has a file of its own.

import { showProve } from "./prove.js";
import { showRuns } from "./runs.js";
import { showTables } from "./tables.js";

const VIEWS = { prove: showProve, runs: showRuns, tables: showTables };

/** The state of the page, from its address: #expr=…&model=… or #runs=NAME or #tables=NAME. */
export function state() {
  return new URLSearchParams(location.hash.slice(1));
}

/** Writes the state to the address without a new entry in the history. */
export function remember(view, values) {
  const kept = Object.entries(values).filter(([, value]) => value !== "" && value !== null && value !== undefined);
  const text = new URLSearchParams(kept).toString();
  history.replaceState(null, "", `#${text || view}`);
}

/** Asks the server. An answer that says no is an Error with its sentence, its status and its place. */
export async function ask(path, body, signal, accept = "application/json") {
  const options = body === undefined ? {} : { method: "POST", body: JSON.stringify(body), headers: { "Content-Type": "application/json" } };
  let response;
  try {
    response = await fetch(path, { ...options, signal, headers: { ...options.headers, Accept: accept } });
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new Error("The server does not answer. Is polystep serve still running?");
  }
  if (!response.ok) {
    const said = await response.json().catch(() => ({}));
    const error = new Error(said.error ?? `The server answered ${response.status}.`);
    throw Object.assign(error, { status: response.status, span: said.span });
  }
  return accept === "application/json" ? response.json() : response;
}

function viewOf(values) {
  if (values.has("runs")) return "runs";
  if (values.has("tables")) return "tables";
  return "prove";
}

let leave = null;

function route() {
  const values = state();
  if (values.has("main")) return;
  const view = viewOf(values);
  for (const name of Object.keys(VIEWS)) document.getElementById(name).hidden = name !== view;
  for (const link of document.querySelectorAll("nav a")) {
    if (link.dataset.view === view) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  }
  leave?.();
  leave = VIEWS[view](values) ?? null;
}

addEventListener("hashchange", route);
route();
