// A line per column over turns or rounds, which grows as they come.

import { draw, make } from "./dom.js";
import { LETTERS } from "./state.js";
import { share } from "./tokens.js";

const [WIDTH, HEIGHT] = [336, 190];
const EDGE = { left: 42, right: 62, top: 10, bottom: 26 };
const APART = 14; // between labels
const MOST_DOTS = 24; // points of a line; more of them are drawn without dots

/**
 * A chart. `title`: what is drawn; `unit`: "turn" or "round"; `top`: the end of the axis, or none
 * to fit what there is.
 *
 * `update(lines, uniform)`: `lines` are {key, name, values, dashed}, and `uniform` the values of
 * the thin line of reference; a value may be null.
 */
export function lineChart({ title, unit, top: fixedTop }) {
  const plot = draw("g");
  const svg = draw("svg", { class: "chart", viewBox: `0 0 ${WIDTH} ${HEIGHT}`, role: "img" }, plot);
  const table = make("table");
  const details = make(
    "details",
    { class: "numbers", on: { toggle: () => details.open && writeTable() } },
    make("summary", {}, "Numbers"),
    make("div", { class: "scroll" }, table),
  );
  const figure = make("figure", {}, make("figcaption", {}, title), svg, details);
  let shown = { lines: [], uniform: [] };

  function writeTable() {
    const { lines, uniform } = shown;
    const columns = [...lines, ...(uniform.length ? [{ name: "uniform", values: uniform }] : [])];
    const rows = Math.max(0, ...columns.map((line) => line.values.length));
    table.replaceChildren(
      make(
        "thead",
        {},
        make(
          "tr",
          {},
          ...[unit, ...columns.map((line) => line.name)].map((name) =>
            make("th", { scope: "col" }, name),
          ),
        ),
      ),
      make(
        "tbody",
        {},
        ...Array.from({ length: rows }, (_, row) =>
          make(
            "tr",
            {},
            make("th", { scope: "row" }, String(row + 1)),
            ...columns.map((line) => make("td", {}, share(line.values[row] ?? null))),
          ),
        ),
      ),
    );
  }

  return {
    figure,
    update(lines, uniform = []) {
      shown = { lines, uniform };
      const every = [...lines.flatMap((line) => line.values), ...uniform].filter(Number.isFinite);
      const length = Math.max(4, uniform.length, ...lines.map((line) => line.values.length));
      const scale = scales(length, fixedTop ?? roundTop(Math.max(0.05, ...every)));
      plot.replaceChildren(
        ...axes(scale, unit),
        reference(scale, uniform),
        ...lines.flatMap((line) => curve(scale, line)),
        ...labels(scale, lines, uniform),
      );
      svg.setAttribute("aria-label", inWords(title, unit, lines));
      if (details.open) writeTable();
    },
  };
}

function roundTop(most) {
  return [0.05, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.6, 0.8, 1].find((top) => most <= top) ?? 1;
}

function scales(length, top) {
  const [wide, high] = [WIDTH - EDGE.left - EDGE.right, HEIGHT - EDGE.top - EDGE.bottom];
  return {
    length,
    top,
    x: (number) => EDGE.left + ((number - 1) / (length - 1)) * wide,
    y: (value) => EDGE.top + (1 - value / top) * high,
  };
}

function axes({ length, top, x, y }, unit) {
  const parts = [];
  for (const value of [0, top / 2, top]) {
    parts.push(
      draw("line", {
        class: value ? "grid" : "axis",
        x1: x(1),
        x2: x(length),
        y1: y(value),
        y2: y(value),
      }),
    );
    const text = draw("text", { x: x(1) - 7, y: y(value) + 4, "text-anchor": "end" });
    text.textContent = String(Number(value.toFixed(3))).replace(/^0\./, ".");
    parts.push(text);
  }
  const every = Math.ceil(length / 9);
  for (let number = 1; number <= length; number += every) {
    const text = draw("text", { x: x(number), y: HEIGHT - 9, "text-anchor": "middle" });
    text.textContent = String(number);
    parts.push(text);
  }
  const name = draw("text", { x: x(1) - 9, y: HEIGHT - 9, "text-anchor": "end" });
  name.textContent = unit;
  parts.push(name);
  return parts;
}

/** The points of a line as a path, broken where a value is missing. */
function pathOf({ x, y, top }, values) {
  let path = "";
  let pen = "M";
  for (const [index, value] of values.entries()) {
    if (Number.isFinite(value))
      path += `${pen}${x(index + 1).toFixed(1)} ${y(Math.min(value, top)).toFixed(1)}`;
    pen = Number.isFinite(value) ? "L" : "M";
  }
  return path;
}

const reference = (scale, values) => draw("path", { class: "uniform", d: pathOf(scale, values) });

function curve(scale, { key, values, dashed }) {
  const name = `s${key}`;
  const parts = [
    draw("path", { class: `curve ${name}${dashed ? " dashed" : ""}`, d: pathOf(scale, values) }),
  ];
  if (values.length > MOST_DOTS || dashed) return parts;
  for (const [index, value] of values.entries()) {
    if (!Number.isFinite(value)) continue;
    parts.push(
      draw("circle", {
        class: `dot ${name}`,
        cx: scale.x(index + 1),
        cy: scale.y(Math.min(value, scale.top)),
        r: 3,
      }),
    );
  }
  return parts;
}

/** Each line's letter and last value at its end; those that would meet are moved apart. */
function labels({ x, y, top }, lines, uniform) {
  const named = lines
    .filter((line) => !line.dashed)
    .map((line) => ({ name: `s${line.key}`, letter: LETTERS[line.key], values: line.values }));
  if (uniform.length) named.push({ name: "of-uniform", letter: "uniform", values: uniform });
  const placed = named
    .flatMap(({ name, letter, values }) => {
      const last = values.findLastIndex(Number.isFinite);
      if (last < 0) return [];
      const text =
        name === "of-uniform" ? letter : `${letter} ${values[last].toFixed(2).replace(/^0/, "")}`;
      return [{ name, text, x: x(last + 1) + 8, y: y(Math.min(values[last], top)) }];
    })
    .sort((a, b) => a.y - b.y);
  for (let index = 1; index < placed.length; index += 1) {
    placed[index].y = Math.max(placed[index].y, placed[index - 1].y + APART);
  }
  const over = (placed.at(-1)?.y ?? 0) - (HEIGHT - EDGE.bottom);
  for (
    let index = placed.length - 1, least = HEIGHT - EDGE.bottom;
    over > 0 && index >= 0;
    index -= 1
  ) {
    placed[index].y = Math.min(placed[index].y, least);
    least = placed[index].y - APART;
  }
  return placed.map((label) => {
    const text = draw("text", { class: `end ${label.name}`, x: label.x, y: label.y + 4 });
    text.textContent = label.text;
    return text;
  });
}

function inWords(title, unit, lines) {
  const told = lines
    .filter((line) => line.values.some(Number.isFinite))
    .map((line) => {
      const values = line.values.filter(Number.isFinite);
      const [first, last] = [share(values[0]), share(values.at(-1))];
      return `${line.name}: ${first} in the first ${unit}, ${last} in the last`;
    });
  return told.length ? `${title}. ${told.join("; ")}.` : `${title}: nothing yet.`;
}
