// Fetches the counts of the proxy every two seconds and displays them.

import { byId, make } from "./dom.js";

const INTERVAL = 2000; // milliseconds between two requests
const OUTCOMES = {
  edited: "edited",
  unchanged: "sent as they came",
  no_case: "of no case of the suite",
  no_prompt: "without the system prompt that the method needs",
  stored: "continued from the server's memory, passed through",
  other_api: "in another API, passed through",
  unreadable: "unreadable, passed through",
  failed: "not edited because of a fault; see the log",
};
const REASONS = {
  failed: "an error, a refusal, or broken off",
  background: "made in the background",
  unfinished: "calls a tool; the turn goes on",
  cut: "cut at the token limit; not judged",
  not_shown: "the deciding text is not shown; not judged",
  no_rule: "no rule applies",
  empty: "no text",
  unreadable: "unreadable",
  measure_failed: "a measure failed; the log names the rule",
  busy: "too many at once",
  too_long: "too long",
  not_supported: "compressed in an unknown way",
};

const count = (number) => number.toLocaleString("en");
const sum = (numbers) => numbers.reduce((total, number) => total + number, 0);
const percent = (kept, scored) => `${Math.floor((100 * kept) / scored)}%`;

/** An entry of a list: a name and its value. */
function makeEntry(name, value) {
  return make("div", make("dt", name), make("dd", value));
}

/** Lists the counts that are not 0, under their names. */
function drawCounts(list, names, values) {
  const present = Object.entries(names).filter(([key]) => values[key]);
  const entries = present.map(([key, name]) => makeEntry(name, count(values[key])));
  byId(list).replaceChildren(...(entries.length ? entries : [makeEntry("none", "")]));
}

/** A cell with the share of its replies that keep a rule, in one of ten shades. */
function makeCell(rows, kind = "") {
  const kept = sum(rows.map((row) => row.kept));
  const scored = sum(rows.map((row) => row.scored));
  if (!scored) return make("td.none");
  const shade = Math.min(9, Math.floor((10 * kept) / scored));
  return make(`td.m${shade}${kind}`, { title: `kept in ${kept} of ${scored} replies` },
    percent(kept, scored), make("small", count(scored)));
}

/** Draws the table of rules: a row for each, a column for each turn. */
function drawRules({ rules, last_turn: last }) {
  const turns = [...new Set(rules.map((row) => row.turn))].sort((a, b) => a - b);
  const cases = new Set(rules.map((row) => row.case));
  const ofRule = Map.groupBy(rules, (row) => JSON.stringify([row.case, row.rule]));
  const heads = ["rule", "all", ...turns.map((turn) => (turn > last ? `${turn}+` : String(turn)))];
  const body = [...ofRule.values()].map((rows) => {
    const { case: name, rule, text } = rows[0];
    const title = cases.size > 1 && rule ? `${name} / ${rule}` : rule || name;
    return make("tr",
      make("th", { scope: "row" }, title, text ? make("small", text) : null),
      makeCell(rows, ".whole"),
      turns.map((turn) => makeCell(rows.filter((row) => row.turn === turn))));
  });
  byId("rules").replaceChildren(
    make("thead", make("tr", heads.map((head) => make("th", { scope: "col" }, head)))),
    make("tbody", body));
  byId("rules").hidden = byId("key").hidden = rules.length === 0;
  byId("nothing").hidden = rules.length > 0;
}

function display(live) {
  const { title: { suite, method, upstream }, rules } = live;
  byId("title").textContent =
    `suite ${suite}, ${method === "none" ? "no method" : method}, to ${upstream}`;
  const kept = sum(rules.map((row) => row.kept));
  const scored = sum(rules.map((row) => row.scored));
  byId("totals").replaceChildren(
    makeEntry(live.scored_rules === live.suite_rules ? "of rules kept"
      : `of rules kept; ${live.scored_rules} of ${live.suite_rules} are scored`,
    scored ? percent(kept, scored) : "–"),
    makeEntry("requests", count(sum(Object.values(live.requests)))),
    ...(live.reminders || !live.retries
      ? [makeEntry("reminders sent", count(live.reminders))]
      : []),
    makeEntry("extra tokens sent, estimated", count(live.added_tokens)),
    ...(live.retries ? [makeEntry("replies drawn again", count(live.retries))] : []),
    ...(live.failed_retries ? [makeEntry("retries that failed", count(live.failed_retries))] : []),
    ...(live.unchecked ? [makeEntry("replies not checked", count(live.unchecked))] : []),
    ...(live.failed_measures
      ? [makeEntry("scores missing, as a measure failed", count(live.failed_measures))] : []),
    ...(live.left_out ? [makeEntry("messages left out", count(live.left_out))] : []),
    makeEntry("open now", count(live.open)));
  byId("scored").replaceChildren(...live.which_are_scored.split("`")
    .map((text, position) => (position % 2 ? make("code", text) : text)));
  byId("scored").hidden = live.scored_rules === live.suite_rules;
  drawRules(live);
  drawCounts("requests", OUTCOMES, live.requests);
  drawCounts("unscored", REASONS, live.unscored);
}

async function refresh() {
  const state = byId("state");
  try {
    const response = await fetch("/holdfast/live.json");
    display(await response.json());
    [state.className, state.textContent] = ["live", "live"];
  } catch {
    [state.className, state.textContent] = ["lost", "the proxy does not answer"];
  }
  setTimeout(refresh, INTERVAL);
}

refresh();
