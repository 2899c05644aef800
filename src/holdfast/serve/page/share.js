// The page's state as a link: JSON, deflated, in base64url behind `#s=`. A fragment is never sent
// to a server. What stands in a link may come from anybody: everything read is bounded, and is
// shown as text alone.

import { freshColumn, freshReply, freshState, MOST_COLUMNS, passage } from "./state.js";

const MARK = "#s=";
const LONGEST_LINK = 60_000; // characters
const LARGEST = 4_000_000; // bytes unpacked
const MOST_TURNS = 1000;
const LONGEST_TEXT = 20_000;
const MOST_TOKENS = 5000; // per reply

/** The link's fragment, and whether the masses had to be left out to keep it short. */
export async function fragmentOf(state) {
  const whole = MARK + (await pack(toPlain(state, true)));
  if (whole.length <= LONGEST_LINK) return { fragment: whole, short: false };
  const short = MARK + (await pack(toPlain(state, false)));
  if (short.length <= 4 * LONGEST_LINK) return { fragment: short, short: true };
  throw new Error("This dialog is too long for a link.");
}

/** The state in a fragment; null where it holds none.
 * Throws an Error with a sentence where it is damaged. */
export async function stateOf(fragment) {
  if (!fragment.startsWith(MARK)) return null;
  try {
    if (fragment.length > 5 * LONGEST_LINK) throw new RangeError("too long");
    return fromPlain(JSON.parse(await unpack(fragment.slice(MARK.length))));
  } catch {
    throw new Error("The link is damaged, so the page starts empty; ask for the link again.");
  }
}

async function pack(plain) {
  const bytes = new Blob([JSON.stringify(plain)]).stream();
  const packed = await new Response(bytes.pipeThrough(new CompressionStream("deflate-raw"))).bytes();
  let text = "";
  for (const byte of packed) text += String.fromCharCode(byte);
  return btoa(text).replaceAll("+", "-").replaceAll("/", "_").replace(/=+$/, "");
}

async function unpack(text) {
  const packed = atob(text.replaceAll("-", "+").replaceAll("_", "/"));
  const bytes = new Blob([Uint8Array.from(packed, (character) => character.charCodeAt(0))]).stream();
  const reader = bytes.pipeThrough(new DecompressionStream("deflate-raw")).getReader();
  const decoder = new TextDecoder("utf-8", { fatal: true });
  let unpacked = "";
  for (let size = 0; ; ) {
    const { value, done } = await reader.read();
    if (done) return unpacked + decoder.decode();
    size += value.length;
    if (size > LARGEST) throw new RangeError("too large"); // a small text that unpacks to gigabytes
    unpacked += decoder.decode(value, { stream: true });
  }
}

function toPlain(state, masses) {
  const text = ({ text, emphasis }) => [text, emphasis];
  const reply = (made) => ({
    p: text(made), s: made.steering, d: made.seed, e: made.status === "running" ? "stopped" : made.status,
    w: made.problem,
    t: masses ? made.tokens.map((token) => [token.text, round(token.mass), round(token.uniform)]) : [],
  });
  return {
    v: 1,
    system: text(state.system),
    draft: text(state.draft),
    columns: state.columns.map(({ key, steering, temperature, topP, seed, longest }) =>
      [key, steering, temperature, topP, seed, longest]),
    turns: state.turns.map((turn) => [
      text(turn.user), Object.fromEntries(Object.entries(turn.replies).map(([key, made]) => [key, reply(made)])),
    ]),
    selfchat: (({ suite, seed, conversation, rounds }) => [suite, seed, conversation, rounds])(state.selfchat),
  };
}

const round = (number) => (Number.isFinite(number) ? Math.round(number * 1000) / 1000 : null);

function fromPlain(plain) {
  if (plain.v !== 1) throw new RangeError("another version");
  const state = freshState([]);
  state.system = readPassage(plain.system);
  state.draft = readPassage(plain.draft);
  state.columns = readList(plain.columns, MOST_COLUMNS).map(readColumn);
  const keys = new Set(state.columns.map((column) => column.key));
  if (keys.size !== state.columns.length || !keys.size) throw new RangeError("columns");
  state.turns = readList(plain.turns, MOST_TURNS).map(([user, replies]) => ({
    user: readPassage(user),
    replies: Object.fromEntries([...keys].filter((key) => Object.hasOwn(replies, key))
      .map((key) => [key, readReply(replies[key])])),
  }));
  const [suite, seed, conversation, rounds] = readList(plain.selfchat, 4);
  state.selfchat = {
    suite: readText(suite, 100), seed: readNumber(seed, 0, 2 ** 31), runs: {},
    conversation: readNumber(conversation, 0, 2 ** 31), rounds: readNumber(rounds, 1, 16),
  };
  return state;
}

function readColumn([key, steering, temperature, topP, seed, longest]) {
  return {
    ...freshColumn(readNumber(key, 0, MOST_COLUMNS - 1), readText(steering, 2000)),
    temperature: readNumber(temperature, 0, 2), topP: readNumber(topP, 0, 1),
    seed: readNumber(seed, 0, 2 ** 53), longest: readNumber(longest, 1, 100_000),
  };
}

function readReply({ p, s, d, e, w, t }) {
  return {
    ...freshReply(readText(s, 2000), readNumber(d, 0, 2 ** 53)),
    ...readPassage(p),
    status: ["done", "stopped", "failed"].includes(e) ? e : "stopped",
    problem: readText(w, 2000),
    tokens: readList(t, MOST_TOKENS).map(([text, mass, uniform]) => ({
      text: readText(text, 1000), mass: readShare(mass), uniform: readShare(uniform),
    })),
  };
}

function readPassage([text, emphasis]) {
  let end = -1;
  const parts = readList(emphasis, 100).map(([first, last]) => {
    if (!(Number.isInteger(first) && Number.isInteger(last) && end < first && first < last && last <= text.length)) {
      throw new RangeError("emphasis");
    }
    end = last;
    return [first, last];
  });
  return passage(readText(text, LONGEST_TEXT), parts);
}

function readText(value, longest) {
  if (typeof value !== "string" || value.length > longest) throw new RangeError("text");
  return value;
}

function readNumber(value, least, most) {
  if (typeof value !== "number" || !(value >= least && value <= most)) throw new RangeError("number");
  return value;
}

const readShare = (value) => (value === null ? undefined : readNumber(value, 0, 1));

function readList(value, most) {
  if (!Array.isArray(value) || value.length > most) throw new RangeError("list");
  return value;
}
