// The dialog: each turn a message, and below it the reply of every column, side by side.

import { button, make } from "./dom.js";
import { LETTERS, mean } from "./state.js";
import { massLine, shadeOf, share, tokenView } from "./tokens.js";

const MAX_WRITTEN = 12; // heads per layer, for numbers to be written into their cells

/** One turn; `cell(key)` is the position of a column's reply. */
export function turnView(turn, index) {
  const text = make("p.text", { "data-passage": `user:${index}` }, turn.user.text);
  const replies = make("div.replies");
  const node = make("article.turn", { "aria-label": `Turn ${index + 1}` },
    make("div.question", make("span.who", `you, turn ${index + 1}`), text), replies);
  const cells = new Map();
  return {
    node,
    cell(key) {
      if (!cells.has(key)) {
        const next = [...cells.keys()].sort().find((other) => other > key);
        cells.set(key, make(`div.cell.s${key}`));
        replies.insertBefore(cells.get(key), cells.get(next) ?? null);
      }
      return cells.get(key);
    },
    drop(key) {
      cells.get(key)?.remove();
      cells.delete(key);
    },
  };
}

/** [layer][head] of a token (`at`), or the mean over the tokens; null where it was not read. */
function headsOf(reply, at) {
  const tokens = at < 0 ? reply.tokens : [reply.tokens[at]];
  const read = tokens.map((token) => token?.heads).filter(Boolean);
  return read[0]?.map((heads, layer) =>
    heads.map((_, head) => mean(read.map((token) => token[layer][head])))) ?? null;
}

/** A table of the mass by layer and head. */
function headTable(masses, title) {
  const header = (scope, text) => make("th", { scope }, text);
  const cell = (layer) => (mass, head) => make(`td.m${shadeOf(mass)}`,
    { title: `layer ${layer}, head ${head}: ${share(mass)}` }, mass.toFixed(2).replace(/^0/, ""));
  return make(masses[0].length > MAX_WRITTEN ? "table.heads.dense" : "table.heads",
    make("caption", title),
    make("thead", make("tr", header("col", "layer \\ head"),
      masses[0].map((_, head) => header("col", String(head))))),
    make("tbody", masses.map((heads, layer) =>
      make("tr", header("row", String(layer)), heads.map(cell(layer))))));
}

/** The view of a reply of the state in its cell; `again({heads})` asks for it once more. */
export function replyView(cell, reply, { index, key, again }) {
  const letter = LETTERS[key];
  const text = make("p.text", { "data-passage": `reply:${index}:${key}` });
  const line = make("span.mass");
  const heads = button("link", "heads", toggleHeads, { hidden: true, "aria-expanded": "false" });
  const facts = make("p.facts", line, heads);
  const problem = make("div.problem", { hidden: true });
  const tokens = tokenView(text, look);
  let panel = null;
  const node = make("article.reply",
    { "aria-label": `Reply ${index + 1} of ${letter}, ${reply.steering}` },
    make("span.who", make("b", letter), " ", make("code", reply.steering)),
    text, tokens.strip, facts, problem);
  cell.replaceChildren(node);

  function look(at) {
    line.textContent = massLine(reply, at);
    const masses = panel && headsOf(reply, at);
    const title = at < 0 ? "mean over the reply" : `at “${reply.tokens[at].text.trim()}”`;
    if (masses) panel.replaceChildren(headTable(masses, `Mass by layer and head, ${title}`));
  }

  function toggleHeads() {
    if (panel) {
      panel.remove();
      panel = null;
    } else if (headsOf(reply, -1)) {
      facts.after((panel = make("div.scroll")));
      look(-1);
    } else again({ heads: true });
    heads.setAttribute("aria-expanded", String(panel !== null));
  }

  /** Shows the state of the reply: its mass, whether it is on its way, what went wrong. */
  function draw() {
    look(-1);
    const { status } = reply;
    node.classList.toggle("running", status === "running");
    heads.hidden = status === "running" || !Number.isFinite(reply.tokens[0]?.mass);
    problem.hidden = status === "running" || status === "done";
    if (problem.hidden) return;
    problem.replaceChildren(
      make("p", status === "failed" ? { role: "alert" } : {}, reply.problem || "Stopped."),
      button("link", "Try again", () => again({})));
  }

  draw();
  return { add: tokens.add, draw, openHeads: () => panel || toggleHeads(), remove: tokens.remove };
}
