// The page as plain data; views are drawn from it.

export const MAX_COLUMNS = 4;
export const LETTERS = "ABCD";

/** A text and the parts of it to steer towards: [first, last) in UTF-16 units, apart, in order. */
export const passage = (text = "", emphasis = []) => ({ text, emphasis });

/** A column: how its replies are steered and drawn. `key` is its position among the letters;
 * `byHand`: whether its methods are written rather than picked. */
export const newColumn = (key, steering, maxTokens) => ({ key, steering, byHand: false,
  temperature: 1, topP: 0.9, seed: 0, longest: Math.min(200, maxTokens) });

export const newState = (steerings, maxTokens) => ({
  system: passage(),
  draft: passage(),
  columns: steerings.map((steering, key) => newColumn(key, steering, maxTokens)),
  turns: [], // {user: passage, replies: {key: reply}}
});

/** A reply on its way. `request`: the body that it answers; `span` identifies the text that its
 * masses are on; `status`: running, done, stopped or failed; `cut`: whether it was cut off at the
 * most tokens; `tokens`: {text, mass, uniform, heads}. */
export const newReply = (request) => ({ ...passage(), request, status: "running", problem: "",
  span: JSON.stringify(request.emphasis ?? request.messages[0].content), cut: false, tokens: [] });

const KEPT = "holdfast-dialog-2"; // in this tab alone, like the key

/** Keeps the page for a reload, without the masses of single heads, which are many. */
export function keepState(state, model) {
  const text = JSON.stringify({ model, state }, (name, value) =>
    name === "heads" ? undefined : value);
  try {
    sessionStorage.setItem(KEPT, text);
  } catch { // there is no room for a dialog this long
    sessionStorage.removeItem(KEPT);
  }
}

/** The page before a reload, if this model answered it; null if it is a new visit. */
export function keptState(model) {
  if (performance.getEntriesByType("navigation")[0]?.type === "navigate") return null;
  const kept = JSON.parse(sessionStorage.getItem(KEPT) ?? "null");
  if (kept?.model !== model) return null;
  const replies = kept.state.turns.flatMap((turn) => Object.values(turn.replies));
  for (const reply of replies) if (reply.status === "running") reply.status = "stopped";
  return kept.state;
}

/** Whether the dialog can go on after a reply; one that the reader stopped keeps its text. */
export const isWhole = (reply) =>
  reply?.status === "done" || (reply?.status === "stopped" && reply.text !== "");

/** The first turn that a column has not answered; the number of turns where it has all. */
export function firstOpen(state, key) {
  const open = state.turns.findIndex((turn) => !isWhole(turn.replies[key]));
  return open < 0 ? state.turns.length : open;
}

/** Whether a chat has anything to steer towards. */
export const holdsOn = ({ messages, emphasis = [] }) =>
  messages[0].role === "system" || emphasis.length > 0;

/** The body of the request for a column's reply at turn `index`; emphasis is counted as the server
 * does: [message, first, last) in characters (code points). */
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
  return {
    messages,
    steering: holdsOn({ messages, emphasis }) ? column.steering : "none", // nothing to steer
    ...(emphasis.length ? { emphasis } : {}),
    temperature: column.temperature,
    top_p: column.topP,
    seed: column.seed + index,
    max_completion_tokens: column.longest,
  };
}

/** What a reply was made with that the one before it was not, in words. */
export function changesOf(reply, before) {
  if (!before) return [];
  const promptOf = ({ messages: [first] }) => (first.role === "system" ? first.content : "");
  const read = { "system prompt": promptOf, method: ({ steering }) => steering,
    emphasis: ({ emphasis }) => JSON.stringify(emphasis) };
  const [now, then] = [reply.request, before.request];
  return Object.keys(read).filter((name) => read[name](now) !== read[name](then));
}

/** The mean of the numbers in a list; null where there is none. */
export function mean(values) {
  const numbers = values.filter(Number.isFinite);
  return numbers.length ? numbers.reduce((sum, number) => sum + number, 0) / numbers.length : null;
}

const means = { mass: new WeakMap(), uniform: new WeakMap() }; // by tokens of whole replies

function meanOver(reply, name) {
  const tokens = reply?.tokens ?? [];
  if (means[name].has(tokens)) return means[name].get(tokens);
  const value = mean(tokens.map((token) => token[name]));
  if (reply?.status === "done") means[name].set(tokens, value);
  return value;
}

/** The tokens of the shortest of a turn's replies: as many are compared of each. Those that have
 * none yet do not count; 0 where none has any. */
export function sharedLength({ replies }, columns) {
  const lengths = columns.map(({ key }) => replies[key]?.tokens.length ?? 0).filter(Boolean);
  return lengths.length ? Math.min(...lengths) : 0;
}

/** Mean of a number (`mass` or `uniform`) over the first tokens of a reply; null where it was not
 * read. */
export const meanOfFirst = (reply, name, count) =>
  mean((reply?.tokens ?? []).slice(0, count).map((token) => token[name]));

/** Mean mass on the prompt over a reply's tokens; null where it was not read. */
export const massOf = (reply) => meanOver(reply, "mass");
export const uniformOf = (reply) => meanOver(reply, "uniform");

/** Everything to steer towards on the page: [{name, passage, part}], by the names of passages. */
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

/** A passage by its name: "system", "draft", "user:TURN" or "reply:TURN:KEY". */
export function passageOf(state, name) {
  const [kind, index, key] = name.split(":");
  if (kind === "user") return state.turns[index]?.user;
  return kind === "reply" ? state.turns[index]?.replies[key] : state[kind];
}
