// The state as plain data for a link, and back. A link may come from anybody, so that everything
// read is of its kind and bounded; what is not is a RangeError.

import { freshColumn, freshReply, freshState, MOST_COLUMNS, passage } from "./state.js";

const VERSION = 1;
const MOST_TURNS = 1000;
const MOST_EVENTS = 200; // of a self-chat
const MOST_TOKENS = 5000; // of a reply
const LONGEST_TEXT = 20_000; // characters
const LARGEST = 2 ** 53;

/** The state as JSON can hold it; without `masses`, texts alone. Heads are left out. */
export function toPlain(state, masses) {
  const tokens = (all = []) =>
    masses ? all.map(({ text, mass, uniform }) => [text, round(mass), round(uniform)]) : [];
  const text = ({ text, emphasis }) => [text, emphasis];
  const reply = (made) => ({
    passage: text(made),
    steering: made.steering,
    seed: made.seed,
    status: made.status === "running" ? "stopped" : made.status,
    problem: made.problem,
    tokens: tokens(made.tokens),
  });
  const event = (told) => (told.tokens ? { ...told, tokens: tokens(told.tokens) } : told);
  return {
    version: VERSION,
    mode: state.mode,
    system: text(state.system),
    draft: text(state.draft),
    columns: state.columns,
    turns: state.turns.map(({ user, replies }) => [text(user), mapValues(replies, reply)]),
    selfchat: {
      ...state.selfchat,
      runs: mapValues(state.selfchat.runs, (told) => told.map(event)),
    },
  };
}

/** The state that `toPlain` gave. */
export function fromPlain(plain) {
  if (plain.version !== VERSION) throw new RangeError("another version");
  const columns = readList(plain.columns, MOST_COLUMNS).map(readColumn);
  const keys = columns.map((column) => column.key);
  if (!keys.length || new Set(keys).size !== keys.length) throw new RangeError("columns");
  const byKey = (given, read) =>
    Object.fromEntries(
      keys.filter((key) => Object.hasOwn(given, key)).map((key) => [key, read(given[key])]),
    );
  const { suite, seed, conversation, rounds, runs } = plain.selfchat;
  return {
    ...freshState([]),
    mode: plain.mode === "selfchat" ? "selfchat" : "dialog",
    system: readPassage(plain.system),
    draft: readPassage(plain.draft),
    columns,
    turns: readList(plain.turns, MOST_TURNS).map(([user, replies]) => ({
      user: readPassage(user),
      replies: byKey(replies, readReply),
    })),
    selfchat: {
      suite: readText(suite, 100),
      seed: readWhole(seed, 0, LARGEST),
      conversation: readWhole(conversation, 0, LARGEST),
      rounds: readWhole(rounds, 1, 16),
      runs: byKey(runs, (told) => readList(told, MOST_EVENTS).map(readEvent)),
    },
  };
}

function mapValues(object, change) {
  return Object.fromEntries(Object.entries(object).map(([key, value]) => [key, change(value)]));
}

const round = (number) => (Number.isFinite(number) ? Math.round(number * 1000) / 1000 : null);

function readColumn({ key, steering, temperature, topP, seed, longest }) {
  return {
    ...freshColumn(readWhole(key, 0, MOST_COLUMNS - 1), readText(steering)),
    temperature: readNumber(temperature, 0, 2),
    topP: readNumber(topP, 0, 1),
    seed: readWhole(seed, 0, LARGEST),
    longest: readWhole(longest, 1, 100_000),
  };
}

function readReply({ passage: text, steering, seed, status, problem, tokens }) {
  return {
    ...freshReply(readText(steering), readWhole(seed, 0, LARGEST)),
    ...readPassage(text),
    status: ["done", "failed"].includes(status) ? status : "stopped",
    problem: readText(problem),
    tokens: readTokens(tokens),
  };
}

/** An event of a self-chat, of which only what is shown is kept. */
function readEvent({ type, ...told }) {
  const person = (given) => (given ? { system_prompt: readText(given.system_prompt) } : undefined);
  if (type === "start") return { type, agent: person(told.agent), user: person(told.user) };
  if (type === "end") return { type };
  const round = readWhole(told.round, 1, 16);
  if (type === "probe") {
    return {
      type,
      round,
      kind: told.kind === "adoption" ? "adoption" : "stability",
      question: readText(told.question),
      reply: readText(told.reply),
      score: readNumber(told.score, 0, 1),
      reason: readText(told.reason),
    };
  }
  return {
    type: "turn",
    round,
    speaker: told.speaker === "agent" ? "agent" : "user",
    text: readText(told.text),
    mass: readShare(told.mass),
    tokens: readTokens(told.tokens ?? []),
  };
}

function readTokens(given) {
  return readList(given, MOST_TOKENS).map(([text, mass, uniform]) => ({
    text: readText(text),
    mass: readShare(mass),
    uniform: readShare(uniform),
  }));
}

function readPassage([text, emphasis]) {
  let end = -1;
  const parts = readList(emphasis, 100).map(([first, last]) => {
    end = readWhole(last, readWhole(first, end + 1, LARGEST) + 1, text.length);
    return [first, last];
  });
  return passage(readText(text), parts);
}

function readText(value) {
  if (typeof value !== "string" || value.length > LONGEST_TEXT) throw new RangeError("text");
  return value;
}

function readNumber(value, least, most) {
  if (typeof value === "number" && value >= least && value <= most) return value;
  throw new RangeError("number");
}

function readWhole(value, least, most) {
  if (Number.isInteger(value)) return readNumber(value, least, most);
  throw new RangeError("whole number");
}

const readShare = (value) => (value === null ? null : readNumber(value, 0, 1));

function readList(value, most) {
  if (!Array.isArray(value) || value.length > most) throw new RangeError("list");
  return value;
}
