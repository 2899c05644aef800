"""Replies that are streamed while they are drawn."""

import pytest
from tiny import chat, model

from holdfast import Boost, Sampling
from holdfast.errors import PromptError
from holdfast.methods import Guidance
from holdfast.models.requests import Request

CHAT = chat("Talk about rain.", "hello there")


@pytest.mark.parametrize("methods", ([], [Boost(4)], [Guidance(2.0)]), ids=str)
def test_the_pieces_are_the_reply(methods):
    pieces, chats = [], model()
    request = Request(CHAT, methods, Sampling(max_new_tokens=24), seed=3)
    reply = chats.stream(request, pieces.append)
    assert pieces and "".join(pieces) == reply.text
    assert methods or len(pieces) > 5
    assert reply == chats.generate_batch([request])[0]


def test_a_chat_that_fills_the_context_is_refused():
    long = [{"role": "user", "content": "rain " * 5000}]
    with pytest.raises(PromptError, match="no room"):
        model().stream(Request(long), lambda piece: None)
