// Prove: what is typed is read while it is typed; steps stream in; a step tells all about itself when it is chosen.

import { formula, make, percent, rename, spoken } from "./formula.js";
import { ask, remember } from "./page.js";

const at = (id) => document.getElementById(id);
const expr = at("expr"), model = at("model"), proofList = at("proof");

/** The proof on the page. */
let proof = null;
let running = null;
let reading = 0;
let playing = null;

// ---- reading

let timer = null;
expr.addEventListener("input", () => {
  clearTimeout(timer);
  timer = setTimeout(read, 80);
});

async function read() {
  const text = expr.value, number = ++reading;
  if (!text.trim()) return showReading([]);
  try {
    const answer = await ask("/api/parse", { text });
    if (number !== reading) return;
    if (answer.ok) showReading([answer.rewritten ? "read as " : "reads well: ", formula(answer.read_as)]);
    else showWrong(text, answer.error, answer.span);
  } catch (error) {
    if (number === reading) showReading([make("p", { class: "wrong" }, error.message)]);
  }
}

function showReading(parts) {
  expr.removeAttribute("aria-invalid");
  at("reading").replaceChildren(...parts);
}

/** The text with a caret under what is wrong; the place counts characters. */
function showWrong(text, sentence, span) {
  expr.setAttribute("aria-invalid", "true");
  const parts = [make("p", { class: "wrong" }, sentence)];
  if (span) {
    const caret = " ".repeat(span[0]) + "^".repeat(Math.max(1, span[1] - span[0]));
    parts.unshift(make("pre", { "aria-hidden": "true" }, `${text}\n`, make("span", { class: "caret" }, caret)));
  }
  at("reading").replaceChildren(...parts);
}

// ---- proving

at("ask").addEventListener("submit", (event) => {
  event.preventDefault();
  prove();
});
at("stop").addEventListener("click", () => running?.abort());

function say(text, wrong = false) {
  at("said").textContent = text;
  at("said").classList.toggle("wrong", wrong);
}

async function prove(wanted = null) {
  running?.abort();
  stopPlaying();
  const mine = (running = new AbortController());
  const asked = { expr: expr.value, ...(model.value ? { model: model.value } : {}) };
  remember("prove", asked);
  proof = { asked, names: {}, steps: [], lines: [], end: null, seen: Infinity };
  proofList.replaceChildren();
  at("answer").replaceChildren();
  at("result").hidden = true;
  at("stop").hidden = false;
  say("");
  try {
    const response = await ask("/api/prove", asked, mine.signal, "text/event-stream");
    for await (const [event, data] of events(response.body)) {
      if (mine !== running) return;
      if (event === "start") begin(data);
      else if (event === "step") addStep(data);
      else if (event === "end") finish(data);
      else if (event === "failed") say(data.error, true);
    }
    if (!proof.end && !at("said").textContent) say("The proof broke off.", true);
    if (wanted !== null && proof.steps[wanted]) openStep(proof.steps[wanted]);
  } catch (error) {
    if (error.name === "AbortError") {
      if (mine === running) say("Stopped.");
    } else if (mine === running) {
      if (error.span) showWrong(asked.expr, error.message, error.span);
      say(error.status === 429 ? "The server is busy: try again in a second." : error.message, true);
    }
  } finally {
    if (mine === running) at("stop").hidden = true;
  }
}

/** The events of a stream: name and data. */
async function* events(body) {
  const reader = body.pipeThrough(new TextDecoderStream()).getReader();
  let text = "";
  for (;;) {
    const { value, done } = await reader.read();
    if (done) return;
    text += value;
    for (let cut; (cut = text.indexOf("\n\n")) >= 0; text = text.slice(cut + 2)) {
      const fields = Object.fromEntries(text.slice(0, cut).split("\n").map((line) => line.split(/: ?(.*)/s)));
      if (fields.data) yield [fields.event, JSON.parse(fields.data)];
    }
  }
}

function begin(start) {
  proof.start = start;
  proof.names = start.names;
  const { model: name, chosen, outside, trained_on } = start;
  const line = [`Model ${name}: ${chosen}.`, ` Trained on ${trained_on}.`];
  if (outside) line.push(` Outside its training: ${rename(outside, proof.names)}.`);
  at("about").textContent = line.join("");
  addLine(make("li", {}), start.shown, {});
  if (start.lines === 0) say("This is already in normal form: there is nothing to prove.");
  at("result").hidden = false;
  showPlace();
}

/** A line of mathematics in an item of the list; the last line is marked when it is rewritten. */
function addLine(item, text, marks) {
  const holder = make("span", {}, formula(text, proof.names, marks));
  item.append(holder);
  proof.lines.push({ holder, text, marks });
  if (!item.parentNode) proofList.append(item);
  return holder;
}

const RANGE = ({ start, end }) => [start, end];

function addStep(step) {
  const { shown } = step;
  const before = proof.lines[proof.lines.length - 1];
  // What is rewritten is marked in the line before.
  before.marks.rewritten = RANGE(shown.rewritten);
  before.holder.replaceChildren(formula(before.text, proof.names, before.marks));
  const kind = step.author.split(" ")[0];
  const item = make("li", { class: kind });
  const detail = make("div", { class: "detail", hidden: true, id: `detail-${step.number}` });
  const button = make("button", { type: "button", class: "step", "aria-expanded": "false", "aria-controls": detail.id });
  const sure = step.probability === null ? "" : percent(step.probability);
  button.append(make("span", { class: "who" },
    make("span", {}, `${step.number + 1}. ${shown.kind}`),
    make("span", { class: `badge ${kind}` }, step.author),
    sure ? make("span", {}, `${sure} sure`) : null));
  button.append(make("br"));
  proof.lines.push({ holder: make("span", {}), text: shown.after, marks: { into: RANGE(shown.into) } });
  const line = proof.lines[proof.lines.length - 1];
  line.holder.append(formula(line.text, proof.names, line.marks));
  button.append(line.holder);
  button.append(make("span", { class: "why" }, why(step)));
  item.append(button, detail);
  proofList.append(item);
  // A calculator's line goes on with its brackets evaluated.
  if (step.next) addLine(item, step.next, {});
  const entry = { step, item, button, detail };
  button.addEventListener("click", () => openStep(entry));
  proof.steps.push(entry);
  item.hidden = proof.steps.length > proof.seen;
  if (!item.hidden) announce(step);
  showPlace();
}

/** Right or wrong and why, in a sentence. */
function why(step) {
  if (step.verdict === "exact") return step.sentence;
  const said = rename(step.sentence, proof.names);
  if (!step.output) return `The model wrote nothing. ${said}`;
  const written = `The model's first answer was ${rename(step.output, proof.names)}`;
  return step.verdict === "same value" ? `${written}: the same value, written another way. ${said}` : `${written}: wrong. ${said}`;
}

function announce(step) {
  const sure = step.probability === null ? "" : `, ${percent(step.probability)} sure`;
  at("news").append(make("span", {}, `Step ${step.number + 1}, ${step.shown.kind}, by ${step.author}${sure}: ${spoken(step.shown.after, proof.names)}. ${why(step)} `));
}

function finish(end) {
  proof.end = end;
  const { model: own, beams, exact } = end.steps_by;
  const count = own + beams + exact;
  at("answer").replaceChildren(
    make("p", {}, "Exact answer: ", formula(end.endpoint.includes("INT+") ? proof.lines[proof.lines.length - 1].text : end.endpoint, proof.names)),
    make("p", {}, count === 0 ? "" : `${own} of ${count} steps by the model, ${beams} by beams, ${exact} exact. `
      + (end.right ? "The model wrote every step right." : "Without the checker, the model would have gone wrong.")));
  showPlace();
}

// ---- one step

async function openStep(entry) {
  const { step, button, detail } = entry;
  const open = button.getAttribute("aria-expanded") === "true";
  button.setAttribute("aria-expanded", String(!open));
  detail.hidden = open;
  remember("prove", { ...proof.asked, step: open ? "" : step.number });
  if (open || detail.childNodes.length) return;
  detail.append(make("p", { role: "status" }, "Asking the model for its beams…"));
  try {
    const found = await ask("/api/step", { ...proof.asked, step: step.number });
    detail.replaceChildren(...beams(found.beams), ...attention(found.attention));
  } catch (error) {
    detail.replaceChildren(make("p", { role: "alert" }, error.message));
  }
}

const VERDICTS = { exact: ["good", "✓ right"], "same value": ["fair", "~ same value"], "wrong value": ["bad", "✗ wrong value"], malformed: ["bad", "✗ unreadable"] };

function beams(found) {
  const row = (beam, i) => {
    const [kind, words] = VERDICTS[beam.verdict];
    return make("tr", {},
      make("td", { class: "number" }, String(i + 1)),
      make("td", {}, formula(beam.text, proof.names)),
      make("td", { class: "number" }, percent(beam.probability)),
      make("td", {}, make("span", { class: `verdict ${kind}` }, words), make("span", { class: "why" }, rename(beam.sentence, proof.names))));
  };
  const head = make("tr", {}, ...["Beam", "Line", "Probability", "Verdict"].map((text) => make("th", { scope: "col" }, text)));
  const table = make("table", {}, make("thead", {}, head), make("tbody", {}, ...found.map(row)));
  return [make("h3", {}, "Its beams"), make("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "Beams" }, table)];
}

/** The two lines with their terms; a chosen new term colours the terms that the model looked at. */
function attention(found) {
  if (!found) return [];
  const names = proof.names;
  const sources = [], targets = [];
  const source = found.source.map((part) => {
    const element = make("span", { class: part.term ? "term" : "" }, formula(part.text, names));
    if (part.term) sources.push({ element, text: part.text });
    return element;
  });
  const words = make("p", { role: "status" });
  const choose = (i) => {
    targets.forEach((target, j) => target.element.setAttribute("aria-pressed", String(i === j)));
    const weights = found.weights[i];
    sources.forEach(({ element }, j) => element.style.setProperty("background", `rgba(var(--heat), ${(0.6 * weights[j]).toFixed(3)})`));
    const best = weights.map((weight, j) => [weight, j]).sort((a, b) => b[0] - a[0]).slice(0, 3).filter(([weight]) => weight >= 0.01);
    const rest = 1 - weights.reduce((a, b) => a + b, 0);
    const list = best.map(([weight, j]) => `${rename(sources[j].text, names)} ${percent(weight)}`);
    words.textContent = `For ${rename(targets[i].text, names)} the model looked at ${list.join(", ")}; ${percent(Math.max(0, rest))} went to signs and parentheses.`;
  };
  const target = found.target.map((part) => {
    if (!part.term) return make("span", {}, formula(part.text, names));
    const i = targets.length;
    const element = make("button", { type: "button", class: "term", "aria-pressed": "false", on: { click: () => choose(i), mouseenter: () => choose(i) } }, formula(part.text, names));
    targets.push({ element, text: part.text, fresh: part.new });
    return element;
  });
  if (!targets.length || !sources.length) return [];
  const first = targets.findIndex((t) => t.fresh);
  choose(Math.max(0, first));
  return [
    make("h3", {}, "Where it looked"),
    make("p", { class: "why" }, "Cross-attention of the last decoder layer, mean of the heads. Choose a term of the new line."),
    make("div", { class: "attention" }, make("div", {}, ...source), make("div", {}, "→ ", ...target)),
    words,
  ];
}

// ---- playing

function showPlace() {
  const count = proof.steps.length, seen = Math.min(proof.seen, count);
  at("place").textContent = count ? `step ${seen} of ${proof.start.lines}` : "";
  at("first").disabled = at("back").disabled = seen === 0;
  at("next").disabled = at("all").disabled = seen === count;
  at("play").disabled = count === 0;
}

function see(count) {
  proof.seen = count;
  proof.steps.forEach(({ item }, i) => { item.hidden = i >= count; });
  showPlace();
}

function stopPlaying() {
  clearInterval(playing);
  playing = null;
  at("play").textContent = "Play";
}

const seen = () => Math.min(proof.seen, proof.steps.length);
function forward() {
  if (seen() < proof.steps.length) {
    announce(proof.steps[seen()].step);
    see(seen() + 1);
  }
}
at("first").addEventListener("click", () => { stopPlaying(); see(0); });
at("back").addEventListener("click", () => { stopPlaying(); see(Math.max(0, seen() - 1)); });
at("next").addEventListener("click", () => { stopPlaying(); forward(); });
at("all").addEventListener("click", () => { stopPlaying(); see(Infinity); });
at("play").addEventListener("click", () => {
  if (playing) return stopPlaying();
  if (seen() === proof.steps.length) see(0);
  at("play").textContent = "Pause";
  playing = setInterval(() => {
    forward();
    if (seen() === proof.steps.length) stopPlaying();
  }, 1200);
});

// ---- copying

function latex() {
  const name = (text) => text.replace(/x_\{([1-8])\}/g, (all, i) => {
    const given = proof.names[`x${i}`];
    return given === undefined ? all : given.replace(/^(.*?)_?\{?([0-9]+)\}?$/u, "$1_{$2}");
  });
  const lines = [`  & ${name(proof.start.latex[0])} \\\\`];
  for (const { step } of proof.steps) lines.push(`  ={}& ${name(step.shown.latex)} && \\text{${step.shown.kind}, ${step.author}} \\\\`);
  return `\\begin{align*}\n${lines.join("\n")}\n\\end{align*}\n`;
}

const COPIES = {
  latex,
  json: () => JSON.stringify({ ...proof.start, steps: proof.steps.map(({ step }) => step), ...proof.end }, null, 1),
  link: () => location.href,
};
for (const button of document.querySelectorAll("[data-copy]")) {
  button.addEventListener("click", async () => {
    const what = button.dataset.copy;
    try {
      await navigator.clipboard.writeText(COPIES[what]());
      at("copied").textContent = `${what === "link" ? "Link" : what === "json" ? "JSON" : "LaTeX"} copied.`;
    } catch {
      at("copied").textContent = "The browser does not allow copying here.";
    }
  });
}

// ---- choices

at("random").addEventListener("click", async () => {
  const [space, vars] = at("space").value.split(":");
  const seed = crypto.getRandomValues(new Uint32Array(1))[0];
  try {
    const drawn = await ask(`/api/random?${new URLSearchParams({ space, vars, seed })}`);
    expr.value = vars === "1" ? drawn.expr.replaceAll("x1", "x") : drawn.expr;
    read();
    prove();
  } catch (error) {
    say(error.message, true);
  }
});

at("gallery").addEventListener("toggle", async () => {
  if (!at("gallery").open || at("failures").childNodes.length) return;
  const item = (failure) => {
    const sure = failure.probability === null ? "" : `, ${percent(failure.probability)} sure`;
    const button = make("button", { type: "button" },
      make("small", {}, `${failure.model}, ${failure.kind}${sure}`),
      formula(failure.input), " → ", formula(failure.output || "nothing"),
      make("small", {}, failure.sentence));
    button.addEventListener("click", () => {
      expr.value = failure.input;
      model.value = failure.model;
      read();
      prove(0);
      at("gallery").open = false;
      expr.focus();
    });
    return make("li", {}, button);
  };
  try {
    at("failures").replaceChildren(...(await ask("/api/gallery")).map(item));
  } catch (error) {
    at("failures").replaceChildren(make("li", {}, error.message));
  }
});

let listed = null;
function list() {
  return (listed ??= ask("/api/models").then(({ models, spaces }) => {
    for (const { name, setting, granularity, notation, learned } of models) {
      const more = learned.length > 1 ? ` and ${learned.length - 1} more` : "";
      const text = `${name} (${learned[0].space}, ${learned[0].vars} variable${learned[0].vars === 1 ? "" : "s"}${more}; ${setting}, ${granularity}, ${notation})`;
      model.append(make("option", { value: name }, text));
    }
    for (const { space, vars } of spaces) at("space").append(make("option", { value: `${space}:${vars}` }, `${space}, ${vars} variable${vars === 1 ? "" : "s"}`));
  }).catch((error) => {
    listed = null;
    say(error.message, true);
  }));
}

/** Shows the view; an address with an expression is proved at once. */
export function showProve(values) {
  list().then(() => {
    if (!values.has("expr")) return read();
    expr.value = values.get("expr");
    model.value = values.get("model") ?? "";
    if (model.value !== (values.get("model") ?? "")) say(`There is no model ${values.get("model")} here; the one that fits is taken.`);
    read();
    prove(values.has("step") ? Number(values.get("step")) : null);
  });
}
