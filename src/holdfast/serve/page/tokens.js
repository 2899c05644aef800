// A reply as its tokens: each shaded by its mass on the prompt, with bars below that can be
// walked through token by token.

import { draw, make } from "./dom.js";
import { massOf, uniformOf } from "./state.js";

// where each begins; most masses are small
export const SHADES = [0, 0.01, 0.03, 0.06, 0.1, 0.15, 0.22, 0.32, 0.45, 0.65];

/** Shade of a mass, 0 to 9. */
export const shadeOf = (mass) =>
  Math.max(
    0,
    SHADES.findLastIndex((least) => mass >= least),
  );

export const share = (number) =>
  number === null || number === undefined ? "–" : number.toFixed(3);

const TOPS = [0.15, 0.2, 0.3, 0.4, 0.6, 1];
let top = TOPS[0]; // the mass that fills the height of the bars, in every reply alike
const drawn = new Set();

/** Bars of another height for all replies, once one has a mass that does not fit. */
function makeRoom(mass) {
  if (mass <= top) return;
  top = TOPS.find((least) => mass <= least) ?? 1;
  for (const view of drawn) view.scale();
}

/**
 * The view of one reply.
 * `text`: the paragraph to write into; `onToken(index)`: told which token is looked at, or -1.
 */
export function tokenView(text, onToken) {
  const bars = draw("path", { class: "bars" });
  const even = draw("path", { class: "even" });
  const cursor = draw("rect", { class: "cursor", y: 0, width: 1, visibility: "hidden" });
  const svg = draw(
    "svg",
    { class: "strip-chart", preserveAspectRatio: "none", "aria-hidden": "true" },
    cursor,
    bars,
    even,
  );
  const strip = make(
    "div",
    {
      class: "strip",
      role: "slider",
      tabIndex: 0,
      hidden: true,
      "aria-label": "Mass on the prompt, token by token",
      "aria-valuemin": "1",
    },
    svg,
  );
  let tokens = [];
  let outline = "";
  let evenLine = "";
  let at = -1;
  let waiting = false;

  const view = {
    strip,
    /** Adds tokens behind those that are there. */
    add(more) {
      const spans = more.map((token, offset) => {
        const span = make(
          "span",
          { class: Number.isFinite(token.mass) ? `t m${shadeOf(token.mass)}` : "t" },
          token.text,
        );
        span.dataset.token = tokens.length + offset;
        return span;
      });
      text.append(...spans);
      for (const [offset, { mass, uniform }] of more.entries()) {
        const x = tokens.length + offset;
        if (!Number.isFinite(mass)) continue;
        outline += `M${x + 0.08} 0V${mass.toFixed(4)}H${x + 0.92}V0Z`;
        if (Number.isFinite(uniform))
          evenLine += `${evenLine ? "L" : "M"}${x} ${uniform.toFixed(4)}H${x + 1}`;
        makeRoom(mass);
      }
      tokens = tokens.concat(more);
      if (!waiting) {
        waiting = true;
        requestAnimationFrame(paint);
      }
    },
    scale() {
      svg.setAttribute("viewBox", `0 0 ${Math.max(tokens.length, 12)} ${top}`);
      cursor.setAttribute("height", top);
    },
    remove: () => drawn.delete(view),
  };

  function paint() {
    waiting = false;
    strip.hidden = !outline;
    bars.setAttribute("d", outline);
    even.setAttribute("d", evenLine);
    strip.setAttribute("aria-valuemax", tokens.length);
    if (at < 0) describe(tokens.length - 1);
    view.scale();
  }

  function describe(index) {
    const token = tokens[index];
    if (!token) return;
    const place = `token ${index + 1} of ${tokens.length}, “${token.text}”`;
    const told = `${place}, mass ${share(token.mass)}, uniform ${share(token.uniform)}`;
    strip.setAttribute("aria-valuenow", index + 1);
    strip.setAttribute("aria-valuetext", told);
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

  function pointed(event) {
    const box = svg.getBoundingClientRect();
    const index = Math.floor(
      ((event.clientX - box.left) / box.width) * Math.max(tokens.length, 12),
    );
    look(index >= 0 && index < tokens.length ? index : -1);
  }

  strip.addEventListener("pointermove", pointed);
  strip.addEventListener("pointerdown", pointed);
  strip.addEventListener("pointerleave", () => look(-1));
  strip.addEventListener("blur", () => look(-1));
  strip.addEventListener("keydown", (event) => {
    const last = tokens.length - 1;
    const to = {
      ArrowLeft: Math.max(0, at - 1),
      ArrowRight: Math.min(last, at + 1),
      Home: 0,
      End: last,
      Escape: -1,
    }[event.key];
    if (to === undefined) return;
    event.preventDefault();
    look(to);
  });
  text.addEventListener("pointerover", (event) => look(Number(event.target.dataset?.token ?? -1)));
  text.addEventListener("pointerleave", () => look(-1));
  drawn.add(view);
  return view;
}

/** One line on a reply's mass, or on that of the token that is looked at. */
export function massLine(reply, at) {
  const token = reply.tokens[at];
  const [mass, uniform] = token ? [token.mass, token.uniform] : [massOf(reply), uniformOf(reply)];
  if (!Number.isFinite(mass)) return "";
  const times = uniform > 0 ? `, ${(mass / uniform).toFixed(1)} × uniform` : "";
  const name = token ? `“${token.text.trim()}”` : "mass";
  return `${name} ${share(mass)}${times}`;
}
