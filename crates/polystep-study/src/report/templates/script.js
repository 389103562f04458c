"use strict";
// The page works without this script; with it, failures can be filtered and the theme switched.
document.getElementById("theme").addEventListener("click", () => {
  const root = document.documentElement;
  const dark = root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
  root.dataset.theme = dark ? "light" : "dark";
});
const PAGE = 40;
for (const form of document.querySelectorAll("form.filters")) {
  const items = [...document.querySelectorAll(`#${form.dataset.list} > li`)];
  const texts = items.map((item) => item.textContent.toLowerCase());
  const more = document.querySelector(`button.more[data-list="${form.dataset.list}"]`);
  const output = form.querySelector("output");
  let limit = PAGE;
  const show = () => {
    const wanted = form.elements.text.value.trim().toLowerCase();
    const kind = form.elements.kind.value, cls = form.elements.class.value;
    let found = 0;
    items.forEach((item, i) => {
      const fits = (!kind || item.dataset.kind === kind) && (!cls || item.dataset.class === cls) && texts[i].includes(wanted);
      found += fits ? 1 : 0;
      item.hidden = !fits || found > limit;
    });
    output.textContent = found === 1 ? "1 failure" : `${found} failures`;
    more.hidden = found <= limit;
    more.textContent = `Show more (${found - limit} left)`;
  };
  form.addEventListener("input", () => { limit = PAGE; show(); });
  form.addEventListener("submit", (event) => event.preventDefault());
  more.addEventListener("click", () => { limit += PAGE; show(); });
  show();
}
