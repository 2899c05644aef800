"""An error names the request or the conversation that it is about."""

from dataclasses import replace

import pytest
from tiny import chat, model, tokenizer

from holdfast import Guidance, Request, Sampling, drift
from holdfast.errors import PromptError, UsageError

SHORT = Sampling(max_new_tokens=12)


def test_an_error_names_the_request_it_is_about():
    tiny, good = model(), Request(chat("be nice", "hello"), sampling=SHORT)
    refuses = "{% for m in messages if 'x' in m['content'] %}{{ raise_exception('no x') }}"
    refuses += "{% endfor %}"
    fussy = replace(tiny, tokenizer=tokenizer(refuses + tokenizer().chat_template))
    with pytest.raises(PromptError, match=r"^Request 2 .*no x"):
        fussy.generate_batch([good, Request(chat("be nice", "x")), good])
    with pytest.raises(PromptError, match=r"^Request 3 .*\d+ tokens"):
        tiny.generate_batch([good, good, Request(chat("be nice", "hello " * 600))])
    with pytest.raises(PromptError, match=r"\d+ tokens"):
        tiny.generate(chat("be nice", "hello " * 600))
    with pytest.raises(PromptError, match=r"^Request 2 .*\d+ tokens"):
        tiny.session().score_batch([good, Request(chat("s", "bread " * 600))], [["bread"]] * 2)
    guided_twice = Request(chat("be nice", "hello"), (Guidance(2.0), Guidance(3.0)))
    with pytest.raises(UsageError, match=r"^Request 1 of 2: guidance"):
        tiny.generate_batch([guided_twice, good])


def test_an_error_of_a_dialog_names_the_conversation(tmp_path):
    refuses = "{% if messages|length > 3 %}{{ raise_exception('too many') }}{% endif %}"
    fussy = replace(model(), tokenizer=tokenizer(refuses + tokenizer().chat_template))
    settings = drift.Settings(rounds=3, conversations=2, sampling=SHORT)
    with pytest.raises(PromptError, match=r"^Conversation \d, round 2 .*many"):
        drift.run(fussy, drift.load_suite("starter"), tmp_path, settings)
