"""Given replies: how probable they are to a chat, and how far two chats part in what they expect.

Nothing is drawn here but what a method has to rehearse.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, replace

from holdfast.engine.divergence import Divergence, Pair, divergences_of
from holdfast.engine.rows import Row, Stream
from holdfast.engine.scoring import Scored, score_by_method
from holdfast.errors import PromptError, UsageError
from holdfast.methods import gate_of
from holdfast.models.protocol import request_names
from holdfast.models.reader import Reader, SessionModel, rehearsal_of
from holdfast.models.rendering import (
    CachedDialog,
    Rendered,
    all_rendered,
    known_replies,
    render,
    render_one,
    spell_replies,
)
from holdfast.models.requests import Compared, Reply, Request, check_comparable


@dataclass(frozen=True)
class GivenReplies:
    """Scores given replies for one session."""

    model: SessionModel  # that reads them
    reader: Reader  # of the session, which knows its threads
    # answers rehearsals, outside of the session's threads
    generate: Callable[[Sequence[Request]], list[Reply]]

    def score(self, requests: Sequence[Request], replies: Sequence[Sequence[str]]) -> list[Scored]:
        """The log-probabilities of given replies to each chat (at temperature 1, the whole
        vocabulary).

        A request with a `thread` continues what that thread has computed; with `keep`, the chat
        (not the replies) becomes part of it.

        Args:
            requests: sampling, seeds (but a conversation's) and traces play no part.
            replies: per request, at least one and none empty; each is tokenized behind its chat.

        Raises:
            PromptError: a reply is empty, or does not fit into the model's context.
            UsageError: a gate, under which tokens are drawn again and have no probability of their
                own.
            ModelError: a method cannot be applied to this model.
        """
        if judging := [m for request in requests if (m := gate_of(request.methods))]:
            raise UsageError(
                f"{judging[0].name} draws tokens again, so replies under it have no"
                " log-probability; score without it."
            )
        rendered, wanted = self._read(requests, replies)
        rows, model = [chat.row for chat in rendered], self.model
        scored, computed = score_by_method(
            model.runner, model.scheduler, rows, wanted, model.batch_size
        )
        for chat, computed_here in zip(rendered, computed, strict=True):
            if chat.row.keep and computed_here:
                self.reader.keep(chat, chat.known(computed_here))
        return scored

    def diverge(self, compared: Sequence[Compared]) -> list[Divergence | None]:
        """How far each reply's distributions lie from those behind another chat.

        Nothing is generated, and requests may be under way. What a thread has computed of a chat
        is not forwarded again; the reply is, once behind each chat, unless the two are alike.

        Args:
            compared: the turns of a thread in their order, each with the messages that it saw.

        Returns:
            None for a reply without a token, or one that does not fit into the model's context.

        Raises:
            UsageError: methods under which tokens have no distribution to compare.
            PromptError: a chat cannot be rendered.
            ModelError: a method cannot be applied to this model.
        """
        self.reader.check_weights()
        for comparison in compared:
            check_comparable((*comparison.request.methods, *comparison.reference.methods))
            self.reader.check(comparison.request.methods)
            self.reader.check(comparison.reference.methods)
        settled = [self._settled_in(comparison) for comparison in compared]
        pairs, runner = self._pairs_of(settled), self.model.runner
        divergences, read = dict[int, Divergence](), list[int]()
        for number, (comparison, pair) in enumerate(zip(settled, pairs, strict=True)):
            if comparison.alike and pair.tokens:
                divergences[number] = Divergence((0.0,) * pair.tokens)
            elif pair.tokens and not (runner.context and pair.longest > runner.context):
                read.append(number)
        measured = divergences_of(runner, [pairs[n] for n in read], self.model.batch_size)
        divergences |= dict(zip(read, measured, strict=True))
        return [divergences.get(number) for number in range(len(pairs))]

    def _pairs_of(self, compared: Sequence[Compared]) -> list[Pair]:
        """The replies as the engine reads them; a dialog's turns keep their generated tokens."""
        tokenizer = self.model.tokenizer
        references = all_rendered(render([item.reference for item in compared], tokenizer))
        dialogs: dict[Hashable, tuple[CachedDialog, ...]] = {}  # as far as they are rendered
        pairs = []
        for comparison, reference in zip(compared, references, strict=True):
            request, reply = comparison.request, comparison.reply
            known: tuple[CachedDialog, ...] = ()
            if request.thread is None:
                before = known_replies(request, tokenizer)
            else:
                before = dialogs.get(request.thread, ())
                known = self.reader.known_of(request.thread)
            rendered = render_one(request, tokenizer, before)
            token_ids = reply.token_ids
            if token_ids is None:  # those of its text behind its chat
                texts = [[reply.text]]
                token_ids = spell_replies([rendered], texts, tokenizer)[0][0] if reply.text else ()
            elif request.thread is not None:
                dialogs[request.thread] = rendered.known((), token_ids, reply.text)
            rows = _behind(rendered, known), _behind(reference, known)
            pairs.append(Pair(*rows, token_ids, comparison.ended))
        return pairs

    def _settled_in(self, compared: Compared) -> Compared:
        """A comparison with settled methods; equal ones by the chat that was answered."""
        request, reference = self.rehearse(compared.request), compared.reference
        if reference.methods == compared.request.methods:
            return replace(
                compared, request=request, reference=replace(reference, methods=request.methods)
            )
        return replace(compared, request=request, reference=self.rehearse(reference))

    def spell(
        self, requests: Sequence[Request], replies: Sequence[Sequence[str]]
    ) -> list[tuple[Stream, list[tuple[int, ...]]]]:
        """The inputs of `score`: each chat's tokens and span, and the tokens of its replies."""
        rendered, wanted = self._read(requests, replies)
        return list(zip((chat.row.streams[0] for chat in rendered), wanted, strict=True))

    def rehearse(self, request: Request) -> Request:
        """The request with its methods settled by a rehearsed reply to its first turn."""
        self.reader.check_weights()
        self._rehearse([request])
        settled = self.reader.rehearsals.settled(request)
        assert settled is not None
        return settled

    def _rehearse(self, requests: Sequence[Request]) -> None:
        """Has all methods settled, by replies that are drawn outside of this session's threads."""
        rehearsals = self.reader.rehearsals
        unsettled = [request for request in requests if rehearsals.settled(request) is None]
        if not unsettled:
            return
        for request in unsettled:
            self.reader.check(request.methods)
        replies = self.generate([rehearsal_of(request) for request in unsettled])
        for request, reply in zip(unsettled, replies, strict=True):
            rehearsals.learn(request, reply)

    def _read(
        self, requests: Sequence[Request], replies: Sequence[Sequence[str]]
    ) -> tuple[list[Rendered], list[list[tuple[int, ...]]]]:
        """The requests and the tokens of their replies, all within the model's context."""
        self.reader.check_weights()
        self._rehearse(requests)
        rendered = all_rendered(self.reader.read(requests, request_names(requests)))
        wanted = spell_replies(rendered, replies, self.model.tokenizer)
        context = self.model.context
        for chat, options in zip(rendered, wanted, strict=True):
            longest = chat.row.longest + max(map(len, options))
            if context and (longest > context or chat.row.longest >= context):
                name = chat.row.name
                raise PromptError(
                    f"{name and f'{name}: '}A chat and its reply take {longest} tokens, and"
                    f" {self.model.name} sees {context}; use a shorter chat."
                )
        return rendered, wanted


def _behind(rendered: Rendered, known: Sequence[CachedDialog]) -> Row:
    """A chat as a row whose streams take over what they can of a thread."""
    streams = list(rendered.row.streams)
    for number, (old, dialog) in enumerate(zip(streams, known, strict=False)):
        streams[number] = Stream.behind(dialog.prefix, old.token_ids, old.span, old.methods)
    return replace(rendered.row, streams=tuple(streams))
