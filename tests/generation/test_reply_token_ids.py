"""A dialog whose replies come with their tokens continues from these, without a thread."""

import re
from dataclasses import replace

import pytest
from tiny import chat, model

from holdfast import Boost, Guidance, Repetition, Request, Sampling
from holdfast.errors import PromptError, UsageError

TURNS = 4
DRAWN = Sampling(2.0, 1.0, 12)
METHODS = {
    "none": (),
    "boost": (Boost(3.0),),
    "guidance": (Guidance(1.5),),
    "repetition": (Repetition(1.0), Boost(2.0)),
}


def dialog(tiny, methods, texts, *, threads=True, reply_token_ids=True):
    """The tokens and the text of each reply in a dialog of several turns."""
    session = tiny.session() if threads else tiny.session(long_lived=True)
    messages, reply_ids, replies = list(chat("talk about the river", "what is rain?")), [], []
    for turn in range(TURNS):
        request = Request(messages, methods, DRAWN, turn, conversation_seed=7)
        if threads:
            request = replace(request, thread="t", keep=True)
        elif reply_token_ids:
            request = replace(request, reply_token_ids=tuple(reply_ids))
        (reply,) = session.generate_batch([request])
        reply_ids.append((len(messages), reply.token_ids))
        replies.append(reply.token_ids)
        text = texts[turn] if texts else reply.text
        messages += chat("", "", text)[1:] + chat("", "and the cheese?")
    return replies, [tiny.tokenizer.decode(list(ids)) for ids in replies]


@pytest.mark.parametrize("name", METHODS)
def test_given_reply_tokens_continue_a_dialog_as_a_thread_would(name):
    tiny = model(dtype="float64")
    token_ids, texts = dialog(tiny, METHODS[name], None)
    assert dialog(tiny, METHODS[name], None, threads=False) == (token_ids, texts)


def test_from_texts_without_tokens_the_dialog_continues_differently():
    tiny = model(dtype="float64")
    token_ids, texts = dialog(tiny, (), None)
    retokenised = [list(tiny.tokenizer(text, add_special_tokens=False).input_ids) for text in texts]
    assert [list(ids) for ids in token_ids] != retokenised  # some reply is tokenised differently
    assert dialog(tiny, (), texts, threads=False, reply_token_ids=False)[0] != token_ids


def test_tokens_that_spell_another_text_are_refused_and_the_request_is_named():
    tiny = model()
    messages = chat("be brief", "the river", "runs slowly", "where?")
    wrong = Request(messages, reply_token_ids=((2, (300, 301)),), sampling=Sampling(0, 1, 4))
    with pytest.raises(PromptError) as excinfo:
        tiny.generate_batch([wrong])
    assert (excinfo.value.option, excinfo.value.allowed) == ("reply_token_ids", "runs slowly")
    with pytest.raises(PromptError, match=r"^Request 2 of 2: .*message 2"):
        tiny.generate_batch([replace(wrong, reply_token_ids=()), wrong])


@pytest.mark.parametrize("token_ids", [((1, (5,)),), ((0, (5,)),), ((9, (5,)),), ((2, (5,)),) * 2])
def test_tokens_of_messages_that_are_not_replies_are_refused(token_ids):
    messages = chat("be brief", "the river", "runs slowly", "where?")
    with pytest.raises(UsageError, match=re.escape(f"not of message {token_ids[-1][0]};")):
        Request(messages, reply_token_ids=token_ids)
