// Makes elements. Texts become text nodes, so that no text is ever read as markup.

const SVG = "http://www.w3.org/2000/svg";

/** An element, such as `make("p.about", { title: "…" }, "text", child)`.
 *
 * Settings are properties (`value`, `onclick`) or, with a dash in their name, attributes
 * (`aria-label`); they may be left out. Children may be lists; null is skipped. */
export function make(tag, settings, ...children) {
  if (settings instanceof Node || Array.isArray(settings) || typeof settings === "string")
    return make(tag, {}, settings, ...children);
  const [name, ...classes] = tag.split(".");
  const node = document.createElement(name);
  if (classes.length) node.className = classes.join(" ");
  for (const [key, value] of Object.entries(settings ?? {})) {
    if (key.includes("-") || key === "role") node.setAttribute(key, value);
    else node[key] = value;
  }
  node.append(...children.flat().filter((child) => child !== null && child !== undefined));
  return node;
}

/** An SVG element with its attributes. */
export function draw(tag, attributes = {}, ...children) {
  const node = document.createElementNS(SVG, tag);
  for (const [key, value] of Object.entries(attributes)) node.setAttribute(key, value);
  node.append(...children);
  return node;
}

export const byId = (id) => document.getElementById(id);

export const button = (kind, text, onclick, settings = {}) =>
  make(`button.${kind}`, { type: "button", onclick, ...settings }, text);

let numbers = 0;

/** An input with its label before it. */
export function labelled(text, input, kind = "") {
  input.id ||= `input-${(numbers += 1)}`;
  return make(kind ? `label.${kind}` : "label", { htmlFor: input.id }, make("span", text), input);
}

const waiting = { status: [], alert: [] };

/** Announces a text to screen readers: when they are silent, or at once as an "alert". Texts that
 * come within a short time are announced together. */
export function announce(text, region = "status") {
  const texts = waiting[region];
  texts.push(text);
  if (texts.length === 1)
    setTimeout(() => (byId(region).textContent = texts.splice(0).join(" ")), 150);
}
