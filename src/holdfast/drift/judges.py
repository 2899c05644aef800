"""Judges: models that score replies by answering a question, where no measure can be written.

They score a conversation once it is over, and are first tested on labelled replies. A run keeps
their answers in its folder (`judge_answers`).
"""

from __future__ import annotations

import asyncio
import json
from collections import defaultdict
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from holdfast.drift.cases import Case, Rule, Suite
from holdfast.drift.judge_answers import JudgeAnswers, JudgeQuestion, ask_judge
from holdfast.drift.probe_outcomes import PendingProbe, ProbeOutcome, ProbeResults, results_of
from holdfast.errors import ModelError
from holdfast.files import write_whole
from holdfast.measures import Measure
from holdfast.measures.judging import check_labels, cohens_kappa
from holdfast.models.event_loop import task_group
from holdfast.models.model_names import is_url
from holdfast.models.protocol import ChatModel, Engine
from holdfast.records import Probe, Unanswered
from holdfast.records.judge_records import AGREEMENTS, JudgeAgreement, VerdictCounts

MIN_KAPPA = 0.6  # the least agreement with the labels (Cohen's kappa) of a judge that may score


class JudgeName(NamedTuple):
    """The model of a judge, as a measure names it."""

    model: str  # a value for `--model`
    endpoint_model: str | None  # a value for `--endpoint-model`


@dataclass(frozen=True)
class Judging:
    """How the judges of a suite are loaded and tested.

    Attributes:
        load: returns the model of a judge, given its `model` and `endpoint_model`; None loads it
            with `load_judge`.
        force: whether judges may score that agree little with the labels.
        on_agreement: receives the agreement of each judge, before it scores anything.
    """

    load: Callable[[str, str | None], ChatModel] | None = None
    force: bool = False
    on_agreement: Callable[[JudgeAgreement], None] = lambda agreement: None


def load_judges(
    suite: Suite, model: ChatModel | None, judging: Judging
) -> dict[JudgeName, ChatModel]:
    """Loads the models of a suite's judges; {} if it has none.

    Args:
        model: the measured model, which is not loaded again if it is a judge, too.

    Raises:
        UsageError: a judge has too few labelled replies to be tested on.
    """
    rules = list(_judged_rules(suite))
    for case, rule in rules:
        labels = (rule.shown_to_judge(follows=True), rule.shown_to_judge(follows=False))
        check_labels(*labels, f"The judge of the case {case.id!r}")
    load = judging.load or load_judge
    models: dict[JudgeName, ChatModel] = {}
    for name in dict.fromkeys(_judge_of(rule.measure) for _, rule in rules):
        if model is not None and name == JudgeName(model.name, None):
            models[name] = model
        else:
            models[name] = load(name.model, name.endpoint_model)
    return models


def load_judge(model: str, endpoint_model: str | None) -> ChatModel:
    """Loads the model of a judge, given as for `--model` and `--endpoint-model`."""
    if is_url(model):
        from holdfast.models.connecting import connect_all

        return connect_all([model], endpoint_model)
    from holdfast.models.loading import load

    return load(model)


def _judged_rules(suite: Suite) -> Iterator[tuple[Case, Rule]]:
    """Yields the rules that a judge scores, each with its case."""
    for case in suite.cases:
        for rule in case.rules:
            if rule.measure.judged:
                yield case, rule


def _judge_of(measure: Measure) -> JudgeName:
    return JudgeName(measure.arguments["model"], measure.arguments.get("endpoint_model"))


@asynccontextmanager
async def open_judges(
    suite: Suite, models: Mapping[JudgeName, ChatModel], folder: Path
) -> AsyncIterator[Judges]:
    """Opens the judges of a run in `folder`."""
    async with AsyncExitStack() as stack:
        engines: dict[str, Engine] = {}
        for model in models.values():
            if model.fingerprint not in engines:
                session = await stack.enter_async_context(model.session())
                engines[model.fingerprint] = session
        yield Judges(suite, models, engines, JudgeAnswers.open(folder))


@dataclass
class Judges:
    """The judges of a run, and their answers."""

    suite: Suite
    models: Mapping[JudgeName, ChatModel]
    engines: Mapping[str, Engine]  # of these models, by fingerprint
    answers: JudgeAnswers
    # held while a question is asked, so that none is asked twice at the same time
    _locks: defaultdict[JudgeQuestion, asyncio.Lock] = field(
        default_factory=lambda: defaultdict(asyncio.Lock)
    )

    async def check(self, judging: Judging) -> list[JudgeAgreement]:
        """Measures and records how well each judge agrees with the labelled replies.

        Raises:
            ModelError: one agrees poorly, and is not forced to score.
        """
        rules = list(_judged_rules(self.suite))
        if not rules:
            return []
        await self._ask_all(
            self._question(rule.measure, labelled.turn.text_with_calls())
            for _, rule in rules
            for labelled in rule.labelled
        )
        agreements = [self._agreement(case, rule, force=judging.force) for case, rule in rules]
        for agreement in agreements:
            judging.on_agreement(agreement)
        for agreement in agreements:
            if agreement.kappa < MIN_KAPPA and not judging.force:
                raise _poor_agreement_error(agreement)
        rows = [agreement.to_json() for agreement in agreements]
        text = json.dumps(rows, ensure_ascii=False, indent=1)
        write_whole(self.answers.folder / AGREEMENTS, text + "\n")
        return agreements

    async def resolve(self, outcomes: Iterable[ProbeOutcome]) -> ProbeResults:
        """Has the judges score the probes that await them, and returns the results of all."""
        all_outcomes = list(outcomes)
        pending = [outcome for outcome in all_outcomes if isinstance(outcome, PendingProbe)]
        await self._ask_all(self._question(probe.measure, probe.text) for probe in pending)
        return results_of(
            self._score(outcome) if isinstance(outcome, PendingProbe) else outcome
            for outcome in all_outcomes
        )

    def _question(self, measure: Measure, reply: str) -> JudgeQuestion:
        judge = self.models[_judge_of(measure)].fingerprint
        return JudgeQuestion(judge, measure.arguments["judge"], reply)

    async def _ask_all(self, questions: Iterable[JudgeQuestion]) -> None:
        """Asks all questions at once that have no answer yet."""
        async with task_group() as group:
            for question in dict.fromkeys(questions):
                group.create_task(self._ask(question))

    async def _ask(self, question: JudgeQuestion) -> None:
        async with self._locks[question]:
            if question not in self.answers:
                answers = await ask_judge(self.engines[question.judge], question)
                self.answers.keep(question, answers)

    def _score(self, pending: PendingProbe) -> Probe | Unanswered:
        """Scores a probe by its judge's answer; if that is neither yes nor no, it is unanswered."""
        probe = pending.probe
        judge = pending.measure.arguments["model"]
        verdict = self.answers.verdict(self._question(pending.measure, pending.text))
        if verdict is None:
            return probe.unanswered("judge", f"The judge {judge} said neither yes nor no.")
        reason = f"the judge {judge} says {'yes' if verdict else 'no'}"
        return probe.scored(float(verdict), reason, judge)

    def _agreement(self, case: Case, rule: Rule, *, force: bool) -> JudgeAgreement:
        """How well a judge's answers agree with the labels of its rule's examples."""
        follows = self._verdicts(rule, rule.shown_to_judge(follows=True))
        breaks = self._verdicts(rule, rule.shown_to_judge(follows=False))
        labels = [True] * len(follows) + [False] * len(breaks)
        kappa = round(cohens_kappa(labels, follows + breaks), 6)
        return JudgeAgreement(
            case=case.id,
            rule=rule.id,
            question=rule.measure.arguments["judge"],
            model=rule.measure.arguments["model"],
            follows=_count_verdicts(follows),
            breaks=_count_verdicts(breaks),
            kappa=kappa,
            forced=force and kappa < MIN_KAPPA,
        )

    def _verdicts(self, rule: Rule, replies: Iterable[str]) -> list[bool | None]:
        questions = (self._question(rule.measure, reply) for reply in replies)
        return [self.answers.verdict(question) for question in questions]


def _count_verdicts(verdicts: Sequence[bool | None]) -> VerdictCounts:
    return VerdictCounts(verdicts.count(True), verdicts.count(False), verdicts.count(None))


def _poor_agreement_error(agreement: JudgeAgreement) -> ModelError:
    """Builds the error for a judge that agrees poorly with the labelled replies."""
    owner = f"the case {agreement.case}"
    if agreement.rule:
        owner = f"{owner}, rule {agreement.rule!r}"
    return ModelError(
        f"The judge {agreement.model!r} of {owner} agrees with"
        f" {agreement.agreed} of {agreement.labels} labelled replies (Cohen's kappa"
        f" {agreement.kappa:.2f}; at least {MIN_KAPPA} is required): reword its question"
        f" {agreement.question!r}, correct the labels, use another model, or pass --force-judge"
        " (Judging(force=True) in Python)."
    )
