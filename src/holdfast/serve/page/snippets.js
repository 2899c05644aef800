// What is on the page as something to run elsewhere: Python, curl, or the command line.

import { holdsOn, requestOf } from "./state.js";

/** The request that a snippet makes: a column's reply to the last message that there is. */
function lastRequest(state, column) {
  const turns = state.turns.length ? state.turns : [{ user: { ...state.draft }, replies: {} }];
  const answered = turns.findIndex((turn) => !turn.replies[column.key]?.text);
  const last = answered < 0 ? turns.length - 1 : answered;
  return requestOf({ ...state, turns }, column, last);
}

export function asPython(state, column, { name, origin, locked }) {
  const { messages, steering, emphasis, ...drawing } = lastRequest(state, column);
  const traced = holdsOn({ messages, emphasis });
  const extra = { steering, ...(emphasis ? { emphasis } : {}), ...(traced ? { trace: true } : {}) };
  const named = Object.entries(drawing).map(([knob, value]) => `    ${knob}=${inPython(value)},`);
  return [
    ...(locked ? ["import os", ""] : []),
    "from openai import OpenAI",
    "",
    "client = OpenAI(",
    `    base_url=${inPython(`${origin}/v1`)},`,
    `    api_key=${locked ? 'os.environ["HOLDFAST_API_KEY"]' : '"none"'},`,
    ")",
    "answer = client.chat.completions.create(",
    `    model=${inPython(name)},`,
    "    messages=[",
    ...messages.map((message) => `        ${inPython(message)},`),
    "    ],",
    ...named,
    `    extra_body=${inPython(extra)},`,
    ")",
    "choice = answer.choices[0]",
    "print(choice.message.content)",
    ...(traced
      ? [
          'for token in choice.model_extra["holdfast"]["tokens"]:',
          '    print(f"{token[\'mass\']:.3f}", repr(token["text"]))',
        ]
      : []),
    "",
  ].join("\n");
}

export function asCurl(state, column, { name, origin, locked }) {
  const request = lastRequest(state, column);
  const body = JSON.stringify(
    { model: name, ...request, ...(holdsOn(request) ? { trace: true } : {}) },
    null,
    1,
  );
  return [
    `curl -s ${quoted(`${origin}/v1/chat/completions`)} \\`,
    ...(locked ? ['  -H "Authorization: Bearer $HOLDFAST_API_KEY" \\'] : []),
    "  -H 'Content-Type: application/json' --data-binary @- <<'END'",
    body,
    "END",
    "",
  ].join("\n");
}

export function asCommand(state, column, { name }) {
  const { messages, steering, emphasis = [], ...drawing } = lastRequest(state, column);
  const parts = emphasis.map(
    (range) => ` \\\n  --emphasis ${textAndOccurrence(messages, range).map(quoted).join(" ")}`,
  );
  return [
    `holdfast generate --model ${quoted(name)} --messages - --method ${quoted(steering)} \\`,
    `  --temperature ${drawing.temperature} --top-p ${drawing.top_p} --seed ${drawing.seed}` +
      ` --max-new-tokens ${drawing.max_completion_tokens}${parts.join("")} <<'END'`,
    JSON.stringify(messages, null, 1),
    "END",
    "",
  ].join("\n");
}

/** An emphasised range as its text, and which occurrence of it in the chat it is, from 1. */
function textAndOccurrence(messages, [number, first, last]) {
  const contents = messages.map(({ content }) => [...content]);
  const words = contents[number].slice(first, last);
  let occurrence = 0;
  for (const [at, content] of contents.slice(0, number + 1).entries()) {
    const end = at === number ? first : content.length - words.length;
    for (let start = 0; start <= end; start += 1) {
      if (words.every((character, offset) => content[start + offset] === character))
        occurrence += 1;
    }
  }
  return [words.join(""), String(occurrence)];
}

const quoted = (text) =>
  /^[\w.,:=/+-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`;

/** A value as a Python literal. */
function inPython(value) {
  if (typeof value === "boolean") return value ? "True" : "False";
  if (Array.isArray(value)) return `[${value.map(inPython).join(", ")}]`;
  if (value && typeof value === "object") {
    return `{${Object.entries(value)
      .map(([key, held]) => `${JSON.stringify(key)}: ${inPython(held)}`)
      .join(", ")}}`;
  }
  return JSON.stringify(value);
}
