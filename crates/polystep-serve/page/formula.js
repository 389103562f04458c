// Mathematics as elements: superscripts and subscripts, no fonts from elsewhere, nothing typed ever becomes markup.

/** An element with attributes and children; texts stay texts. */
export function make(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name === "on") for (const [event, f] of Object.entries(value)) element.addEventListener(event, f);
    else if (value === true) element.setAttribute(name, "");
    else if (value !== false && value !== null && value !== undefined) element.setAttribute(name, value);
  }
  element.append(...children.filter((child) => child !== null && child !== undefined));
  return element;
}

/** The variables of the language in the names that the person gave them. */
export function rename(text, names) {
  return text.replace(/x[1-8]/g, (variable) => names[variable] ?? variable);
}

const NUMBER = /^[0-9]+/;
const NAME = /^(x[1-8]|\p{L})/u;

/** The symbols of a line: kind, text, and the characters they stand on. */
function symbols(text) {
  const found = [];
  for (let at = 0; at < text.length; ) {
    const rest = text.slice(at);
    let match;
    if (rest[0] === "^" && (match = NUMBER.exec(rest.slice(1)))) {
      found.push({ kind: "power", text: match[0], at, end: at + 1 + match[0].length });
    } else if ((match = NUMBER.exec(rest))) {
      found.push({ kind: "number", text: match[0], at, end: at + match[0].length });
    } else if (/^[A-Z]{2,}/.test(rest)) {
      match = /^[A-Z]+[+]?/.exec(rest);
      found.push({ kind: "word", text: match[0], at, end: at + match[0].length });
    } else if ((match = NAME.exec(rest))) {
      found.push({ kind: "name", text: match[0], at, end: at + match[0].length });
    } else {
      found.push({ kind: rest[0], text: rest[0], at, end: at + 1 });
    }
    at = found[found.length - 1].end;
  }
  return found;
}

/** A variable: its letter in italics, its index below. */
function variable(name) {
  const [, letter, index] = /^(.*?)_?\{?([0-9]*)\}?$/u.exec(name);
  return [make("i", {}, letter), ...(index ? [make("sub", {}, index)] : [])];
}

function drawn(symbol, next, names) {
  switch (symbol.kind) {
    case "power": return [make("sup", {}, symbol.text)];
    case "name": return variable(names[symbol.text] ?? symbol.text);
    case "*": return [make("span", { class: "times" }, next?.kind === "number" ? "·" : "\u2009")];
    case "+": return [make("span", { class: "sign" }, "+")];
    case "-": return [make("span", { class: "sign" }, "−")];
    default: return [symbol.text];
  }
}

/** How a line sounds. */
export function spoken(text, names = {}) {
  const words = { "+": "plus", "-": "minus", "*": "times", "(": "open parenthesis", ")": "close parenthesis", "[": "open bracket", "]": "close bracket" };
  const say = (s) => {
    if (s.kind === "power") return s.text === "2" ? "squared" : s.text === "3" ? "cubed" : `to the power ${s.text}`;
    if (s.kind === "name") return names[s.text] ?? s.text;
    return words[s.kind] ?? s.text;
  };
  return symbols(text).map(say).join(" ");
}

/** A line as mathematics. `marks` are characters with a class: {into: [0, 4]}. */
export function formula(text, names = {}, marks = {}) {
  const line = make("span", { class: "formula", role: "math", "aria-label": spoken(text, names) });
  const classes = (s) => Object.keys(marks).filter((name) => marks[name] && s.at >= marks[name][0] && s.end <= marks[name][1]).join(" ");
  const all = symbols(text);
  let part = null;
  all.forEach((symbol, i) => {
    const wanted = classes(symbol);
    if (!part || part.className !== wanted) {
      part = make("span", {});
      part.className = wanted;
      line.append(part);
    }
    part.append(...drawn(symbol, all[i + 1], names));
    // A long line may be broken after a sign.
    if (symbol.kind === "+" || symbol.kind === "-") part.append(make("wbr"));
  });
  return line;
}

/** A probability; what rounds to 0 or 100 is not called that. */
export function percent(probability) {
  const p = 100 * probability;
  return p >= 99.95 ? ">99.9 %" : p < 0.05 ? "<0.1 %" : `${p.toFixed(1)} %`;
}
