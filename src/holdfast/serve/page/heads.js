// The mass of every head, as a table of layers and heads: of one token, or the mean of a reply.

import { make } from "./dom.js";
import { shadeOf, share } from "./tokens.js";

const WRITTEN = 12; // heads per layer at most, for numbers to be written into their cells

/** [layer][head] of a token (`at`), or the mean over the tokens; null where it was not read. */
export function headsOf(reply, at) {
  if (at >= 0) return reply.tokens[at]?.heads ?? null;
  const read = reply.tokens.map((token) => token.heads).filter(Boolean);
  if (!read.length) return null;
  return read[0].map((heads, layer) =>
    heads.map((_, head) => read.reduce((sum, token) => sum + token[layer][head], 0) / read.length),
  );
}

/** The table; `update(masses, title)` writes other masses into it. */
export function headTable() {
  const caption = make("caption");
  const table = make("table", { class: "heads" }, caption);
  let cells = [];

  function build(masses) {
    const heads = masses[0].map((_, head) => make("th", { scope: "col" }, String(head)));
    cells = [];
    const rows = masses.map((layer, number) => {
      const row = layer.map(() => make("td"));
      cells.push(row);
      return make("tr", {}, make("th", { scope: "row" }, String(number)), ...row);
    });
    table.classList.toggle("dense", masses[0].length > WRITTEN);
    table.replaceChildren(
      caption,
      make("thead", {}, make("tr", {}, make("th", { scope: "col" }, "layer \\ head"), ...heads)),
      make("tbody", {}, ...rows),
    );
  }

  return {
    table,
    update(masses, title) {
      caption.textContent = title;
      if (cells.length !== masses.length || cells[0].length !== masses[0].length) build(masses);
      for (const [layer, row] of cells.entries()) {
        for (const [head, cell] of row.entries()) {
          const mass = masses[layer][head];
          cell.className = `m${shadeOf(mass)}`;
          cell.textContent = mass.toFixed(2).replace(/^0/, "");
          cell.title = `layer ${layer}, head ${head}: ${share(mass)}`;
        }
      }
    },
  };
}
