"use strict";
// Texts of models are untrusted: everything below reaches the page through textContent, never as markup.

const $ = (id) => document.getElementById(id);

/** An element: make("p", {class: "x"}, "text", child, ...). Falsy children are left out. */
function make(tag, attributes = {}, ...children) {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name === "--v") node.style.setProperty("--v", value);
    else if (value !== null && value !== undefined && value !== false) node.setAttribute(name, value);
  }
  for (const child of children) if (child || child === 0) node.append(child);
  return node;
}

// --- theme ---------------------------------------------------------------------------------------------------

function setUpTheme() {
  const root = document.documentElement, button = $("theme"), key = "holdfast-report-theme";
  const dark = () => (root.dataset.theme || (matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light")) === "dark";
  const label = () => { button.textContent = dark() ? "Light" : "Dark"; button.setAttribute("aria-label", dark() ? "Use light colours" : "Use dark colours"); };
  button.hidden = false;
  try { root.dataset.theme = localStorage.getItem(key) || ""; } catch { /* some browsers keep nothing for a page from a file */ }
  button.addEventListener("click", () => { root.dataset.theme = dark() ? "light" : "dark"; label(); try { localStorage.setItem(key, root.dataset.theme); } catch { /* as above */ } });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", label);
  label();
}

// --- charts --------------------------------------------------------------------------------------------------

/** Reads a round under the pointer, or with the arrow keys, into the line below the chart. */
function setUpPlot(plot) {
  const points = JSON.parse(plot.dataset.points), svg = plot.querySelector("svg"), out = plot.nextElementSibling;
  const { width } = svg.viewBox.baseVal, left = +svg.dataset.left, span = width - left - +svg.dataset.right, last = points.length;
  let now = last;
  const x = (round) => left + (last > 1 ? span * (round - 1) / (last - 1) : span / 2);
  function show(round, cursor) {
    now = Math.min(last, Math.max(1, round));
    const line = svg.querySelector(".cursor");
    line.setAttribute("x1", x(now)); line.setAttribute("x2", x(now));
    line.setAttribute("visibility", cursor ? "visible" : "hidden");
    out.replaceChildren(make("span", { class: "value" }, `round ${now}`));
    const spoken = [];
    for (const [colour, label, value, interval, sd] of points[now - 1]) {
      out.append(make("span", { class: `value s${colour}` }, make("i"), make("span", {}, make("b", {}, value), interval && ` ${interval}`, sd && make("span", { class: "sd" }, ` sd ${sd}`), ` · ${label}`)));
      spoken.push(`${label} ${value}${interval ? `, interval ${interval}` : ""}${sd ? `, standard deviation ${sd}` : ""}`);
    }
    plot.setAttribute("aria-valuenow", now);
    plot.setAttribute("aria-valuetext", `Round ${now}: ${spoken.join("; ")}`);
  }
  plot.addEventListener("pointermove", (event) => {
    const box = svg.getBoundingClientRect();
    const at = (event.clientX - box.left) / box.width * width;
    show(Math.round((at - left) / span * (last - 1)) + 1, true);
  });
  plot.addEventListener("pointerleave", () => show(last, false));
  plot.addEventListener("focus", () => show(now, plot.matches(":focus-visible")));
  plot.addEventListener("blur", () => show(now, false));
  plot.addEventListener("keydown", (event) => {
    const to = { ArrowLeft: now - 1, ArrowDown: now - 1, ArrowRight: now + 1, ArrowUp: now + 1, Home: 1, End: last }[event.key];
    if (to !== undefined) { event.preventDefault(); show(to, true); }
  });
  show(last, false);
}

function setUpToggles() {
  for (const box of document.querySelectorAll("[data-hides]")) {
    const apply = () => document.body.classList.toggle(box.dataset.hides, !box.checked);
    box.addEventListener("change", apply);
    apply();
  }
}

// --- commands ------------------------------------------------------------------------------------------------

/** A button that copies the command; where copying is not allowed, it selects the command instead. */
function setUpCommand(line) {
  const code = line.querySelector("code"), button = make("button", { type: "button", class: "quiet" }, "Copy");
  button.addEventListener("click", () => {
    const select = () => getSelection().selectAllChildren(code);
    if (!navigator.clipboard) return select();
    navigator.clipboard.writeText(code.textContent).then(() => { button.textContent = "Copied"; }, select);
  });
  line.append(button);
}

setUpTheme();
document.querySelectorAll(".command").forEach(setUpCommand);
document.querySelectorAll(".plot").forEach(setUpPlot);
setUpToggles();
