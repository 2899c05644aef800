// The model talks with itself under two system prompts, is probed every round, and is scored as it
// goes: a conversation of the drift benchmark per column.

import { announce, byId, make } from "./dom.js";
import { LETTERS, mean } from "./state.js";
import { events } from "./stream.js";
import { massLine, tokenView } from "./tokens.js";

const SPEAKERS = { agent: "agent", user: "user model" };

/** Stability, adoption and mass of a run, per round; null where there is none yet. */
export function linesOf(run) {
  const rounds = Math.max(0, ...run.turns.map((turn) => turn.round), ...run.probes.map((probe) => probe.round));
  const each = (read) => Array.from({ length: rounds }, (_, index) => read(index + 1));
  const scores = (kind) => each((round) => mean(run.probes.filter((probe) => probe.round === round && probe.kind === kind).map((probe) => probe.score)));
  const agent = (round) => run.turns.find((turn) => turn.round === round && turn.speaker === "agent");
  return {
    stability: scores("stability"),
    adoption: scores("adoption"),
    mass: each((round) => agent(round)?.mass ?? null),
    uniform: each((round) => mean((agent(round)?.tokens ?? []).map((token) => token.uniform).filter(Number.isFinite))),
  };
}

/** Runs and shows self-chats. `page`: as of `answering`. */
export function selfchats(page) {
  const list = byId("selfchat-rounds-list");
  const running = new Map(); // key to AbortController
  let rounds = new Map(); // number to {node, cells: Map}
  let tokenViews = [];

  function clear() {
    for (const view of tokenViews) view.remove();
    tokenViews = [];
    rounds = new Map();
    list.replaceChildren();
    byId("selfchat-who").replaceChildren();
    page.state().selfchat.runs = {};
  }

  function cellOf(round, key) {
    if (!rounds.has(round)) {
      const replies = make("div", { class: "replies" });
      const node = make("article", { class: "turn", "aria-label": `Round ${round}` },
        make("p", { class: "round-number" }, `round ${round}`), replies);
      const later = [...rounds].filter(([number]) => number > round).sort(([a], [b]) => a - b)[0];
      list.insertBefore(node, later?.[1].node ?? null);
      rounds.set(round, { node, replies, cells: new Map() });
    }
    const { replies, cells } = rounds.get(round);
    for (const column of page.state().columns) { // all of them, so that they stand in their places
      if (cells.has(column.key)) continue;
      const probes = make("ul", { class: "probes" });
      const cell = make("div", { class: `cell s${column.key}` }, probes);
      cells.set(column.key, { cell, probes });
      replies.append(cell);
    }
    return cells.get(key);
  }

  function showTurn(key, turn) {
    const { cell } = cellOf(turn.round, key);
    const text = make("p", { class: "text" });
    const line = make("span", { class: "mass" });
    const reply = { tokens: turn.tokens ?? [] };
    const view = tokenView(text, (at) => (line.textContent = massLine(reply, at)));
    tokenViews.push(view);
    view.add(reply.tokens.length ? reply.tokens : [{ text: turn.text }]);
    line.textContent = massLine(reply, -1);
    cell.append(make("div", { class: `said ${turn.speaker}` },
      make("span", { class: "who" }, turn.speaker === "agent" ? make("b", {}, LETTERS[key]) : null, ` ${SPEAKERS[turn.speaker]}`),
      text, ...(turn.speaker === "agent" ? [view.strip, make("p", { class: "facts" }, line)] : [])));
  }

  function showProbe(key, probe) {
    const { probes } = cellOf(probe.round, key);
    const kept = probe.kind === "stability" ? probe.score : 1 - probe.score;
    const place = probe.kind === "stability" ? probes.querySelector("[data-kind=adoption]") : null;
    probes.insertBefore(make("li", { class: kept >= 0.5 ? "kept" : "lost", "data-kind": probe.kind },
      make("details", {},
        make("summary", {}, make("span", { class: "score" }, probe.score.toFixed(2)), ` ${probe.kind} `,
          make("q", {}, probe.reply || "(empty)")),
        make("p", {}, make("span", { class: "who" }, "asked"), probe.question),
        make("p", {}, make("span", { class: "who" }, "replied"), probe.reply || "(empty)"),
        make("p", { class: "reason" }, probe.reason))), place);
  }

  function showPeople({ agent, user }) {
    const person = (name, prompt) => make("p", {}, make("span", { class: "who" }, name), prompt || "no system prompt");
    byId("selfchat-who").replaceChildren(person("agent", agent?.system_prompt), person("user model", user?.system_prompt));
  }

  async function run(column) {
    const { suite, seed, conversation, rounds: number, runs } = page.state().selfchat;
    const controller = new AbortController();
    const made = { turns: [], probes: [] };
    runs[column.key] = made;
    running.set(column.key, controller);
    try {
      const body = { suite, seed, conversation, rounds: number, steering: column.steering, temperature: column.temperature, top_p: column.topP, max_completion_tokens: column.longest };
      for await (const event of events("/v1/selfchat", body, controller.signal)) {
        take(column.key, event, made);
      }
    } catch (error) {
      const { cell } = cellOf(Math.max(1, ...made.turns.map((turn) => turn.round)), column.key);
      const stopped = error.name === "AbortError";
      cell.append(make("p", { class: "problem", attributes: stopped ? {} : { role: "alert" } }, stopped ? "Stopped." : error.message));
      if (error.status === 401) page.keyWanted();
    }
    running.delete(column.key);
    if (!running.size) announce("The self-chat is over.");
    page.progressed();
    if (!running.size) page.settled();
  }

  function take(key, event, made) {
    if (event.type === "start") showPeople(event);
    if (event.type === "turn") {
      made.turns.push(event);
      showTurn(key, event);
    }
    if (event.type === "probe") {
      made.probes.push(event);
      showProbe(key, event);
    }
    if (event.type === "end" && event.ended) {
      cellOf(event.ended.round, key).cell.append(make("p", { class: "problem" }, `The dialog ended in round ${event.ended.round}: ${event.ended.reason ?? event.ended.why}.`));
    }
    page.progressed();
  }

  return {
    start() {
      clear();
      for (const column of page.state().columns) run(column);
      page.progressed();
    },
    stop: () => running.forEach((controller) => controller.abort()),
    busy: () => running.size > 0,
    clear,
  };
}
