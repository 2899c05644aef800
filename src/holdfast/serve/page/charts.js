// The chart of the mass by turn, with a line for each column, which grows as replies come. The mass
// falls in the course of a reply, so columns are compared over the same number of tokens: that of
// the turn's shortest reply. The axis is logarithmic, because the mass soon falls to a hundredth,
// where the lines could not be told apart on a linear axis.

import { draw, make } from "./dom.js";
import { LETTERS, mean, meanOfFirst, sharedLength } from "./state.js";
import { share } from "./tokens.js";

const TITLE = "Mass on the prompt, by turn (logarithmic)";
const [WIDTH, HEIGHT] = [336, 190];
const EDGE = { left: 42, right: 62, top: 10, bottom: 26 };
const MIN_DISTANCE = 14; // between labels
const MAX_DOTS = 24; // points of a line; a line with more is drawn without dots
const MIN_MASS = 1e-4; // the lowest end of the axis, at which smaller masses are drawn

/** Fills a figure with the chart and a table of its numbers; returns the function that draws both
 * from the state.
 *
 * A line is {key, name, values}; a value is null if no mass was read. */
export function massChart(figure) {
  const plot = draw("g");
  const svg = draw("svg", { class: "chart", viewBox: `0 0 ${WIDTH} ${HEIGHT}`, role: "img" }, plot);
  const table = make("table");
  const details = make("details.numbers", { ontoggle: writeTable },
    make("summary", "Numbers"), make("div.scroll", table));
  figure.append(make("figcaption", TITLE), svg, details);
  let lines = []; // the last one is that of uniform attention, if there is one

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
    const scale = scaleOf(lines, turns.length);
    plot.replaceChildren(
      ...axes(scale),
      draw("path", { class: "uniform", d: dashedPathOf(scale, uniform) }),
      ...masses.flatMap((line) => curve(scale, line)),
      ...labels(scale, masses, uniform));
    svg.setAttribute("aria-label", inWords(masses));
    writeTable();
  };
}

/** The scale on which the lines of some turns fit: the number of turns on the axis, the powers of
 * ten at which the vertical axis ends, and the functions of turn and mass that give x and y. */
function scaleOf(lines, turns) {
  const masses = lines.flatMap(({ values }) => values.filter(Number.isFinite))
    .map((value) => Math.max(value, MIN_MASS));
  const top = Math.ceil(Math.log10(Math.max(0.1, ...masses)));
  const bottom = Math.floor(Math.log10(Math.min(0.01, ...masses)));
  const length = Math.max(4, turns);
  const turnWidth = (WIDTH - EDGE.left - EDGE.right) / (length - 1);
  const decadeHeight = (HEIGHT - EDGE.top - EDGE.bottom) / (top - bottom);
  return {
    length, bottom, top,
    x: (number) => EDGE.left + (number - 1) * turnWidth,
    y: (mass) => EDGE.top + (top - Math.log10(Math.max(mass, 10 ** bottom))) * decadeHeight,
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

/** As `pathOf`, with a short line in place of a single point, which would not be seen. */
function dashedPathOf(scale, values) {
  const known = values.flatMap((value, index) => (Number.isFinite(value) ? [index] : []));
  if (known.length !== 1) return pathOf(scale, values);
  const [index] = known;
  return `M${(scale.x(index + 1) - 5.5).toFixed(1)} ${scale.y(values[index]).toFixed(1)}h11`;
}

function curve(scale, { key, values, spans }) {
  const path = draw("path", { class: `curve s${key}`, d: pathOf(scale, values, spans) });
  if (values.length > MAX_DOTS) return [path];
  return [path, ...values.flatMap((value, index) => Number.isFinite(value)
    ? [draw("circle", { class: `dot s${key}`, cx: scale.x(index + 1), cy: scale.y(value), r: 3 })]
    : [])];
}

/** The letter and the last value of each line, to the right of the last point. Labels that would
 * overlap are moved apart. */
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
    (label.y = Math.max(label.y, (placed[index - 1]?.y ?? -MIN_DISTANCE) + MIN_DISTANCE)));
  for (let index = placed.length - 1; index >= 0; index -= 1)
    placed[index].y = Math.min(placed[index].y,
      (placed[index + 1]?.y ?? bottom + MIN_DISTANCE) - MIN_DISTANCE);
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
