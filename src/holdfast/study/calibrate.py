"""What each method gives and costs at each of its strengths (Li et al. 2024, section 6.3).

Stability is the drift benchmark over all ordered pairs of a few prompts. Capability is asked in the
very dialogs of that run: behind the rounds before `ask_at`, under the same methods. Two run folders
hold the records, `stability` and `capability`; both resume."""

from __future__ import annotations

import dataclasses
import math
import random
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from holdfast import drift, knobs
from holdfast import methods as steering
from holdfast.chat.messages import Message
from holdfast.drift.benchmark import Progress
from holdfast.errors import KnobOutOfRange, ModelError, UnknownName, UsageError
from holdfast.measures.choice import read_choice
from holdfast.methods import Ability, GatesTokens, Kind, Method, Sweep, of_kind, parse_sweep
from holdfast.models.capabilities import offers
from holdfast.models.protocol import ChatModel, Session
from holdfast.models.requests import Reply, Request
from holdfast.records import (
    Compatibility,
    RunData,
    batches,
    open_run,
    read_run,
    refuse_another,
    resume,
    superset,
)
from holdfast.sampling import Sampling
from holdfast.seeds import seed_of
from holdfast.study.capability import LETTERS, Capability, Item

READINGS = ("likeliest", "written")
DEFAULT_SWEEPS = (
    "split-softmax:exponent=0.9,0.7,0.5,0.3",
    "repetition:probability=0.25,0.5,1",
    "guidance:scale=1.25,1.5,2",
    "boost:factor=2,4,8",
    "spotlight:target=0.1,0.2,0.4",
)


@dataclass(frozen=True)
class Plan:
    """How a calibration is run.

    Args:
        draws: conversations of every ordered pair of prompts.
        rounds: of each conversation.
        ask_at: the user turn that is the question; the rounds before it are its history.
        reading: what counts as the answer: the "likeliest" of the options (a gate chooses between
            them as it chooses between tokens), or the letter in the "written" reply.
        seed: of everything.
        system_as: "role", or "first-user" for models and endpoints without a system role.
        sampling: of the dialogs.
        answering: of the written answers.
        batch: conversations side by side.

    Raises:
        KnobOutOfRange: a number outside its range.
        UsageError: an unknown reading.
    """

    draws: int = 5
    rounds: int = 8
    ask_at: int = 4
    reading: str = "likeliest"
    seed: int = 0
    system_as: str = "role"
    sampling: Sampling = Sampling()
    answering: Sampling = Sampling(temperature=0, max_new_tokens=64)
    batch: int = 40

    def __post_init__(self) -> None:
        for name in ("draws", "rounds", "ask_at", "batch"):
            knobs.whole_number("calibrate", name, getattr(self, name), 1)
        knobs.whole_number("calibrate", "seed", self.seed, 0)
        if self.ask_at > self.rounds + 1:
            raise KnobOutOfRange(
                f"calibrate takes ask_at up to {self.rounds + 1}, as {self.rounds} rounds come"
                f" before it, not {self.ask_at}."
            )
        if self.reading not in READINGS:
            raise UsageError(
                f"calibrate takes reading as {' or '.join(READINGS)}, not {self.reading!r}."
            )


def _wider(there: Sequence[Any], here: Sequence[Any]) -> list[Any] | None:
    """The sweeps of this command, where they have every setting of those in the folder."""
    swept = ([name for sweep in sweeps for name in sweep["methods"]] for sweeps in (there, here))
    return None if superset(*swept) is None else list(here)


COMPATIBILITY = Compatibility(
    defaults={"plan": dataclasses.asdict(Plan()), "settings": dataclasses.asdict(drift.Settings())},
    joins={"methods": superset, "sweeps": _wider},
    reasons={
        "settings.conversations": "the questions are shared out among the conversations",
        "plan.draws": "the questions are shared out among the conversations",
    },
)


def choose_prompts(suite: drift.Suite, ids: Sequence[str] = ()) -> drift.Suite:
    """The suite of the cases named, or of one case per category, always the same ones.

    Raises:
        UnknownName: no case has this id.
        UsageError: fewer than two cases.
    """
    known = {case.id: case for case in suite.cases}
    for name in ids:
        if name not in known:
            raise UnknownName(f"prompt of {suite.name}", name, known)
    chosen = [known[name] for name in dict.fromkeys(ids)]
    if not ids:
        for category in dict.fromkeys(case.category for case in suite.cases):
            chosen.append(
                random.Random(seed_of("calibrate", category)).choice(
                    [case for case in suite.cases if case.category == category]
                )
            )
    if len(chosen) < 2:
        one = "the prompts given are" if ids else "one prompt of each category makes"
        raise UsageError(
            f"Of the suite {suite.name!r}, {one} {len(chosen)}, and a pair needs two; name two or"
            " more with --prompts ID,ID."
        )
    return dataclasses.replace(suite, cases=tuple(chosen))


def calibrate(
    model: ChatModel,
    suite: drift.Suite,
    capability: Capability,
    out: Path | str,
    sweeps: Sequence[str] = DEFAULT_SWEEPS,
    plan: Plan = Plan(),
    *,
    command: str = "",
    progress: Progress = lambda conversations, tokens: None,
) -> tuple[RunData, RunData]:
    """Measures stability and capability without any method and at every point of the sweeps;
    resumes what `out` holds.

    Args:
        model: plays both sides; read as "likeliest", it must be local.
        suite: a few cases, as `choose_prompts` gives them, or a suite's name; every ordered pair
            talks.
        capability: asked in the dialogs, whose conversations share its items out among them.
        out: a folder; its folders `stability` and `capability` are runs.
        sweeps: one or several, as `methods.parse_sweep` reads them.
        plan: the sizes.
        command: the command line, for the manifests.
        progress: as `drift.run` tells it; capability counts as one round.

    Returns:
        The runs of stability and of capability.

    Raises:
        UsageError: a sweep with one point, methods given twice, fewer than four conversations.
        ModelError: methods that the model cannot apply, or a reading that it cannot give.
        RecordsError: `out` holds another calibration; one with fewer settings is extended.
    """
    if not isinstance(suite, drift.Suite):
        suite = choose_prompts(drift.load_suite(suite))
    parsed = [parse_sweep(sweep) for sweep in ([sweeps] if isinstance(sweeps, str) else sweeps)]
    settings = [(), *(setting for sweep in parsed for setting in sweep.settings)]
    count = conversations(suite, plan)
    for setting in settings:
        model.check(setting)
        _check_reading(model, setting, capability, plan.reading)
    talks = drift.Settings(
        rounds=plan.rounds,
        conversations=count,
        seed=plan.seed,
        sampling=plan.sampling,
        system_as=plan.system_as,
        adoption=False,
        trace=False,
        pairs="all",
        batch=plan.batch,
    )
    asked = _identity(suite, capability, parsed, plan)
    refuse_another(Path(out) / "stability", {"settings": {"conversations": count}}, COMPATIBILITY)
    refuse_another(Path(out) / "capability", asked, COMPATIBILITY)
    stability = drift.run(
        model, suite, Path(out) / "stability", talks, settings, command=command, progress=progress
    )
    dialogs = {(record["method"], record["conversation"]): record for record in stability.records}
    methods = [steering.spell(setting) for setting in settings]
    identity = {**stability.manifest["identity"], "methods": methods, **asked}
    about = {"command": "calibrate", "argv": command}
    with open_run(Path(out) / "capability", identity, about, COMPATIBILITY) as run:
        groups = batches(range(min(count, len(capability.items))), plan.batch)
        for setting in settings:
            name = steering.spell(setting)
            for batch in resume(run, name, groups, alone=model.independent):
                tokens = 0
                if batch.again:
                    talked = [dialogs[name, number] for number in batch.again]
                    for record in _ask_all(model, talked, setting, capability, plan, count):
                        tokens += record["tokens"]["forwarded"]
                        batch.keep(record)
                progress(len(batch.numbers), tokens)
    return stability, read_run(Path(out) / "capability")


def conversations(suite: drift.Suite, plan: Plan) -> int:
    """How many conversations every setting has.

    Raises:
        UsageError: fewer than four: settings are chosen on one half and reported on the other, and
            an interval needs two.
    """
    count = len(suite.cases) * (len(suite.cases) - 1) * plan.draws
    if count < 4:
        raise UsageError(
            f"{plan.draws} draws of {len(suite.cases)} prompts make {count} conversations, and at"
            " least 4 are needed; use more --draws or --prompts."
        )
    return count


def units_of(suite: drift.Suite, capability: Capability, sweeps: Sequence[str], plan: Plan) -> int:
    """What `calibrate` tells its progress in: rounds of all conversations, and questions as one
    round each.

    Raises:
        UsageError: as `conversations`, or a sweep that cannot be read.
    """
    settings = 1 + sum(len(parse_sweep(sweep).settings) for sweep in sweeps)
    talks = conversations(suite, plan)
    return settings * (talks * plan.rounds + min(talks, len(capability.items)))


def _check_reading(
    model: ChatModel, setting: Sequence[Method], capability: Capability, reading: str
) -> None:
    if capability.is_text and _gate_of(setting):
        raise ModelError(
            f"Under {steering.spell(setting)} a text has no probability, as tokens are drawn again;"
            " use a capability with questions, such as knowledge."
        )
    if offers(model, Ability.REPLY_SCORES) or (reading == "written" and capability.lettered):
        return
    cure = (
        "use --reading=written"
        if capability.lettered
        else "use questions with letters (knowledge, mmlu) and --reading=written"
    )
    raise ModelError(
        f"{model.name} is an endpoint, which does not tell the probability of a reply; {cure}."
    )


def _gate_of(setting: Sequence[Method]) -> GatesTokens | None:
    return next(iter(of_kind(setting, Kind.GATE)), None)


def _identity(
    suite: drift.Suite, capability: Capability, sweeps: Sequence[Sweep], plan: Plan
) -> dict[str, Any]:
    return {
        "prompts": [case.id for case in suite.cases],
        "capability": capability.name,
        "capability_fingerprint": capability.fingerprint,
        "is_text": capability.is_text,
        "sweeps": [
            {
                "name": sweep.name,
                "knob": sweep.knob,
                "values": list(sweep.values),
                "methods": [steering.spell(one) for one in sweep.settings],
            }
            for sweep in sweeps
        ],
        "plan": dataclasses.asdict(plan),
    }


@dataclass
class _Question:
    """One item in one dialog, and what came of it."""

    dialog: dict[str, Any]
    number: int
    item: Item
    log_probabilities: tuple[float, ...] | None = None
    tokens: int = 0
    written: Reply | None = None
    forwarded: int = 0


def _ask_all(
    model: ChatModel,
    dialogs: Sequence[dict[str, Any]],
    setting: tuple[Method, ...],
    capability: Capability,
    plan: Plan,
    count: int,
) -> list[dict[str, Any]]:
    """The records of some conversations; items that share a dialog share what was computed for
    it.
    """
    began = time.monotonic()
    questions = [
        _Question(dialog, number, capability.items[number])
        for dialog in dialogs
        for number in range(dialog["conversation"], len(capability.items), count)
    ]
    first = [question for question in questions if question.number < count]
    later = [question for question in questions if question.number >= count]
    session = model.session()
    asks: list[Callable[[Session, Sequence[_Question], tuple[Method, ...], Plan, bool], None]] = []
    if capability.lettered and not capability.is_text:
        asks.append(_write)
    if offers(model, Ability.REPLY_SCORES) and _gate_of(setting):
        asks.append(_score_gated)
    elif offers(model, Ability.REPLY_SCORES):
        asks.insert(0, _score)
    for step, ask in enumerate(asks):
        ask(
            session, first, setting, plan, not step
        )  # the first of a dialog leaves its history to all that follow
        if later:
            ask(session, later, setting, plan, False)
    seconds = (time.monotonic() - began) / len(dialogs)
    return [
        _record(dialog, [one for one in questions if one.dialog is dialog], plan, seconds)
        for dialog in dialogs
    ]


def _score(
    session: Any,
    questions: Sequence[_Question],
    setting: tuple[Method, ...],
    plan: Plan,
    keep: bool,
) -> None:
    scored = session.score(
        [_request(one, setting, plan, keep) for one in questions],
        [one.item.replies for one in questions],
    )
    for question, one in zip(questions, scored, strict=True):
        question.log_probabilities, question.tokens = one.log_probabilities, one.tokens[0]
        question.forwarded += one.forwarded
        if question.item.answer is None and not math.isfinite(one.log_probabilities[0]):
            raise UsageError(
                f"{steering.spell(setting)} gives a token of the text no probability, so its"
                " perplexity is infinite; sweep without a threshold."
            )


def _score_gated(
    session: Any,
    questions: Sequence[_Question],
    setting: tuple[Method, ...],
    plan: Plan,
    keep: bool,
) -> None:
    """A gate chooses between options as it chooses a reply's first token: the steered model's,
    where the other finds it plausible, else the other's.
    """
    import torch

    gate = _gate_of(setting)
    ungated = tuple(method for method in setting if method is not gate)
    steered, other = (
        session.score(
            [
                dataclasses.replace(_request(one, methods, plan, False), thread=None)
                for one in questions
            ],
            [one.item.replies for one in questions],
        )
        for methods in ((*ungated, *gate.methods), ungated)
    )
    for question, one, plain in zip(questions, steered, other, strict=True):
        best = max(range(len(one.log_probabilities)), key=one.log_probabilities.__getitem__)
        plainly = torch.tensor([plain.log_probabilities])
        accepted = bool(gate.accepts(torch.tensor([best]), plainly))
        question.log_probabilities, question.tokens = (
            (one if accepted else plain).log_probabilities,
            one.tokens[0],
        )
        question.forwarded += one.forwarded + plain.forwarded


def _write(
    session: Session,
    questions: Sequence[_Question],
    setting: tuple[Method, ...],
    plan: Plan,
    keep: bool,
) -> None:
    replies = session.generate_batch([_request(one, setting, plan, keep) for one in questions])
    for question, reply in zip(questions, replies, strict=True):
        question.written = reply
        question.forwarded += reply.forwarded


def _request(question: _Question, setting: tuple[Method, ...], plan: Plan, keep: bool) -> Request:
    number = question.dialog["conversation"]
    return Request(
        (*_history(question.dialog, plan), {"role": "user", "content": question.item.asked}),
        setting,
        plan.answering,
        seed=seed_of("capability", plan.seed, question.number),
        conversation_seed=seed_of("methods", plan.seed, number),
        thread=number,
        keep=keep,
        system_as=plan.system_as,
    )


def _history(dialog: dict[str, Any], plan: Plan) -> list[Message]:
    system = dialog["agent"]["system_prompt"]
    roles = {"user": "user", "agent": "assistant"}
    turns = [
        {"role": roles[turn["speaker"]], "content": turn["text"]}
        for turn in dialog["turns"]
        if turn["round"] < plan.ask_at
    ]
    if (
        turns and turns[-1]["role"] == "user"
    ):  # the dialog came to the end of the model's context here
        turns.pop()
    return [*([{"role": "system", "content": system}] if system else []), *turns]


def _record(
    dialog: dict[str, Any],
    questions: Sequence[_Question],
    plan: Plan,
    seconds: float,
) -> dict[str, Any]:
    return {
        "conversation": dialog["conversation"],
        "agent": dialog["agent"],
        "user": dialog["user"],
        "turns": [turn for turn in dialog["turns"] if turn["round"] < plan.ask_at],
        "probes": [_answered(question, plan) for question in questions],
        "tokens": {"forwarded": sum(question.forwarded for question in questions)},
        "seconds": round(seconds, 3),
    }


def _answered(question: _Question, plan: Plan) -> dict[str, Any]:
    """An answer under both readings; `score` is that of the plan's reading, or minus the nats per
    token of a text.
    """
    item, chances, written = question.item, question.log_probabilities, question.written
    scores: dict[str, float | None] = {"likeliest": None, "written": None}
    reason = ""
    if chances is not None and item.answer is not None:
        best = max(range(len(chances)), key=chances.__getitem__)
        scores["likeliest"] = float(best == item.answer and math.isfinite(chances[best]))
    if written is not None:
        picked, reason = read_choice(written.text, LETTERS)
        scores["written"] = float(picked == LETTERS[item.answer]) if picked else 0.0
    value = (
        chances[0] / question.tokens if item.answer is None and chances else scores[plan.reading]
    )
    return {
        "round": plan.ask_at,
        "kind": "capability",
        "probe": question.number,
        "question": item.asked,
        "reply": written.text if written else "",
        "score": value,
        "reason": reason,
        "mass": None,
        **scores,
        "answer": item.answer,
        "log_probabilities": (
            None
            if chances is None
            else [chance if math.isfinite(chance) else None for chance in chances]
        ),
        "tokens": question.tokens or None,
    }
