// The settings of a column: its method, as a spec string, and its sampling. Invalid settings are
// explained in one sentence and not sent, so that the server never uses other values than the page
// shows.

import { LETTERS } from "./state.js";

/** The sampling settings of a column, described as in JSON Schema; `maxTokens` is the limit of one
 * reply. */
export const samplingSettings = (maxTokens) => [
  { name: "temperature", label: "temperature", type: "number", minimum: 0, maximum: 2, step: 0.1 },
  { name: "topP", label: "top-p", type: "number", exclusiveMinimum: 0, maximum: 1, step: 0.01 },
  { name: "seed", label: "seed", type: "integer", minimum: 0, maximum: 2 ** 53 - 1000,
    description: "turn k draws with seed + k − 1" },
  { name: "longest", label: "max tokens", type: "integer", minimum: 1, maximum: maxTokens },
];

/** Splits a text at the separators that are not inside brackets. */
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

/** Parses a spec string that the picker can show: "none", or one known method with known
 * parameters. Returns {method, values}; null for any other spec string. */
export function parseSpec(spec, methods) {
  if (spec.trim() === "none") return { method: null, values: {} };
  const [, name, listed] = spec.trim().match(/^([^:]*):?(.*)$/s);
  const method = methods.find((entry) => entry.name === name);
  if (!method || split(spec, "+").length > 1) return null;
  const pairs = (listed ? split(listed, ",") : []).map((pair) => pair.match(/^([^=]*)=(.*)$/s));
  const known = (pair) => pair && Object.hasOwn(method.parameters.properties, pair[1]);
  if (!pairs.every(known)) return null;
  return { method, values: Object.fromEntries(pairs.map(([, key, value]) => [key, value])) };
}

export function specOf(method, values) {
  const given = Object.entries(values).filter(([, value]) => value !== "");
  const listed = given.map(([name, value]) => `${name}=${value}`).join(",");
  return listed ? `${method.name}:${listed}` : method.name;
}

/** The spec string of a method with a first value for each required parameter. */
export function firstSpec(method) {
  const first = ({ examples, minimum = 0, maximum }) =>
    String(examples?.[0] ?? (maximum === undefined ? minimum + 1 : (minimum + maximum) / 2));
  const { required, properties } = method.parameters;
  const values = required.map((name) => [name, first(properties[name])]);
  return specOf(method, Object.fromEntries(values));
}

export const isNumber = ({ type }) => type === "number" || type === "integer";

/** The value in a number's input; "text" if it is not a number, as the browser then hides it. */
export const shownIn = (input) => (input.validity.badInput ? "text" : input.value);

function rangeOf({ minimum, exclusiveMinimum, maximum, exclusiveMaximum }) {
  if (minimum !== undefined && maximum !== undefined) return `from ${minimum} to ${maximum}`;
  const ends = { "of at least": minimum, above: exclusiveMinimum, "at most": maximum,
    below: exclusiveMaximum };
  const given = Object.entries(ends).filter(([, end]) => end !== undefined);
  return given.map((end) => end.join(" ")).join(" and ");
}

/** Says in words why the value of a number is invalid; "" if it is valid. */
export function numberProblem(label, schema, value) {
  const { minimum = -Infinity, exclusiveMinimum = -Infinity } = schema;
  const { maximum = Infinity, exclusiveMaximum = Infinity } = schema;
  const [number, whole] = [value === "" ? NaN : Number(value), schema.type === "integer"];
  const isAbove = number >= minimum && number > exclusiveMinimum;
  const isBelow = number <= maximum && number < exclusiveMaximum;
  if (isAbove && isBelow && (!whole || Number.isInteger(number))) return "";
  const kind = whole ? "a whole number" : "a number";
  return `${label} has to be ${kind} ${rangeOf(schema)}, not ${value === "" ? "empty" : value}`;
}

/** Says in one sentence why the settings of a column are invalid; "" if they are valid. */
export function problemOf(column, { methods, maxTokens }) {
  const { method, values } = parseSpec(column.steering, methods) ?? {};
  const { properties = {}, required = [] } = method?.parameters ?? {};
  const numbers = Object.entries(properties).filter(([name, schema]) =>
    isNumber(schema) && (required.includes(name) || name in values));
  const problem = [
    column.steering ? "" : "the methods are empty; write none for no steering",
    ...numbers.map(([name, schema]) => numberProblem(name, schema, values[name] ?? "")),
    ...samplingSettings(maxTokens).map((setting) =>
      numberProblem(setting.label, setting, column[setting.name])),
  ].find(Boolean);
  return problem ? `Column ${LETTERS[column.key]}: ${problem}.` : "";
}
