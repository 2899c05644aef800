"""Which heads to steer: every head steered alone, scored on samples of a task, and ranked (Zhang et
al. 2024, Algorithm 1).

A task is a list of samples, all `Choice` (continuations compared by their log-probability) or all
`Question` (a reply is written greedily and scored). A run folder has one record per sample, so it
can be killed and repeated at any moment."""

from __future__ import annotations

import dataclasses
import json
import random
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from holdfast import knobs
from holdfast.analysis.profile import (
    Profile,
    head_name,
    profile_of,
    read_profile,
)
from holdfast.attention import layers_with_attention
from holdfast.chat.emphasis import Part
from holdfast.chat.messages import Message
from holdfast.engine.cache import first_tokens
from holdfast.engine.decoder import Decoder, Row, Stream
from holdfast.engine.scoring import score_rows
from holdfast.errors import HoldfastError, ModelError, RecordsError, UsageError
from holdfast.methods import Ability, Kind, Pasta, ShiftsAttention, kind_of, parse, spell
from holdfast.methods.heads import Head, HeadSet
from holdfast.models.capabilities import offers
from holdfast.models.local import LocalModel
from holdfast.models.requests import Request
from holdfast.records import RunData, open_run, read_run, resume
from holdfast.sampling import Sampling
from holdfast.seeds import seed_of
from holdfast.study.forking import Asked, Forks

BY = ("probability", "accuracy")
# of log-probabilities: what a model that computes something else between its layers would exceed by
# far
_APART = 1e-3
_PREFILL = 16_384  # tokens


@dataclass(frozen=True)
class Choice:
    """A sample that is scored without generating.

    Args:
        messages: the chat.
        emphasis: as `holdfast.Request` takes it; () for the system prompt.
        continuations: replies to compare, at least one.
        right: the index of the right one.
    """

    messages: tuple[Message, ...]
    emphasis: tuple[Part, ...]
    continuations: tuple[str, ...]
    right: int = 0


@dataclass(frozen=True)
class Question:
    """A sample whose reply is written greedily, and scored.

    Args:
        messages: the chat.
        emphasis: as `holdfast.Request` takes it; () for the system prompt.
        score: of the reply's text; a larger number is better.
    """

    messages: tuple[Message, ...]
    emphasis: tuple[Part, ...]
    score: Callable[[str], float]


@dataclass(frozen=True)
class Plan:
    """How heads are profiled.

    Args:
        method: what a head is steered by, or its spelling; its own heads play no part.
        by: choices are scored by the log-probability of the right continuation ("probability"), or
            by whether it is the likeliest ("accuracy").
        halving: drops the worse half of the heads after a quarter of the samples, and again after
            half of them: about half the work.
        max_new_tokens: of a reply.
        system_as: where system prompts stand.
        seed: of the order of the samples, which matters with `halving`.

    Raises:
        UsageError: an unknown `by`, or another kind of method.
        KnobOutOfRange: a number outside its range.
    """

    method: ShiftsAttention = Pasta(0.01)
    by: str = "probability"
    halving: bool = False
    max_new_tokens: int = 128
    system_as: str = "role"
    seed: int = 0

    def __post_init__(self) -> None:
        if self.by not in BY:
            raise UsageError(f"Heads are ranked by {' or '.join(BY)}, not {self.by!r}.")
        if isinstance(self.method, str):
            spelled = parse(self.method)
            object.__setattr__(self, "method", spelled[0] if len(spelled) == 1 else spelled)
        if kind_of(self.method) is not Kind.LOG_ODDS:
            raise UsageError(
                "Heads are profiled under an attention method such as pasta:alpha=0.01, not"
                f" {self.method!r}."
            )
        knobs.whole_number("profile", "max_new_tokens", self.max_new_tokens, 1)
        knobs.whole_number("profile", "seed", self.seed, 0)


def profile(
    model: LocalModel,
    samples: Sequence[Choice] | Sequence[Question],
    out: Path | str,
    plan: Plan = Plan(),
    *,
    command: str = "",
    progress: Callable[[int, int], None] = lambda samples, tokens: None,
    tell: Callable[[str], None] = lambda line: None,
) -> Profile:
    """Steers every head of a model alone on every sample, and ranks the heads.

    Args:
        model: a model in this process.
        samples: of one task, all of one kind.
        out: the run's folder; finished samples are kept there, and not scored again.
        plan: how.
        command: of the manifest.
        progress: told the samples and tokens just finished.
        tell: takes one line at a time: an estimate before the start, and what halving gave up.

    Raises:
        UsageError: no samples, or some that are not as described (named by their number).
        ModelError: an endpoint, or a model whose attention cannot be steered.
        RecordsError: `out` holds another run, or replies that the samples score otherwise.
    """
    if not offers(model, Ability.LAYERS):
        raise ModelError(
            f"{getattr(model, 'name', model)} is an endpoint, whose heads cannot be steered; give a"
            " local model."
        )
    plan = replace(plan, method=replace(plan.method, heads=None))
    model.check([plan.method])
    worker = _Worker(model, _checked(samples, plan), plan)
    heads = _steerable_heads(model)
    stages = _stages(len(samples), plan)
    with open_run(
        Path(out), _identity(model, worker, plan), {"command": "profile", "argv": command}
    ) as run:
        kept = heads
        _check_scores(read_run(out), samples)
        for stage, numbers in enumerate(stages, 1):
            left = [
                batch
                for batch in resume(run, f"stage {stage}", worker.groups(numbers))
                if batch.again
            ]
            if left and stage == 1:
                tell(worker.estimate([batch.again for batch in left], heads, stages))
            progress(len(numbers) - sum(len(batch.again) for batch in left), 0)
            for batch in left:
                started = time.monotonic()
                scored, tokens = worker.score(batch.again, kept)
                seconds = round((time.monotonic() - started) / len(batch.again), 3)
                for number, one in zip(batch.again, scored, strict=True):
                    batch.keep({"conversation": number, **one.record(), "seconds": seconds})
                progress(len(batch.again), tokens)
            if stage < len(stages):
                found = profile_of(
                    read_run(out), [f"stage {number}" for number in range(1, stage + 1)]
                )
                kept = sorted(found.ranking.heads[: -(-len(kept) // 2)])
                seen = sum(map(len, stages[:stage]))
                tell(
                    f"After {seen} of {len(samples)} samples the better {len(kept)} heads go on;"
                    f" the other {len(heads) - len(kept)} are ranked by what they showed so far."
                )
    return read_profile(out)


def _check_scores(run: RunData, samples: Sequence[Choice] | Sequence[Question]) -> None:
    """Refuses to go on with replies that the samples now score otherwise."""
    for record in run.records:
        number = record["conversation"]
        sample = samples[number]
        for text, names in record.get("replies", {}).items():
            # type: ignore[union-attr]
            there, here = record["scores"][names[0]], float(sample.score(text))
            if there != here:
                raise RecordsError(
                    f"{run.folder} holds another run: sample {number + 1}'s reply {text[:60]!r} is"
                    f" scored {there:g} there and {here:g} by this command; choose another folder"
                    " with --out, or score as before."
                )


def read_samples(path: Path | str) -> list[Choice]:
    """Reads choices from a JSONL file: per line an object with messages, emphasis, continuations
    and right.

    `emphasis` holds texts, [text, occurrence] or [message, first, last]; without it, asterisks in
    the messages are marks.

    Raises:
        UsageError: names the line and the field that is wrong or missing.
    """
    path = Path(path)
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(
            f"Cannot read samples from {str(path)!r} ({error}); give a JSONL file."
        ) from None
    samples = []
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            row = json.loads(line)
        except ValueError as error:
            raise UsageError(
                f"Line {number} of {path} is no JSON ({error}); write one object per line."
            ) from None
        samples.append(_read_sample(row, f"Line {number} of {path}"))
    if not samples:
        raise UsageError(
            f"{path} holds no samples; write one JSON object per line, with messages, emphasis,"
            " continuations and right."
        )
    return samples


def _read_sample(row: object, place: str) -> Choice:
    if not isinstance(row, dict):
        raise UsageError(
            f"{place} is {str(row)[:60]!r}; write an object with messages, emphasis, continuations"
            " and right."
        )
    for name, kind in (("messages", list), ("continuations", list), ("right", int)):
        if not isinstance(row.get(name), kind) or isinstance(row.get(name), bool):
            what = f"has {name} = {str(row[name])[:60]!r}" if name in row else f"has no {name!r}"
            raise UsageError(
                f"{place} {what}; give {'a list' if kind is list else 'a whole number'} there."
            )
    if not isinstance(row.get("emphasis", []), list):
        raise UsageError(
            f"{place} has emphasis = {str(row['emphasis'])[:60]!r}; give a list there."
        )
    try:
        parts = tuple(
            tuple(part) if isinstance(part, list) else part for part in row.get("emphasis", ())
        )
        request = Request(row["messages"], emphasis=parts, marks="emphasis" not in row)
    except HoldfastError as error:
        raise UsageError(f"{place}: {error}") from None
    return Choice(request.messages, request.emphasis, tuple(row["continuations"]), row["right"])


def _checked(
    samples: Sequence[Choice] | Sequence[Question], plan: Plan
) -> list[Choice] | list[Question]:
    if not samples:
        raise UsageError("There are no samples to profile heads on ([]); give at least one.")
    kind = type(samples[0])
    for number, sample in enumerate(samples, 1):
        if type(sample) is not kind or kind not in (Choice, Question):
            raise UsageError(
                f"Sample {number} is a {type(sample).__name__} and the first a {kind.__name__};"
                " give samples of one kind, Choice or Question."
            )
        if isinstance(sample, Choice):
            if (
                any(not isinstance(one, str) or not one for one in sample.continuations)
                or not sample.continuations
            ):
                raise UsageError(
                    f"Sample {number} has continuations {sample.continuations!r}; give at least"
                    " one, each a text."
                )
            if not 0 <= sample.right < len(sample.continuations):
                raise UsageError(
                    f"Sample {number} has right = {sample.right} of {len(sample.continuations)}"
                    " continuations, counted from 0."
                )
            if plan.by == "accuracy" and len(sample.continuations) < 2:
                raise UsageError(
                    f"Sample {number} has one continuation, which is always the likeliest; give"
                    " others too, or rank by probability."
                )
        try:
            Request(sample.messages, emphasis=sample.emphasis)
        except HoldfastError as error:
            raise UsageError(f"Sample {number}: {error}") from None
    if plan.halving and len(samples) < 8:
        raise UsageError(
            f"Halving needs at least 8 samples, and there are {len(samples)}; leave it out."
        )
    return list(samples)


def _steerable_heads(model: LocalModel) -> list[Head]:
    """The heads that can be steered one by one; hybrid models have layers without any.

    Raises:
        ModelError: there are none.
    """
    known = layers_with_attention(model.hf_model)
    layers = [layer for layer in range(model.shape.layers) if known is None or layer in known]
    if not layers:
        raise ModelError(
            f"The layers of {model.name} share an attention that does not tell its layer, so no"
            " head can be steered alone; steer all."
        )
    return [(layer, head) for layer in layers for head in range(model.shape.heads)]


def _stages(count: int, plan: Plan) -> list[list[int]]:
    """Which samples are scored before heads are dropped, before they are dropped again, and at
    last.
    """
    if not plan.halving:
        return [list(range(count))]
    order = random.Random(seed_of("profile", plan.seed)).sample(range(count), count)
    return [order[: count // 4], order[count // 4 : count // 2], order[count // 2 :]]


def _identity(model: LocalModel, worker: _Worker, plan: Plan) -> dict[str, Any]:
    told = {
        field.name: getattr(plan, field.name)
        for field in dataclasses.fields(plan)
        if field.name != "method"
    }
    return {
        "model": model.name,
        "model_fingerprint": model.fingerprint,
        "runtime": model.runtime,
        "layers": model.shape.layers,
        "heads": model.shape.heads,
        "method": spell([plan.method]),
        "samples": len(worker.samples),
        "samples_fingerprint": worker.fingerprint,
        **told,
    }


@dataclass(frozen=True)
class _Scored:
    """What came of one sample: by head or "none", its score, and the reply that was written for
    it.
    """

    scores: dict[str, float] = field(default_factory=dict)
    replies: dict[str, str] = field(default_factory=dict)

    def record(self) -> dict[str, Any]:
        """As the record holds it: each distinct reply once, with the names that it belongs to."""
        names: dict[str, list[str]] = {}
        for name, text in self.replies.items():
            names.setdefault(text, []).append(name)
        return {"scores": self.scores, **({"replies": names} if names else {})}


class _Worker:
    """Scores samples under every head, in groups whose members do not depend on what is done
    already.
    """

    def __init__(self, model: LocalModel, samples: list[Choice] | list[Question], plan: Plan):
        self.model, self.samples, self.plan = model, samples, plan
        self.chooses = isinstance(samples[0], Choice)
        self.requests = [
            Request(one.messages, emphasis=one.emphasis, system_as=plan.system_as)
            for one in samples
        ]
        read = model.session().spell(
            self.requests,
            [one.continuations if isinstance(one, Choice) else ("a",) for one in samples],
        )
        for number, (stream, _) in enumerate(read, 1):
            if not any(stream.span):
                raise UsageError(
                    f"Sample {number} has neither emphasis nor a system prompt, so there is nothing"
                    " to steer to; emphasise a part."
                )
        self.asked = [
            Asked(stream.token_ids, stream.span, tuple(options)) for stream, options in read
        ]
        self.fingerprint = "{:x}".format(
            seed_of(
                [
                    (one.token_ids, one.span, one.continuations, getattr(sample, "right", None))
                    for one, sample in zip(self.asked, samples, strict=True)
                ]
            )
        )
        self.forks = self._forks() if self.chooses else None

    def groups(self, numbers: Sequence[int]) -> list[list[int]]:
        """Samples that are scored together."""
        if self.forks:
            return [
                [numbers[index] for index in group]
                for group in self.forks.groups([self.asked[number] for number in numbers])
            ]
        size = max(
            1, 2 * self.model.batch_size // (self.model.shape.layers * self.model.shape.heads)
        )
        return [list(numbers[start : start + size]) for start in range(0, len(numbers), size)]

    def score(self, numbers: Sequence[int], heads: Sequence[Head]) -> tuple[list[_Scored], int]:
        """Per sample, the score unsteered and under each head; and the tokens forwarded."""
        methods = {head: (replace(self.plan.method, heads=HeadSet([head])),) for head in heads}
        scored = [_Scored() for _ in numbers]
        tokens = 0.0
        if not self.chooses:
            return self._write(numbers, methods)
        if self.forks:
            before = self.forks.forwarded
            found: Iterator = self.forks.scores([self.asked[number] for number in numbers], methods)
        else:
            found = self._plainly(numbers, methods)
        for head, options in found:
            for one, number, values in zip(scored, numbers, options, strict=True):
                one.scores[head_name(head)] = self._choice(number, values)
        tokens = (
            self.forks.forwarded - before
            if self.forks
            else sum(len(self.asked[n].token_ids) for n in numbers) * (len(heads) + 1)
        )
        return scored, round(tokens)

    def estimate(
        self,
        groups: Sequence[Sequence[int]],
        heads: Sequence[Head],
        stages: Sequence[Sequence[int]],
    ) -> str:
        """How long it will take, from a piece of the work just done."""
        samples, count = len(self.samples), len(heads)
        later = sum(len(stage) / 2**number for number, stage in enumerate(stages[1:], 1)) / len(
            stages[0]
        )  # of the first stage's work
        group = groups[len(groups) // 2]
        if self.chooses and self.forks:
            asked = [self.asked[number] for number in group]
            some = [head for head in heads if head[0] == self.model.shape.layers // 2]
            started = time.monotonic()
            self.score(group, some)
            seconds = (time.monotonic() - started) / self.forks.work(asked, some)
            work = sum(
                self.forks.work([self.asked[number] for number in one], heads) for one in groups
            )
            plain = sum(
                len(one.token_ids) + sum(len(option) - 1 for option in one.continuations)
                for one in self.asked
            ) * (count + 1)
            return (
                f"{count} heads x {samples} samples: {work * (1 + later):,.0f} tokens through the"
                f" whole model (one head at a time: {plain:,}), about"
                f" {_span(work * (1 + later) * seconds)} at the speed of the pieces just timed."
            )
        few = replace(self.plan, max_new_tokens=min(8, self.plan.max_new_tokens))
        started = time.monotonic()
        _Worker.score(_with_plan(self, few), group[:1], heads)
        seconds = (time.monotonic() - started) * sum(map(len, groups)) * (1 + later)
        most = seconds if self.chooses else seconds * self.plan.max_new_tokens / few.max_new_tokens
        return (
            f"{count} heads x {samples} samples: {_span(seconds)} to {_span(most)} at the speed of"
            " the sample just timed, by the length of the replies."
        )

    def _choice(self, number: int, values: Sequence[float]) -> float:
        right = self.samples[number].right
        if self.plan.by == "probability":
            return values[right]
        return float(values[right] == max(values))

    def _forks(self) -> Forks | None:
        """The fast way, where it gives this model's scores; else None."""
        if not self.model.reuses_cache:
            return None
        last = self.model.shape.layers - 1
        methods: dict[Head, tuple[ShiftsAttention, ...]] = {
            (layer, 0): (replace(self.plan.method, heads=HeadSet([(layer, 0)])),)
            for layer in (0, last)
        }
        shortest = min(range(len(self.asked)), key=lambda index: len(self.asked[index].token_ids))
        plain = dict(self._plainly([shortest], methods))
        for share in (True, False):
            try:
                forks = Forks(self.model.hf_model, share)
                fast = dict(forks.scores([self.asked[shortest]], methods))
            except (
                ModelError,
                RuntimeError,
                TypeError,
                AttributeError,
                KeyError,
                ValueError,
                IndexError,
            ):
                continue
            apart = max(
                abs(one - other) / max(1.0, abs(other))
                for head in plain
                for one, other in zip(fast[head][0], plain[head][0], strict=True)
            )
            if apart <= _APART * (1 if self.model.hf_model.dtype.itemsize >= 4 else 100):
                return forks
        return None

    def _plainly(
        self, numbers: Sequence[int], methods: dict[Head, tuple[ShiftsAttention, ...]]
    ) -> Iterator[tuple[Head | None, list[tuple[float, ...]]]]:
        """Log-probabilities without sharing more than a batch."""
        options = [self.samples[number].continuations for number in numbers]
        for head, chosen in {None: (), **methods}.items():
            scored = self.model.session().score(
                [replace(self.requests[number], methods=chosen) for number in numbers], options
            )
            yield head, [one.log_probabilities for one in scored]

    def _write(
        self, numbers: Sequence[int], methods: dict[Head, tuple[ShiftsAttention, ...]]
    ) -> tuple[list[_Scored], int]:
        """Replies under every head, rows of one batch; each prompt is forwarded from its span
        on.
        """
        model, scored, tokens = self.model, [_Scored() for _ in numbers], 0
        decoder: Decoder = Decoder(model.hf_model, model.stop_ids, reuse=model.reuses_cache)
        waiting: deque = deque()
        for place, number in enumerate(numbers):
            asked, computed = self.asked[number], None
            room = min(self.plan.max_new_tokens, (model.context or 10**9) - len(asked.token_ids))
            if model.reuses_cache and asked.free:
                row = Row((Stream(asked.token_ids[: asked.free], asked.span[: asked.free]),))
                computed = first_tokens(
                    score_rows(model.hf_model, [row], [[(0,)]], model.batch_size)[1][0][0],
                    asked.free,
                )
            for head, chosen in {None: (), **methods}.items():
                stream = Stream(asked.token_ids, asked.span, computed, chosen)
                waiting.append(((place, head), Row((stream,), sampling=Sampling(0, 1, room))))
        while waiting or len(decoder):
            joining: list = []
            while waiting and len(decoder) + len(joining) < (
                model.batch_size if model.reuses_cache else 1
            ):
                stream = waiting[0][1].streams[0]
                if (
                    joining
                    and (len(joining) + 1) * max(len(stream.token_ids) - stream.cached, 1)
                    > _PREFILL
                ):
                    break
                joining.append(waiting.popleft())
            if joining and len(joining) * 4 >= len(decoder):
                done = decoder.admit([row for _, row in joining], [ticket for ticket, _ in joining])
            else:
                waiting.extendleft(reversed(joining))
                done = decoder.step()
            for (place, head), reply in done:
                text = model.tokenizer.decode(reply.token_ids, skip_special_tokens=True)
                scored[place].replies[head_name(head)] = text
                scored[place].scores[head_name(head)] = float(
                    self.samples[numbers[place]].score(text)
                )
                tokens += reply.forwarded
        return scored, tokens


def _with_plan(worker: _Worker, plan: Plan) -> _Worker:
    made = object.__new__(_Worker)
    made.__dict__.update(worker.__dict__, plan=plan)
    return made


def _span(seconds: float) -> str:
    return (
        f"{seconds:.0f} s"
        if seconds < 100
        else f"{seconds / 60:.0f} min"
        if seconds < 6000
        else f"{seconds / 3600:.1f} h"
    )
