// Emphasis: words that the reader selects, to be held on to in place of the system prompt.
// Sent messages are painted by the CSS highlight registry, so that their tokens stay as they are;
// text boxes have their words once more behind them, with marks.

import { announce, byId, make } from "./dom.js";
import { allEmphasis, LETTERS, passageAt } from "./state.js";

/** The parts with [first, last) added, or, where it lies within one, without that one. */
function toggled(text, parts, [first, last]) {
  while (first < last && /\s/.test(text[first])) first += 1;
  while (first < last && /\s/.test(text[last - 1])) last -= 1;
  if (first >= last) return parts;
  if (parts.some(([from, to]) => from <= first && last <= to)) {
    return parts.filter(([from, to]) => to <= first || last <= from);
  }
  const apart = parts.filter(([from, to]) => to < first || last < from);
  const joined = parts
    .filter((part) => !apart.includes(part))
    .flat()
    .concat(first, last);
  return [...apart, [Math.min(...joined), Math.max(...joined)]].sort((a, b) => a[0] - b[0]);
}

/** The parts after an edit of the text: moved behind it, gone where a part itself was edited. */
function moved(before, after, parts) {
  let start = 0;
  const most = Math.min(before.length, after.length);
  while (start < most && before[start] === after[start]) start += 1;
  let end = 0;
  while (end < most - start && before.at(-1 - end) === after.at(-1 - end)) end += 1;
  const [edited, by] = [before.length - end, after.length - before.length];
  return parts
    .filter(([first, last]) => last <= start || first >= edited)
    .map(([first, last]) => (first >= edited ? [first + by, last + by] : [first, last]));
}

/** Makes a text box whose words can be emphasised; `draw()` shows what the state holds. */
export function emphasisBox(box, shadow, passageOf, changed) {
  function drawShadow() {
    const { text, emphasis } = passageOf();
    let end = 0;
    const pieces = emphasis.flatMap(([first, last]) => {
      const piece = [text.slice(end, first), make("mark", {}, text.slice(first, last))];
      end = last;
      return piece;
    });
    shadow.replaceChildren(...pieces, `${text.slice(end)}\n`);
  }
  box.addEventListener("input", () => {
    const passage = passageOf();
    passage.emphasis = moved(passage.text, box.value, passage.emphasis);
    passage.text = box.value;
    drawShadow();
    changed();
  });
  return {
    draw() {
      if (box.value !== passageOf().text) box.value = passageOf().text;
      drawShadow();
    },
  };
}

/** The button at the selection, Ctrl E, the list of what is emphasised, and its highlights. */
export function emphasisTool(pageState, changed) {
  const button = byId("emphasise");
  let selected = null; // {place, range: [first, last]}

  function toggle(place, range) {
    const passage = passageAt(pageState(), place);
    if (!passage) return;
    const before = passage.emphasis.length;
    passage.emphasis = toggled(passage.text, passage.emphasis, range);
    announce(passage.emphasis.length < before ? "No longer emphasised." : "Emphasised.");
    button.hidden = true;
    changed();
  }

  function showButton() {
    const selection = readSelection();
    selected = selection;
    if (!selection) return void (button.hidden = true);
    const { text, emphasis } = passageAt(pageState(), selection.place);
    const removes = toggled(text, emphasis, selection.range).length < emphasis.length;
    button.firstElementChild.textContent = removes ? "Let go" : "Hold on to this";
    button.hidden = false;
    const top = selection.rect.top - button.offsetHeight - 6;
    const left = Math.min(selection.rect.left, innerWidth - button.offsetWidth - 8);
    button.style.top = `${(top < 4 ? selection.rect.bottom + 6 : top) + scrollY}px`;
    button.style.left = `${Math.max(8, left) + scrollX}px`;
  }

  document.addEventListener("selectionchange", () => requestAnimationFrame(showButton));
  button.addEventListener("pointerdown", (event) => event.preventDefault()); // keeps the selection
  button.addEventListener("click", () => selected && toggle(selected.place, selected.range));
  document.addEventListener("keydown", (event) => {
    if (!(event.ctrlKey || event.metaKey) || event.altKey || event.key.toLowerCase() !== "e")
      return;
    event.preventDefault();
    const selection = readSelection();
    if (selection) toggle(selection.place, selection.range);
    else announce("Select words first.");
  });

  return { draw: () => drawEmphasis(pageState(), toggle) };
}

/** What is selected in a passage: its place, its range, and where it stands in the window. */
function readSelection() {
  const box = document.activeElement;
  if (box?.matches("textarea[data-place]") && box.selectionStart < box.selectionEnd) {
    const range = [box.selectionStart, box.selectionEnd];
    const shadow = box.parentElement.querySelector(".shadow");
    return {
      place: box.dataset.place,
      range,
      rect: rangeIn(shadow, range).getBoundingClientRect(),
    };
  }
  const selection = getSelection();
  if (!selection.rangeCount || selection.isCollapsed) return null;
  const range = selection.getRangeAt(0);
  const start = range.startContainer.parentElement?.closest("[data-place]");
  const end = range.endContainer.parentElement?.closest("[data-place]");
  if (!start || (end && end !== start)) return null;
  const before = document.createRange();
  before.setStart(start, 0);
  before.setEnd(range.startContainer, range.startOffset);
  const first = before.toString().length;
  const length = Math.min(range.toString().length, start.textContent.length - first);
  if (!length) return null;
  return {
    place: start.dataset.place,
    range: [first, first + length],
    rect: range.getBoundingClientRect(),
  };
}

/** The characters [first, last) of a node's text as a DOM range. */
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
    const ranges = all.flatMap(({ place, part }) => {
      const node = document.querySelector(`[data-place="${place}"]:not(textarea)`);
      return node ? [rangeIn(node, part)] : [];
    });
    CSS.highlights.set("emphasis", new Highlight(...ranges));
  }
  const prompted = state.system.text.trim() !== "";
  byId("nothing-held").hidden = prompted || all.length > 0;
  byId("no-emphasis").hidden = !prompted || all.length > 0;
  byId("emphasised").replaceChildren(
    ...all.map(({ place, passage, part }) => {
      const words = passage.text.slice(...part);
      return make(
        "li",
        {},
        make(
          "button",
          {
            type: "button",
            class: "chip held",
            "aria-label": `Let go of “${words}” in ${placeName(place)}`,
            title: placeName(place),
            on: { click: () => toggle(place, part) },
          },
          make("span", {}, words),
          make("span", { class: "cross", "aria-hidden": "true" }, "×"),
        ),
      );
    }),
  );
}

function placeName(place) {
  const [kind, index, key] = place.split(":");
  if (kind === "user") return `message ${Number(index) + 1}`;
  if (kind === "reply") return `reply ${Number(index) + 1} of ${LETTERS[key]}`;
  return kind === "system" ? "the system prompt" : "the message being written";
}
