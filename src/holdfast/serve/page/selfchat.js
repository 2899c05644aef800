// The model talks with itself under two system prompts, is probed every round, and is scored as it
// goes: a conversation of the drift benchmark per column.

import { announce } from "./dom.js";
import { roundsView } from "./rounds.js";
import { events } from "./stream.js";

/** Runs self-chats. `page`: as of `answering`. */
export function selfchats(page) {
  const view = roundsView(() => page.state().columns);
  const running = new Map(); // key to AbortController

  function bodyOf(column) {
    const { suite, seed, conversation, rounds } = page.state().selfchat;
    const { steering, temperature, topP, longest } = column;
    const drawing = { temperature, top_p: topP, max_completion_tokens: longest };
    return { suite, seed, conversation, rounds, steering, ...drawing };
  }

  async function run(column) {
    const { key } = column;
    const controller = new AbortController();
    const told = [];
    page.state().selfchat.runs[key] = told;
    running.set(key, controller);
    try {
      for await (const event of events("/v1/selfchat", bodyOf(column), controller.signal)) {
        told.push(event);
        view.show(key, event);
        page.progressed();
      }
    } catch (error) {
      if (!page.state().columns.includes(column)) return; // its column was taken away
      const round = Math.max(1, ...told.map((event) => event.round ?? 1));
      const stopped = error.name === "AbortError";
      view.showProblem(key, round, stopped ? "Stopped." : error.message, !stopped);
      if (error.status === 401) page.keyWanted();
    } finally {
      running.delete(key);
      page.progressed();
    }
  }

  /** The self-chats of all columns at once. */
  async function runAll() {
    await Promise.all(page.state().columns.map(run));
    announce("The self-chats are over.");
  }

  return {
    start() {
      view.clear();
      page.state().selfchat.runs = {};
      runAll();
    },
    /** Ends that of a column which is taken away. */
    drop(key) {
      running.get(key)?.abort();
      delete page.state().selfchat.runs[key];
      view.drop(key);
    },
    /** Shows what the state holds of earlier ones, as that of a link. */
    draw() {
      view.clear();
      for (const [key, told] of Object.entries(page.state().selfchat.runs)) {
        for (const event of told) view.show(Number(key), event);
      }
    },
    stop: () => running.forEach((controller) => controller.abort()),
    busy: () => running.size > 0,
  };
}
