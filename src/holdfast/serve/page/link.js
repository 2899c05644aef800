// The page's state as a link: JSON, deflated, in base64url behind `#s=`. A fragment is never sent
// to a server. A link may come from anybody: everything read is of its kind and bounded, and is
// shown as text alone.

import { MAX_COLUMNS, newColumn, newReply, newState, passage } from "./state.js";

const VERSION = 1;
const MARK = "#s=";
const MAX_LINK = 60_000; // characters
const MAX_BYTES = 4_000_000; // unpacked
const MAX_NUMBER = 2 ** 53;

/** The link's fragment, and whether the masses had to be left out to keep it short. */
export async function fragmentOf(state) {
  for (const masses of [true, false]) {
    const fragment = MARK + (await pack(toPlain(state, masses)));
    if (fragment.length <= MAX_LINK * (masses ? 1 : 4)) return { fragment, short: !masses };
  }
  throw new Error("This dialog is too long for a link.");
}

/** The state in a fragment; null where it holds none. Throws where it is damaged. */
export async function stateOf(fragment) {
  if (!fragment.startsWith(MARK)) return null;
  try {
    if (fragment.length > 5 * MAX_LINK) throw new RangeError("too long");
    return fromPlain(JSON.parse(await unpack(fragment.slice(MARK.length))));
  } catch {
    throw new Error("The link is damaged, so the page starts empty; ask for the link again.");
  }
}

async function pack(plain) {
  const stream = new Blob([JSON.stringify(plain)]).stream();
  const packed = stream.pipeThrough(new CompressionStream("deflate-raw"));
  let text = "";
  for (const byte of await new Response(packed).bytes()) text += String.fromCharCode(byte);
  return btoa(text).replaceAll("+", "-").replaceAll("/", "_").replace(/=+$/, "");
}

async function unpack(text) {
  const packed = atob(text.replaceAll("-", "+").replaceAll("_", "/"));
  const bytes = Uint8Array.from(packed, (character) => character.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate-raw"));
  const reader = stream.getReader();
  const decoder = new TextDecoder("utf-8", { fatal: true });
  let unpacked = "";
  for (let size = 0; ;) {
    const { value, done } = await reader.read();
    if (done) return unpacked + decoder.decode();
    size += value.length;
    if (size > MAX_BYTES) throw new RangeError("too large"); // a small text that unpacks to much
    unpacked += decoder.decode(value, { stream: true });
  }
}

const mapValues = (object, change) =>
  Object.fromEntries(Object.entries(object).map(([key, value]) => [key, change(value)]));

/** The state as JSON can hold it; without `masses`, texts alone. Heads are left out. */
function toPlain(state, masses) {
  const round = (value) => (Number.isFinite(value) ? Math.round(value * 1000) / 1000 : null);
  const tokens = (all = []) =>
    masses ? all.map(({ text, mass, uniform }) => [text, round(mass), round(uniform)]) : [];
  const text = (made) => [made.text, made.emphasis];
  const reply = (made) => ({
    passage: text(made),
    steering: made.steering,
    seed: made.seed,
    status: made.status === "running" ? "stopped" : made.status,
    problem: made.problem,
    tokens: tokens(made.tokens),
  });
  const event = (made) => (made.tokens ? { ...made, tokens: tokens(made.tokens) } : made);
  const runs = mapValues(state.selfchat.runs, (events) => events.map(event));
  return {
    version: VERSION,
    mode: state.mode,
    system: text(state.system),
    draft: text(state.draft),
    columns: state.columns,
    turns: state.turns.map(({ user, replies }) => [text(user), mapValues(replies, reply)]),
    selfchat: { ...state.selfchat, runs },
  };
}

// Readers: each returns the value, or throws a RangeError.

const check = (value, good, name) => {
  if (!good) throw new RangeError(name);
  return value;
};
const readText = (value, most = 20_000) =>
  check(value, typeof value === "string" && value.length <= most, "text");
const readNumber = (value, least, most) =>
  check(value, typeof value === "number" && value >= least && value <= most, "number");
const readWhole = (value, least = 0, most = MAX_NUMBER) =>
  check(readNumber(value, least, most), Number.isInteger(value), "whole number");
const readShare = (value) => (value === null ? null : readNumber(value, 0, 1));
const readList = (value, most, read) =>
  check(value, Array.isArray(value) && value.length <= most, "list").map(read);
const readTokens = (value) => readList(value, 5000, ([text, mass, uniform]) =>
  ({ text: readText(text), mass: readShare(mass), uniform: readShare(uniform) }));

function readPassage([text, emphasis]) {
  let end = -1;
  const parts = readList(emphasis, 100, ([first, last]) => {
    end = readWhole(last, readWhole(first, end + 1) + 1, text.length);
    return [first, last];
  });
  return passage(readText(text), parts);
}

const readColumn = ({ key, steering, temperature, topP, seed, longest }) => ({
  ...newColumn(readWhole(key, 0, MAX_COLUMNS - 1), readText(steering)),
  temperature: readNumber(temperature, 0, 2),
  topP: readNumber(topP, 0, 1),
  seed: readWhole(seed),
  longest: readWhole(longest, 1, 100_000),
});

const readReply = ({ passage: text, steering, seed, status, problem, tokens }) => ({
  ...newReply(readText(steering), readWhole(seed)),
  ...readPassage(text),
  status: ["done", "failed"].includes(status) ? status : "stopped",
  problem: readText(problem),
  tokens: readTokens(tokens),
});

/** An event of a self-chat, of which only what is shown is kept. */
function readEvent({ type, ...event }) {
  const person = (given) => (given ? { system_prompt: readText(given.system_prompt) } : undefined);
  if (type === "start") return { type, agent: person(event.agent), user: person(event.user) };
  if (type === "end") return { type };
  const round = readWhole(event.round, 1, 16);
  if (type === "probe") {
    const kind = event.kind === "adoption" ? "adoption" : "stability";
    const [question, reply, reason] =
      [event.question, event.reply, event.reason].map((text) => readText(text));
    return { type, round, kind, question, reply, reason, score: readNumber(event.score, 0, 1) };
  }
  const speaker = event.speaker === "agent" ? "agent" : "user";
  const tokens = readTokens(event.tokens ?? []);
  return { type: "turn", round, speaker, text: readText(event.text), tokens,
    mass: readShare(event.mass) };
}

/** The state that `toPlain` gave. */
function fromPlain(plain) {
  check(plain, plain.version === VERSION, "another version");
  const columns = readList(plain.columns, MAX_COLUMNS, readColumn);
  const keys = columns.map((column) => column.key);
  check(keys, keys.length && new Set(keys).size === keys.length, "columns");
  const byKey = (given, read) => Object.fromEntries(
    keys.filter((key) => Object.hasOwn(given, key)).map((key) => [key, read(given[key])]));
  const { suite, seed, conversation, rounds, runs } = plain.selfchat;
  return {
    ...newState([]),
    mode: plain.mode === "selfchat" ? "selfchat" : "dialog",
    system: readPassage(plain.system),
    draft: readPassage(plain.draft),
    columns,
    turns: readList(plain.turns, 1000, ([user, replies]) =>
      ({ user: readPassage(user), replies: byKey(replies, readReply) })),
    selfchat: {
      suite: readText(suite, 100),
      seed: readWhole(seed),
      conversation: readWhole(conversation),
      rounds: readWhole(rounds, 1, 16),
      runs: byKey(runs, (events) => readList(events, 200, readEvent)),
    },
  };
}
