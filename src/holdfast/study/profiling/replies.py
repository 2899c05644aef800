"""Scores questions: a reply is written under every head, greedily."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from holdfast.analysis.profile import head_name
from holdfast.engine.prefixes import Prefix
from holdfast.engine.rows import Row, Stream
from holdfast.engine.scoring import score_rows
from holdfast.methods.heads import Head
from holdfast.sampling import Sampling
from holdfast.study.profiling.material import Material
from holdfast.study.profiling.samples import Question
from holdfast.study.profiling.scoring import SampleScores, duration

_TRIED = 8  # tokens of a reply that is written to see how long it takes

_Ticket = tuple[int, Head | None]  # the place of a sample in its group, and the head


@dataclass(frozen=True)
class Replies:
    """Questions, whose replies under all heads are rows of one batch; each prompt is forwarded from
    its span on.
    """

    material: Material

    def groups(self, numbers: Sequence[int]) -> list[list[int]]:
        return self.material.by_rows(numbers)

    def score(
        self, numbers: Sequence[int], heads: Sequence[Head]
    ) -> tuple[list[SampleScores], int]:
        scored, tokens = [SampleScores() for _ in numbers], 0
        for (place, head), text, forwarded in self._write(list(self._rows(numbers, heads))):
            question = self.material.samples[numbers[place]]
            assert isinstance(question, Question)
            scored[place].replies[head_name(head)] = text
            scored[place].scores[head_name(head)] = float(question.score(text))
            tokens += forwarded
        return scored, tokens

    def estimate(
        self, groups: Sequence[Sequence[int]], heads: Sequence[Head], further: float
    ) -> str:
        plan = self.material.plan
        few = replace(plan, max_new_tokens=min(_TRIED, plan.max_new_tokens))
        began = time.monotonic()
        Replies(replace(self.material, plan=few)).score(groups[0][:1], heads)
        each = (time.monotonic() - began) * (1 + further)
        least = each * sum(map(len, groups))
        most = least * plan.max_new_tokens / few.max_new_tokens
        return (
            f"{len(heads)} heads x {len(self.material.samples)} samples: {duration(least)} to"
            f" {duration(most)} at the speed of the sample just timed, by the length of the"
            " replies."
        )

    def _rows(self, numbers: Sequence[int], heads: Sequence[Head]) -> Iterator[tuple[_Ticket, Row]]:
        """Every sample under every head, a sample's heads in a run."""
        sampling = Sampling(0, 1, self.material.plan.max_new_tokens)
        methods = self.material.methods(heads)
        for place, number in enumerate(numbers):
            prompt = self.material.prompts[number]
            prefix = self._before_span(number)
            for head, steering in methods.items():
                stream = Stream.behind(prefix, prompt.token_ids, prompt.span, steering)
                yield (place, head), Row((stream,), sampling=sampling)

    def _before_span(self, number: int) -> Prefix | None:
        """The tokens in front of the span, which no head changes, computed once."""
        model, prompt = self.material.model, self.material.prompts[number]
        count = prompt.before_span
        if not (model.reuses_cache and model.runner.supports_chunked_prefill and count):
            return None
        stream = Stream(prompt.token_ids[:count], prompt.span[:count])
        _, ((computed,),) = score_rows(model.runner, [Row((stream,))], [[(0,)]], model.batch_size)
        return Prefix(stream.token_ids, stream.span, (), computed)

    def _write(self, rows: Sequence[tuple[_Ticket, Row]]) -> Iterator[tuple[_Ticket, str, int]]:
        """The replies as they end: their text, and the tokens forwarded."""
        model = self.material.model
        scheduler = model.scheduler()
        tickets = {scheduler.submit(row): ticket for ticket, row in rows}
        while tickets:
            for handle in scheduler.step():
                reply = handle.result()
                text = model.tokenizer.decode(list(reply.token_ids), skip_special_tokens=True)
                yield tickets.pop(handle), str(text), reply.forwarded
