"use strict";
// Texts of models are untrusted: all of them reach the page through textContent, never as markup.

const $ = (id) => document.getElementById(id);

/** An element: make("p", {class: "x"}, "text", child, ...). Falsy children are left out. */
function make(tag, attributes = {}, ...children) {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    const isAbsent = value === null || value === undefined || value === false;
    if (name === "--v") node.style.setProperty("--v", value);
    else if (!isAbsent) node.setAttribute(name, value);
  }
  for (const child of children) if (child || child === 0) node.append(child);
  return node;
}

// --- theme ---------------------------------------------------------------------------------------

function setUpTheme() {
  const root = document.documentElement;
  const button = $("theme");
  const key = "holdfast-report-theme";
  const system = matchMedia("(prefers-color-scheme: dark)");
  const isDark = () => (root.dataset.theme || (system.matches ? "dark" : "light")) === "dark";
  function label() {
    button.textContent = isDark() ? "Light" : "Dark";
    button.setAttribute("aria-label", isDark() ? "Use light colours" : "Use dark colours");
  }
  button.hidden = false;
  // some browsers store nothing for a page that is opened from a file
  try { root.dataset.theme = localStorage.getItem(key) || ""; } catch { /* the system's theme */ }
  button.addEventListener("click", () => {
    root.dataset.theme = isDark() ? "light" : "dark";
    label();
    try { localStorage.setItem(key, root.dataset.theme); } catch { /* for this visit only */ }
  });
  system.addEventListener("change", label);
  label();
}

// --- charts --------------------------------------------------------------------------------------

/** Shows the numbers of the round under the pointer, or chosen with the arrow keys. */
function setUpPlot(plot) {
  const points = JSON.parse(plot.dataset.points);
  const svg = plot.querySelector("svg");
  const readout = plot.nextElementSibling;
  const { width } = svg.viewBox.baseVal;
  const left = +svg.dataset.left;
  const span = width - left - +svg.dataset.right;
  const last = points.length;
  let current = last;

  const xOf = (round) => left + (last > 1 ? span * (round - 1) / (last - 1) : span / 2);

  function show(round, hasCursor) {
    current = Math.min(last, Math.max(1, round));
    const line = svg.querySelector(".cursor");
    line.setAttribute("x1", xOf(current));
    line.setAttribute("x2", xOf(current));
    line.setAttribute("visibility", hasCursor ? "visible" : "hidden");
    readout.replaceChildren(make("span", { class: "value" }, `round ${current}`));
    const descriptions = [];
    for (const [colour, label, value, interval, sd] of points[current - 1]) {
      readout.append(make("span", { class: `value s${colour}` }, make("i"), make("span", {},
        make("b", {}, value), interval && ` ${interval}`,
        sd && make("span", { class: "sd" }, ` sd ${sd}`), ` · ${label}`)));
      const ends = interval ? `, interval ${interval}` : "";
      const deviation = sd ? `, standard deviation ${sd}` : "";
      descriptions.push(`${label} ${value}${ends}${deviation}`);
    }
    plot.setAttribute("aria-valuenow", current);
    plot.setAttribute("aria-valuetext", `Round ${current}: ${descriptions.join("; ")}`);
  }

  plot.addEventListener("pointermove", (event) => {
    const box = svg.getBoundingClientRect();
    const x = (event.clientX - box.left) / box.width * width;
    show(Math.round((x - left) / span * (last - 1)) + 1, true);
  });
  plot.addEventListener("pointerleave", () => show(last, false));
  plot.addEventListener("focus", () => show(current, plot.matches(":focus-visible")));
  plot.addEventListener("blur", () => show(current, false));
  plot.addEventListener("keydown", (event) => {
    const round = {
      ArrowLeft: current - 1,
      ArrowDown: current - 1,
      ArrowRight: current + 1,
      ArrowUp: current + 1,
      Home: 1,
      End: last,
    }[event.key];
    if (round === undefined) return;
    event.preventDefault();
    show(round, true);
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

// --- commands ------------------------------------------------------------------------------------

/** Adds a button that copies a command, or selects it where copying is not allowed. */
function setUpCommand(line) {
  const code = line.querySelector("code");
  const button = make("button", { type: "button", class: "quiet" }, "Copy");
  button.addEventListener("click", () => {
    const select = () => getSelection().selectAllChildren(code);
    if (!navigator.clipboard) return select();
    const copied = () => { button.textContent = "Copied"; };
    navigator.clipboard.writeText(code.textContent).then(copied, select);
  });
  line.append(button);
}

setUpTheme();
document.querySelectorAll(".command").forEach(setUpCommand);
document.querySelectorAll(".plot").forEach(setUpPlot);
setUpToggles();
