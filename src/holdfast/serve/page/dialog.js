// The dialog: each turn a message, and below it the reply of every column, side by side.

import { make } from "./dom.js";
import { headsOf, headTable } from "./heads.js";
import { LETTERS } from "./state.js";
import { massLine, tokenView } from "./tokens.js";

/** One turn; `cell(key)` is the place of a column's reply. */
export function turnView(state, index) {
  const turn = state.turns[index];
  const text = make("p", { class: "text", "data-place": `user:${index}` }, turn.user.text);
  const replies = make("div", { class: "replies" });
  const node = make(
    "article",
    { class: "turn", "aria-label": `Turn ${index + 1}` },
    make("div", { class: "asked" }, make("span", { class: "who" }, `you, turn ${index + 1}`), text),
    replies,
  );
  const cells = new Map();
  return {
    node,
    cell(key) {
      if (!cells.has(key)) {
        const cell = make("div", { class: `cell s${key}` });
        cells.set(key, cell);
        const after = [...cells].filter(([other]) => other > key).map(([, other]) => other);
        replies.insertBefore(cell, after[0] ?? null);
      }
      return cells.get(key);
    },
    drop(key) {
      cells.get(key)?.remove();
      cells.delete(key);
    },
  };
}

/**
 * The view of one reply in its cell.
 *
 * `reply`: the state's; `place`: for emphasis; `actions`: `again({heads})` asks for it once more.
 */
export function replyView(cell, reply, { index, key, actions }) {
  const letter = LETTERS[key];
  const text = make("p", { class: "text", "data-place": `reply:${index}:${key}` });
  const line = make("span", { class: "mass" });
  const facts = make("p", { class: "facts" }, line);
  const problem = make("div", { class: "problem", hidden: true });
  let panel = null;
  const tokens = tokenView(text, look);
  const heads = make(
    "button",
    {
      type: "button",
      class: "link",
      hidden: true,
      "aria-expanded": "false",
      on: { click: toggleHeads },
    },
    "heads",
  );
  facts.append(heads);
  const node = make(
    "article",
    { class: "reply", "aria-label": `Reply ${index + 1} of ${letter}, ${reply.steering}` },
    make("span", { class: "who" }, make("b", {}, letter), " ", make("code", {}, reply.steering)),
    text,
    tokens.strip,
    facts,
    problem,
  );
  cell.replaceChildren(node);

  function look(at) {
    line.textContent = massLine(reply, at);
    if (panel) drawHeads(at);
  }

  function drawHeads(at) {
    const masses = headsOf(reply, at);
    const title = at < 0 ? "mean over the reply" : `at “${reply.tokens[at].text.trim()}”`;
    if (masses) panel.update(masses, `Mass by layer and head, ${title}`);
  }

  function toggleHeads() {
    if (panel) {
      panel.table.parentElement.remove();
      panel = null;
    } else if (headsOf(reply, -1)) {
      panel = headTable();
      facts.after(make("div", { class: "scroll" }, panel.table));
      drawHeads(-1);
    } else {
      actions.again({ heads: true });
    }
    heads.setAttribute("aria-expanded", String(panel !== null));
  }

  const view = {
    add(more) {
      tokens.add(more);
    },
    /** Shows how the reply stands: its mass, whether it is on its way, what went wrong. */
    draw() {
      look(-1);
      node.classList.toggle("running", reply.status === "running");
      heads.hidden = reply.status === "running" || !Number.isFinite(reply.tokens[0]?.mass);
      problem.hidden = reply.status === "running" || reply.status === "done";
      if (!problem.hidden && !problem.childNodes.length) {
        problem.append(
          make(
            "p",
            { attributes: reply.status === "failed" ? { role: "alert" } : {} },
            reply.problem || "Stopped.",
          ),
          make(
            "button",
            { type: "button", class: "link", on: { click: () => actions.again({}) } },
            "Try again",
          ),
        );
      }
    },
    openHeads: () => panel || toggleHeads(),
    remove: tokens.remove,
  };
  if (reply.tokens.length) view.add(reply.tokens);
  else if (reply.text) text.textContent = reply.text; // from a link that left out the masses
  view.draw();
  return view;
}
