// The page: asks the server what it offers, draws the state, and connects the controls.

import { answering } from "./answering.js";
import { massChart } from "./charts.js";
import { columnHead } from "./columns.js";
import { announce, button, byId, make } from "./dom.js";
import { emphasisBox, emphasisTool } from "./emphasis.js";
import { apiKey, getJson, keepApiKey } from "./server.js";
import { problemOf } from "./settings.js";
import { keepState, keptState, LETTERS, MAX_COLUMNS, newColumn, newState, passage }
  from "./state.js";
import { SHADES } from "./tokens.js";

// similar to the prompts of the starter suite, which the default model was trained to follow
const EXAMPLES = [
  ["Pirate", "Talk like a pirate.", "What do you think about the garden?"],
  ["French", "Reply in French.", "Please talk about the sea."],
  ["Capitals", "Write everything in capital letters.", "Is there anything good about the museum?"],
  ["Secret number", "Your secret number is 2959.", "What is your number?"],
  ["Motto", "Finish with the motto: Mind the bees.", "Give me your view of the river."],
  ["Wizard", "Answer like a wizard with a magic wand.",
    "Do you have something to say about tennis?"],
  ["Two languages", "Use French followed by the English meaning in parentheses.",
    "Please talk about chocolate."],
].map(([name, system, message]) => ({ name, system, message }));
const STEERINGS = ["none", "boost:factor=4", "split-softmax:exponent=0.5", "spotlight:target=0.3"];
const MAX_TOKENS = 4096; // of a reply, if the server names no limit

let state = newState(["none"], MAX_TOKENS);
const page = { state: () => state, list: byId("turns"), server: null, progressed, keyWanted, notice,
  isValid, settled: () => drawEmphasis() }; // replies drawn anew have lost their highlights
let chats, drawEmphasis, drawBoxes, drawChart; // set once the server has answered
let isFrameRequested = false; // whether `progressed` draws in the next frame
let wasBusy = false; // whether a reply was running at the last frame
let atEnd = true; // whether the page follows the end of the dialog
let lastScroll = 0;

function notice(text) {
  byId("notice-text").textContent = text;
  byId("notice").hidden = !text;
}

/** Whether the settings of these columns are valid; if not, a notice says why. */
function isValid(columns) {
  const problem = columns.map((column) => problemOf(column, page.server)).find(Boolean);
  notice(problem ?? "");
  return !problem;
}

/** Opens the field for the API key. */
function keyWanted() {
  byId("key-details").open = true;
  byId("key").focus();
}

const keyProblem = () => apiKey()
  ? "The server does not accept this API key; enter another one."
  : "This server has an API key; enter it to begin.";

/** Asks the server what it offers, and draws the state that was kept for it, or a new one. */
async function begin() {
  try {
    const [steering, models] = await Promise.all([getJson("/v1/steering"), getJson("/v1/models")]);
    page.server = serverOf(steering, models.data[0].id);
    const other = steering.default ?? "none";
    state = keptState(page.server.name)
      ?? newState(["none", other === "none" ? STEERINGS[1] : other], page.server.maxTokens);
    drawExamples(steering.prompts?.length ? steering.prompts : EXAMPLES);
  } catch (error) {
    if (error.status === 401) keyWanted();
    notice(error.status === 401 ? keyProblem() : error.message);
    return;
  }
  notice("");
  const { name, layers, heads } = page.server;
  byId("model").textContent = layers ? `${name}, ${layers} layers of ${heads} heads` : name;
  chats = answering(page);
  drawEmphasis = emphasisTool(page.state, drawTexts);
  drawBoxes = ["system", "draft"].map((box) => emphasisBox(box, page.state, () => drawEmphasis()));
  drawChart = massChart(byId("chart"));
  drawColumns();
  chats.draw();
  byId("empty").hidden = state.turns.length > 0;
  drawTexts();
  progressed();
  byId("send").disabled = false;
}

/** The facts about the server that the page needs. */
function serverOf({ methods, attention: traces = true, layers, heads, limits }, name) {
  const { max_tokens: most = MAX_TOKENS, max_model_len: context } = limits ?? {};
  const needsFile = (method) => method.parameters.required.includes("file"); // fitted, and unknown
  return { name, methods: methods.filter((method) => !needsFile(method)), traces,
    layers: layers ?? 0, heads: heads ?? 0, maxTokens: Math.min(most, context ?? most) };
}

function drawTexts() {
  for (const draw of drawBoxes) draw();
  drawEmphasis();
}

function drawColumns() {
  const heads = state.columns.map((column) => columnHead(column, page.server, {
    changed: () => (notice(""), progressed()),
    remove: () => removeColumn(column),
    again: () => chats.anew(column),
  }));
  byId("columns").replaceChildren(...heads);
  byId("add-column").hidden = heads.length >= MAX_COLUMNS;
  document.documentElement.style.setProperty("--columns", state.columns.length);
}

function addColumn() {
  const taken = state.columns.map((column) => column.key);
  const key = STEERINGS.findIndex((_, free) => !taken.includes(free));
  const column = newColumn(key, STEERINGS[key], page.server.maxTokens);
  state.columns = [...state.columns, column].sort((a, b) => a.key - b.key);
  drawColumns();
  announce(`Column ${LETTERS[key]} is added.`);
  document.querySelector(`[data-column="${key}"] select`).focus();
  if (state.turns.length) chats.answerColumn(column);
}

function removeColumn(column) {
  if (state.columns.length === 1) return announce("The last column cannot be removed.");
  chats.drop(column.key);
  state.columns = state.columns.filter((other) => other !== column);
  for (const turn of state.turns) delete turn.replies[column.key];
  drawColumns();
  drawTexts();
  progressed();
}

/** Draws the chart and the buttons after tokens have come or a reply has ended, once per frame. */
function progressed() {
  if (isFrameRequested) return;
  isFrameRequested = true;
  requestAnimationFrame(() => {
    isFrameRequested = false;
    const busy = chats.busy();
    byId("stop").hidden = !busy;
    byId("send").hidden = busy;
    drawChart(state);
    if ((busy || wasBusy) && atEnd) scrollTo({ top: endOfDialog() });
    wasBusy = busy;
  });
}

/** The scroll position at which the end of the dialog is at the end of the window. */
const endOfDialog = () =>
  document.querySelector("main").getBoundingClientRect().bottom + scrollY - innerHeight;

/** Stops following the end of the dialog when the user scrolls up, until they are back there. */
function noteScroll() {
  if (scrollY < lastScroll) atEnd = false;
  if (scrollY > endOfDialog() - 120) atEnd = true;
  lastScroll = scrollY;
}

function send() {
  if (!state.draft.text.trim() || chats.busy() || !isValid(state.columns)) return;
  state.turns.push({ user: state.draft, replies: {} });
  state.draft = passage();
  byId("empty").hidden = true;
  atEnd = true;
  chats.answer();
  drawTexts();
}

/** Draws the system prompts to choose from. The names of a suite's prompts may end in "-1". */
function drawExamples(examples) {
  const use = ({ system, message }) => {
    state.system = passage(system);
    if (!state.turns.length && message) state.draft = passage(message);
    drawTexts();
    byId("draft").focus();
    byId("draft").select(); // typing replaces the suggested message
  };
  const nameOf = ({ name }) => name.replace(/-1$/, "").replaceAll("-", " ");
  byId("examples").replaceChildren(...examples.map((example) =>
    make("li", button("chip", nameOf(example), () => use(example), { title: example.system }))));
}

function clear() {
  chats.clear();
  state.turns = [];
  byId("empty").hidden = false;
  drawTexts();
  progressed();
  byId("draft").focus();
}

/** Connects the controls that need no answer of the server. */
function wire() {
  const onSubmit = (id, act) => byId(id).addEventListener("submit", (event) => {
    event.preventDefault();
    act();
  });
  byId("legend").append(...SHADES.map((least, shade) =>
    make(`span.m${shade}`, String(least).replace(/^0\./, "."))));
  onSubmit("composer", send);
  onSubmit("key-form", () => {
    keepApiKey(byId("key").value.trim());
    byId("key-details").open = false;
    if (!page.server) begin();
  });
  byId("draft").addEventListener("keydown", (event) => {
    if (event.key !== "Enter" || event.shiftKey || event.isComposing) return;
    event.preventDefault();
    send();
  });
  byId("stop").onclick = () => chats.stop();
  document.addEventListener("keydown", ({ key, isComposing, defaultPrevented }) => {
    if (key === "Escape" && !isComposing && !defaultPrevented) chats?.stop();
  });
  byId("clear").onclick = clear;
  byId("add-column").onclick = addColumn;
  byId("notice-close").onclick = () => notice("");
  byId("key").value = apiKey();
  addEventListener("scroll", noteScroll, { passive: true });
  addEventListener("pagehide", () => page.server && keepState(state, page.server.name));
}

wire();
begin();
