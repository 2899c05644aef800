// The heads of the columns: which method steers, with what knobs, and how tokens are drawn.

import { draw, freshId, labelled, make } from "./dom.js";
import { firstKnobs, readSpelling, spell } from "./spelling.js";
import { LETTERS, MOST_COLUMNS } from "./state.js";

const BY_HAND = "(by hand)";
const OPEN_END = 9; // above the least value, for sliders of numbers without an upper end
const DRAWING = [
  // of a column, with what it takes
  { name: "temperature", label: "temperature", min: 0, max: 2, step: 0.1 },
  { name: "topP", label: "top-p", min: 0.01, max: 1, step: 0.01 },
  {
    name: "seed",
    label: "seed",
    min: 0,
    max: 2 ** 53,
    step: 1,
    title: "turn k draws with seed + k − 1",
  },
  { name: "longest", label: "longest reply, tokens", min: 1, max: 100_000, step: 1 },
];

/**
 * The head of a column.
 *
 * `column` is written to; `methods` are those of /v1/steering; `actions`: `changed()`, `remove()`
 * and `again()`, which answers the whole dialog anew.
 */
export function columnHead(column, methods, actions) {
  const letter = LETTERS[column.key];
  const spelled = make("code", { class: "spelled" });
  const about = make("p", { class: "about" });
  const knobs = make("div", { class: "knobs" });
  const rare = make("div", { class: "knobs" });
  const select = make(
    "select",
    { "aria-label": `Steering of ${letter}`, "data-role": "method" },
    ...["none", ...methods.map((method) => method.name), BY_HAND].map((name) =>
      make("option", {}, name),
    ),
  );

  function show() {
    const read = readSpelling(column.steering, methods);
    const method = read?.method ?? null;
    select.value = read ? (method?.name ?? "none") : BY_HAND;
    about.textContent = method
      ? method.description
      : read
        ? "No steering."
        : "Methods joined with +.";
    const required = method?.knobs.required ?? [];
    const properties = Object.entries(method?.knobs.properties ?? {});
    const values = { ...read?.knobs };
    const input = ([name, schema]) =>
      knobInput(name, schema, values[name] ?? "", (value) => {
        values[name] = value;
        steer(spell(method, values));
      });
    const first = properties.filter(([name]) => required.includes(name)).map(input);
    if (!read) first.push(handInput());
    knobs.replaceChildren(
      ...(first.length ? first : [make("p", { class: "about" }, "the model as it is")]),
    );
    rare.replaceChildren(...properties.filter(([name]) => !required.includes(name)).map(input));
    spelled.textContent = column.steering;
  }

  function steer(spelling) {
    column.steering = spelling;
    spelled.textContent = spelling;
    actions.changed();
  }

  function handInput() {
    const input = make("input", {
      type: "text",
      value: column.steering,
      spellcheck: false,
      autocomplete: "off",
      on: { input: () => steer(input.value.trim() || "none") },
    });
    return labelled("spelling", input, { class: "wide" });
  }

  select.addEventListener("change", () => {
    const method = methods.find((entry) => entry.name === select.value);
    if (select.value !== BY_HAND) steer(method ? spell(method, firstKnobs(method)) : "none");
    else
      steer(
        column.steering.includes("+") || column.steering === "none"
          ? column.steering
          : `${column.steering}+repetition:probability=0.5`,
      );
    show();
  });
  show();

  return make(
    "section",
    { class: `column s${column.key}`, "aria-label": `Column ${letter}`, "data-column": column.key },
    make(
      "div",
      { class: "column-top" },
      make("h3", { class: "letter" }, letter),
      select,
      make(
        "button",
        {
          type: "button",
          class: "icon",
          "aria-label": `Remove column ${letter}`,
          title: "Remove",
          on: { click: actions.remove },
        },
        "×",
      ),
    ),
    knobs,
    make(
      "div",
      { class: "column-foot" },
      spelled,
      make(
        "details",
        { class: "more" },
        make("summary", {}, "Settings"),
        about,
        rare,
        make(
          "div",
          { class: "knobs" },
          ...DRAWING.map((setting) => drawingInput(column, setting, actions.changed)),
        ),
        make(
          "button",
          { type: "button", class: "quiet", on: { click: actions.again } },
          "Answer the dialog anew",
        ),
      ),
    ),
  );
}

function knobInput(name, schema, value, tell) {
  const title = schema.description ?? "";
  if (schema.enum) {
    const select = make(
      "select",
      { title, on: { change: () => tell(select.value) } },
      ...schema.enum.map((word) => make("option", {}, word)),
    );
    select.value = value || schema.default || schema.enum[0];
    return labelled(name, select);
  }
  if (schema.type !== "number") {
    const placeholder = name === "heads" ? "all; 3.0/3.5" : "";
    const input = make("input", {
      type: "text",
      value,
      title,
      placeholder,
      spellcheck: false,
      autocomplete: "off",
      on: { input: () => tell(input.value.trim()) },
    });
    return labelled(name, input, { class: "wide" });
  }
  return numberInput(name, schema, value, title, tell);
}

/** A number with a slider, which ends somewhere even where the number does not. */
function numberInput(name, schema, value, title, tell) {
  const min = schema.minimum ?? schema.exclusiveMinimum ?? 0;
  const max = schema.maximum ?? schema.exclusiveMaximum;
  const end = max ?? min + OPEN_END;
  const number = make("input", {
    type: "number",
    id: freshId("knob"),
    step: "any",
    title,
    inputMode: "decimal",
    attributes: bounds(min, max),
    value,
    placeholder: String(schema.default ?? ""),
  });
  number.addEventListener("input", () => {
    slider.value = number.value;
    tell(number.value);
  });
  const slider = make("input", {
    type: "range",
    "aria-label": `${name}, slider`,
    attributes: { min, max: end, step: (end - min) / 100 },
  });
  slider.value = value === "" ? String(schema.default ?? min) : value;
  slider.addEventListener("input", () =>
    tell((number.value = String(Number(Number(slider.value).toFixed(4))))),
  );
  return make(
    "div",
    { class: "knob wide" },
    make("label", { htmlFor: number.id, title }, name),
    slider,
    number,
  );
}

const bounds = (min, max) => ({
  ...(min === undefined ? {} : { min }),
  ...(max === undefined ? {} : { max }),
});

function drawingInput(column, { name, label, min, max, step, title = "" }, changed) {
  const input = make("input", {
    type: "number",
    min: String(min),
    max: String(max),
    step: String(step),
    value: String(column[name]),
    title,
  });
  input.addEventListener("input", () => {
    if (input.value === "" || !input.checkValidity()) return;
    column[name] = Number(input.value);
    changed();
  });
  return labelled(label, input);
}

/** The button behind the last column; null where there is no room for another. */
export function addButton(columns, add) {
  if (columns.length >= MOST_COLUMNS) return null;
  const plus = draw(
    "svg",
    { viewBox: "0 0 12 12", "aria-hidden": "true", class: "plus" },
    draw("path", { d: "M6 1V11M1 6H11" }),
  );
  return make(
    "button",
    {
      type: "button",
      id: "add-column",
      class: "add",
      "aria-label": "Add a column",
      title: "Add a column",
      on: { click: add },
    },
    plus,
  );
}
