// The heads of the columns: the method that steers, its parameters, and how tokens are drawn.

import { button, labelled, make } from "./dom.js";
import { LETTERS } from "./state.js";

const BY_HAND = "(by hand)";
const OPEN_END = 9; // above the least value, for sliders of numbers without an upper end
const DRAWING = [
  { name: "temperature", label: "temperature", min: 0, max: 2, step: 0.1 },
  { name: "topP", label: "top-p", min: 0.01, max: 1, step: 0.01 },
  { name: "seed", label: "seed", min: 0, max: 2 ** 53, step: 1,
    title: "turn k draws with seed + k − 1" },
  { name: "longest", label: "max tokens", min: 1, max: 100_000, step: 1 },
];

/** Parts between separators that stand outside brackets. */
function split(text, separator) {
  const parts = [""];
  let depth = 0;
  for (const character of text) {
    depth += (character === "[") - (character === "]");
    if (character === separator && depth === 0) parts.push("");
    else parts[parts.length - 1] += character;
  }
  return parts;
}

/** {method, values} of a spec string that the picker can show: none, or one known method with known
 * parameters; null for all others. */
function parseSpec(spec, methods) {
  if (spec.trim() === "none") return { method: null, values: {} };
  const [, name, listed] = spec.trim().match(/^([^:]*):?(.*)$/s);
  const method = methods.find((entry) => entry.name === name);
  if (!method || split(spec, "+").length > 1) return null;
  const pairs = (listed ? split(listed, ",") : []).map((pair) => pair.match(/^([^=]*)=(.*)$/s));
  if (!pairs.every((pair) => pair && Object.hasOwn(method.parameters.properties, pair[1]))) return null;
  return { method, values: Object.fromEntries(pairs.map(([, key, value]) => [key, value])) };
}

function specOf(method, values) {
  const given = Object.entries(values).filter(([, value]) => value !== "");
  const listed = given.map(([name, value]) => `${name}=${value}`).join(",");
  return listed ? `${method.name}:${listed}` : method.name;
}

/** A method with a value for each parameter that it needs. */
function firstSpec(method) {
  const first = ({ type, examples, minimum = 0, maximum }) => {
    if (examples) return String(examples[0]);
    if (type === "array") return "[split-softmax:exponent=0.5]";
    if (type === "string") return ""; // a fitted file, which only the reader can name
    return String(maximum === undefined ? minimum + 1 : (minimum + maximum) / 2);
  };
  const { required, properties } = method.parameters;
  const values = required.map((name) => [name, first(properties[name])]);
  return specOf(method, Object.fromEntries(values));
}

/** The head of a column, which is written to. `actions`: `changed()`, `remove()`, and `again()`,
 * which answers the whole dialog anew. */
export function columnHead(column, methods, actions) {
  const letter = LETTERS[column.key];
  const [spec, about] = [make("code.spec"), make("p.about")];
  const [required, optional] = [make("div.parameters"), make("div.parameters")];
  const names = ["none", ...methods.map((method) => method.name), BY_HAND];
  const select = make("select", { "aria-label": `Steering of ${letter}`, "data-role": "method" },
    names.map((name) => make("option", name)));

  function steer(text) {
    spec.textContent = column.steering = text;
    actions.changed();
  }

  function show() {
    const read = parseSpec(column.steering, methods);
    const method = read?.method;
    select.value = read ? (method?.name ?? "none") : BY_HAND;
    about.textContent = method?.description ?? (read ? "No steering." : "Methods joined with +.");
    const input = ([name, schema]) => {
      const change = (value) =>
        steer(specOf(method, Object.assign(read.values, { [name]: value })));
      return parameterInput(name, schema, read.values[name] ?? "", change);
    };
    const needs = ([name]) => method.parameters.required.includes(name);
    const all = Object.entries(method?.parameters.properties ?? {});
    const first = all.filter(needs).map(input);
    if (!read) first.push(textInput("methods", column.steering, (text) => steer(text || "none")));
    if (!first.length) first.push(make("p.about", method?.description ?? "the model as it is"));
    required.replaceChildren(...first);
    optional.replaceChildren(...all.filter((entry) => !needs(entry)).map(input));
    spec.textContent = column.steering;
  }

  select.onchange = () => {
    const method = methods.find((entry) => entry.name === select.value);
    const joined = column.steering.includes("+") || column.steering === "none";
    const other = column.steering.startsWith("repetition") ? "boost:factor=2"
      : "repetition:probability=0.5";
    if (method) steer(firstSpec(method));
    else if (select.value !== BY_HAND) steer("none");
    else steer(joined ? column.steering : `${column.steering}+${other}`);
    show();
  };
  show();
  const drawing = DRAWING.map((setting) => drawingInput(column, setting, actions.changed));
  return make(`section.column.s${column.key}`,
    { "aria-label": `Column ${letter}`, "data-column": column.key },
    make("div.column-top", make("h3.letter", letter), select, button("icon", "×", actions.remove,
      { "aria-label": `Remove column ${letter}`, title: "Remove" })),
    required,
    make("div.column-foot", spec, make("details.more", make("summary", "Settings"), about, optional,
      make("div.parameters", drawing),
      button("quiet", "Regenerate the replies", actions.again))));
}

function textInput(name, value, change, settings = {}) {
  const input = make("input", { type: "text", value, spellcheck: false, autocomplete: "off",
    ...settings });
  input.oninput = () => change(input.value.trim());
  return labelled(name, input, "wide");
}

function parameterInput(name, schema, value, change) {
  const title = schema.description ?? "";
  if (schema.enum) {
    const select = make("select", { title, onchange: () => change(select.value) },
      schema.enum.map((word) => make("option", word)));
    select.value = value || schema.default || schema.enum[0];
    return labelled(name, select);
  }
  if (schema.type === "number") return numberInput(name, schema, value, title, change);
  const placeholder = { heads: "all; 3.0/3.5", file: "digest of a --fitted file" }[name] ?? "";
  return textInput(name, value, change, { title, placeholder });
}

/** A number with a slider, which ends somewhere even where the number does not. */
function numberInput(name, schema, value, title, change) {
  const min = schema.minimum ?? schema.exclusiveMinimum ?? 0;
  const max = schema.maximum ?? schema.exclusiveMaximum ?? "";
  const end = max === "" ? min + OPEN_END : max;
  const number = make("input", { type: "number", step: "any", title, inputMode: "decimal", min, max,
    value, placeholder: String(schema.default ?? "") });
  const slider = make("input", { type: "range", "aria-label": `${name}, slider`, min, max: end,
    step: (end - min) / 100, value: value === "" ? String(schema.default ?? min) : value });
  number.oninput = () => change((slider.value = number.value, number.value));
  slider.oninput = () => change((number.value = String(Number(Number(slider.value).toFixed(4)))));
  const label = labelled(name, number, "parameter.wide");
  number.before(slider);
  return label;
}

function drawingInput(column, { name, label, ...settings }, changed) {
  const input = make("input", { type: "number", ...settings, value: column[name] });
  input.oninput = () => {
    if (input.value === "" || !input.checkValidity()) return;
    column[name] = Number(input.value);
    changed();
  };
  return labelled(label, input);
}
