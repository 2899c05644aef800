// Emphasis: words that the user selects, to which methods steer in place of the system prompt. In
// sent messages it is drawn by the CSS highlight registry, which does not change their tokens; text
// boxes have a copy of their text, with marks, behind them.

import { announce, byId, make } from "./dom.js";
import { allEmphasis, LETTERS, passageOf } from "./state.js";

/** Adds [first, last) to the parts; if it lies within a part, removes that part instead. */
function toggled(text, parts, [first, last]) {
  while (first < last && /\s/.test(text[first])) first += 1;
  while (first < last && /\s/.test(text[last - 1])) last -= 1;
  if (first >= last) return parts;
  if (parts.some(([from, to]) => from <= first && last <= to))
    return parts.filter(([from, to]) => to <= first || last <= from);
  const touched = parts.filter(([from, to]) => to >= first && last >= from);
  const ends = [...touched.flat(), first, last];
  const others = parts.filter((part) => !touched.includes(part));
  return [...others, [Math.min(...ends), Math.max(...ends)]].sort((a, b) => a[0] - b[0]);
}

/** The parts after an edit of the text: those after the edit are moved, those in it are dropped. */
function moved(before, after, parts) {
  const most = Math.min(before.length, after.length);
  let [start, end] = [0, 0];
  while (start < most && before[start] === after[start]) start += 1;
  while (end < most - start && before.at(-1 - end) === after.at(-1 - end)) end += 1;
  const [edited, by] = [before.length - end, after.length - before.length];
  return parts.filter(([first, last]) => last <= start || first >= edited)
    .map(([first, last]) => (first >= edited ? [first + by, last + by] : [first, last]));
}

/** Makes a text box whose words can be emphasised; returns the function that draws its passage. */
export function emphasisBox(name, state, changed) {
  const [box, shadow] = [byId(name), byId(`${name}-shadow`)];
  function draw() {
    const { text, emphasis } = state()[name];
    if (box.value !== text) box.value = text;
    const ends = [0, ...emphasis.flat(), text.length];
    shadow.replaceChildren(...ends.slice(1).map((end, index) => {
      const piece = text.slice(ends[index], end);
      return index % 2 ? make("mark", piece) : piece;
    }), "\n");
  }
  box.addEventListener("input", () => {
    const passage = state()[name];
    passage.emphasis = moved(passage.text, box.value, passage.emphasis);
    passage.text = box.value;
    draw();
    changed();
  });
  return draw;
}

/** Sets up the button at the selection and Ctrl E; returns the function that draws the list of
 * emphasised words and their highlights. */
export function emphasisTool(state, changed) {
  const tool = byId("emphasise");
  let selected = null; // {name, range: [first, last]}

  function toggle({ name, range }) {
    const passage = passageOf(state(), name);
    if (!passage) return;
    const before = passage.emphasis.length;
    passage.emphasis = toggled(passage.text, passage.emphasis, range);
    announce(passage.emphasis.length < before ? "No longer emphasised." : "Emphasised.");
    tool.hidden = true;
    changed();
  }

  function showTool() {
    selected = readSelection();
    tool.hidden = !selected;
    if (!selected) return;
    const { text, emphasis } = passageOf(state(), selected.name);
    const removes = toggled(text, emphasis, selected.range).length < emphasis.length;
    tool.firstElementChild.textContent = removes ? "Remove emphasis" : "Emphasise this";
    const { top, bottom, left } = selected.box;
    const above = top - tool.offsetHeight - 6;
    const most = innerWidth - tool.offsetWidth - 8;
    tool.style.top = `${(above < 4 ? bottom + 6 : above) + scrollY}px`;
    tool.style.left = `${Math.max(8, Math.min(left, most)) + scrollX}px`;
  }

  document.addEventListener("selectionchange", () => requestAnimationFrame(showTool));
  tool.onpointerdown = (event) => event.preventDefault(); // keeps the selection
  tool.onclick = () => selected && toggle(selected);
  document.addEventListener("keydown", (event) => {
    const { ctrlKey, metaKey, altKey, key } = event;
    if (!(ctrlKey || metaKey) || altKey || key.toLowerCase() !== "e") return;
    event.preventDefault();
    const selection = readSelection();
    if (selection) toggle(selection);
    else announce("Select words first.");
  });
  return () => drawEmphasis(state(), toggle);
}

/** The selection in a passage: the passage's name, the range, and the box in the window; null if
 * nothing is selected, or if the selection is not within one passage. */
function readSelection() {
  const active = document.activeElement;
  if (active?.matches("textarea[data-passage]") && active.selectionStart < active.selectionEnd) {
    const range = [active.selectionStart, active.selectionEnd];
    const shadow = rangeIn(active.parentElement.querySelector(".shadow"), range);
    return { name: active.dataset.passage, range, box: shadow.getBoundingClientRect() };
  }
  const selection = getSelection();
  if (!selection.rangeCount || selection.isCollapsed) return null;
  const range = selection.getRangeAt(0);
  const passage = (node) => node.parentElement?.closest("[data-passage]");
  const [start, end] = [passage(range.startContainer), passage(range.endContainer)];
  if (!start || (end && end !== start)) return null;
  const before = document.createRange();
  before.setStart(start, 0);
  before.setEnd(range.startContainer, range.startOffset);
  const first = before.toString().length;
  const last = Math.min(first + range.toString().length, start.textContent.length);
  const box = range.getBoundingClientRect();
  return first < last ? { name: start.dataset.passage, range: [first, last], box } : null;
}

/** The DOM range of the characters [first, last) of a node's text. */
function rangeIn(node, [first, last]) {
  const range = document.createRange();
  const texts = document.createTreeWalker(node, NodeFilter.SHOW_TEXT);
  range.selectNodeContents(node);
  for (let text = texts.nextNode(), seen = 0; text; text = texts.nextNode()) {
    const end = seen + text.length;
    if (seen <= first && first < end) range.setStart(text, first - seen);
    if (seen < last && last <= end) range.setEnd(text, last - seen);
    seen = end;
  }
  return range;
}

function drawEmphasis(state, toggle) {
  const all = allEmphasis(state);
  if (window.CSS?.highlights) {
    const ranges = all.flatMap(({ name, part }) => {
      const node = document.querySelector(`[data-passage="${name}"]:not(textarea)`);
      return node ? [rangeIn(node, part)] : [];
    });
    CSS.highlights.set("emphasis", new Highlight(...ranges));
  }
  const prompted = state.system.text.trim() !== "";
  byId("no-span").hidden = prompted || all.length > 0;
  byId("no-emphasis").hidden = !prompted || all.length > 0;
  byId("emphasised").replaceChildren(...all.map(({ name, passage, part }) => {
    const words = passage.text.slice(...part);
    const title = titleOf(name);
    return make("li", make("button.chip.held", { type: "button", title,
      "aria-label": `Stop emphasising “${words}” in ${title}`,
      onclick: () => toggle({ name, range: part }) },
      make("span", words), make("span.cross", { "aria-hidden": "true" }, "×")));
  }));
}

function titleOf(name) {
  const [kind, index, key] = name.split(":");
  if (kind === "user") return `message ${Number(index) + 1}`;
  if (kind === "reply") return `reply ${Number(index) + 1} of ${LETTERS[key]}`;
  return kind === "system" ? "the system prompt" : "the message being written";
}
