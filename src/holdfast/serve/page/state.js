// What is on the page, as plain data. A link holds it; views are drawn from it.

export const MOST_COLUMNS = 4;
export const LETTERS = "ABCD";

/** A text and the parts of it to hold on to: [first, last) in UTF-16 units, apart, in order. */
export const passage = (text = "", emphasis = []) => ({ text, emphasis });

/** A column: how its replies are steered and drawn. `key` is its place among the letters. */
export function freshColumn(key, steering) {
  return { key, steering, temperature: 1, topP: 0.9, seed: 0, longest: 200 };
}

export function freshState(steerings) {
  return {
    system: passage(),
    draft: passage(),
    columns: steerings.map((steering, key) => freshColumn(key, steering)),
    turns: [], // {user: passage, replies: {key: reply}}
    mode: "dialog", // or "selfchat": what is shown
    // of self-chats: what they are drawn from, and by key the events that told of them
    selfchat: { suite: "starter", seed: 0, conversation: 6, rounds: 8, runs: {} },
  };
}

/** A reply on its way. `status`: running, done, stopped or failed. */
export function freshReply(steering, seed) {
  return {
    ...passage(),
    steering,
    seed,
    status: "running",
    problem: "",
    cached: 0,
    tokens: [], // {text, mass, uniform, heads}
  };
}

export const isWhole = (reply) =>
  reply !== undefined &&
  reply.text !== "" &&
  (reply.status === "done" || reply.status === "stopped");

/** The first turn that a column has not answered; the number of turns where it has all. */
export function firstOpen(state, key) {
  const open = state.turns.findIndex((turn) => !isWhole(turn.replies[key]));
  return open < 0 ? state.turns.length : open;
}

/** The chat that a column answers at turn `index`, with the emphasis of its messages as the
 * server counts it: [message, first, last) in characters (code points). */
function chatOf(state, key, index) {
  const passages = [];
  if (state.system.text.trim()) passages.push(["system", state.system]);
  for (const [number, turn] of state.turns.slice(0, index + 1).entries()) {
    passages.push(["user", turn.user]);
    if (number < index) passages.push(["assistant", turn.replies[key]]);
  }
  const emphasis = passages.flatMap(([, { text, emphasis: parts }], number) =>
    parts.map(([first, last]) => [number, codePoints(text, first), codePoints(text, last)]),
  );
  return { messages: passages.map(([role, { text }]) => ({ role, content: text })), emphasis };
}

const codePoints = (text, end) => [...text.slice(0, end)].length;

/** Whether a chat has anything to hold on to. */
export const holdsOn = ({ messages, emphasis = [] }) =>
  messages[0].role === "system" || emphasis.length > 0;

/** The body of the request for a column's reply at turn `index`. */
export function requestOf(state, column, index) {
  const { messages, emphasis } = chatOf(state, column.key, index);
  const steered = holdsOn({ messages, emphasis });
  return {
    messages,
    steering: steered ? column.steering : "none", // nothing to hold on to, nothing to steer
    ...(emphasis.length ? { emphasis } : {}),
    temperature: column.temperature,
    top_p: column.topP,
    seed: column.seed + index,
    max_completion_tokens: column.longest,
  };
}

export function mean(numbers) {
  return numbers.length ? numbers.reduce((sum, number) => sum + number, 0) / numbers.length : null;
}

/** Mean mass on the prompt over a reply's tokens; null where it was not read. */
export const massOf = (reply) => meanOver(reply, "mass");
export const uniformOf = (reply) => meanOver(reply, "uniform");

const known = { mass: new WeakMap(), uniform: new WeakMap() }; // by tokens of replies that are whole

function meanOver(reply, name) {
  const tokens = reply?.tokens ?? [];
  if (known[name].has(tokens)) return known[name].get(tokens);
  const value = mean(tokens.map((token) => token[name]).filter(Number.isFinite));
  if (reply?.status === "done") known[name].set(tokens, value);
  return value;
}

/** Stability, adoption and mass of a self-chat, per round, from the events that told of it; null
 * where there is none yet. */
export function roundsOf(events) {
  const rounds = Math.max(0, ...events.map((event) => event.round ?? 0));
  const each = (read) =>
    Array.from({ length: rounds }, (_, index) =>
      read(events.filter((event) => event.round === index + 1)),
    );
  const scores = (kind) =>
    each((told) => mean(told.filter((event) => event.kind === kind).map(({ score }) => score)));
  const turns = each((told) => told.find((event) => event.speaker === "agent"));
  return {
    stability: scores("stability"),
    adoption: scores("adoption"),
    mass: turns.map((turn) => turn?.mass ?? null),
    uniform: turns.map(uniformOf),
  };
}

/** Everything to hold on to on the page: [{place, passage, part}]. */
export function allEmphasis(state) {
  const places = [["system", state.system]];
  for (const [index, turn] of state.turns.entries()) {
    places.push([`user:${index}`, turn.user]);
    for (const { key } of state.columns) {
      if (turn.replies[key]) places.push([`reply:${index}:${key}`, turn.replies[key]]);
    }
  }
  places.push(["draft", state.draft]);
  return places.flatMap(([place, passage]) =>
    passage.emphasis.map((part) => ({ place, passage, part })),
  );
}

/** The passage at a place: "system", "draft", "user:TURN" or "reply:TURN:KEY". */
export function passageAt(state, place) {
  const [kind, index, key] = place.split(":");
  if (kind === "user") return state.turns[index]?.user;
  if (kind === "reply") return state.turns[index]?.replies[key];
  return state[kind];
}
