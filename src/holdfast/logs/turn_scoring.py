"""Scores every turn of every dialog by the rules that apply to it, and writes a run folder."""

import hashlib
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, NamedTuple

from holdfast.drift.cases import Case, Suite
from holdfast.drift.judges import Judges, Judging, load_judges, open_judges
from holdfast.drift.probe_outcomes import (
    CUT,
    NOT_SHOWN,
    PendingProbe,
    ProbeOutcome,
    ProbeResults,
)
from holdfast.drift.rule_texts import sentence_of
from holdfast.errors import cut
from holdfast.logs.causes import DialogCauses
from holdfast.logs.dialogs import LoggedDialog, LoggedTurn, Logs, NoDialog
from holdfast.measures.registry import FOLLOWED, Score
from holdfast.models.event_loop import run_sync
from holdfast.records import (
    BreachCause,
    LogDialog,
    LogProbe,
    LogPrompt,
    LogTurn,
    Probe,
    ProbeReply,
    RuleInContext,
    Run,
    Unscored,
    batches,
    open_run,
    read_run,
    resume,
    to_line,
)
from holdfast.records.conversation import RECORDED
from holdfast.records.lines import with_checksum
from holdfast.version import __version__

SHOWN = 600  # characters of a message that a record keeps
METHOD = "logs"  # in place of a method's name in a run's keys
_BATCH = 256  # records that are written at a time
KIND = "logged"  # the kind of these scores, in addition to the kinds of probes


class ScoreCause(NamedTuple):
    """Where a rule was when a turn began, and why the turn broke it if it did."""

    context: RuleInContext
    cause: BreachCause


ScoreKey = tuple[int, str | None]  # the number of a turn, and the id of a rule


@dataclass(frozen=True)
class ScoredDialog:
    """A dialog whose turns are scored, but for what its judges have yet to score."""

    record: LogDialog  # without its scores
    outcomes: tuple[ProbeOutcome, ...]
    causes: Mapping[ScoreKey, ScoreCause]  # of each outcome that awaits a judge


@dataclass(frozen=True)
class ScoredLogs:
    """The dialogs of a set of logs, each scored when it is asked for.

    Args:
        dialogs: how many were read; those under none of the suite's prompts are not scored.
        cases: of each dialog that is scored.
        other_prompts: how many of these have another system prompt than their case.
        reasoning_turns: how many of their turns begin with reasoning.
        formats, problems, fingerprint: as in `Logs`.
        scored: given the number of a dialog that is scored, its scores; or its record as the JSON
            of a line, if nothing in it awaits a judge.
        loaded: the names of files that were put into every context, which the logs lack.
    """

    dialogs: int
    cases: tuple[Case, ...]
    other_prompts: int
    reasoning_turns: int
    formats: Mapping[str, int]
    problems: tuple[str, ...]
    fingerprint: str
    scored: Callable[[int], ScoredDialog | bytes]
    loaded: tuple[str, ...] = ()


def score_logs(
    logs: Logs,
    suite: Suite,
    out: Path | str,
    judging: Judging | None = None,
    command: str = "",
) -> Run:
    """Scores logs into a run folder; dialogs already scored there are skipped.

    Raises:
        UsageError: no dialog has one of the suite's prompts.
        AnotherRun: the folder holds another run.
    """
    matched = [(dialog, case_of(dialog, suite)) for dialog in logs.dialogs]
    pairs = [(dialog, case) for dialog, case in matched if case is not None]
    scored_logs = ScoredLogs(
        dialogs=len(logs.dialogs),
        cases=tuple(case for _, case in pairs),
        other_prompts=sum(has_other_prompt(dialog, case) for dialog, case in pairs),
        reasoning_turns=sum(bool(turn.reasoning) for dialog, _ in pairs for turn in dialog.turns),
        formats=logs.formats,
        problems=logs.problems,
        fingerprint=logs.fingerprint,
        scored=lambda number: score_dialog(*pairs[number]),
    )
    return write_scores(scored_logs, suite, out, judging, command)


def write_scores(
    logs: ScoredLogs,
    suite: Suite,
    out: Path | str,
    judging: Judging | None = None,
    command: str = "",
) -> Run:
    """Writes the scores of logs into a run folder, without those that it has."""
    if not logs.cases:
        raise NoDialog(
            f"{_none_of(logs.dialogs)} one of the {len(suite.cases)} system prompts of the"
            f" suite {suite.name!r}; give the prompt as the dialogs have it, or a suite of one"
            " case, which is taken for all."
        )
    used = {case.id for case in logs.cases}
    cases = [case for case in suite.cases if case.id in used]
    about = {
        "command": METHOD,
        "version": __version__,
        "argv": command,
        "dialogs": logs.dialogs,
        "unmatched": logs.dialogs - len(logs.cases),
        "other_prompts": logs.other_prompts,
        "reasoning_turns": logs.reasoning_turns,
        "formats": dict(logs.formats),
        "problems": list(logs.problems),
        "rules": rules_of(cases),
        "rule_texts": rule_texts(cases),
        "probe_rules": probe_rules(cases),
        "loaded": list(logs.loaded),
    }
    judging = judging or Judging()
    models = load_judges(suite, None, judging)
    size = 1 if models else _BATCH  # an answer of a judge is not lost with those after it
    with open_run(out, {**identity_of(suite), "logs": logs.fingerprint}, about) as run:

        async def score_all() -> None:
            async with open_judges(suite, models, run.folder) as judges:
                await judges.check(judging)
                numbers = batches(range(len(logs.cases)), size)
                for batch in resume(run, METHOD, numbers, alone=True):
                    if batch.to_run:
                        lines = {(METHOD, n): await _line(logs, n, judges) for n in batch.to_run}
                        run.append_lines(lines)

        run_sync(score_all())
    return read_run(out)


def identity_of(suite: Suite) -> dict[str, str]:
    """The part of a run's identity that does not depend on the logs."""
    return {"suite": suite.name, "rules": _fingerprint(suite)}


async def _line(logs: ScoredLogs, number: int, judges: Judges) -> bytes:
    """The line of a dialog's record."""
    scored = logs.scored(number)
    if isinstance(scored, bytes):
        return with_checksum(with_number(scored, number))
    results = await judges.resolve(scored.outcomes)
    return to_line(with_results(scored, results).model_copy(update={"conversation": number}))


def has_other_prompt(dialog: LoggedDialog, case: Case) -> bool:
    """Whether a dialog has a system prompt, and not that of its case."""
    return bool(dialog.system.strip()) and case.system_prompt.strip() not in dialog.system


def score_dialog(dialog: LoggedDialog, case: Case) -> ScoredDialog:
    """The scores of a dialog's turns by the rules of its case."""
    causes = DialogCauses(dialog, case)
    outcomes: list[ProbeOutcome] = []
    found: dict[ScoreKey, ScoreCause] = {}
    for turn in dialog.turns:
        for outcome in _scores(turn, case, causes):
            outcomes.append(outcome)
            if isinstance(outcome, PendingProbe):
                rule = outcome.probe.rule
                cause = ScoreCause(causes.context_of(rule, turn), causes.cause_of(rule, turn))
                found[turn.number, rule] = cause
    return ScoredDialog(_record(dialog, case, causes), tuple(outcomes), found)


def _none_of(count: int) -> str:
    return "The only dialog does not have" if count == 1 else f"None of the {count} dialogs has"


_START = b'{"method": "logs", "conversation": 0,'


def with_number(content: bytes, number: int) -> bytes:
    """The JSON of a record that has the number 0, with another number."""
    if not content.startswith(_START):
        raise ValueError("the record of a logged dialog begins with its method and number")
    return _START[:-2] + b"%d," % number + content[len(_START) :]


def _record(dialog: LoggedDialog, case: Case, causes: DialogCauses) -> LogDialog:
    """The record of a dialog without its scores, with its texts cut short."""
    numbers = {turn.number for turn in dialog.turns}
    return LogDialog(
        method=METHOD,
        conversation=0,
        source=dialog.source,
        agent=LogPrompt(id=case.id, category=case.category),
        user=LogPrompt(id="", category=METHOD),
        turns=tuple(
            LogTurn(
                round=turn.number,
                speaker="agent",
                text=cut(turn.done.text, SHOWN),
                stop_reason=RECORDED,
                reasoning=cut(turn.reasoning, SHOWN) or None,
                tokens=turn.tokens,
                tools=tuple(call.name for call in turn.done.calls),
                span=turn.span or None,
            )
            for turn in dialog.turns
        ),
        probes=(),
        # a compaction before a turn that is counted in another dialog is counted there too
        compactions=tuple(item for item in causes.compactions if item.turn in numbers),
    )


def with_results(scored: ScoredDialog, results: ProbeResults) -> LogDialog:
    """The record of a dialog with the scores of its turns, whose replies are cut short."""
    probes = tuple(
        probe
        if isinstance(probe, LogProbe)
        else _with_cause(probe, scored.causes[probe.round, probe.rule])
        for probe in results.probes
    )
    scores = {
        "probes": probes,
        "unscored": results.unscored,
        "unanswered": results.unanswered,
    }
    return scored.record.model_copy(update=scores)


def _with_cause(probe: Probe, found: ScoreCause) -> LogProbe:
    """A judge's score with where its rule was, and if the turn broke it, why."""
    return LogProbe(
        **{**dict(probe), "reply": cut(probe.reply, SHOWN)},
        context=found.context,
        cause=found.cause if probe.score < FOLLOWED else None,
    )


def _scores(turn: LoggedTurn, case: Case, causes: DialogCauses) -> Iterator[ProbeOutcome]:
    """The scores of a turn by the rules that apply to it."""
    question, reply = cut(turn.user, SHOWN), cut(turn.done.text, SHOWN)
    for rule in case.all_rules:
        measure = rule.measure
        if not rule.when.applies(turn.done, turn.user, turn.role):
            continue
        fields: dict[str, Any] = {
            **{"round": turn.number, "kind": KIND, "rule": rule.id or None, "probe": 0},
            **{"question": question, "rule_kind": rule.kind, "polarity": rule.polarity},
        }
        judged = None if measure.judged else measure.judge_turn(turn.done)
        has_text = bool(turn.done.text.strip())
        if isinstance(judged, Score):
            # made at once with all that it has: a record is validated each time it is made
            yield LogProbe(
                **fields,
                reply=reply,
                score=judged.value,
                reason=judged.reason,
                context=causes.context_of(fields["rule"], turn),
                cause=None if judged.value >= FOLLOWED else causes.cause_of(fields["rule"], turn),
            )
        elif measure.judged and (has_text or turn.done.calls):
            shown = turn.done.text_with_calls()
            yield PendingProbe(ProbeReply(**fields, reply=turn.done.text), measure, shown)
        elif judged is not None:
            yield Unscored(**fields, reply=reply, why=NOT_SHOWN, reason=judged.reason)
        elif turn.done.is_cut and has_text and not measure.judged and not measure.of_turn:
            yield Unscored(**fields, reply=reply, why="cut", reason=CUT)


def rules_of(cases: Sequence[Case]) -> dict[str, Any]:
    """The rules of cases in their order, named as `Adherence.rule` is: how each is scored."""
    return {
        f"{case.id}/{rule.id}" if rule.id else case.id: [rule.measure.spec, asdict(rule.when)]
        for case in cases
        for rule in case.all_rules
    }


def rule_texts(cases: Sequence[Case]) -> dict[str, str]:
    """The words of the rules that have a text, or a sentence of their prompt, named as
    `Adherence.rule` is.
    """
    named = {
        f"{case.id}/{rule.id}" if rule.id else case.id: rule.text or sentence_of(case, rule)
        for case in cases
        for rule in case.all_rules
    }
    return {name: text for name, text in named.items() if text}


def probe_rules(cases: Sequence[Case]) -> list[str]:
    """The rules that are made for the answers to probes, and do not say which turns they are for.

    They are named as `Adherence.rule` is. That a turn breaks them shows nothing: "the name is Luna"
    is kept by a reply that had no reason to give it.
    """
    return [
        f"{case.id}/{rule.id}" if rule.id else case.id
        for case in cases
        for rule in case.all_rules
        if rule.is_only_for_probes
    ]


def case_of(dialog: LoggedDialog, suite: Suite) -> Case | None:
    """The case whose prompt is in the dialog, or else the only case; None if there are several."""
    prompts = [(case.system_prompt.strip(), case) for case in suite.cases]
    same = [case for prompt, case in prompts if prompt == dialog.system.strip()]
    longest_first = sorted(prompts, key=lambda pair: -len(pair[0]))
    within = [case for prompt, case in longest_first if prompt in dialog.system]
    only = suite.cases if len(suite.cases) == 1 else ()
    return next(iter([*same, *within, *only]), None)


def _fingerprint(suite: Suite) -> str:
    content = [
        [case.id, case.system_prompt, rule.id, rule.measure.spec, asdict(rule.when)]
        + ([rule.text, rule.unless.user] if rule.text or rule.unless.user else [])
        for case in suite.cases
        for rule in case.all_rules
    ]
    canonical = json.dumps(content, sort_keys=True, ensure_ascii=False)
    return hashlib.sha256(canonical.encode("utf-8", "surrogatepass")).hexdigest()
