"""Scores every turn of every dialog by the rules that apply to it, and writes a run folder."""

import hashlib
import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from holdfast.common.event_loop import run_sync
from holdfast.common.version import __version__
from holdfast.drift.cases import Case, Suite
from holdfast.drift.judges import Judging, load_judges, open_judges
from holdfast.drift.probe_outcomes import (
    CUT,
    NOT_SHOWN,
    PendingProbe,
    ProbeOutcome,
    ProbeResults,
)
from holdfast.errors import UsageError, cut
from holdfast.logs.causes import DialogCauses
from holdfast.logs.dialogs import LoggedDialog, LoggedTurn, Logs
from holdfast.measures.registry import FOLLOWED, Score, Undecided
from holdfast.records import (
    LogDialog,
    LogProbe,
    LogPrompt,
    LogTurn,
    Probe,
    ProbeReply,
    Run,
    batches,
    open_run,
    read_run,
    resume,
)
from holdfast.records.conversation import RECORDED

_SHOWN = 600  # characters of a message that a record keeps
METHOD = "logs"  # in place of a method's name in a run's keys
KIND = "logged"  # the kind of these scores, in addition to the kinds of probes


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
    scored = [(dialog, case) for dialog, case in matched if case is not None]
    if not scored:
        raise UsageError(
            f"{_none_of(len(logs.dialogs))} one of the {len(suite.cases)} system prompts of the"
            f" suite {suite.name!r}; give the prompt as the dialogs have it, or a suite of one"
            " case, which is taken for all."
        )
    used = [case for _, case in scored]
    identity = {"suite": suite.name, "rules": _fingerprint(suite), "logs": logs.fingerprint}
    about = {
        "command": METHOD,
        "version": __version__,
        "argv": command,
        "dialogs": len(logs.dialogs),
        "unmatched": len(matched) - len(scored),
        "other_prompts": sum(
            bool(dialog.system.strip()) and case.system_prompt.strip() not in dialog.system
            for dialog, case in scored
        ),
        "reasoning_turns": sum(
            bool(turn.reasoning) for dialog, _ in scored for turn in dialog.turns
        ),
        "formats": dict(logs.formats),
        "problems": list(logs.problems),
        "rules": rules_of([case for case in suite.cases if case in used]),
        "probe_rules": probe_rules([case for case in suite.cases if case in used]),
    }
    judging = judging or Judging()
    models = load_judges(suite, None, judging)
    with open_run(out, identity, about) as run:

        async def score_all() -> None:
            async with open_judges(suite, models, run.folder) as judges:
                await judges.check(judging)
                for batch in resume(run, METHOD, batches(range(len(scored)), 1)):
                    for number in batch.again:
                        dialog, case = scored[number]
                        scores = [score for turn in dialog.turns for score in _scores(turn, case)]
                        results = await judges.resolve(scores)
                        batch.keep(_record(number, dialog, case, results))

        run_sync(score_all())
    return read_run(out)


def _none_of(count: int) -> str:
    return "The only dialog does not have" if count == 1 else f"None of the {count} dialogs has"


def _record(number: int, dialog: LoggedDialog, case: Case, results: ProbeResults) -> LogDialog:
    """The record of a dialog, with its texts cut short."""
    causes = DialogCauses(dialog, case)
    turns = {turn.number: turn for turn in dialog.turns}
    return LogDialog(
        method=METHOD,
        conversation=number,
        source=dialog.source,
        agent=LogPrompt(id=case.id, category=case.category),
        user=LogPrompt(id="", category=METHOD),
        turns=tuple(
            LogTurn(
                round=turn.number,
                speaker="agent",
                text=cut(turn.done.text, _SHOWN),
                stop_reason=RECORDED,
                reasoning=cut(turn.reasoning, _SHOWN) or None,
                tokens=turn.tokens,
                tools=tuple(call.name for call in turn.done.calls),
            )
            for turn in dialog.turns
        ),
        probes=tuple(_with_cause(probe, turns[probe.round], causes) for probe in results.probes),
        unscored=tuple(
            probe.model_copy(update={"reply": cut(probe.reply, _SHOWN)})
            for probe in results.unscored
        ),
        unanswered=results.unanswered,
        compactions=causes.compactions,
    )


def _with_cause(probe: Probe, turn: LoggedTurn, causes: DialogCauses) -> LogProbe:
    """A score with where its rule was, and if the turn broke it, why."""
    return LogProbe(
        **{**dict(probe), "reply": cut(probe.reply, _SHOWN)},
        context=causes.context_of(probe.rule, turn),
        cause=causes.cause_of(probe.rule, turn) if probe.score < FOLLOWED else None,
    )


def _scores(turn: LoggedTurn, case: Case) -> Iterator[ProbeOutcome]:
    """The scores of a turn by the rules that apply to it."""
    for rule in case.all_rules:
        measure = rule.measure
        if not rule.when.applies(turn.done, turn.user, turn.role):
            continue
        probe = ProbeReply(
            round=turn.number,
            kind=KIND,
            rule=rule.id or None,
            probe=0,
            question=cut(turn.user, _SHOWN),
            reply=turn.done.text,
            rule_kind=rule.kind,
            polarity=rule.polarity,
        )
        if measure.judged and turn.done.text.strip():
            yield PendingProbe(probe, measure)
        elif not measure.judged and (judged := measure.judge_turn(turn.done)):
            yield _outcome(probe, judged)
        elif turn.done.is_cut and turn.done.text.strip() and not measure.of_turn:
            yield probe.unscored("cut", CUT)


def _outcome(probe: ProbeReply, judged: Score | Undecided) -> ProbeOutcome:
    if isinstance(judged, Undecided):
        return probe.unscored(NOT_SHOWN, judged.reason)
    return probe.scored(judged.value, judged.reason)


def rules_of(cases: Sequence[Case]) -> dict[str, Any]:
    """The rules of cases in their order, named as `Adherence.rule` is: how each is scored."""
    return {
        f"{case.id}/{rule.id}" if rule.id else case.id: [rule.measure.spec, asdict(rule.when)]
        for case in cases
        for rule in case.all_rules
    }


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
