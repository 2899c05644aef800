// Replies of the columns, streamed side by side; a column answers its turns one after the other.

import { announce } from "./dom.js";
import { notAsked, replyView, turnView } from "./dialog.js";
import { events } from "./server.js";
import { changesOf, firstOpen, holdsOn, isWhole, LETTERS, massOf, newReply, requestOf }
  from "./state.js";
import { share } from "./tokens.js";

const MAX_HEADS_WITHOUT_SAMPLING = 1024; // layers times heads; above, heads are read on demand, and sampled anew

/** Answers the turns of a state. `page`: `state()`, `server` (name, layers, heads), `list` (where
 * turns are drawn), `isValid(columns)` before a request, `progressed()` after tokens, `settled()`
 * when nothing runs any longer, `notice(text)`. */
export function answering(page) {
  const turns = []; // per turn its view
  const replies = new Map(); // "TURN:KEY" to its view
  const running = new Map(); // a column's key, or "heads TURN:KEY", to AbortController
  const everyHead = page.server.layers * page.server.heads <= MAX_HEADS_WITHOUT_SAMPLING;

  /** Draws new turns. Each has a cell per column; where a column was not asked, it says why. */
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

  /** Answers turn `index` of a column, and then those that are still open, up to a failure. */
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
    const inState = () => page.state().turns[index]?.replies; // until the dialog is cleared
    const body = requestOf(page.state(), column, index);
    const [reply, earlier] = [newReply(body), inState()[key]];
    inState()[key] = reply;
    const view = drawReply(index, key);
    const traced = page.server.traces && holdsOn(body);
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
    drawReply(index, key).add(earlier.tokens); // without new text, the old one stays
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

  /** The tokens of a reply, asked for once more with every head; null if the reader stops it. The
   * conversation stays as it is. */
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
    /** Every column answers the turns that are open, unless its last reply failed. */
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
    /** A column answers the whole dialog anew. */
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

/** How a reply ended that was not completed. */
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
