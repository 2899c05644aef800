// The heads of the columns: the steering method, its parameters, and the sampling of tokens.

import { button, labelled, make } from "./dom.js";
import { firstSpec, isNumber, numberProblem, parseSpec, samplingSettings, shownIn, specOf }
  from "./settings.js";
import { LETTERS } from "./state.js";

const BY_HAND = "(by hand)";
const JOINED = "Methods joined with +, such as boost:factor=2+repetition:probability=0.5.";
const OPEN_RANGE = 9; // of a slider whose number has no upper end

/** The head of a column, whose inputs change the column.
 *
 * The second argument is the server's description, and `actions` has `changed()`, `remove()` and
 * `again()`, which answers the whole dialog again. */
export function columnHead(column, { methods, maxTokens }, actions) {
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
    const read = column.byHand ? null : parseSpec(column.steering, methods);
    const method = read?.method;
    select.value = read ? (method?.name ?? "none") : BY_HAND;
    about.textContent = method?.description ?? (read ? "The model as it is." : JOINED);
    const needs = (name) => method.parameters.required.includes(name);
    const input = ([name, schema]) => {
      const change = (value) =>
        steer(specOf(method, Object.assign(read.values, { [name]: value })));
      const settings = { ...schema, required: needs(name) };
      return parameterInput(name, settings, read.values[name] ?? "", change);
    };
    const all = Object.entries(method?.parameters.properties ?? {});
    const first = all.filter(([name]) => needs(name)).map(input);
    if (!read) first.push(textInput("methods", column.steering, steer));
    required.replaceChildren(...first);
    optional.replaceChildren(...all.filter(([name]) => !needs(name)).map(input));
    spec.textContent = column.steering;
  }

  select.onchange = () => {
    const method = methods.find((entry) => entry.name === select.value);
    column.byHand = select.value === BY_HAND; // and keeps the methods until they are edited
    if (!column.byHand) steer(method ? firstSpec(method) : "none");
    show();
  };
  show();
  const sampling = samplingSettings(maxTokens).map((setting) =>
    samplingInput(column, setting, actions.changed));
  return make(`section.column.s${column.key}`,
    { "aria-label": `Column ${letter}`, "data-column": column.key },
    make("div.column-top", make("h3.letter", letter), select, button("icon", "×", actions.remove,
      { "aria-label": `Remove column ${letter}`, title: "Remove" })),
    about,
    required,
    make("div.column-foot", spec, make("details.more", make("summary", "Settings"), optional,
      make("div.parameters", sampling),
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
  if (schema.type === "number") return sliderInput(name, schema, value, change);
  if (isNumber(schema)) return labelled(name, numberInput(name, schema, value, change));
  const placeholder = name === "heads" ? "all; 3.0/3.5" : "";
  return textInput(name, value, change, { title, placeholder });
}

/** An input for a number, which is marked while its value is invalid. */
function numberInput(name, schema, value, change) {
  const { description: title = "", required, step = "any" } = schema;
  const min = schema.minimum ?? schema.exclusiveMinimum ?? 0;
  const max = schema.maximum ?? schema.exclusiveMaximum ?? "";
  const input = make("input", { type: "number", inputMode: "decimal", title, min, max, step, value,
    placeholder: String(schema.default ?? "") });
  const mark = (shown) => input.setAttribute("aria-invalid",
    Boolean((required || shown !== "") && numberProblem(name, schema, shown)));
  input.oninput = () => {
    mark(shownIn(input));
    change(shownIn(input));
  };
  mark(String(value));
  return input;
}

/** An input for a number with a slider, whose range is finite even if the number's is not. */
function sliderInput(name, schema, value, change) {
  const number = numberInput(name, schema, value, (shown) => change((slider.value = shown, shown)));
  const min = Number(number.min);
  const max = number.max === "" ? min + OPEN_RANGE : Number(number.max);
  const slider = make("input", { type: "range", "aria-label": `${name}, slider`, min, max,
    step: (max - min) / 100, value: value === "" ? String(schema.default ?? min) : value });
  slider.oninput = () => {
    number.value = String(Number(Number(slider.value).toFixed(4)));
    number.oninput();
  };
  const label = labelled(name, number, "parameter.wide");
  number.before(slider);
  return label;
}

function samplingInput(column, setting, changed) {
  const { name, label } = setting;
  const change = (shown) => {
    column[name] = shown === "" || shown === "text" ? shown : Number(shown);
    changed();
  };
  return labelled(label, numberInput(label, { ...setting, required: true }, column[name], change));
}
