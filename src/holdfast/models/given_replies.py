"""How probable given replies are to a chat; nothing is drawn but what a method rehearses."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from holdfast.engine.rows import Stream
from holdfast.engine.scoring import Scored, score_rows
from holdfast.errors import PromptError
from holdfast.models.protocol import request_names
from holdfast.models.reader import Reader, SessionModel, rehearsal_of
from holdfast.models.rendering import Rendered, all_rendered, spell_replies
from holdfast.models.requests import Reply, Request


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
            ModelError: a method cannot be applied to this model.
        """
        rendered, wanted = self._read(requests, replies)
        rows, model = [chat.row for chat in rendered], self.model
        scored, computed = score_rows(model.runner, rows, wanted, model.batch_size)
        for chat, computed_here in zip(rendered, computed, strict=True):
            if chat.row.keep and computed_here:
                self.reader.keep(chat, chat.known(computed_here))
        return scored

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
