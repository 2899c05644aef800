// The page's state as a link: JSON, deflated, in base64url behind `#s=`. A fragment is never sent
// to a server. What stands in a link may come from anybody: everything read is bounded, and is
// shown as text alone.

import { fromPlain, toPlain } from "./plain.js";

const MARK = "#s=";
const LONGEST_LINK = 60_000; // characters
const LARGEST = 4_000_000; // bytes unpacked

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
  const packed = await new Response(
    bytes.pipeThrough(new CompressionStream("deflate-raw")),
  ).bytes();
  let text = "";
  for (const byte of packed) text += String.fromCharCode(byte);
  return btoa(text).replaceAll("+", "-").replaceAll("/", "_").replace(/=+$/, "");
}

async function unpack(text) {
  const packed = atob(text.replaceAll("-", "+").replaceAll("_", "/"));
  const bytes = new Blob([
    Uint8Array.from(packed, (character) => character.charCodeAt(0)),
  ]).stream();
  const reader = bytes.pipeThrough(new DecompressionStream("deflate-raw")).getReader();
  const decoder = new TextDecoder("utf-8", { fatal: true });
  let unpacked = "";
  for (let size = 0; ;) {
    const { value, done } = await reader.read();
    if (done) return unpacked + decoder.decode();
    size += value.length;
    if (size > LARGEST) throw new RangeError("too large"); // a small text that unpacks to gigabytes
    unpacked += decoder.decode(value, { stream: true });
  }
}
