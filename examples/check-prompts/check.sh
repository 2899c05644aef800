#!/usr/bin/env bash
# Runs the check with the action's inputs, which come as variables, and says what came of it.
set -uo pipefail
out=holdfast-check
options=(--model "$MODEL" --error "$ERROR" --out "$out" --junit "$out/junit.xml")
if [ "${SMOKE:-false}" = true ]; then
    options+=(--smoke)
else
    options+=(--rounds "$ROUNDS" --budget "$BUDGET")
fi
if [ -n "$MIN_STABILITY" ]; then options+=(--min-stability "$MIN_STABILITY"); fi
if [ -n "$ENDPOINT_MODEL" ]; then options+=(--endpoint-model "$ENDPOINT_MODEL"); fi
if [ -n "$BASELINE" ] && [ -f "$BASELINE/manifest.json" ]; then options+=(--against "$BASELINE"); fi

log=$(mktemp)
holdfast check "$PROMPTS" "${options[@]}" | tee "$log"
code=${PIPESTATUS[0]}

{
    echo "code=$code"
    echo "report=$out/report.html"
} >> "$GITHUB_OUTPUT"
{
    echo '```'
    cat "$log"
    echo '```'
} >> "$GITHUB_STEP_SUMMARY"

if [ "$code" = 3 ] && [ "$UNDECIDED" = warn ]; then
    echo "::warning title=Undecided::A prompt could not be decided within the budget."
    exit 0
fi
if [ "$code" = 5 ] && [ "${UNAVAILABLE:-fail}" = warn ]; then
    echo "::warning title=Unavailable::The model's server did not answer, so nothing was checked."
    exit 0
fi
exit "$code"
