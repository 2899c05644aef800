// The tokens of a reply, each shaded by its mass on the prompt. Bars below show the masses, through
// which the user can move token by token.

import { draw, make } from "./dom.js";
import { massOf, uniformOf } from "./state.js";

// the lowest mass of each shade; most masses are small
export const SHADES = [0, 0.01, 0.03, 0.06, 0.1, 0.15, 0.22, 0.32, 0.45, 0.65];
const TOPS = [0.15, 0.2, 0.3, 0.4, 0.6, 1];
const MIN_WIDTH = 12; // tokens; a strip with fewer is not filled
const strips = new Set();
let top = TOPS[0]; // the mass at the top of the bars, the same for every reply

/** The shade of a mass, 0 to 9. */
export const shadeOf = (mass) => Math.max(0, SHADES.findLastIndex((least) => mass >= least));

export const share = (number) =>
  number?.toFixed(number > 0 && number < 0.001 ? 4 : 3) ?? "–";

/** The view of a reply's tokens, which are written into the element `text`. `onToken(index)` is
 * called with the token that the user looks at, or -1 for none. */
export function tokenView(text, onToken) {
  const cursor = draw("rect", { class: "cursor", y: 0, width: 1, visibility: "hidden" });
  const [bars, even] = [draw("path", { class: "bars" }), draw("path", { class: "even" })];
  const svg = draw("svg", { class: "strip-chart", preserveAspectRatio: "none",
    "aria-hidden": "true" }, cursor, bars, even);
  const strip = make("div.strip", { role: "slider", tabIndex: 0, hidden: true,
    "aria-label": "Mass on the prompt, token by token", "aria-valuemin": "1" }, svg);
  let tokens = [];
  let outline = ""; // the path of the bars
  let evenLine = ""; // the path of the masses under uniform attention
  let at = -1; // the token that the user looks at
  let waiting = false; // whether a frame is requested

  /** Adds tokens at the end. */
  function add(more) {
    text.append(...more.map(({ text: words, mass }, offset) => {
      const span = make(Number.isFinite(mass) ? `span.t.m${shadeOf(mass)}` : "span.t", words);
      span.dataset.token = tokens.length + offset;
      return span;
    }));
    for (const [offset, { mass, uniform }] of more.entries()) {
      const x = tokens.length + offset;
      if (!Number.isFinite(mass)) continue;
      outline += `M${x + 0.08} 0V${mass.toFixed(4)}H${x + 0.92}V0Z`;
      if (Number.isFinite(uniform))
        evenLine += `${evenLine ? "L" : "M"}${x} ${uniform.toFixed(4)}H${x + 1}`;
      if (mass > top) {
        top = TOPS.find((least) => mass <= least) ?? 1;
        for (const view of strips) view.scale();
      }
    }
    tokens = tokens.concat(more);
    if (!waiting) requestAnimationFrame(paint);
    waiting = true;
  }

  function scale() {
    svg.setAttribute("viewBox", `0 0 ${Math.max(tokens.length, MIN_WIDTH)} ${top}`);
    cursor.setAttribute("height", top);
  }

  function paint() {
    waiting = false;
    strip.hidden = !outline;
    bars.setAttribute("d", outline);
    even.setAttribute("d", evenLine);
    strip.setAttribute("aria-valuemax", tokens.length);
    if (at < 0) describe(tokens.length - 1);
    scale();
  }

  function describe(index) {
    const token = tokens[index];
    if (!token) return;
    const words = `token ${index + 1} of ${tokens.length}, “${token.text}”`;
    const masses = `mass ${share(token.mass)}, uniform ${share(token.uniform)}`;
    strip.setAttribute("aria-valuenow", index + 1);
    strip.setAttribute("aria-valuetext", `${words}, ${masses}`);
  }

  function look(index) {
    if (index === at) return;
    text.children[at]?.classList.remove("looked-at");
    at = index;
    text.children[at]?.classList.add("looked-at");
    cursor.setAttribute("visibility", at < 0 ? "hidden" : "visible");
    cursor.setAttribute("x", at);
    describe(at < 0 ? tokens.length - 1 : at);
    onToken(at);
  }

  strip.onpointermove = strip.onpointerdown = ({ clientX }) => {
    const { left, width } = svg.getBoundingClientRect();
    const index = Math.floor(((clientX - left) / width) * Math.max(tokens.length, MIN_WIDTH));
    look(index >= 0 && index < tokens.length ? index : -1);
  };
  strip.onpointerleave = strip.onblur = text.onpointerleave = () => look(-1);
  text.onpointerover = ({ target }) => look(Number(target.dataset.token ?? -1));
  strip.onkeydown = (event) => {
    const last = tokens.length - 1;
    const next = { ArrowLeft: Math.max(0, at - 1), ArrowRight: Math.min(last, at + 1), Home: 0,
      End: last, Escape: -1 }[event.key];
    if (next === undefined) return;
    event.preventDefault();
    look(next);
  };
  const view = { strip, add, scale, remove: () => strips.delete(view) };
  strips.add(view);
  return view;
}

/** One line about the mass of a reply, or of the token `at` if the user looks at one. */
export function massLine(reply, at) {
  const token = reply.tokens[at];
  const [mass, uniform] = token ? [token.mass, token.uniform] : [massOf(reply), uniformOf(reply)];
  if (!Number.isFinite(mass)) return "";
  const even = uniform > 0 ? ` (uniform: ${share(uniform)})` : "";
  return `${token ? `“${token.text.trim()}”` : "mass"} ${share(mass)}${even}`;
}
