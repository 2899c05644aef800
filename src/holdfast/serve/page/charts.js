// The charts of the page: mass by turn of the dialog; stability and mass by round of self-chats.

import { lineChart } from "./chart.js";
import { byId } from "./dom.js";
import { LETTERS, massOf, mean, roundsOf, uniformOf } from "./state.js";

/** Makes the charts; returns what draws those of each mode from the state. */
export function makeCharts() {
  const turns = lineChart({ title: "Mass on the prompt, by turn", unit: "turn" });
  const stability = lineChart({
    title: "Stability (solid) and adoption (dashed)",
    unit: "round",
    top: 1,
  });
  const rounds = lineChart({ title: "Mass on the prompt, by round", unit: "round" });
  byId("dialog-chart").append(turns.figure);
  byId("selfchat-charts").append(stability.figure, rounds.figure);
  return {
    dialog: (state) => drawTurns(state, turns),
    selfchat: (state) => drawRounds(state, stability, rounds),
  };
}

const nameOf = ({ key, steering }) => `${LETTERS[key]} ${steering}`;

function drawTurns(state, chart) {
  const lines = state.columns.map((column) => ({
    key: column.key,
    name: nameOf(column),
    values: state.turns.map((turn) => massOf(turn.replies[column.key])),
  }));
  const uniform = state.turns.map((turn) =>
    meanOf(state.columns.map(({ key }) => uniformOf(turn.replies[key]))),
  );
  chart.update(lines, uniform);
}

function drawRounds(state, stability, mass) {
  const runs = state.columns
    .filter(({ key }) => state.selfchat.runs[key])
    .map((column) => ({ column, read: roundsOf(state.selfchat.runs[column.key]) }));
  const line = ({ column, read }, name, dashed = false) => ({
    key: column.key,
    name: `${nameOf(column)}${dashed ? `, ${name}` : ""}`,
    values: read[name],
    dashed,
  });
  const adopted = runs.filter(({ read }) => read.adoption.some(Number.isFinite));
  stability.update([
    ...runs.map((run) => line(run, "stability")),
    ...adopted.map((run) => line(run, "adoption", true)),
  ]);
  const longest = Math.max(0, ...runs.map(({ read }) => read.uniform.length));
  const uniform = Array.from({ length: longest }, (_, round) =>
    meanOf(runs.map(({ read }) => read.uniform[round])),
  );
  mass.update(
    runs.map((run) => line(run, "mass")),
    uniform,
  );
}

const meanOf = (numbers) => mean(numbers.filter(Number.isFinite));
