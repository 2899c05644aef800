// Replies of the columns, streamed side by side; a column answers its turns one after the other.

import { announce } from "./dom.js";
import { replyView, turnView } from "./dialog.js";
import { firstOpen, freshReply, holdsOn, isWhole, LETTERS, massOf, requestOf } from "./state.js";
import { events } from "./stream.js";
import { share } from "./tokens.js";

const MANY_HEADS = 256; // layers times heads; above, heads are read when asked for

/**
 * Answers the turns of a state.
 *
 * `page`: `state()`, `server` (name, layers, heads), `list` (where turns are drawn), and what is
 * told: `progressed()` after tokens, `settled()` when nothing runs any longer.
 */
export function answering(page) {
  const views = []; // per turn its view
  const replies = new Map(); // "TURN:KEY" to its view
  const running = new Map(); // key to AbortController
  const everyHead = page.server.layers * page.server.heads <= MANY_HEADS;

  function drawTurns() {
    const state = page.state();
    for (let index = views.length; index < state.turns.length; index += 1) {
      views.push(turnView(state, index));
      page.list.append(views[index].node);
      for (const { key } of state.columns) {
        if (state.turns[index].replies[key]) drawReply(index, key);
      }
    }
  }

  function drawReply(index, key) {
    const name = `${index}:${key}`;
    replies.get(name)?.remove();
    const view = replyView(views[index].cell(key), page.state().turns[index].replies[key], {
      index,
      key,
      actions: { again: (how) => again(index, key, how) },
    });
    replies.set(name, view);
    return view;
  }

  /** Answers what a column has not answered yet. */
  async function answerColumn(column, how = {}) {
    if (running.has(column.key)) return;
    const controller = new AbortController();
    running.set(column.key, controller);
    page.progressed();
    const state = page.state();
    let index = firstOpen(state, column.key);
    while (index < state.turns.length && state.columns.includes(column)) {
      await answerTurn(column, index, controller.signal, how);
      const open = firstOpen(state, column.key);
      if (open <= index || controller.signal.aborted) break; // it failed; the rest waits for it
      index = open;
    }
    running.delete(column.key);
    page.progressed();
    if (!running.size) page.settled();
  }

  async function answerTurn(column, index, signal, { heads = false }) {
    const state = page.state();
    const body = requestOf(state, column, index);
    const reply = freshReply(body.steering, body.seed);
    state.turns[index].replies[column.key] = reply;
    const view = drawReply(index, column.key);
    const request = {
      ...body,
      model: page.server.name,
      stream: true,
      stream_options: { include_usage: true },
      trace:
        page.server.traces && holdsOn(body) ? (heads || everyHead ? "heads" : true) : undefined,
    };
    try {
      for await (const chunk of events("/v1/chat/completions", request, signal))
        take(chunk, reply, view);
      reply.status = "done";
    } catch (error) {
      reply.status = error.name === "AbortError" ? "stopped" : "failed";
      reply.problem =
        reply.status === "failed"
          ? error.message
          : reply.text
            ? "Stopped."
            : "Stopped before its first word.";
      if (error.status === 401) page.keyWanted();
    }
    view.draw();
    if (heads && reply.status === "done") view.openHeads();
    announce(told(column, reply));
  }

  function take(chunk, reply, view) {
    if (chunk.usage) reply.cached = chunk.usage.prompt_tokens_details?.cached_tokens ?? 0;
    const choice = chunk.choices?.[0];
    const text = choice?.delta?.content ?? "";
    const read = choice?.holdfast?.tokens ?? (text ? [{ text }] : []);
    if (!read.length) return;
    reply.text += text;
    reply.tokens.push(...read);
    view.add(read);
    page.progressed();
  }

  function again(index, key, how) {
    const state = page.state();
    const column = state.columns.find((candidate) => candidate.key === key);
    if (!column || running.has(key)) return;
    delete state.turns[index].replies[key];
    answerColumn(column, how);
  }

  return {
    drawTurns,
    /** Every column answers what is open. */
    answer() {
      drawTurns();
      for (const column of page.state().columns) answerColumn(column);
    },
    answerColumn,
    /** A column answers the whole dialog anew. */
    anew(column) {
      if (running.has(column.key)) return;
      for (const turn of page.state().turns) delete turn.replies[column.key];
      for (const view of views) view.drop(column.key);
      answerColumn(column);
    },
    drop(key) {
      running.get(key)?.abort();
      for (const view of views) view.drop(key);
      for (const [name, view] of replies) {
        if (name.endsWith(`:${key}`)) view.remove();
      }
    },
    clear() {
      for (const controller of running.values()) controller.abort();
      for (const view of replies.values()) view.remove();
      replies.clear();
      views.length = 0;
      page.list.replaceChildren();
    },
    stop: () => running.forEach((controller) => controller.abort()),
    busy: () => running.size > 0,
  };
}

function told(column, reply) {
  const letter = LETTERS[column.key];
  if (reply.status === "failed") return ""; // its alert says so
  if (!isWhole(reply)) return `${letter}: ${reply.problem}`;
  return `${letter} answered: ${reply.text} (mass ${share(massOf(reply))})`;
}
