// The page: reads what the server offers, draws the state, and wires what the reader can do.

import { answering } from "./answering.js";
import { makeCharts } from "./charts.js";
import { addButton, columnHead } from "./columns.js";
import { announce, button, byId, make } from "./dom.js";
import { emphasisBox, emphasisTool } from "./emphasis.js";
import { selfchats } from "./selfchat.js";
import { apiKey, getJson, keepApiKey } from "./server.js";
import { LETTERS, newColumn, newState, passage } from "./state.js";
import { SHADES } from "./tokens.js";

// in the manner of the starter suite, which the default model was trained to follow
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

let state = newState(["none"]);
const page = { state: () => state, list: byId("turns"), server: null, progressed, notice, keyWanted,
  settled: () => drawEmphasis() }; // replies that were drawn anew have lost their highlights
let chats, selves, drawEmphasis, drawBoxes, charts;
let drawing = false;

function notice(text) {
  byId("notice-text").textContent = text;
  byId("notice").hidden = !text;
}

function keyWanted() {
  byId("key-details").open = true;
  byId("key").focus();
}

async function begin() {
  try {
    const [steering, models] = await Promise.all([getJson("/v1/steering"), getJson("/v1/models")]);
    const { methods, attention: traces = true } = steering;
    const [layers, heads] = [steering.layers ?? 0, steering.heads ?? 0];
    const other = steering.default ?? "none";
    state = newState(["none", other === "none" ? STEERINGS[1] : other]);
    if (steering.prompts?.length) state.selfchat.suite = steering.suites[0];
    drawChoices(steering);
    page.server = { name: models.data[0].id, methods, layers, heads, traces };
  } catch (error) {
    notice(error.message);
    if (error.status === 401) keyWanted();
    return;
  }
  notice("");
  const { name, layers, heads } = page.server;
  byId("model").textContent = layers ? `${name}, ${layers} layers of ${heads} heads` : name;
  chats = answering(page);
  selves = selfchats(page);
  drawEmphasis = emphasisTool(page.state, drawTexts);
  drawBoxes = ["system", "draft"].map((box) => emphasisBox(box, page.state, () => drawEmphasis()));
  charts = makeCharts();
  drawColumns();
  for (const name of ["suite", "conversation", "seed", "rounds"])
    byId(`selfchat-${name}`).value = state.selfchat[name];
  drawTexts();
  progressed();
  byId("send").disabled = false;
}

function drawTexts() {
  for (const draw of drawBoxes) draw();
  drawEmphasis();
}

function drawColumns() {
  const heads = state.columns.map((column) => columnHead(column, page.server.methods, {
    changed: progressed,
    remove: () => removeColumn(column),
    again: () => chats.anew(column),
  }));
  const add = addButton(state.columns, addColumn);
  byId("columns").replaceChildren(...heads, ...(add ? [add] : []));
  document.documentElement.style.setProperty("--columns", state.columns.length);
}

function addColumn() {
  const taken = state.columns.map((column) => column.key);
  const key = STEERINGS.findIndex((_, free) => !taken.includes(free));
  const column = newColumn(key, STEERINGS[key]);
  state.columns = [...state.columns, column].sort((a, b) => a.key - b.key);
  drawColumns();
  announce(`Column ${LETTERS[key]} is added.`);
  document.querySelector(`[data-column="${key}"] select`).focus();
  if (state.turns.length) chats.answerColumn(column);
}

function removeColumn(column) {
  if (state.columns.length === 1) return announce("The last column stays.");
  chats.drop(column.key);
  selves.drop(column.key);
  state.columns = state.columns.filter((other) => other !== column);
  for (const turn of state.turns) delete turn.replies[column.key];
  drawColumns();
  drawTexts();
  progressed();
}

/** Something came or ran out: charts and buttons are drawn once per frame. */
function progressed() {
  if (drawing) return;
  drawing = true;
  requestAnimationFrame(() => {
    drawing = false;
    const busy = chats.busy() || selves.busy();
    byId("stop").hidden = !busy;
    byId("send").hidden = busy;
    byId("talk").disabled = busy;
    charts[state.mode](state);
    if ((busy || wasBusy) && atEnd) scrollTo({ top: endOfDialog() });
    wasBusy = busy;
  });
}

let [atEnd, lastScroll, wasBusy] = [true, 0, false]; // whether the reader looks at the dialog's end

/** Where the page is scrolled to when the end of the dialog is at the window's. */
const endOfDialog = () =>
  document.querySelector("main").getBoundingClientRect().bottom + scrollY - innerHeight;

/** The reader who scrolls up stays there, until back at the end. */
function noteScroll() {
  if (scrollY < lastScroll) atEnd = false;
  if (scrollY > endOfDialog() - 120) atEnd = true;
  lastScroll = scrollY;
}

function stop() {
  chats.stop();
  selves.stop();
}

function send() {
  if (!state.draft.text.trim() || chats.busy()) return;
  state.turns.push({ user: state.draft, replies: {} });
  state.draft = passage();
  byId("empty").hidden = true;
  atEnd = true;
  chats.answer();
  drawTexts();
}

function choose(name) {
  state.mode = name;
  document.body.dataset.mode = name;
  byId(`mode-${name}`).checked = true;
  progressed();
}

function startSelfchat() {
  if (!byId("selfchat-form").reportValidity()) return;
  for (const name of ["conversation", "seed", "rounds"])
    state.selfchat[name] = Number(byId(`selfchat-${name}`).value);
  state.selfchat.suite = byId("selfchat-suite").value;
  choose("selfchat");
  atEnd = true;
  selves.start();
}

/** The system prompts and suites to choose from: the operator's own, or those of the package. */
function drawChoices({ prompts, suites = ["starter", "core"] }) {
  const use = ({ system, message }) => {
    state.system = passage(system);
    if (!state.turns.length && message) state.draft = passage(message);
    drawTexts();
    byId("draft").focus();
  };
  const examples = prompts?.length ? prompts : EXAMPLES;
  byId("examples").replaceChildren(...examples.map((example) =>
    make("li", button("chip", example.name, () => use(example), { title: example.system }))));
  byId("selfchat-suite").replaceChildren(...suites.map((name) => make("option", name)));
}

function clear() {
  chats.clear();
  state.turns = [];
  byId("empty").hidden = false;
  drawTexts();
  progressed();
  byId("draft").focus();
}

function wire() {
  const onSubmit = (id, act) => byId(id).addEventListener("submit", (event) => {
    event.preventDefault();
    act();
  });
  byId("legend").append(...SHADES.map((least, shade) =>
    make(`span.m${shade}`, String(least).replace(/^0\./, "."))));
  onSubmit("composer", send);
  onSubmit("selfchat-form", () => {});
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
  byId("stop").onclick = stop;
  byId("clear").onclick = clear;
  byId("talk").onclick = startSelfchat;
  byId("another").onclick = () =>
    (byId("selfchat-conversation").value = Math.floor(Math.random() * 1000));
  for (const name of ["dialog", "selfchat"]) byId(`mode-${name}`).onchange = () => choose(name);
  byId("notice-close").onclick = () => notice("");
  byId("key").value = apiKey();
  addEventListener("scroll", noteScroll, { passive: true });
}

wire();
begin();
