// The table of prompts, the list of conversations and their reader; follows page.js.

// --- the table of prompts ------------------------------------------------------------------------

function setUpPrompts() {
  const table = $("prompt-table");
  const body = table.tBodies[0];
  const rows = [...body.rows];

  function filter() {
    const series = $("prompt-series").value;
    const query = $("prompt-find").value.toLowerCase();
    let count = 0;
    for (const row of rows) {
      const isFound = row.cells[0].textContent.toLowerCase().includes(query);
      row.hidden = row.dataset.series !== series || !isFound;
      count += !row.hidden;
    }
    $("prompt-count").textContent = `${count} ${count === 1 ? "prompt" : "prompts"}`;
  }

  function sortBy(head) {
    const isAscending = head.getAttribute("aria-sort") !== "ascending";
    const sign = isAscending ? 1 : -1;
    for (const other of table.querySelectorAll("[aria-sort]")) other.removeAttribute("aria-sort");
    head.setAttribute("aria-sort", isAscending ? "ascending" : "descending");
    const value = (row) => row.cells[head.cellIndex].dataset.value;
    const compare = head.dataset.sort === "number"
      ? (a, b) => value(a) - value(b)
      : (a, b) => value(a).localeCompare(value(b));
    body.append(...rows.sort((a, b) => sign * compare(a, b)));
  }

  for (const head of table.querySelectorAll("th[data-sort]")) {
    head.querySelector("button").addEventListener("click", () => sortBy(head));
  }
  for (const button of document.querySelectorAll("[data-prompt]")) {
    const { prompt, of: series } = button.dataset;
    button.addEventListener("click", () => readPrompt(prompt, series, button));
  }
  $("prompt-series").addEventListener("change", filter);
  $("prompt-find").addEventListener("input", filter);
  filter();
}

// --- the list of conversations -------------------------------------------------------------------

const index = JSON.parse($("index").textContent);
const FIRST = 10; // rows of the list at first
const MORE = 40; // rows that are added at a time
let listed = []; // the entries that pass the filters, in order
let shown = 0; // how many of them have a row
let onlyPrompt = null; // the prompt to which the list is limited, if the table of prompts chose one

/** A row of the index with names; conversations.py packs it. */
function unpackEntry([series, number, agent, user, stability, adoption, ended], place) {
  const scores = stability.filter((value) => value !== null);
  const adopted = adoption.filter((value) => value !== null);
  return {
    place,
    series: index.series[series],
    seriesAt: series,
    number,
    agent: index.prompts[agent],
    user: index.prompts[user],
    stability,
    adoption,
    ended,
    scores,
    first: scores[0] ?? null,
    last: scores.at(-1) ?? null,
    mean: scores.length ? scores.reduce((a, b) => a + b) / scores.length : null,
    firstAdoption: adopted[0] ?? null,
    lastAdoption: adopted.at(-1) ?? null,
  };
}

const entries = index.rows.map(unpackEntry);

const SCORES = {
  lost: (entry) => entry.first > 0.5 && entry.last <= 0.5,
  never: (entry) => entry.scores.length && entry.scores.every((value) => value <= 0.5),
  held: (entry) => entry.scores.length && entry.scores.every((value) => value > 0.5),
  adopted: (entry) => entry.lastAdoption !== null && entry.lastAdoption >= 0.5,
};
const ORDERS = {
  number: (a, b) => a.place - b.place,
  fall: (a, b) => (a.last - a.first) - (b.last - b.first) || a.place - b.place,
  low: (a, b) => a.mean - b.mean || a.place - b.place,
};
const fixed = (value) => (value === null ? "–" : value.toFixed(2));

/** A strip of scores by round, with the first and the last in numbers. */
function strip(name, kind, values, first, last) {
  const attributesOf = (value) => (value === null ? { class: "none" } : { "--v": value });
  const cells = values.map((value) => make("i", attributesOf(value)));
  const size = values.length > 16 ? " many" : "";
  return make("span", { class: `strip ${kind}` }, make("span", {}, name),
    make("span", { class: `cells${size}`, "aria-hidden": "true" }, ...cells),
    make("span", {}, `${fixed(first)} → ${fixed(last)}`));
}

/** The row of a conversation: its prompts and its scores; a click opens it. */
function listRow(entry) {
  const { series, agent, user, stability, adoption, ended } = entry;
  const promptLine = (role, prompt) => make("span", { class: "said clamp" },
    make("span", { class: "role" }, role), prompt.text || "(no prompt)");
  const head = make("span", { class: "head" },
    make("span", { class: "who" }, `#${entry.number} `),
    make("span", { class: "method" }, series.label),
    ended !== null && make("span", { class: "meta" }, ` ended in round ${ended}`));
  const prompts = make("span", { class: "lines" },
    promptLine("agent", agent), !series.isGiven && promptLine("user", user));
  const strips = make("span", { class: "strips" },
    strip("stability", "keep", stability, entry.first, entry.last),
    entry.lastAdoption !== null
      && strip("adoption", "take", adoption, entry.firstAdoption, entry.lastAdoption));
  const attributes = { type: "button", class: "row", "data-place": entry.place };
  const button = make("button", attributes, head, prompts, strips);
  button.addEventListener("click", () => openReader(entry));
  return make("li", {}, button);
}

/** Adds the next rows to the list. */
function showMore() {
  const end = Math.min(listed.length, shown + (shown ? MORE : FIRST));
  $("rows").append(...listed.slice(shown, end).map(listRow));
  shown = end;
  $("more").hidden = shown >= listed.length;
  const left = listed.length - shown;
  $("more").textContent = left > MORE ? `Show ${MORE} of ${left} more` : `Show ${left} more`;
}

/** "12 of 96 conversations"; if the list has several series, also the number of rows. */
function describeCount(some) {
  const countConversations = (list) => new Set(list.map((entry) => entry.number)).size;
  const all = countConversations(entries);
  const noun = all === 1 ? "conversation" : "conversations";
  const count = `${countConversations(some)} of ${all} ${noun}`;
  if (index.series.length === 1) return count;
  return `${count}, in ${some.length} of ${entries.length} rows`;
}

function filterList() {
  const form = $("filters").elements;
  const get = (name) => (form[name] ? form[name].value : "");
  const query = get("find").toLowerCase();
  const textOf = ({ agent, user }) => `${agent.text} ${agent.id} ${user.text} ${user.id}`;
  listed = entries.filter((entry) =>
    (get("series") === "" || entry.seriesAt === +get("series"))
    && (!get("category") || entry.agent.category === get("category"))
    && (!get("score") || SCORES[get("score")](entry))
    && (!onlyPrompt || entry.agent.id === onlyPrompt)
    && (!query || textOf(entry).toLowerCase().includes(query)));
  listed.sort(ORDERS[get("order")]);
  $("rows").replaceChildren();
  shown = 0;
  showMore();
  $("count").replaceChildren(describeCount(listed));
  if (!onlyPrompt) return;
  const clear = make("button", { type: "button", class: "link" }, "show all");
  clear.addEventListener("click", () => {
    onlyPrompt = null;
    filterList();
    $("count").scrollIntoView({ block: "center" });
  });
  $("count").append(` where the agent has ${onlyPrompt}. `, clear);
}

/**
 * From the table of prompts: opens the first conversation in which the agent had this prompt.
 * Arrows lead to the others.
 */
function readPrompt(prompt, series, button) {
  $("filters").reset();
  onlyPrompt = prompt;
  if ($("filters").elements.series) $("filters").elements.series.value = series;
  filterList();
  openReader(listed[0], button);
}

// --- the reader ----------------------------------------------------------------------------------

const unpacked = new Map(); // promises of chunks, by number

/** The texts of a conversation; a packed chunk is unpacked once. */
async function textsOf(place) {
  const number = Math.floor(place / index.perChunk);
  if (!unpacked.has(number)) {
    const node = $(`chunk-${number}`);
    const isPacked = "packed" in node.dataset;
    const text = node.textContent;
    unpacked.set(number, isPacked ? unpack(text) : Promise.resolve(JSON.parse(text)));
  }
  return (await unpacked.get(number))[place % index.perChunk];
}

async function unpack(base64) {
  if (!("DecompressionStream" in window)) {
    throw new Error("This browser cannot unpack the texts; read them in records.jsonl, or use a"
      + " browser from 2023 or later.");
  }
  const bytes = Uint8Array.from(atob(base64), (character) => character.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
  return new Response(stream).json();
}

/** The system prompt of a speaker. */
function promptSection(role, prompt) {
  const title = role === "agent" ? "The agent is told" : "The user is told";
  const names = [prompt.category, prompt.id].filter(Boolean).join(" · ").replace("_", " ");
  return make("section", { class: `brief ${role}` }, make("h3", {}, title),
    make("p", prompt.text ? { dir: "auto" } : { class: "nothing" }, prompt.text || "nothing"),
    make("p", { class: "meta" }, names));
}

/** A text of a model; "(empty reply)" if it is empty. */
const modelText = (tag, kind, text) =>
  make(tag, { class: text ? kind : `${kind} nothing`, dir: "auto" }, text || "(empty reply)");

function probeCard([, kind, question, reply, score, reason, mass, rule, note]) {
  const isOwn = kind !== "adoption";
  const isOfRule = kind !== "canary" && kind !== "recall";
  const about = isOwn ? `keeps ${rule || "its own"}` : `takes on ${rule || "the other’s"}`;
  const title = [`probe: ${isOfRule ? about : kind}`, note].filter(Boolean).join(" · ");
  const result = score === null
    ? make("span", {}, "not judged")
    : make("span", { class: "score" },
      make("i", { "--v": score, "aria-hidden": "true" }), fixed(score));
  return make("div", { class: `probe ${isOwn ? "keep" : "take"}` },
    make("header", {}, title, result),
    make("p", { class: "question", dir: "auto" }, index.questions[question]),
    modelText("p", "reply", reply),
    make("p", { class: "reason" }, reason, mass !== null && ` · mass ${mass.toFixed(3)}`));
}

function turnBubble([, speaker, text, note, mass]) {
  const notes = [speaker, note, mass !== null && `mass ${mass.toFixed(3)}`].filter(Boolean);
  return make("div", { class: `turn ${speaker}` },
    make("p", { class: "name" }, notes.join(" · ")), modelText("div", "bubble", text));
}

/** A round of the conversation, with its probes before or after its turns, as they were asked. */
function roundPart(round, { turns, probes }, isProbedAfter) {
  const probesOfRound = probes.filter((probe) => probe[0] === round);
  const turnsOfRound = turns.filter((turn) => turn[0] === round);
  const cards = probesOfRound.length > 0
    && make("div", { class: "probes" }, ...probesOfRound.map(probeCard));
  return make("section", { class: "round" }, make("h3", {}, `Round ${round}`),
    !isProbedAfter && cards, ...turnsOfRound.map(turnBubble), isProbedAfter && cards);
}

let current = null; // the entry that is open
let opener = null; // the element that gets the focus back

function addressOf(entry) {
  const series = entry.seriesAt ? `-series-${entry.seriesAt + 1}` : "";
  return `#conversation-${entry.number}${series}`;
}

/**
 * Puts the open conversation into the address. A new entry in the history lets Back close it. An
 * embedded copy of the page has no address of its own, so that browsers refuse.
 */
function setAddress(hash, isNew = false) {
  const address = hash || location.pathname + location.search;
  try {
    if (isNew) history.pushState("reader", "", address);
    else history.replaceState(history.state, "", address);
  } catch { /* the page works without */ }
}

/** Buttons for the same conversation in each series of its run. */
function seriesButtons(entry) {
  const body = $("reader-body");
  const alike = entries.filter((other) =>
    other.number === entry.number && other.series.run === entry.series.run);
  return alike.map((other) => {
    const attributes = { type: "button", "aria-pressed": String(other === entry) };
    const button = make("button", attributes, other.series.label);
    button.addEventListener("click", async () => {
      const top = body.scrollTop;
      await openReader(other);
      body.scrollTop = top;
      $("reader-methods").querySelector("[aria-pressed=true]").focus();
    });
    return button;
  });
}

/** Shows a conversation; in the end the focus returns to `from`, or to its row in the list. */
async function openReader(entry, from = null) {
  current = entry;
  if (from) opener = from;
  const reader = $("reader");
  const body = $("reader-body");
  $("reader-title").textContent = `Conversation ${entry.number}`;
  $("reader-methods").replaceChildren(...seriesButtons(entry));
  const position = listed.indexOf(entry);
  $("previous").disabled = position <= 0;
  $("next").disabled = position < 0 || position >= listed.length - 1;
  body.replaceChildren(make("p", { class: "nothing" }, "Unpacking …"));
  if (location.hash !== addressOf(entry)) setAddress(addressOf(entry), !reader.open);
  if (!reader.open) {
    reader.showModal();
    $("reader-title").focus();
  }
  try {
    const data = await textsOf(entry.place);
    if (current !== entry) return;
    const numbers = new Set([...data.turns, ...data.probes].map((item) => item[0]));
    const rounds = [...numbers].sort((a, b) => a - b);
    body.replaceChildren(
      make("div", { class: "briefs" },
        promptSection("agent", entry.agent),
        !entry.series.isGiven && promptSection("user", entry.user)),
      ...rounds.map((round) => roundPart(round, data, entry.series.probedAfter)),
      data.ended ? make("p", { class: "ended", dir: "auto" }, data.ended) : "");
    body.scrollTop = 0;
  } catch (error) {
    body.replaceChildren(make("p", { role: "alert" }, error.message));
  }
}

function setUpReader() {
  const reader = $("reader");
  const linked = () => entries.find((entry) => addressOf(entry) === location.hash);

  /** Opens a neighbour in the list. */
  function step(by) {
    const next = listed[listed.indexOf(current) + by];
    if (listed.includes(current) && next) openReader(next);
  }

  /** Takes the conversation out of the address, and gives the focus back. */
  function leave() {
    if (linked() && history.state === "reader") history.back();
    else if (linked()) setAddress("");
    (opener || document.querySelector(`.row[data-place="${current.place}"]`))?.focus();
    opener = null;
  }

  /** Opens the conversation that the address names. */
  function follow() {
    if (linked()) openReader(linked());
    else reader.close();
  }

  $("previous").addEventListener("click", () => step(-1));
  $("next").addEventListener("click", () => step(1));
  $("close").addEventListener("click", () => reader.close());
  reader.addEventListener("click", (event) => { if (event.target === reader) reader.close(); });
  reader.addEventListener("close", leave);
  addEventListener("popstate", follow);
  follow();
}

setUpPrompts();
$("filters").addEventListener("input", () => {
  onlyPrompt = null;
  filterList();
});
$("filters").addEventListener("submit", (event) => event.preventDefault());
$("more").addEventListener("click", () => {
  const start = shown;
  showMore();
  $("rows").children[start]?.querySelector("button").focus();
});
filterList();
setUpReader();
