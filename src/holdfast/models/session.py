"""Requests to a model that runs here, which share what was computed for their dialogs."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import TYPE_CHECKING

from holdfast.chat.prompt import tokenize
from holdfast.engine.prefixes import PrefixCache
from holdfast.engine.rows import Continuation, Stream
from holdfast.engine.scheduler import Handle, name_error
from holdfast.engine.scoring import Scored, score_in_memory
from holdfast.errors import HoldfastError, PromptError, UsageError
from holdfast.methods import Kind, Method, of_kind
from holdfast.models.protocol import Job, answer_all, request_names
from holdfast.models.rendering import Known, Rendered, render
from holdfast.models.requests import Reply, Request

if TYPE_CHECKING:
    from holdfast.models.local import LocalModel

_Open = dict[Handle, tuple[Job, Rendered]]


class LocalSession:
    """Requests that share prefixes; what was computed lives as long as the session.

    Args:
        model: that answers them.
    """

    def __init__(self, model: LocalModel):
        self.model = model
        self._threads: dict[Hashable, tuple[Known, ...]] = {}
        self._prefixes = PrefixCache(model.prefix_bytes)
        self._checked: set[tuple[Method, ...]] = set()
        self.rows_at_most: int | None = None  # together, since memory ran out; None: it never did

    def generate_batch(self, requests: Sequence[Request]) -> list[Reply]:
        """Answers requests in the order given.

        A request with a `thread` continues what that thread has computed; with `keep` (one at a
        time per thread), its reply becomes part of it, and without, it forks the thread and leaves
        no trace.

        Raises:
            PromptError: a chat cannot be rendered, its system prompt is not found, or it passes the
                model's context; nothing is generated then.
            ModelError: a method cannot be applied to this model.
        """
        return answer_all(self._run_whole, requests)

    def generate(self, request: Request, drawn: Callable[[int], None] | None = None) -> Reply:
        """Answers one request; `drawn` takes every token id of the reply as it is drawn.

        Raises:
            PromptError, ModelError: as `generate_batch`.
        """
        return answer_all(self._run_whole, [request], drawn)[0]

    def _run_whole(self, jobs: Sequence[Job]) -> None:
        """Answers jobs once all of them are found to have a prompt and room for a reply."""
        rendered = _all_rendered(self._render(jobs))
        for each in rendered:
            self._check_room(each)
        self._answer(list(zip(jobs, rendered, strict=True)))

    def run(self, jobs: Iterable[Job]) -> None:
        """Answers jobs and all that follow from them; rows join and leave the batch at any step.

        Requests that others wait for (`keep`) go first, each kind in order. A request that fails
        ends alone, and the others go on.

        Raises:
            HoldfastError: when all others are answered, the error of the first request that failed;
                a chat that is too long is no error here, as its reply says so.
        """
        jobs = list(jobs)
        self._answer(list(zip(jobs, self._render(jobs), strict=True)))

    def _answer(self, rendered: Sequence[tuple[Job, Rendered | HoldfastError]]) -> None:
        scheduler, open_rows, errors = self.model.scheduler(), _Open(), list[Exception]()
        waiting = list(rendered)
        while waiting or open_rows:
            following: list[Job] = []
            for job, asked in waiting:
                if isinstance(asked, HoldfastError):
                    errors.append(asked)
                else:
                    open_rows[scheduler.submit(asked.row)] = job, asked
            told = {
                handle: len(handle.token_ids) for handle, (job, _) in open_rows.items() if job.drawn
            }
            ended = scheduler.step() if open_rows else []
            if scheduler.halvings:
                self.rows_at_most = scheduler.halvings[-1]
            for handle, count in told.items():
                if (drawn := open_rows[handle][0].drawn) is not None:
                    for token in handle.token_ids[count:]:
                        drawn(token)
            for handle in ended:
                job, asked = open_rows.pop(handle)
                if handle.error is not None:
                    errors.append(handle.error)
                else:
                    following += job.then(self._reply(asked, handle.result()))
            waiting = list(zip(following, self._render(following), strict=True))
        if errors:
            raise errors[0]

    def _reply(self, asked: Rendered, done: Continuation) -> Reply:
        if done.stop_reason == "context":
            return Reply("", (), "context", prompt_ids=asked.prompt_ids)
        ids = list(done.token_ids)
        text = str(self.model.tokenizer.decode(ids, skip_special_tokens=True))
        if asked.row.keep:
            self._keep(asked, asked.known(done.computed, done.token_ids, text))
        return Reply(
            text, done.token_ids, done.stop_reason, done.trace, done.forwarded, asked.prompt_ids
        )

    def score(self, requests: Sequence[Request], replies: Sequence[Sequence[str]]) -> list[Scored]:
        """How probable given replies are to each chat, without generating (at temperature 1, the
        whole vocabulary).

        A request with a `thread` continues what that thread has computed; with `keep`, the chat
        (not the replies) becomes part of it.

        Args:
            requests: the chats; sampling, seeds (but a conversation's) and traces play no part.
            replies: per request, the replies to score, at least one and none empty. A reply is
                tokenized behind its chat.

        Raises:
            PromptError: as `generate_batch`; or a reply is empty, or does not fit into the model's
                context.
            UsageError: a gate, which draws again and again, so that its tokens have no probability
                of their own.
            ModelError: a method cannot be applied to this model.
        """
        gates = [gate for request in requests for gate in of_kind(request.methods, Kind.GATE)]
        if gates:
            raise UsageError(
                f"{gates[0].name} draws tokens again, so replies under it have no log-probability;"
                " score without it."
            )
        asked, wanted = self._read(requests, replies)
        rows = [each.row for each in asked]
        model = self.model
        scored, computed = score_in_memory(model.runner, rows, wanted, model.batch_size)
        for each, own in zip(asked, computed, strict=True):
            if each.row.keep and own:
                self._keep(each, each.known(own))
        return scored

    def spell(
        self, requests: Sequence[Request], replies: Sequence[Sequence[str]]
    ) -> list[tuple[Stream, list[tuple[int, ...]]]]:
        """What `score` forwards: each chat's tokens and span, and the tokens of its replies.

        Raises:
            PromptError, UsageError, ModelError: as `score`.
        """
        asked, wanted = self._read(requests, replies)
        return [(each.row.streams[0], options) for each, options in zip(asked, wanted, strict=True)]

    def forget(self, thread: Hashable) -> None:
        """Frees what was computed for a thread that is over; a later request of it begins anew."""
        self._threads.pop(thread, None)
        self._prefixes.forget(thread)

    def _check_room(self, asked: Rendered) -> None:
        """Refuses a chat that fills the context.

        Raises:
            PromptError: it leaves no room for a reply.
        """
        context, row = self.model.context, asked.row
        if context and row.longest >= context:
            raise PromptError(
                f"{row.name and f'{row.name}: '}A chat of {len(asked.prompt_ids)} tokens leaves no"
                f" room for a reply in the {context} tokens {self.model.name} can see; use a"
                " shorter chat or fewer rounds."
            )

    def _keep(self, asked: Rendered, known: tuple[Known, ...]) -> None:
        thread = asked.request.thread
        assert thread is not None
        self._threads[thread] = known
        self._prefixes.keep(thread, [each.prefix for each in known])

    def _render(self, jobs: Sequence[Job]) -> list[Rendered | HoldfastError]:
        """The jobs' requests as rows, each with what its thread knows now.

        A fork that has to wait goes on from here, however far its thread gets meanwhile.
        """
        if not jobs:
            return []
        refused: dict[int, HoldfastError] = {}
        for number, job in enumerate(jobs):
            try:
                self._check(job.request.methods)
            except HoldfastError as error:
                if job.name:
                    name_error(error, job.name)
                refused[number] = error
        allowed = [job for number, job in enumerate(jobs) if number not in refused]
        requests = [job.request for job in allowed]
        rendered = iter(
            render(
                requests,
                [job.name for job in allowed],
                [self._known(request) for request in requests],
                self.model.tokenizer,
                traces=self.model.steerable,
            )
        )
        return [refused.get(number) or next(rendered) for number in range(len(jobs))]

    def _check(self, methods: tuple[Method, ...]) -> None:
        if methods not in self._checked:
            self.model.check(methods)
            self._checked.add(methods)

    def _known(self, request: Request) -> tuple[Known, ...]:
        if request.thread is None:
            return ()
        self._prefixes.use(request.thread)
        return self._threads.get(request.thread, ())

    def _read(
        self, requests: Sequence[Request], replies: Sequence[Sequence[str]]
    ) -> tuple[list[Rendered], list[list[tuple[int, ...]]]]:
        """The requests, and the tokens of their replies; none is longer than the model's
        context.
        """
        jobs = [
            Job(request, lambda reply: (), name=name)
            for name, request in zip(request_names(requests), requests, strict=True)
        ]
        asked = _all_rendered(self._render(jobs))
        wanted = self._spell_out(asked, replies)
        context = self.model.context
        for each, options in zip(asked, wanted, strict=True):
            longest = each.row.longest + max(map(len, options))
            if context and (longest > context or each.row.longest >= context):
                name = each.row.name
                raise PromptError(
                    f"{name and f'{name}: '}A chat and its reply take {longest} tokens, and"
                    f" {self.model.name} sees {context}; use a shorter chat."
                )
        return asked, wanted

    def _spell_out(
        self, asked: Sequence[Rendered], replies: Sequence[Sequence[str]]
    ) -> list[list[tuple[int, ...]]]:
        """The tokens of each reply behind its chat; by itself where no token of the two together
        begins with the reply.
        """
        if any(not reply for options in replies for reply in options) or not all(replies):
            raise PromptError(
                "An empty reply ('') has no probability; give at least one reply to each chat, each"
                " with a text."
            )
        tokenizer = self.model.tokenizer
        texts = [
            each.texts[0] + reply
            for each, options in zip(asked, replies, strict=True)
            for reply in options
        ]
        joined = iter(tokenize(texts, [()] * len(texts), tokenizer))
        spelled: list[list[tuple[int, ...]]] = []
        for each, options in zip(asked, replies, strict=True):
            spelled.append([])
            boundary = len(each.texts[0])
            for reply in options:
                prompt = next(joined)
                starts = enumerate(prompt.starts)
                first = next((index for index, start in starts if start >= boundary), None)
                if first is None or prompt.starts[first] != boundary:
                    prompt, first = tokenize([reply], [()], tokenizer)[0], 0
                spelled[-1].append(prompt.token_ids[first:])
        return spelled


def _all_rendered(rendered: Sequence[Rendered | HoldfastError]) -> list[Rendered]:
    """The requests; raises the first error."""
    for each in rendered:
        if isinstance(each, HoldfastError):
            raise each
    return [each for each in rendered if isinstance(each, Rendered)]
