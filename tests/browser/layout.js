// What is wrong with the layout of a page, as sentences. The function `faults` runs inside the page.
//
// A text is a quadrilateral: that of its line for HTML, that of its box for SVG, where it may be turned. Two texts overlap if no
// line separates their quadrilaterals, each taken smaller by the room that letters leave above and below themselves.

export function faults() {
  const found = [];
  const say = (what, ...texts) => found.push(`${what}: ${texts.map((t) => `“${t.slice(0, 60)}”`).join(" and ")}`);
  const width = document.documentElement.clientWidth;
  const SLACK = 1.5;

  if (document.scrollingElement.scrollWidth > width) {
    say(`the page is ${document.scrollingElement.scrollWidth} px wide in a window of ${width} px`);
  }

  // Texts and where they are.
  const quad = (l, t, r, b) => {
    const inset = 0.18 * (b - t);
    return [[l, t + inset], [r, t + inset], [r, b - inset], [l, b - inset]];
  };
  const texts = [];
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  for (let node = walker.nextNode(); node; node = walker.nextNode()) {
    const parent = node.parentElement;
    const words = node.textContent.trim();
    if (!words || parent.closest("script, style, title, desc, option, .skip") || !parent.checkVisibility()) continue;
    const svg = parent.closest("svg");
    if (svg) {
      const box = parent.getBBox();
      const matrix = parent.getScreenCTM();
      const corners = quad(box.x, box.y, box.x + box.width, box.y + box.height);
      const points = corners.map(([x, y]) => [matrix.a * x + matrix.c * y + matrix.e, matrix.b * x + matrix.d * y + matrix.f]);
      const size = parseFloat(getComputedStyle(parent).fontSize) * Math.hypot(matrix.a, matrix.b);
      texts.push({ words, parent, svg, points, size });
    } else {
      const range = document.createRange();
      range.selectNodeContents(node);
      for (const r of range.getClientRects()) {
        if (r.width > 0.5) texts.push({ words, parent, points: quad(r.left, r.top, r.right, r.bottom), size: parseFloat(getComputedStyle(parent).fontSize) });
      }
    }
  }
  for (const text of texts) {
    const [x, y] = [text.points.map((p) => p[0]), text.points.map((p) => p[1])];
    Object.assign(text, { left: Math.min(...x), right: Math.max(...x), top: Math.min(...y), bottom: Math.max(...y) });
  }
  if (texts.length < 50) say(`only ${texts.length} texts were found`);

  // Overlaps. No axis along an edge of either one separates them by more than the slack.
  const apart = (a, b) =>
    [a, b].some((one) =>
      one.some(([x, y], i) => {
        const [u, v] = one[(i + 1) % 4];
        const length = Math.hypot(u - x, v - y) || 1;
        const along = ([p, q]) => ((u - x) * p + (v - y) * q) / length;
        const [m, n] = [a.map(along), b.map(along)];
        return Math.max(...m) - SLACK < Math.min(...n) || Math.max(...n) - SLACK < Math.min(...m);
      }));
  // What is scrolled out of sight covers nothing.
  const seen = texts.flatMap((t) => {
    const frame = t.parent.closest(".scroll, pre, nav")?.getBoundingClientRect() ?? { left: 0, right: width };
    const inside = t.points.map(([x, y]) => [Math.min(Math.max(x, frame.left), frame.right), y]);
    return t.right > frame.left && t.left < frame.right ? [{ ...t, points: inside }] : [];
  });
  const sorted = seen.sort((a, b) => a.top - b.top);
  const sticky = (t) => t.parent.closest("header.top");
  sorted.forEach((a, i) => {
    for (let j = i + 1; j < sorted.length && sorted[j].top < a.bottom; j++) {
      const b = sorted[j];
      if (a.parent !== b.parent && sticky(a) === sticky(b) && !apart(a.points, b.points)) say("texts overlap", a.words, b.words);
    }
  });

  for (const { words, parent, svg, left, right, top, bottom, size } of texts) {
    // Text of a table, of code and of the navigation may be scrolled to. Other text must be in the window.
    const scrolls = parent.closest("td, tbody th, thead th, pre, nav");
    if (!scrolls && (left < -SLACK || right > width + SLACK)) say("a text leaves the window", words);
    if (size < 9.5) say(`a text of ${size.toFixed(1)} px is too small to read`, words);
    if (svg) {
      const box = svg.closest("figure, .key").getBoundingClientRect();
      const inside = left > box.left - SLACK && right < box.right + SLACK && top > box.top - SLACK && bottom < box.bottom + SLACK;
      if (!inside) say("a text leaves its figure", words);
    }
    for (let box = parent; box && box !== document.body; box = box.parentElement) {
      const { overflowX, overflowY } = getComputedStyle(box);
      const [hiddenX, hiddenY] = [overflowX, overflowY].map((o) => o === "hidden" || o === "clip");
      const r = box.getBoundingClientRect();
      if ((hiddenX && (left < r.left - SLACK || right > r.right + SLACK)) || (hiddenY && (top < r.top - SLACK || bottom > r.bottom + SLACK))) {
        say("a text is cut off", words);
      }
      // A box that scrolls must be reachable by keyboard.
      if (overflowX === "auto" && box.scrollWidth > box.clientWidth + 1 && box.tabIndex < 0 && !box.querySelector("a")) {
        say("only a mouse can scroll to a text", words);
      }
    }
  }

  // Whoever does not scroll sees at least one number of every table.
  for (const table of document.querySelectorAll("table")) {
    const cell = [...table.querySelectorAll("tbody tr:first-child td")].find((td) => td.textContent.trim());
    if (cell?.checkVisibility() && cell.getBoundingClientRect().right > width + SLACK) say("a table shows no number", table.textContent.trim().replace(/\s+/g, " "));
  }

  // Charts fill their rows.
  for (const charts of document.querySelectorAll(".charts")) {
    const box = charts.getBoundingClientRect();
    const figures = [...charts.children].map((f) => f.getBoundingClientRect());
    for (const figure of figures) {
      const row = figures.filter((f) => Math.abs(f.top - figure.top) < 2);
      if (Math.max(...row.map((f) => f.right)) < box.right - 2) say("a row of charts has a hole", charts.textContent.trim().replace(/\s+/g, " "));
    }
  }
  return [...new Set(found)];
}
