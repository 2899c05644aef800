// The dialog: the message of each turn, and below it the replies of all columns side by side.

import { button, make } from "./dom.js";
import { LETTERS, mean } from "./state.js";
import { massLine, shadeOf, share, tokenView } from "./tokens.js";

const MAX_WRITTEN = 12; // heads per layer; with more, the cells have no numbers
const SECOND_SAMPLE =
  ". In bfloat16 the same request can get another reply; these heads are of a second sampling.";

/** The view of a turn; `cell(key)` is the element for a column's reply. */
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

/** The content of a cell without a reply, because the column has not answered the turn `open`.
 *
 * `reply` is its incomplete reply to that turn, if there is one; `again` repeats the request. */
export function notAsked(letter, open, reply, again) {
  const number = `turn ${open + 1}`;
  const why = { failed: `, because ${number} failed: ${reply?.problem}`,
    stopped: `, because ${number} was stopped.` }[reply?.status] ?? ".";
  return make("div", make("span.who", make("b", letter)), make("div.problem.soft",
    make("p", `Not asked${why}`), button("link", reply ? `Try ${number} again` : "Ask", again)));
}

/** The mass by [layer][head] at the token `at`, or the mean over all tokens if `at` is negative;
 * null if it was not read. */
function headsOf(tokens, at) {
  const read = (at < 0 ? tokens : [tokens[at]]).map((token) => token?.heads).filter(Boolean);
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

/** Draws a reply into its cell, with the changes since the reply before it.
 *
 * `again()` requests the reply again, and `readHeads()` its tokens with the mass of every head. */
export function replyView(cell, reply, { index, key, changes, again, readHeads }) {
  const { steering, max_completion_tokens: longest } = reply.request;
  const text = make("p.text", { "data-passage": `reply:${index}:${key}` });
  const line = make("span.mass");
  const end = make("span");
  const heads = button("link", "heads", toggleHeads, { hidden: true, "aria-expanded": "false" });
  const facts = make("p.facts", line, end, heads);
  const problem = make("div.problem", { hidden: true });
  const tokens = tokenView(text, look);
  let panel = null; // the table of heads, if it is open
  let sample = null; // the tokens of another reply to the same request, whose heads are shown
  const node = make("article.reply",
    { "aria-label": `Reply ${index + 1} of ${LETTERS[key]}, ${steering}` },
    make("span.who", make("b", LETTERS[key]), " ", make("code", steering), " ",
      changes.length ? make("mark", `new ${changes.join(", ")}`) : null),
    text, tokens.strip, facts, problem);
  cell.replaceChildren(node);

  function look(at) {
    line.textContent = massLine(reply, at);
    const masses = panel && headsOf(sample ?? reply.tokens, sample ? -1 : at);
    const where = at < 0 ? ", mean over the reply" : `, at “${reply.tokens[at].text.trim()}”`;
    const title = `Mass by layer and head${sample ? SECOND_SAMPLE : where}`;
    if (masses) panel.replaceChildren(headTable(masses, title));
  }

  async function toggleHeads() {
    const isOpen = panel !== null;
    panel?.remove();
    panel = null;
    if (!isOpen && (sample || headsOf(reply.tokens, -1) || (await fetchHeads()))) {
      facts.after((panel = make("div.scroll")));
      look(-1);
    }
    heads.setAttribute("aria-expanded", String(panel !== null));
  }

  /** Reads the heads into the reply's tokens or, if another reply comes back, into `sample`. */
  async function fetchHeads() {
    [heads.disabled, heads.textContent] = [true, "reading the heads"];
    const read = await readHeads();
    [heads.disabled, heads.textContent] = [false, "heads"];
    if (!read) return false;
    const isLong = reply.status === "done" && read.length > reply.tokens.length;
    const isSame = reply.tokens.every(({ text: words }, at) => words === read[at]?.text);
    if (isSame && !isLong) reply.tokens.forEach((token, at) => (token.heads = read[at].heads));
    else sample = read;
    return headsOf(read, -1) !== null;
  }

  /** Draws the status of the reply: its mass, whether it is running, and how it ended. */
  function draw() {
    look(-1);
    const { status } = reply;
    node.classList.toggle("running", status === "running");
    end.textContent = reply.cut ? `cut at ${longest} token${longest === 1 ? "" : "s"}`
      : status === "done" && !reply.text ? "an empty reply" : "";
    end.hidden = !end.textContent;
    heads.hidden = status === "running" || !Number.isFinite(reply.tokens[0]?.mass);
    problem.hidden = status === "running" || status === "done";
    problem.classList.toggle("soft", status === "stopped");
    problem.replaceChildren(make("p", reply.problem || "Stopped."),
      button("link", "Try again", again));
  }

  draw();
  return { add: tokens.add, draw, remove: tokens.remove };
}
