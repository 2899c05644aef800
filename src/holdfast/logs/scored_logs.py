"""Writes the scores of logs as the records of a run, with the rules in its manifest.

Logs, in memory             -> score_logs                           -> ScoredLogs
files of any size, on disk  -> scan_logs (scanning, part_joining)   -> ScoredLogs
ScoredLogs                  -> write_scores                         -> Run
"""

import hashlib
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from holdfast.drift.cases import Case, Rule, Suite
from holdfast.drift.judges import Judges, Judging, load_judges, open_judges
from holdfast.drift.rule_texts import sentence_of_rule
from holdfast.drift.suites import as_suite
from holdfast.logs.dialogs import LoggedDialog
from holdfast.logs.log_reading import Logs, NoDialog
from holdfast.logs.turn_scoring import (
    METHOD,
    ScoredDialog,
    case_of,
    has_other_prompt,
    score_dialog,
    with_results,
)
from holdfast.models.event_loop import run_sync
from holdfast.records import RecordKey, Run, batches, open_run, read_run, resume, to_line
from holdfast.records.lines import with_checksum
from holdfast.version import __version__

_BATCH = 256  # records per write
_RECORD_START = b'{"method": "logs", "conversation": 0,'


class NamedRule(NamedTuple):
    """A rule of a case, with the name that `LoggedRule.rule` has."""

    name: str
    case: Case
    rule: Rule


@dataclass(frozen=True, slots=True)
class DialogToWrite:
    """A dialog with one of the suite's prompts, whose record is still to be written.

    Args:
        case: the case with its prompt.
        has_other_prompt: whether its system prompt is another one than that of its case.
        reasoning_turns: how many of its turns begin with reasoning.
        refused_calls: how many tool calls in its turns never ran.
        scores: returns its scores, or its record as the JSON of a line if no score awaits a judge.
    """

    case: Case
    has_other_prompt: bool
    reasoning_turns: int
    refused_calls: int
    scores: Callable[[], ScoredDialog | bytes]


@dataclass(frozen=True)
class ScoredLogs:
    """A set of logs as `write_scores` takes it: `Logs` in memory, or files scanned to the disk.

    Args:
        to_write: the dialogs that have one of the suite's prompts.
        count: the number of all dialogs.
        formats: the number of dialogs in each format.
        problems: a sentence for each line or part of a file that was left out.
        fingerprint: SHA-256 of the files, their formats and the dialogs, in hexadecimal.
        loaded: the names of files that were put into every context.
    """

    to_write: Sequence[DialogToWrite]
    count: int
    formats: Mapping[str, int]
    problems: tuple[str, ...]
    fingerprint: str
    loaded: tuple[str, ...] = ()


def score_logs(
    logs: Logs,
    suite: Suite | str,
    out: Path | str,
    judging: Judging | None = None,
    command: str = "",
) -> Run:
    """Scores logs into a run folder; dialogs that are already scored there are skipped.

    Raises:
        NoDialog: no dialog has one of the suite's prompts.
        AnotherRun: the folder holds another run.
    """
    suite = as_suite(suite, probed=False)
    to_write: list[DialogToWrite] = []
    for dialog in logs.dialogs:
        case = case_of(dialog, suite)
        if case is not None:
            to_write.append(_to_write(dialog, case))
    scored_logs = ScoredLogs(
        to_write, len(logs.dialogs), logs.formats, logs.problems, logs.fingerprint
    )
    return write_scores(scored_logs, suite, out, judging, command)


def _to_write(dialog: LoggedDialog, case: Case) -> DialogToWrite:
    """A dialog in memory, which is scored when its record is written."""
    return DialogToWrite(
        case=case,
        has_other_prompt=has_other_prompt(dialog, case),
        reasoning_turns=sum(bool(turn.reasoning) for turn in dialog.turns),
        refused_calls=sum(len(turn.refused) for turn in dialog.turns),
        scores=partial(score_dialog, dialog, case),
    )


def write_scores(
    logs: ScoredLogs,
    suite: Suite,
    out: Path | str,
    judging: Judging | None = None,
    command: str = "",
) -> Run:
    """Writes the scores of logs into a run folder; dialogs that are already there are skipped.

    Raises:
        NoDialog: no dialog has one of the suite's prompts.
        AnotherRun: the folder holds another run.
    """
    if not logs.to_write:
        raise _no_matching_prompt(logs.count, suite)
    judging = judging or Judging()
    models = load_judges(suite, None, judging)
    size = 1 if models else _BATCH  # each answer of a judge is kept at once
    identity = {**identity_of(suite), "logs": logs.fingerprint}
    with open_run(out, identity, _about(logs, suite, command)) as run:

        async def score_all() -> None:
            async with open_judges(suite, models, run.folder) as judges:
                await judges.check(judging)
                numbers = batches(range(len(logs.to_write)), size)
                for batch in resume(run, METHOD, numbers, independent=True):
                    if batch.to_run:
                        lines = {
                            RecordKey(METHOD, number): await _line(logs, number, judges)
                            for number in batch.to_run
                        }
                        run.append_lines(lines)

        run_sync(score_all())
    return read_run(out)


def _about(logs: ScoredLogs, suite: Suite, command: str) -> dict[str, Any]:
    """The fields of the manifest that describe the logs and the rules."""
    case_ids = {dialog.case.id for dialog in logs.to_write}
    cases = [case for case in suite.cases if case.id in case_ids]
    return {
        "command": METHOD,
        "version": __version__,
        "argv": command,
        "dialogs": logs.count,
        "unmatched": logs.count - len(logs.to_write),
        "other_prompts": sum(dialog.has_other_prompt for dialog in logs.to_write),
        "reasoning_turns": sum(dialog.reasoning_turns for dialog in logs.to_write),
        "refused_calls": sum(dialog.refused_calls for dialog in logs.to_write),
        "formats": dict(logs.formats),
        "problems": list(logs.problems),
        "rules": rules_of(cases),
        "rule_texts": rule_texts(cases),
        "probe_rules": probe_rules(cases),
        "loaded": list(logs.loaded),
    }


def identity_of(suite: Suite) -> dict[str, str]:
    """The part of a run's identity that does not depend on the logs."""
    return {"suite": suite.name, "rules": _fingerprint(suite)}


async def _line(logs: ScoredLogs, number: int, judges: Judges) -> bytes:
    """The line of the record of dialog `number`, with the scores that a judge gives."""
    scored = logs.to_write[number].scores()
    if isinstance(scored, bytes):
        return with_checksum(with_number(scored, number))
    results = await judges.resolve(scored.outcomes)
    return to_line(with_results(scored, results).model_copy(update={"conversation": number}))


def _no_matching_prompt(num_dialogs: int, suite: Suite) -> NoDialog:
    prompts = f"one of the {len(suite.cases)} system prompts of the suite {suite.name!r}"
    cure = (
        "give the prompt as the dialogs have it, or a suite with one case, which is used for every"
        " dialog"
    )
    if num_dialogs == 1:
        return NoDialog(f"The only dialog does not have {prompts}; {cure}.")
    return NoDialog(f"None of the {num_dialogs} dialogs has {prompts}; {cure}.")


def with_number(content: bytes, number: int) -> bytes:
    """The JSON of a record whose number is 0, with another number."""
    if not content.startswith(_RECORD_START):
        raise ValueError("the record of a logged dialog begins with its method and number")
    return _RECORD_START[:-2] + b"%d," % number + content[len(_RECORD_START) :]


def named_rules(cases: Sequence[Case]) -> Iterator[NamedRule]:
    """The rules of cases in their order."""
    for case in cases:
        for rule in case.rules:
            yield NamedRule(f"{case.id}/{rule.id}" if rule.id else case.id, case, rule)


def rules_of(cases: Sequence[Case]) -> dict[str, Any]:
    """The measure and the `when` of each rule, by the rule's name."""
    return {name: [rule.measure.spec, asdict(rule.when)] for name, _, rule in named_rules(cases)}


def rule_texts(cases: Sequence[Case]) -> dict[str, str]:
    """The text of each rule, or the sentence of the prompt that states it, by the rule's name."""
    texts = {
        name: rule.text or sentence_of_rule(case, rule) for name, case, rule in named_rules(cases)
    }
    return {name: text for name, text in texts.items() if text}


def probe_rules(cases: Sequence[Case]) -> list[str]:
    """The names of rules that are made for answers to probes, and have no `when`.

    A turn that breaks such a rule shows nothing: a reply that does not say "Luna" may have had no
    reason to give the name.
    """
    return [name for name, _, rule in named_rules(cases) if rule.is_only_for_probes]


def _fingerprint(suite: Suite) -> str:
    """The SHA-256 of what decides the scores: the prompts, the measures and the `when`."""
    content = [
        [case.id, case.system_prompt, rule.id, rule.measure.spec, asdict(rule.when)]
        + ([rule.text, rule.unless.user] if rule.text or rule.unless.user else [])
        for case in suite.cases
        for rule in case.rules
    ]
    canonical = json.dumps(content, sort_keys=True, ensure_ascii=False)
    return hashlib.sha256(canonical.encode("utf-8", "surrogatepass")).hexdigest()
