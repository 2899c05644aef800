// Streams the replies of all columns side by side; each column answers its turns one by one.

import { announce } from "./dom.js";
import { notAsked, replyView, turnView } from "./dialog.js";
import { events } from "./server.js";
import { actsOnReplies, changesOf, firstOpen, holdsOn, isWhole, LETTERS, massOf, newReply,
  requestOf } from "./state.js";
import { share } from "./tokens.js";

const MAX_HEADS = 1024; // of all layers; with more, heads are read by a new request, on demand

/** Returns the functions that answer the turns of a state.
 *
 * `page` has `state()`, `server` (name, layers, heads), `list` (the element for the turns) and
 * `isValid(columns)`, which is called before a request. It is told of events by `progressed()`
 * (tokens have come), `settled()` (nothing is running), `keyWanted()` and `notice(text)`. */
export function answering(page) {
  const turns = []; // the view of each turn
  const replies = new Map(); // from "TURN:KEY" to the view of a reply
  const running = new Map(); // from a column's key, or "heads TURN:KEY", to an AbortController
  const everyHead = page.server.layers * page.server.heads <= MAX_HEADS;

  /** Draws new turns, with a cell for each column. The cell of a column without a reply says why
   * there is none. */
  function drawCells() {
    const state = page.state();
    for (let index = turns.length; index < state.turns.length; index += 1) {
      turns.push(turnView(state.turns[index], index));
      page.list.append(turns[index].node);
    }
    for (const { key } of state.columns) {
      const open = firstOpen(state, key);
      const first = state.turns[open]?.replies[key];
      for (const [index, turn] of state.turns.entries()) {
        if (turn.replies[key]) continue;
        const note = () => notAsked(LETTERS[key], open, first, () => answerAgain(open, key));
        turns[index].cell(key).replaceChildren(...(running.has(key) ? [] : [note()]));
      }
    }
  }

  function drawReply(index, key) {
    const name = `${index}:${key}`;
    replies.get(name)?.remove();
    const state = page.state();
    const reply = state.turns[index].replies[key];
    const changes = changesOf(reply, state.turns[index - 1]?.replies[key]);
    const again = () => answerAgain(index, key);
    const readHeads = () => headsOf(reply, `heads ${name}`);
    const about = { index, key, changes, again, readHeads };
    const view = replyView(turns[index].cell(key), reply, about);
    replies.set(name, view);
    return view;
  }

  const ask = (body, trace, signal) => events("/v1/chat/completions",
    { ...body, model: page.server.name, stream: true, trace }, signal);

  /** Answers turn `index` of a column and then its other open turns, until one fails. */
  async function answerColumn(column, index = firstOpen(page.state(), column.key)) {
    const { key } = column;
    if (running.has(key)) return;
    const controller = new AbortController();
    running.set(key, controller);
    drawCells();
    page.progressed();
    const state = page.state();
    while (index < state.turns.length && state.columns.includes(column)) {
      await answerTurn(column, index, controller.signal);
      if (controller.signal.aborted || !isWhole(state.turns[index].replies[key])) break;
      index = firstOpen(state, key);
    }
    ended(key);
    drawCells();
  }

  function ended(name) {
    running.delete(name);
    page.progressed();
    if (!running.size) page.settled();
  }

  async function answerTurn(column, index, signal) {
    const { key } = column;
    const inState = () => page.state().turns[index]?.replies; // undefined once it was cleared
    const body = requestOf(page.state(), column, index);
    const [reply, earlier] = [newReply(body), inState()[key]];
    inState()[key] = reply;
    const view = drawReply(index, key);
    const traced = page.server.traces && holdsOn(body) && !actsOnReplies(body.steering);
    const trace = traced ? (everyHead ? "heads" : true) : undefined;
    try {
      for await (const chunk of ask(body, trace, signal)) take(chunk.choices?.[0], reply, view);
      reply.status = "done";
    } catch (error) {
      Object.assign(reply, endOf(error, reply.text));
      if (error.status === 401) page.keyWanted();
    }
    view.draw();
    report(LETTERS[key], reply);
    if (reply.text || !earlier?.text || inState()?.[key] !== reply) return;
    inState()[key] = { ...earlier, status: reply.status, problem: reply.problem };
    drawReply(index, key).add(earlier.tokens); // without new text, the old text stays
  }

  function take(choice, reply, view) {
    if (choice?.finish_reason === "length") reply.cut = true;
    const text = choice?.delta?.content ?? "";
    const tokens = choice?.holdfast?.tokens ?? (text ? [{ text }] : []);
    if (!tokens.length) return;
    reply.text += text;
    reply.tokens.push(...tokens);
    view.add(tokens);
    page.progressed();
  }

  /** Requests a reply once more with the mass of every head, and returns its tokens; null if that
   * fails or is stopped. The conversation does not change. */
  async function headsOf(reply, name) {
    const controller = new AbortController();
    running.set(name, controller);
    page.progressed();
    const tokens = [];
    try {
      for await (const { choices } of ask(reply.request, "heads", controller.signal)) {
        tokens.push(...(choices?.[0]?.holdfast?.tokens ?? []));
        if (reply.status !== "done" && tokens.length >= reply.tokens.length) break; // cut short
      }
      return tokens;
    } catch (error) {
      if (error.name !== "AbortError") page.notice(error.message);
      return null;
    } finally {
      ended(name);
    }
  }

  function answerAgain(index, key) {
    const column = page.state().columns.find((candidate) => candidate.key === key);
    if (column && !running.has(key) && page.isValid([column])) answerColumn(column, index);
  }

  return {
    answerColumn,
    /** Draws every turn and reply of the state. */
    draw() {
      drawCells();
      for (const [index, turn] of page.state().turns.entries())
        for (const [key, { tokens }] of Object.entries(turn.replies))
          drawReply(index, Number(key)).add(tokens);
    },
    /** Lets every column answer its open turns, unless its last reply failed. */
    answer() {
      drawCells();
      const state = page.state();
      for (const column of state.columns) {
        const open = firstOpen(state, column.key);
        const failed = state.turns[open].replies[column.key]?.status === "failed";
        const letter = LETTERS[column.key];
        if (failed) announce(`${letter} was not asked: turn ${open + 1} failed.`, "alert");
        else answerColumn(column);
      }
    },
    /** Lets a column answer the whole dialog again. */
    anew(column) {
      if (running.has(column.key) || !page.isValid([column])) return;
      for (const turn of page.state().turns) delete turn.replies[column.key];
      answerColumn(column);
    },
    drop(key) {
      for (const [name, controller] of running)
        if (name === key || `${name}`.endsWith(`:${key}`)) controller.abort();
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

/** The status and the problem of a reply that an error has ended. */
function endOf(error, text) {
  if (error.name !== "AbortError") return { status: "failed", problem: error.message };
  return { status: "stopped", problem: text ? "Stopped." : "Stopped before its first word." };
}

/** Tells a screen reader how a reply ended. */
function report(letter, reply) {
  const mass = `(mass ${share(massOf(reply))})`;
  if (reply.status === "failed") announce(`${letter} failed: ${reply.problem}`, "alert");
  else if (isWhole(reply)) announce(`${letter} answered: ${reply.text} ${mass}`);
  else announce(`${letter}: ${reply.problem}`);
}
