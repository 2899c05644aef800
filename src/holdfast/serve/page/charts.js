// The chart of the mass by turn of the dialog: a line per column, which grows as replies come. The
// mass falls along a reply, so columns are compared over equally many tokens: those of the turn's
// shortest reply. The axis is logarithmic: the mass soon falls to a hundredth, where lines would
// meet on a linear one.

import { draw, make } from "./dom.js";
import { LETTERS, mean, meanOfFirst, sharedLength } from "./state.js";
import { share } from "./tokens.js";

const TITLE = "Mass on the prompt, by turn (logarithmic)";
const [WIDTH, HEIGHT] = [336, 190];
const EDGE = { left: 42, right: 62, top: 10, bottom: 26 };
const APART = 14; // between labels
const MAX_DOTS = 24; // points of a line; more of them are drawn without dots
const MIN_MASS = 1e-4; // the lowest end of the axis; smaller masses are drawn there

/** Fills a figure with the chart and its table of numbers; returns what draws them from the state.
 *
 * A line is {key, name, values}; a value is null where no mass was read. */
export function massChart(figure) {
  const plot = draw("g");
  const svg = draw("svg", { class: "chart", viewBox: `0 0 ${WIDTH} ${HEIGHT}`, role: "img" }, plot);
  const table = make("table");
  const details = make("details.numbers", { ontoggle: writeTable },
    make("summary", "Numbers"), make("div.scroll", table));
  figure.append(make("figcaption", TITLE), svg, details);
  let lines = []; // the uniform share is the last, if there is any

  function writeTable() {
    if (!details.open) return;
    const count = Math.max(0, ...lines.map((line) => line.values.length));
    const names = ["turn", ...lines.map((line) => line.name)];
    const rows = Array.from({ length: count }, (_, row) => make("tr",
      make("th", { scope: "row" }, String(row + 1)),
      lines.map((line) => make("td", share(line.values[row])))));
    table.replaceChildren(
      make("thead", make("tr", names.map((name) => make("th", { scope: "col" }, name)))),
      make("tbody", rows));
  }

  return function update({ columns, turns }) {
    const lengths = turns.map((turn) => sharedLength(turn, columns));
    const masses = columns.map(({ key, steering }) => ({ key, name: `${LETTERS[key]} ${steering}`,
      values: turns.map((turn, index) => meanOfFirst(turn.replies[key], "mass", lengths[index])),
      spans: turns.map((turn) => turn.replies[key]?.span) }));
    const uniform = turns.map((turn, index) => mean(columns.map(({ key }) =>
      meanOfFirst(turn.replies[key], "uniform", lengths[index]))));
    lines = uniform.length ? [...masses, { name: "uniform", values: uniform }] : masses;
    const known = lines.flatMap(({ values }) => values.filter(Number.isFinite))
      .map((value) => Math.max(value, MIN_MASS));
    const top = Math.ceil(Math.log10(Math.max(0.1, ...known)));
    const bottom = Math.floor(Math.log10(Math.min(0.01, ...known)));
    const length = Math.max(4, turns.length);
    const wide = (WIDTH - EDGE.left - EDGE.right) / (length - 1);
    const high = HEIGHT - EDGE.top - EDGE.bottom;
    const scale = { length, bottom, top, x: (number) => EDGE.left + (number - 1) * wide,
      y: (value) => EDGE.top
        + (top - Math.log10(Math.max(value, 10 ** bottom))) / (top - bottom) * high };
    plot.replaceChildren(
      ...axes(scale),
      draw("path", { class: "uniform", d: pathOf(scale, uniform) }),
      ...masses.flatMap((line) => curve(scale, line)),
      ...labels(scale, masses, uniform));
    svg.setAttribute("aria-label", inWords(masses));
    writeTable();
  };
}

function write(text, x, y, anchor, kind = "") {
  const node = draw("text", { x, y, "text-anchor": anchor, class: kind });
  node.textContent = text;
  return node;
}

function axes({ length, bottom, top, x, y }) {
  const decades = Array.from({ length: top - bottom + 1 }, (_, index) => 10 ** (bottom + index));
  const grid = decades.flatMap((value, index) => [
    draw("line", { class: index ? "grid" : "axis", x1: x(1), x2: x(length), y1: y(value),
      y2: y(value) }),
    write(String(Number(value.toFixed(4))).replace(/^0\./, "."), x(1) - 7, y(value) + 4, "end"),
  ]);
  const every = Math.ceil(length / 9);
  const numbers = Array.from({ length: Math.ceil(length / every) }, (_, index) =>
    write(String(index * every + 1), x(index * every + 1), HEIGHT - 9, "middle"));
  return [...grid, ...numbers, write("turn", x(1) - 9, HEIGHT - 9, "end")];
}

/** The points of a line as a path, broken where a value is missing or is the mass on other text. */
function pathOf({ x, y }, values, spans = []) {
  return values.map((value, index) => {
    if (!Number.isFinite(value)) return "";
    const joined = Number.isFinite(values[index - 1]) && spans[index] === spans[index - 1];
    const pen = joined ? "L" : "M";
    return `${pen}${x(index + 1).toFixed(1)} ${y(value).toFixed(1)}`;
  }).join("");
}

function curve(scale, { key, values, spans }) {
  const path = draw("path", { class: `curve s${key}`, d: pathOf(scale, values, spans) });
  if (values.length > MAX_DOTS) return [path];
  return [path, ...values.flatMap((value, index) => Number.isFinite(value)
    ? [draw("circle", { class: `dot s${key}`, cx: scale.x(index + 1), cy: scale.y(value), r: 3 })]
    : [])];
}

/** Each line's letter and last value, behind the last point of all; those that would meet are
 * moved apart. */
function labels({ x, y }, lines, uniform) {
  const named = lines.map(({ key, values }) => ({ kind: `s${key}`, values,
    text: (value) => `${LETTERS[key]} ${share(value).replace(/^0\./, ".")}` }));
  named.push({ kind: "of-uniform", values: uniform, text: () => "uniform" });
  const length = Math.max(...named.map(({ values }) => values.findLastIndex(Number.isFinite) + 1));
  const placed = named.flatMap(({ kind, values, text }) => {
    const last = values.findLast(Number.isFinite);
    return last === undefined ? [] : [{ kind, text: text(last), y: y(last) }];
  }).sort((a, b) => a.y - b.y);
  const bottom = HEIGHT - EDGE.bottom;
  placed.forEach((label, index) =>
    (label.y = Math.max(label.y, (placed[index - 1]?.y ?? -APART) + APART)));
  for (let index = placed.length - 1; index >= 0; index -= 1)
    placed[index].y = Math.min(placed[index].y, (placed[index + 1]?.y ?? bottom + APART) - APART);
  return placed.map((label) =>
    write(label.text, x(length) + 8, label.y + 4, "start", `end ${label.kind}`));
}

function inWords(lines) {
  const parts = lines.flatMap(({ name, values }) => {
    const known = values.filter(Number.isFinite);
    const [first, last] = [share(known[0]), share(known.at(-1))];
    return known.length ? [`${name}: ${first} in the first turn, ${last} in the last`] : [];
  });
  return parts.length ? `${TITLE}. ${parts.join("; ")}.` : `${TITLE}: nothing yet.`;
}
