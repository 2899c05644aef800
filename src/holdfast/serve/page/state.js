// The state of the page as plain data, from which views are drawn.

export const MAX_COLUMNS = 4;
export const LETTERS = "ABCD";

/** A text and its emphasised parts: [first, last) in UTF-16 units, disjoint and in order. */
export const passage = (text = "", emphasis = []) => ({ text, emphasis });

/** A column: how its replies are steered and drawn. `key` is the index of its letter; `byHand` says
 * whether its methods are typed rather than picked. */
export const newColumn = (key, steering, maxTokens) => ({ key, steering, byHand: false,
  temperature: 1, topP: 0.9, seed: 0, longest: Math.min(200, maxTokens) });

export const newState = (steerings, maxTokens) => ({
  system: passage(),
  draft: passage(),
  columns: steerings.map((steering, key) => newColumn(key, steering, maxTokens)),
  turns: [], // {user: passage, replies: {key: reply}}
});

/** A reply that begins to run. `request` is the body that it answers; `span` identifies the text
 * that its masses are on; `status` is "running", "done", "stopped" or "failed"; `cut` says whether
 * it was cut off at the token limit; `tokens` are {text, mass, uniform, heads}. */
export const newReply = (request) => ({ ...passage(), request, status: "running", problem: "",
  span: JSON.stringify(request.emphasis ?? request.messages[0].content), cut: false, tokens: [] });

const KEPT = "holdfast-dialog-2"; // in the storage of this tab, like the API key

/** Keeps the state for a reload, without the masses of single heads, which are too many. */
export function keepState(state, model) {
  const text = JSON.stringify({ model, state }, (name, value) =>
    name === "heads" ? undefined : value);
  try {
    sessionStorage.setItem(KEPT, text);
  } catch { // there is no room for a dialog this long
    sessionStorage.removeItem(KEPT);
  }
}

/** The state before a reload; null for a new visit, or if the server had another model. */
export function keptState(model) {
  if (performance.getEntriesByType("navigation")[0]?.type === "navigate") return null;
  const kept = JSON.parse(sessionStorage.getItem(KEPT) ?? "null");
  if (kept?.model !== model) return null;
  const replies = kept.state.turns.flatMap((turn) => Object.values(turn.replies));
  for (const reply of replies) if (reply.status === "running") reply.status = "stopped";
  return kept.state;
}

/** Whether the dialog can continue after a reply: it is done, or was stopped and has some text. */
export const isWhole = (reply) =>
  reply?.status === "done" || (reply?.status === "stopped" && reply.text !== "");

/** The first turn that a column has not answered; the number of turns if it has answered all. */
export function firstOpen(state, key) {
  const open = state.turns.findIndex((turn) => !isWhole(turn.replies[key]));
  return open < 0 ? state.turns.length : open;
}

/** Whether a chat has a span: a system prompt or emphasis. */
export const holdsOn = ({ messages, emphasis = [] }) =>
  messages[0].role === "system" || emphasis.length > 0;

/** Whether a method acts on earlier replies: it needs no span, and has no mass to trace. */
export const actsOnReplies = (steering) => /(^|\+)\s*attenuate\b/.test(steering);

/** The body of the request for a column's reply at turn `index`. Emphasis is in the server's form:
 * [message, first, last) in characters (code points). */
export function requestOf(state, column, index) {
  const passages = state.system.text.trim() ? [["system", state.system]] : [];
  for (const [number, turn] of state.turns.slice(0, index + 1).entries()) {
    passages.push(["user", turn.user]);
    if (number < index) passages.push(["assistant", turn.replies[column.key]]);
  }
  const characters = (text, end) => [...text.slice(0, end)].length;
  const emphasis = passages.flatMap(([, { text, emphasis: parts }], number) =>
    parts.map((part) => [number, ...part.map((end) => characters(text, end))]));
  const messages = passages.map(([role, { text }]) => ({ role, content: text }));
  const acts = holdsOn({ messages, emphasis }) || actsOnReplies(column.steering);
  return {
    messages,
    steering: acts ? column.steering : "none", // nothing to steer
    ...(emphasis.length ? { emphasis } : {}),
    temperature: column.temperature,
    top_p: column.topP,
    seed: column.seed + index,
    max_completion_tokens: column.longest,
  };
}

/** The settings, in words, that have changed since the reply before. */
export function changesOf(reply, before) {
  if (!before) return [];
  const promptOf = ({ messages: [first] }) => (first.role === "system" ? first.content : "");
  const read = { "system prompt": promptOf, method: ({ steering }) => steering,
    emphasis: ({ emphasis }) => JSON.stringify(emphasis) };
  const [now, then] = [reply.request, before.request];
  return Object.keys(read).filter((name) => read[name](now) !== read[name](then));
}

/** The mean of the numbers in a list; null if there are none. */
export function mean(values) {
  const numbers = values.filter(Number.isFinite);
  return numbers.length ? numbers.reduce((sum, number) => sum + number, 0) / numbers.length : null;
}

const means = { mass: new WeakMap(), uniform: new WeakMap() }; // by the tokens of whole replies

function meanOver(reply, name) {
  const tokens = reply?.tokens ?? [];
  if (means[name].has(tokens)) return means[name].get(tokens);
  const value = mean(tokens.map((token) => token[name]));
  if (reply?.status === "done") means[name].set(tokens, value);
  return value;
}

/** The length of a turn's shortest reply, over which its replies are compared. Replies without
 * tokens do not count; 0 if none has any. */
export function sharedLength({ replies }, columns) {
  const lengths = columns.map(({ key }) => replies[key]?.tokens.length ?? 0).filter(Boolean);
  return lengths.length ? Math.min(...lengths) : 0;
}

/** The mean of a number (`mass` or `uniform`) over the first tokens of a reply; null if it was not
 * read. */
export const meanOfFirst = (reply, name, count) =>
  mean((reply?.tokens ?? []).slice(0, count).map((token) => token[name]));

/** The mean mass on the prompt over a reply's tokens; null if it was not read. */
export const massOf = (reply) => meanOver(reply, "mass");
export const uniformOf = (reply) => meanOver(reply, "uniform");

/** All emphasised parts of the page, each with its passage and the passage's name. */
export function allEmphasis(state) {
  const passages = [["system", state.system]];
  for (const [index, turn] of state.turns.entries()) {
    passages.push([`user:${index}`, turn.user]);
    for (const { key } of state.columns)
      if (turn.replies[key]) passages.push([`reply:${index}:${key}`, turn.replies[key]]);
  }
  passages.push(["draft", state.draft]);
  return passages.flatMap(([name, passage]) =>
    passage.emphasis.map((part) => ({ name, passage, part })));
}

/** Finds a passage by its name: "system", "draft", "user:TURN" or "reply:TURN:KEY". */
export function passageOf(state, name) {
  const [kind, index, key] = name.split(":");
  if (kind === "user") return state.turns[index]?.user;
  return kind === "reply" ? state.turns[index]?.replies[key] : state[kind];
}
