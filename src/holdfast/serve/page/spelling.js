// Methods as they are spelled: `boost:factor=2`, joined with `+`; `none`.

/** {method, knobs} of a spelling that the picker can show: none, or one known method with known
 * knobs; null for all others. */
export function readSpelling(spelling, methods) {
  const text = spelling.trim();
  if (text === "none") return { method: null, knobs: {} };
  if (split(text, "+").length > 1) return null;
  const [name, listed] = halves(text, ":");
  const method = methods.find((entry) => entry.name === name);
  if (!method) return null;
  const knobs = {};
  for (const pair of listed ? split(listed, ",") : []) {
    const [knob, value] = halves(pair, "=");
    if (value === null || !Object.hasOwn(method.knobs.properties, knob)) return null;
    knobs[knob] = value;
  }
  return { method, knobs };
}

/** The spelling of a method with its knobs; empty ones are left out. */
export function spell(method, knobs) {
  if (!method) return "none";
  const given = Object.entries(knobs).filter(([, value]) => value !== "");
  const listed = given.map(([knob, value]) => `${knob}=${value}`).join(",");
  return listed ? `${method.name}:${listed}` : method.name;
}

/** What the knobs of a method stand at when it is chosen. */
export function firstKnobs(method) {
  const names = method.knobs.required;
  return Object.fromEntries(names.map((name) => [name, firstValue(method.knobs.properties[name])]));
}

function firstValue({ type, examples, minimum = 0, maximum }) {
  if (examples) return String(examples[0]);
  if (type === "array") return "[split-softmax:exponent=0.5]";
  return String(maximum === undefined ? minimum + 1 : (minimum + maximum) / 2);
}

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

function halves(text, separator) {
  const at = text.indexOf(separator);
  return at < 0 ? [text, null] : [text.slice(0, at), text.slice(at + 1)];
}
