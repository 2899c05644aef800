"""Replies that are streamed while they are drawn."""

import pytest
from tiny import chat, model

from holdfast import Boost, Sampling
from holdfast.errors import PromptError
from holdfast.methods import Guidance
from holdfast.models.requests import Request
from holdfast.models.streaming import PieceWriter

CHAT = chat("Talk about rain.", "hello there")


@pytest.mark.parametrize("methods", ([], [Boost(4)], [Guidance(2.0)]), ids=str)
def test_the_pieces_are_the_reply(methods):
    told, chats = [], model()
    request = Request(CHAT, methods, Sampling(max_new_tokens=24), seed=3)
    reply = chats.stream(request, told.append)
    assert told and "".join(told) == reply.text
    assert methods or len(told) > 5
    assert reply == chats.generate_batch([request])[0]


def test_a_chat_that_fills_the_context_is_refused():
    long = [{"role": "user", "content": "rain " * 5000}]
    with pytest.raises(PromptError, match="no room"):
        model().stream(Request(long), lambda piece: None)


class Bytes:
    """A tokenizer whose tokens are single bytes."""

    def decode(self, ids, skip_special_tokens):
        return bytes(ids).decode("utf-8", errors="replace")


def test_a_character_of_several_tokens_is_streamed_whole():
    told = []
    writer = PieceWriter(Bytes(), told.append)
    for byte in "né €".encode():
        writer.add(byte)
    assert told == ["n", "é", " ", "€"]


def test_an_incomplete_character_is_streamed_at_the_end():
    told = []
    writer = PieceWriter(Bytes(), told.append)
    for byte in "a€".encode()[:-1]:
        writer.add(byte)
    writer.finish("a\ufffd")
    assert told == ["a", "\ufffd"]
