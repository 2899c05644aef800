// How self-chats are shown: round by round, in every column the probes with their scores, and what
// the user model and the agent said.

import { byId, make } from "./dom.js";
import { LETTERS } from "./state.js";
import { massLine, tokenView } from "./tokens.js";

const SPEAKERS = { agent: "agent", user: "user model" };

/** The view; `columns()` are those of the page, each with its cell in every round. */
export function roundsView(columns) {
  const list = byId("selfchat-rounds-list");
  const rounds = new Map(); // number to {node, replies, cells}
  const tokenViews = [];

  function cellOf(number, key) {
    if (!rounds.has(number)) rounds.set(number, openRound(number));
    const { replies, cells } = rounds.get(number);
    for (const place of new Set([...columns().map((column) => column.key), key])) {
      if (cells.has(place)) continue;
      const probes = make("ul", { class: "probes" });
      const node = make("div", { class: `cell s${place}` }, probes);
      cells.set(place, { node, probes });
      replies.append(node);
    }
    return cells.get(key);
  }

  function openRound(number) {
    const replies = make("div", { class: "replies" });
    const title = make("p", { class: "round-number" }, `round ${number}`);
    const settings = { class: "turn", "aria-label": `Round ${number}` };
    const node = make("article", settings, title, replies);
    const later = [...rounds.keys()].filter((other) => other > number);
    const next = later.length ? rounds.get(Math.min(...later)).node : null;
    list.insertBefore(node, next); // a probe may be answered before the turns of its round
    return { node, replies, cells: new Map() };
  }

  function showTurn(key, turn) {
    const text = make("p", { class: "text" });
    const line = make("span", { class: "mass" });
    const reply = { tokens: turn.tokens ?? [] };
    const view = tokenView(text, (at) => (line.textContent = massLine(reply, at)));
    tokenViews.push(view);
    view.add(reply.tokens.length ? reply.tokens : [{ text: turn.text }]);
    line.textContent = massLine(reply, -1);
    const ofAgent = turn.speaker === "agent";
    const letter = ofAgent ? make("b", {}, LETTERS[key]) : null;
    const who = make("span", { class: "who" }, letter, ` ${SPEAKERS[turn.speaker]}`);
    const measured = ofAgent ? [view.strip, make("p", { class: "facts" }, line)] : [];
    const said = make("div", { class: `said ${turn.speaker}` }, who, text, ...measured);
    cellOf(turn.round, key).node.append(said);
  }

  function showProbe(key, { round, kind, question, reply, score, reason }) {
    const { probes } = cellOf(round, key);
    const kept = kind === "stability" ? score : 1 - score;
    const told = (name, words) => make("p", {}, make("span", { class: "who" }, name), words);
    const said = reply || "(empty)";
    const number = make("span", { class: "score" }, score.toFixed(2));
    const details = make(
      "details",
      {},
      make("summary", {}, number, ` ${kind} `, make("q", {}, said)),
      told("asked", question),
      told("replied", said),
      make("p", { class: "reason" }, reason),
    );
    const settings = { class: kept >= 0.5 ? "kept" : "lost", "data-kind": kind };
    const next = kind === "stability" ? probes.querySelector("[data-kind=adoption]") : null;
    probes.insertBefore(make("li", settings, details), next);
  }

  function showPeople({ agent, user }) {
    const person = (name, prompt) =>
      make("p", {}, make("span", { class: "who" }, name), prompt ?? "no system prompt");
    byId("selfchat-who").replaceChildren(
      person("agent", agent?.system_prompt),
      person("user model", user?.system_prompt),
    );
  }

  function showProblem(key, round, text, alert = false) {
    const settings = { class: "problem", attributes: alert ? { role: "alert" } : {} };
    cellOf(round, key).node.append(make("p", settings, text));
  }

  return {
    showProblem,
    /** Shows an event of `/v1/selfchat` in a column. */
    show(key, event) {
      if (event.type === "start") showPeople(event);
      if (event.type === "turn") showTurn(key, event);
      if (event.type === "probe") showProbe(key, event);
      if (event.type === "end" && event.ended) {
        const { round, reason, why } = event.ended;
        showProblem(key, round, `The dialog ended in round ${round}: ${reason ?? why}.`);
      }
    },
    /** Takes a column away. */
    drop(key) {
      for (const { cells } of rounds.values()) {
        cells.get(key)?.node.remove();
        cells.delete(key);
      }
    },
    clear() {
      for (const view of tokenViews) view.remove();
      tokenViews.length = 0;
      rounds.clear();
      list.replaceChildren();
      byId("selfchat-who").replaceChildren();
    },
  };
}
