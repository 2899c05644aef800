// The page: reads what the server offers, draws the state, and wires what the reader can do.

import { answering } from "./answering.js";
import { makeCharts } from "./charts.js";
import { addButton, columnHead } from "./columns.js";
import { copying } from "./copying.js";
import { announce, byId, make } from "./dom.js";
import { emphasisBox, emphasisTool } from "./emphasis.js";
import { EXAMPLES } from "./examples.js";
import { selfchats } from "./selfchat.js";
import { stateOf } from "./share.js";
import { freshColumn, freshState, LETTERS, MOST_COLUMNS, passage } from "./state.js";
import { apiKey, getJson, keepApiKey } from "./stream.js";
import { SHADES } from "./tokens.js";

let state = freshState(["none"]);
const page = {
  state: () => state,
  list: byId("turns"),
  server: null,
  progressed,
  settled,
  notice,
  keyWanted,
};
let chats, selves, emphasis, boxes, charts;
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
    if (!page.server) {
      const other = steering.default ?? "none";
      state = freshState(["none", other === "none" ? "boost:factor=4" : other]);
      if (steering.prompts?.length) state.selfchat.suite = steering.suites[0];
      drawChoices(steering);
    }
    page.server = {
      name: models.data[0].id,
      methods: steering.methods,
      layers: steering.layers ?? 0,
      heads: steering.heads ?? 0,
      traces: steering.attention ?? true,
    };
  } catch (error) {
    notice(error.message);
    if (error.status === 401) keyWanted();
    return;
  }
  notice("");
  const { name, layers, heads } = page.server;
  byId("model").textContent = layers ? `${name}, ${layers} layers of ${heads} heads` : name;
  chats ??= answering(page);
  selves ??= selfchats(page);
  emphasis ??= emphasisTool(() => state, drawTexts);
  boxes ??= ["system", "draft"].map((name) =>
    emphasisBox(
      byId(name),
      byId(`${name}-shadow`),
      () => state[name],
      () => emphasis.draw(),
    ),
  );
  charts ??= makeCharts();
  await readLink();
  byId("send").disabled = false;
}

async function readLink() {
  let read = null;
  try {
    read = await stateOf(location.hash);
  } catch (error) {
    notice(error.message);
  }
  if (read) state = read;
  drawAll();
}

// Drawing

function drawAll() {
  chats.clear();
  drawColumns();
  drawSelfchatSettings();
  chats.drawTurns();
  selves.draw();
  drawTexts();
  choose(state.mode);
  byId("empty").hidden = state.turns.length > 0;
}

function drawTexts() {
  for (const box of boxes) box.draw();
  emphasis.draw();
}

function drawColumns() {
  const heads = state.columns.map((column) =>
    columnHead(column, page.server.methods, {
      changed: progressed,
      remove: () => removeColumn(column),
      again: () => chats.anew(column),
    }),
  );
  byId("columns").replaceChildren(
    ...heads,
    ...[addButton(state.columns, addColumn)].filter(Boolean),
  );
  document.documentElement.style.setProperty("--columns", state.columns.length);
}

function addColumn() {
  const key = [...LETTERS].findIndex(
    (_, place) => !state.columns.some((column) => column.key === place),
  );
  if (key < 0 || key >= MOST_COLUMNS) return;
  const column = freshColumn(
    key,
    ["none", "boost:factor=4", "split-softmax:exponent=0.5", "spotlight:target=0.3"][key],
  );
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

function drawSelfchatSettings() {
  for (const name of ["suite", "conversation", "seed", "rounds"])
    byId(`selfchat-${name}`).value = state.selfchat[name];
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

let atEnd = true; // whether the reader looks at the end of the dialog
let lastScroll = 0;
let wasBusy = false;

/** Where the page is scrolled to when the end of the dialog is at the window's. */
function endOfDialog() {
  return document.querySelector("main").getBoundingClientRect().bottom + scrollY - innerHeight;
}

/** The reader who scrolls up stays there, until back at the end. */
function noteScroll() {
  if (scrollY < lastScroll) atEnd = false;
  if (scrollY > endOfDialog() - 120) atEnd = true;
  lastScroll = scrollY;
}

function settled() {
  emphasis.draw(); // replies that were drawn anew have lost their highlights
}

// What the reader does

function stop() {
  chats.stop();
  selves.stop();
}

function send() {
  const text = state.draft.text;
  if (!text.trim() || chats.busy()) return;
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
  const form = byId("selfchat-form");
  if (!form.reportValidity()) return;
  for (const name of ["conversation", "seed", "rounds"])
    state.selfchat[name] = Number(byId(`selfchat-${name}`).value);
  state.selfchat.suite = byId("selfchat-suite").value;
  choose("selfchat");
  atEnd = true;
  selves.start();
}

/** The system prompts and suites to choose from: the operator's own, or those of the package. */
function drawChoices({ prompts, suites }) {
  drawExamples(prompts?.length ? prompts : EXAMPLES);
  const options = (suites ?? ["starter", "core"]).map((name) => make("option", {}, name));
  byId("selfchat-suite").replaceChildren(...options);
}

function drawExamples(examples) {
  const use = ({ system, message }) => {
    state.system = passage(system);
    if (!state.turns.length && message) state.draft = passage(message);
    drawTexts();
    byId("draft").focus();
  };
  byId("examples").append(
    ...examples.map((example) =>
      make(
        "li",
        {},
        make(
          "button",
          {
            type: "button",
            class: "chip",
            title: example.system,
            on: { click: () => use(example) },
          },
          example.name,
        ),
      ),
    ),
  );
}

function wire() {
  byId("legend").append(
    ...SHADES.map((least, shade) =>
      make("span", { class: `m${shade}` }, String(least).replace(/^0\./, ".")),
    ),
  );
  byId("composer").addEventListener("submit", (event) => {
    event.preventDefault();
    send();
  });
  byId("draft").addEventListener("keydown", (event) => {
    if (event.key !== "Enter" || event.shiftKey || event.isComposing) return;
    event.preventDefault();
    send();
  });
  byId("stop").addEventListener("click", stop);
  byId("clear").addEventListener("click", () => {
    chats.clear();
    state.turns = [];
    history.replaceState(null, "", location.pathname);
    drawAll();
    byId("draft").focus();
  });
  byId("talk").addEventListener("click", startSelfchat);
  byId("selfchat-form").addEventListener("submit", (event) => event.preventDefault());
  byId("another").addEventListener("click", () => {
    byId("selfchat-conversation").value = Math.floor(Math.random() * 1000);
  });
  for (const name of ["dialog", "selfchat"])
    byId(`mode-${name}`).addEventListener("change", () => choose(name));
  byId("notice-close").addEventListener("click", () => notice(""));
  byId("key").value = apiKey();
  byId("key-form").addEventListener("submit", (event) => {
    event.preventDefault();
    keepApiKey(byId("key").value.trim());
    byId("key-details").open = false;
    if (!page.server) begin();
  });
  addEventListener("hashchange", () => page.server && (stop(), readLink()));
  addEventListener("scroll", noteScroll, { passive: true });
  copying(page);
}

wire();
begin();
