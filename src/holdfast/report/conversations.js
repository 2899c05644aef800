// The prompts, the list of conversations and their reader; follows page.js.

// --- the table of prompts ------------------------------------------------------------------------------------

function setUpPrompts() {
  const table = $("prompt-table"), body = table.tBodies[0], rows = [...body.rows];
  function filter() {
    const series = $("prompt-series").value, query = $("prompt-find").value.toLowerCase();
    let shown = 0;
    for (const row of rows) {
      row.hidden = row.dataset.series !== series || !row.cells[0].textContent.toLowerCase().includes(query);
      shown += !row.hidden;
    }
    $("prompt-count").textContent = `${shown} ${shown === 1 ? "prompt" : "prompts"}`;
  }
  for (const head of table.querySelectorAll("th[data-sort]")) head.querySelector("button").addEventListener("click", () => {
    const up = head.getAttribute("aria-sort") !== "ascending", sign = up ? 1 : -1;
    for (const other of table.querySelectorAll("[aria-sort]")) other.removeAttribute("aria-sort");
    head.setAttribute("aria-sort", up ? "ascending" : "descending");
    const value = (row) => row.cells[head.cellIndex].dataset.value;
    const compare = head.dataset.sort === "number" ? (a, b) => value(a) - value(b) : (a, b) => value(a).localeCompare(value(b));
    body.append(...rows.sort((a, b) => sign * compare(a, b)));
  });
  for (const button of document.querySelectorAll("[data-prompt]")) button.addEventListener("click", () => readPrompt(button.dataset.prompt, button.dataset.of, button));
  $("prompt-series").addEventListener("change", filter);
  $("prompt-find").addEventListener("input", filter);
  filter();
}

// --- the list of conversations -------------------------------------------------------------------------------

const index = JSON.parse($("index").textContent);
const FIRST = 10, MORE = 40;
let listed = [], shown = 0, onlyPrompt = null;

const entries = index.rows.map(([series, number, agent, user, stability, adoption, ended], place) => {
  const scores = stability.filter((v) => v !== null), adopted = adoption.filter((v) => v !== null);
  return {
    place, series: index.series[series], seriesAt: series, number, agent: index.prompts[agent], user: index.prompts[user], stability, adoption, ended,
    scores, first: scores[0] ?? null, last: scores.at(-1) ?? null, mean: scores.length ? scores.reduce((a, b) => a + b) / scores.length : null,
    firstAdoption: adopted[0] ?? null, lastAdoption: adopted.at(-1) ?? null,
  };
});

const SCORES = {
  lost: (e) => e.first > 0.5 && e.last <= 0.5, never: (e) => e.scores.length && e.scores.every((v) => v <= 0.5), held: (e) => e.scores.length && e.scores.every((v) => v > 0.5),
  adopted: (e) => e.lastAdoption !== null && e.lastAdoption >= 0.5,
};
const ORDERS = {
  number: (a, b) => a.place - b.place, fall: (a, b) => (a.last - a.first) - (b.last - b.first) || a.place - b.place,
  low: (a, b) => a.mean - b.mean || a.place - b.place,
};
const fixed = (value) => (value === null ? "–" : value.toFixed(2));

function strip(name, kind, values, first, last) {
  const cells = values.map((v) => make("i", v === null ? { class: "none" } : { "--v": v }));
  return make("span", { class: `strip ${kind}` }, make("span", {}, name), make("span", { class: `cells${values.length > 16 ? " many" : ""}`, "aria-hidden": "true" }, ...cells), make("span", {}, `${fixed(first)} → ${fixed(last)}`));
}

function listRow(entry) {
  const promptLine = (role, prompt) => make("span", { class: "said clamp" }, make("span", { class: "role" }, role), prompt.text || "(no prompt)");
  const button = make("button", { type: "button", class: "row", "data-place": entry.place },
    make("span", { class: "head" }, make("span", { class: "who" }, `#${entry.number} `), make("span", { class: "method" }, entry.series.label),
      entry.ended !== null && make("span", { class: "meta" }, ` ended in round ${entry.ended}`)),
    make("span", { class: "lines" }, promptLine("agent", entry.agent), !entry.series.isGiven && promptLine("user", entry.user)),
    make("span", { class: "strips" }, strip("stability", "keep", entry.stability, entry.first, entry.last),
      entry.lastAdoption !== null && strip("adoption", "take", entry.adoption, entry.firstAdoption, entry.lastAdoption)));
  button.addEventListener("click", () => openReader(entry));
  return make("li", {}, button);
}

function more() {
  const upTo = Math.min(listed.length, shown + (shown ? MORE : FIRST));
  $("rows").append(...listed.slice(shown, upTo).map(listRow));
  shown = upTo;
  $("more").hidden = shown >= listed.length;
  const left = listed.length - shown;
  $("more").textContent = left > MORE ? `Show ${MORE} of ${left} more` : `Show ${left} more`;
}

/** "12 of 96 conversations"; if the list has several series, also the number of rows. */
function describeCount(some) {
  const number = (list) => new Set(list.map((e) => e.number)).size, all = number(entries);
  const shown = `${number(some)} of ${all} ${all === 1 ? "conversation" : "conversations"}`;
  return index.series.length > 1 ? `${shown}, in ${some.length} of ${entries.length} rows` : shown;
}

function filterList() {
  const form = $("filters").elements, get = (name) => (form[name] ? form[name].value : "");
  const query = get("find").toLowerCase();
  listed = entries.filter((e) => (get("series") === "" || e.seriesAt === +get("series"))
    && (!get("category") || e.agent.category === get("category")) && (!get("score") || SCORES[get("score")](e))
    && (!onlyPrompt || e.agent.id === onlyPrompt)
    && (!query || `${e.agent.text} ${e.agent.id} ${e.user.text} ${e.user.id}`.toLowerCase().includes(query)));
  listed.sort(ORDERS[get("order")]);
  $("rows").replaceChildren();
  shown = 0;
  more();
  $("count").replaceChildren(describeCount(listed));
  if (onlyPrompt) {
    const clear = make("button", { type: "button", class: "link" }, "show all");
    clear.addEventListener("click", () => { onlyPrompt = null; filterList(); $("count").scrollIntoView({ block: "center" }); });
    $("count").append(` where the agent has ${onlyPrompt}. `, clear);
  }
}

/** From the table of prompts: opens the first conversation in which the agent had this prompt; arrows lead to the others. */
function readPrompt(prompt, series, button) {
  $("filters").reset();
  onlyPrompt = prompt;
  if ($("filters").elements.series) $("filters").elements.series.value = series;
  filterList();
  openReader(listed[0], button);
}

// --- the reader ----------------------------------------------------------------------------------------------

const unpacked = new Map();

/** The texts of a conversation; a packed chunk is unpacked once. */
async function texts(place) {
  const at = Math.floor(place / index.perChunk);
  if (!unpacked.has(at)) {
    const node = $(`chunk-${at}`);
    unpacked.set(at, "packed" in node.dataset ? unpack(node.textContent) : Promise.resolve(JSON.parse(node.textContent)));
  }
  return (await unpacked.get(at))[place % index.perChunk];
}

async function unpack(base64) {
  if (!("DecompressionStream" in window)) throw new Error("This browser cannot unpack the texts; read them in records.jsonl, or use a browser from 2023 or later.");
  const bytes = Uint8Array.from(atob(base64), (c) => c.charCodeAt(0));
  return new Response(new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"))).json();
}

function brief(role, prompt) {
  return make("section", { class: `brief ${role}` }, make("h3", {}, role === "agent" ? "The agent is told" : "The user is told"),
    prompt.text ? make("p", { dir: "auto" }, prompt.text) : make("p", { class: "nothing" }, "nothing"),
    make("p", { class: "meta" }, [prompt.category, prompt.id].filter(Boolean).join(" · ").replace("_", " ")));
}

const written = (tag, kind, text) => make(tag, { class: text ? kind : `${kind} nothing`, dir: "auto" }, text || "(empty reply)");

function probeCard([, kind, question, reply, score, reason, mass, rule, note]) {
  const own = kind !== "adoption";
  const about = own ? `keeps ${rule || "its own"}` : `takes on ${rule || "the other’s"}`;
  const what = kind === "canary" || kind === "recall" ? kind : about;
  return make("div", { class: `probe ${own ? "keep" : "take"}` },
    make("header", {}, [`probe: ${what}`, note].filter(Boolean).join(" · "), score === null ? make("span", {}, "not judged")
      : make("span", { class: "score" }, make("i", { "--v": score, "aria-hidden": "true" }), fixed(score))),
    make("p", { class: "question", dir: "auto" }, index.questions[question]), written("p", "reply", reply),
    make("p", { class: "reason" }, reason, mass !== null && ` · mass ${mass.toFixed(3)}`));
}

function turnBubble([, speaker, text, note, mass]) {
  const notes = [speaker, note, mass !== null && `mass ${mass.toFixed(3)}`].filter(Boolean);
  return make("div", { class: `turn ${speaker}` }, make("p", { class: "name" }, notes.join(" · ")), written("div", "bubble", text));
}

/** A round of the conversation; its probes come where they were asked, before its turns or after them. */
function roundPart(round, { turns, probes }, probedAfter) {
  const probesOfRound = probes.filter((p) => p[0] === round), turnsOfRound = turns.filter((t) => t[0] === round);
  const cards = probesOfRound.length > 0 && make("div", { class: "probes" }, ...probesOfRound.map(probeCard));
  return make("section", { class: "round" }, make("h3", {}, `Round ${round}`),
    !probedAfter && cards, ...turnsOfRound.map(turnBubble), probedAfter && cards);
}

let current = null, opener = null;

const addressOf = (entry) => `#conversation-${entry.number}${entry.seriesAt ? `-series-${entry.seriesAt + 1}` : ""}`;

/** Puts the open conversation into the address, where the place of the page allows it; a new entry in the history lets Back close it. */
function setAddress(hash, isNew = false) {
  const address = hash || location.pathname + location.search;
  try { isNew ? history.pushState("reader", "", address) : history.replaceState(history.state, "", address); } catch { /* an embedded copy has no address of its own */ }
}

/** Shows a conversation; the focus goes back to `from` at the end, or to its row in the list. */
async function openReader(entry, from = null) {
  current = entry;
  if (from) opener = from;
  const reader = $("reader"), body = $("reader-body");
  $("reader-title").textContent = `Conversation ${entry.number}`;
  const alike = entries.filter((e) => e.number === entry.number && e.series.run === entry.series.run);
  $("reader-methods").replaceChildren(...alike.map((other) => {
    const button = make("button", { type: "button", "aria-pressed": String(other === entry) }, other.series.label);
    button.addEventListener("click", async () => { const top = body.scrollTop; await openReader(other); body.scrollTop = top; $("reader-methods").querySelector("[aria-pressed=true]").focus(); });
    return button;
  }));
  const at = listed.indexOf(entry);
  $("previous").disabled = at <= 0;
  $("next").disabled = at < 0 || at >= listed.length - 1;
  body.replaceChildren(make("p", { class: "nothing" }, "Unpacking …"));
  if (location.hash !== addressOf(entry)) setAddress(addressOf(entry), !reader.open);
  if (!reader.open) { reader.showModal(); $("reader-title").focus(); }
  try {
    const data = await texts(entry.place);
    if (current !== entry) return;
    const rounds = [...new Set([...data.turns, ...data.probes].map((item) => item[0]))].sort((a, b) => a - b);
    body.replaceChildren(make("div", { class: "briefs" }, brief("agent", entry.agent), !entry.series.isGiven && brief("user", entry.user)),
      ...rounds.map((round) => roundPart(round, data, entry.series.probedAfter)),
      data.ended ? make("p", { class: "ended", dir: "auto" }, data.ended) : "");
    body.scrollTop = 0;
  } catch (error) {
    body.replaceChildren(make("p", { role: "alert" }, error.message));
  }
}

function setUpReader() {
  const reader = $("reader");
  const step = (by) => { const next = listed[listed.indexOf(current) + by]; if (listed.includes(current) && next) openReader(next); };
  $("previous").addEventListener("click", () => step(-1));
  $("next").addEventListener("click", () => step(1));
  $("close").addEventListener("click", () => reader.close());
  reader.addEventListener("click", (event) => { if (event.target === reader) reader.close(); });
  reader.addEventListener("close", () => {
    if (linked()) history.state === "reader" ? history.back() : setAddress("");
    (opener || document.querySelector(`.row[data-place="${current.place}"]`))?.focus();
    opener = null;
  });
  const linked = () => entries.find((entry) => addressOf(entry) === location.hash);
  const follow = () => (linked() ? openReader(linked()) : reader.close());
  addEventListener("popstate", follow);
  follow();
}

setUpPrompts();
$("filters").addEventListener("input", () => { onlyPrompt = null; filterList(); });
$("filters").addEventListener("submit", (event) => event.preventDefault());
$("more").addEventListener("click", () => { const from = shown; more(); $("rows").children[from]?.querySelector("button").focus(); });
filterList();
setUpReader();
