// Elements made by calls; texts become text nodes, so no text is ever read as markup.

const SVG = "http://www.w3.org/2000/svg";

/** An element. `settings`: `class`, `on: {event: listener}`, properties (`value`, `disabled`, ...)
 * by their names, and attributes with a dash (`aria-label`, `data-place`) or in `attributes`. */
export function make(tag, settings = {}, ...children) {
  return fill(document.createElement(tag), settings, children);
}

/** An SVG element; all settings but `class` and `on` are attributes. */
export function draw(tag, settings = {}, ...children) {
  const { class: name, on, ...attributes } = settings;
  return fill(document.createElementNS(SVG, tag), { class: name, on, attributes }, children);
}

function fill(node, { class: name, on = {}, attributes = {}, ...rest }, children) {
  if (name) node.setAttribute("class", name);
  for (const [event, listener] of Object.entries(on)) node.addEventListener(event, listener);
  for (const [key, value] of Object.entries(attributes)) node.setAttribute(key, value);
  for (const [key, value] of Object.entries(rest)) {
    if (key.includes("-")) node.setAttribute(key, value);
    else node[key] = value;
  }
  node.append(...children.filter((child) => child !== null && child !== undefined));
  return node;
}

export const byId = (id) => document.getElementById(id);

let numbers = 0;

/** An id that no other element has. */
export const freshId = (name) => `${name}-${(numbers += 1)}`;

/** An input with its label in front. */
export function labelled(text, input, settings = {}) {
  input.id ||= freshId("input");
  return make("label", { htmlFor: input.id, ...settings }, make("span", {}, text), input);
}

let told = null;

/** Tells a screen reader something once it has nothing else to say. */
export function announce(text) {
  clearTimeout(told);
  told = setTimeout(() => (byId("status").textContent = text), 150);
}
