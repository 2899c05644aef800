// "Copy as": the last reply as Python, curl or a command line; and the link to the page as it is.

import { announce, byId, make } from "./dom.js";
import { fragmentOf } from "./link.js";
import { apiKey } from "./server.js";
import { holdsOn, LETTERS, requestOf } from "./state.js";

const FORMS = { python: asPython, curl: asCurl, command: asCommand };

/** The request for a column's reply to the last message that there is. */
function lastRequest(state, column) {
  const turns = state.turns.length ? state.turns : [{ user: { ...state.draft }, replies: {} }];
  const open = turns.findIndex((turn) => !turn.replies[column.key]?.text);
  return requestOf({ ...state, turns }, column, open < 0 ? turns.length - 1 : open);
}

/** A value as a Python literal. */
function inPython(value) {
  if (typeof value === "boolean") return value ? "True" : "False";
  if (Array.isArray(value)) return `[${value.map(inPython).join(", ")}]`;
  if (value === null || typeof value !== "object") return JSON.stringify(value);
  const entries = Object.entries(value).map(([key, part]) => `"${key}": ${inPython(part)}`);
  return `{${entries.join(", ")}}`;
}

function asPython({ messages, steering, emphasis, ...drawing }, { name, origin, locked }) {
  const trace = holdsOn({ messages, emphasis });
  const extra = { steering, ...(emphasis ? { emphasis } : {}), ...(trace ? { trace } : {}) };
  const masses = `for token in choice.model_extra["holdfast"]["tokens"]:
    print(f"{token['mass']:.3f}", repr(token["text"]))
`;
  return `${locked ? "import os\n\n" : ""}from openai import OpenAI

client = OpenAI(
    base_url=${inPython(`${origin}/v1`)},
    api_key=${locked ? 'os.environ["HOLDFAST_API_KEY"]' : '"none"'},
)
answer = client.chat.completions.create(
    model=${inPython(name)},
    messages=[
${messages.map((message) => `        ${inPython(message)},`).join("\n")}
    ],
${Object.entries(drawing).map(([key, value]) => `    ${key}=${inPython(value)},`).join("\n")}
    extra_body=${inPython(extra)},
)
choice = answer.choices[0]
print(choice.message.content)
${trace ? masses : ""}`;
}

function asCurl(request, { name, origin, locked }) {
  const body = { model: name, ...request, ...(holdsOn(request) ? { trace: true } : {}) };
  const key = locked ? '  -H "Authorization: Bearer $HOLDFAST_API_KEY" \\\n' : "";
  return `curl -s ${quoted(`${origin}/v1/chat/completions`)} \\
${key}  -H 'Content-Type: application/json' --data-binary @- <<'END'
${JSON.stringify(body, null, 1)}
END
`;
}

function asCommand({ messages, steering, emphasis = [], ...drawing }, { name }) {
  const parts = emphasis.map((range) =>
    ` \\\n  --emphasis ${textAndOccurrence(messages, range).map(quoted).join(" ")}`);
  return `holdfast generate --model ${quoted(name)} --messages - --method ${quoted(steering)} \\
  --temperature ${drawing.temperature} --top-p ${drawing.top_p} --seed ${drawing.seed} \\
  --max-new-tokens ${drawing.max_completion_tokens}${parts.join("")} <<'END'
${JSON.stringify(messages, null, 1)}
END
`;
}

/** An emphasised range as its text, and which occurrence of it in the chat it is, from 1. */
function textAndOccurrence(messages, [number, first, last]) {
  const contents = messages.map(({ content }) => [...content]);
  const words = contents[number].slice(first, last);
  let occurrence = 0;
  for (const [at, content] of contents.slice(0, number + 1).entries()) {
    const end = at === number ? first : content.length - words.length;
    for (let start = 0; start <= end; start += 1)
      occurrence += words.every((character, offset) => content[start + offset] === character);
  }
  return [words.join(""), String(occurrence)];
}

const quoted = (text) =>
  /^[\w.,:=/+-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`;

/** Wires the dialog "Copy as" and the button "Link". */
export function copying(page) {
  const [dialog, snippet, column] = [byId("copy-dialog"), byId("snippet"), byId("copy-column")];

  function show() {
    const form = dialog.querySelector("[name=form]:checked").value;
    const chosen = page.state().columns.find(({ key }) => String(key) === column.value);
    const server = { name: page.server.name, origin: location.origin, locked: apiKey() !== "" };
    snippet.textContent = FORMS[form](lastRequest(page.state(), chosen), server);
  }

  byId("copy-as").onclick = () => {
    column.replaceChildren(...page.state().columns.map(({ key, steering }) =>
      make("option", { value: String(key) }, `${LETTERS[key]}: ${steering}`)));
    show();
    dialog.showModal();
  };
  dialog.onchange = show;
  byId("copy-close").onclick = () => dialog.close();
  byId("copy-snippet").onclick = async () => {
    const copied = await copy(snippet.textContent);
    byId("copied").textContent = copied ? "Copied." : "Selected; copy it with Ctrl C.";
    if (!copied) getSelection().selectAllChildren(snippet);
  };
  byId("link").onclick = async () => {
    try {
      const { fragment, short } = await fragmentOf(page.state());
      history.replaceState(null, "", fragment);
      const where = (await copy(location.href)) ? "copied" : "in the address bar";
      const rest = short ? ", but for the mass of each token, which made it too long" : "";
      const kept = `it holds the whole page${rest}. The server saw none of it.`;
      page.notice(`The link is ${where}: ${kept}`);
    } catch (error) {
      page.notice(error.message);
    }
  };
}

/** Whether the clipboard took a text; it does so on loopback and over https alone. */
async function copy(text) {
  try {
    await navigator.clipboard.writeText(text);
    announce("Copied.");
    return true;
  } catch {
    return false;
  }
}
