// The model talks with itself under two system prompts, is probed every round, and is scored as it
// goes: a conversation of the drift benchmark per column, shown round by round.

import { announce, byId, make } from "./dom.js";
import { events } from "./server.js";
import { LETTERS } from "./state.js";
import { massLine, tokenView } from "./tokens.js";

const who = (name, ...words) => make("p", make("span.who", name), ...words);

/** The view of all rounds; `columns()` are those of the page, each with its cell in every round. */
function roundsView(columns) {
  const list = byId("selfchat-rounds-list");
  const rounds = new Map(); // number to {node, replies, cells}
  const tokenViews = [];

  function cellOf(number, key) {
    if (!rounds.has(number)) {
      const replies = make("div.replies");
      const node = make("article.turn", { "aria-label": `Round ${number}` },
        make("p.round-number", `round ${number}`), replies);
      const next = [...rounds.keys()].sort((a, b) => a - b).find((other) => other > number);
      list.insertBefore(node, rounds.get(next)?.node ?? null); // a probe may come before turns
      rounds.set(number, { node, replies, cells: new Map() });
    }
    const { replies, cells } = rounds.get(number);
    for (const name of new Set([...columns().map((column) => column.key), key])) {
      if (cells.has(name)) continue;
      cells.set(name, make(`div.cell.s${name}`, make("ul.probes")));
      replies.append(cells.get(name));
    }
    return cells.get(key);
  }

  function showTurn(key, turn) {
    const [text, line] = [make("p.text"), make("span.mass")];
    const reply = { tokens: turn.tokens ?? [] };
    const look = (at) => (line.textContent = massLine(reply, at));
    const view = tokenView(text, look);
    tokenViews.push(view);
    view.add(reply.tokens.length ? reply.tokens : [{ text: turn.text }]);
    look(-1);
    const isAgent = turn.speaker === "agent";
    const name = isAgent ? [make("b", LETTERS[key]), " agent"] : " user model";
    cellOf(turn.round, key).append(make(`div.said.${turn.speaker}`, make("span.who", name), text,
      isAgent ? [view.strip, make("p.facts", line)] : []));
  }

  function showProbe(key, { round, kind, question, reply, score, reason }) {
    const probes = cellOf(round, key).querySelector(".probes");
    const kept = kind === "stability" ? score : 1 - score;
    const words = reply || "(empty)";
    const details = make("details",
      make("summary", make("span.score", score.toFixed(2)), ` ${kind} `, make("q", words)),
      who("probe", question), who("reply", words), make("p.reason", reason));
    const next = kind === "stability" ? probes.querySelector("[data-kind=adoption]") : null;
    const item = make(kept >= 0.5 ? "li.kept" : "li.lost", { "data-kind": kind }, details);
    probes.insertBefore(item, next);
  }

  function showProblem(key, round, text, alert = false) {
    cellOf(round, key).append(make("p.problem", alert ? { role: "alert" } : {}, text));
  }

  return {
    showProblem,
    /** Shows an event of `/v1/selfchat` in a column. */
    show(key, event) {
      if (event.type === "start") {
        const people = [["agent", event.agent], ["user model", event.user]];
        byId("selfchat-who").replaceChildren(...people.map(([name, person]) =>
          who(name, person?.system_prompt ?? "no system prompt")));
      }
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
        cells.get(key)?.remove();
        cells.delete(key);
      }
    },
    clear() {
      for (const view of tokenViews.splice(0)) view.remove();
      rounds.clear();
      list.replaceChildren();
      byId("selfchat-who").replaceChildren();
    },
  };
}

/** Runs self-chats. `page`: as of `answering`. */
export function selfchats(page) {
  const view = roundsView(() => page.state().columns);
  const running = new Map(); // key to AbortController

  async function run(column) {
    const { key, steering, temperature, topP, longest } = column;
    const { suite, seed, conversation, rounds, runs } = page.state().selfchat;
    const body = { suite, seed, conversation, rounds, steering, temperature, top_p: topP,
      max_completion_tokens: longest };
    const controller = new AbortController();
    const past = (runs[key] = []);
    running.set(key, controller);
    try {
      for await (const event of events("/v1/selfchat", body, controller.signal)) {
        past.push(event);
        view.show(key, event);
        page.progressed();
      }
    } catch (error) {
      if (!page.state().columns.includes(column)) return; // its column was taken away
      const round = Math.max(1, ...past.map((event) => event.round ?? 1));
      const stopped = error.name === "AbortError";
      view.showProblem(key, round, stopped ? "Stopped." : error.message, !stopped);
      if (error.status === 401) page.keyWanted();
    } finally {
      running.delete(key);
      page.progressed();
    }
  }

  return {
    async start() {
      view.clear();
      page.state().selfchat.runs = {};
      await Promise.all(page.state().columns.map(run));
      announce("The self-chats are over.");
    },
    /** Ends that of a column which is taken away. */
    drop(key) {
      running.get(key)?.abort();
      delete page.state().selfchat.runs[key];
      view.drop(key);
    },
    stop: () => running.forEach((controller) => controller.abort()),
    busy: () => running.size > 0,
  };
}
