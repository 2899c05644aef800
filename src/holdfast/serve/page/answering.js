// Replies of the columns, streamed side by side; a column answers its turns one after the other.

import { announce } from "./dom.js";
import { replyView, turnView } from "./dialog.js";
import { events } from "./server.js";
import { firstOpen, holdsOn, isWhole, LETTERS, massOf, newReply, requestOf } from "./state.js";
import { share } from "./tokens.js";

const MANY_HEADS = 256; // layers times heads; above, heads are read on demand

/** Answers the turns of a state. `page`: `state()`, `server` (name, layers, heads), `list` (where
 * turns are drawn), `progressed()` after tokens, `settled()` when nothing runs any longer. */
export function answering(page) {
  const turns = []; // per turn its view
  const replies = new Map(); // "TURN:KEY" to its view
  const running = new Map(); // key to AbortController
  const everyHead = page.server.layers * page.server.heads <= MANY_HEADS;

  function drawTurns() {
    const state = page.state();
    for (let index = turns.length; index < state.turns.length; index += 1) {
      turns.push(turnView(state.turns[index], index));
      page.list.append(turns[index].node);
    }
  }

  function drawReply(index, key) {
    const name = `${index}:${key}`;
    replies.get(name)?.remove();
    const reply = page.state().turns[index].replies[key];
    const again = (how) => answerAgain(index, key, how);
    const view = replyView(turns[index].cell(key), reply, { index, key, again });
    replies.set(name, view);
    return view;
  }

  /** Answers the turns that a column has not answered yet. */
  async function answerColumn(column, how = {}) {
    if (running.has(column.key)) return;
    const controller = new AbortController();
    running.set(column.key, controller);
    page.progressed();
    const state = page.state();
    let [index, before] = [firstOpen(state, column.key), -1]; // after a failure the rest waits
    while (index > before && index < state.turns.length && state.columns.includes(column)) {
      await answerTurn(column, index, controller.signal, how);
      before = controller.signal.aborted ? Infinity : index;
      index = firstOpen(state, column.key);
    }
    running.delete(column.key);
    page.progressed();
    if (!running.size) page.settled();
  }

  async function answerTurn(column, index, signal, { heads = false }) {
    const state = page.state();
    const body = requestOf(state, column, index);
    const span = JSON.stringify(body.emphasis ?? body.messages[0].content);
    const reply = newReply(body.steering, body.seed, span);
    state.turns[index].replies[column.key] = reply;
    const view = drawReply(index, column.key);
    const traced = page.server.traces && holdsOn(body);
    const trace = traced ? (heads || everyHead ? "heads" : true) : undefined;
    const request = { ...body, model: page.server.name, stream: true, trace };
    try {
      for await (const chunk of events("/v1/chat/completions", request, signal))
        take(chunk.choices?.[0], reply, view);
      reply.status = "done";
    } catch (error) {
      reply.status = error.name === "AbortError" ? "stopped" : "failed";
      reply.problem = reply.text ? "Stopped." : "Stopped before its first word.";
      if (reply.status === "failed") reply.problem = error.message;
      if (error.status === 401) page.keyWanted();
    }
    view.draw();
    if (heads && reply.status === "done") view.openHeads();
    const letter = LETTERS[column.key];
    const mass = `(mass ${share(massOf(reply))})`;
    if (isWhole(reply)) announce(`${letter} answered: ${reply.text} ${mass}`);
    else if (reply.status !== "failed") announce(`${letter}: ${reply.problem}`); // else its alert
  }

  function take(choice, reply, view) {
    const text = choice?.delta?.content ?? "";
    const tokens = choice?.holdfast?.tokens ?? (text ? [{ text }] : []);
    if (!tokens.length) return;
    reply.text += text;
    reply.tokens.push(...tokens);
    view.add(tokens);
    page.progressed();
  }

  function answerAgain(index, key, how) {
    const column = page.state().columns.find((candidate) => candidate.key === key);
    if (!column || running.has(key)) return;
    delete page.state().turns[index].replies[key];
    answerColumn(column, how);
  }

  return {
    answerColumn,
    /** Draws every turn and reply of the state. */
    draw() {
      drawTurns();
      for (const [index, turn] of page.state().turns.entries())
        for (const [key, { tokens }] of Object.entries(turn.replies))
          drawReply(index, Number(key)).add(tokens);
    },
    /** Every column answers the turns that are open. */
    answer() {
      drawTurns();
      for (const column of page.state().columns) answerColumn(column);
    },
    /** A column answers the whole dialog anew. */
    anew(column) {
      if (running.has(column.key)) return;
      for (const turn of page.state().turns) delete turn.replies[column.key];
      for (const view of turns) view.drop(column.key);
      answerColumn(column);
    },
    drop(key) {
      running.get(key)?.abort();
      for (const view of turns) view.drop(key);
      for (const [name, view] of replies) if (name.endsWith(`:${key}`)) view.remove();
    },
    clear() {
      for (const controller of running.values()) controller.abort();
      for (const view of replies.values()) view.remove();
      replies.clear();
      turns.length = 0;
      page.list.replaceChildren();
    },
    stop: () => running.forEach((controller) => controller.abort()),
    busy: () => running.size > 0,
  };
}
