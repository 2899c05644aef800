"""Fields of the server that constrain what is drawn: penalties, response formats, forced tools."""

import copy
import json
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import jsonschema
import openai
import pydantic
import pytest
import tiny
from fast_set import only_fast
from served import client_of, default_model, served
from tool_models import CALLS_IN_TAGS, NUMBERED, POINT, TOOLS, calling_model, tool

import holdfast
from holdfast.serve.limits import RequestLimits
from holdfast.serve.tool_calls import CallParser

PIRATE = [
    {"role": "system", "content": "Talk like a pirate."},
    {"role": "user", "content": "What do you think about the garden?"},
]
FORMAT = {"type": "json_schema", "json_schema": {"name": "point", "schema": POINT, "strict": True}}


def ask(client, messages=PIRATE, **fields):
    return client.chat.completions.create(
        model="default", messages=messages, **{"max_tokens": 200, "seed": 1, **fields}
    )


def test_penalties_give_the_replies_of_python(client):
    penalties = {"frequency_penalty": -1.5, "presence_penalty": -0.5}
    fields = {"temperature": 0, "max_tokens": 40}
    text = ask(client, **fields, **penalties).choices[0].message.content
    sampling = holdfast.Sampling(temperature=0, top_p=1, max_new_tokens=40)
    offline = default_model().generate(
        PIRATE, sampling=sampling, penalties=holdfast.Penalties(-1.5, -0.5)
    )
    assert text == offline.text
    assert text != ask(client, **fields).choices[0].message.content
    prompt = default_model().tokenizer.apply_chat_template(
        PIRATE, tokenize=False, add_generation_prompt=True
    )
    completed = client.completions.create(model="default", prompt=prompt, **fields, **penalties)
    assert completed.choices[0].text == offline.text


def test_log_probabilities_are_of_the_model_before_penalties_and_grammars(client):
    fields = {"temperature": 0, "max_tokens": 1, "logprobs": True, "top_logprobs": 3}
    free = ask(client, **fields).choices[0].logprobs.content[0]
    constrained = ask(client, **fields, response_format=FORMAT).choices[0].logprobs.content[0]
    assert constrained.token.startswith("{") and constrained.logprob < free.logprob
    assert [entry.logprob for entry in constrained.top_logprobs] == pytest.approx(
        [entry.logprob for entry in free.top_logprobs], abs=1e-4
    )


def test_every_choice_and_every_stream_follows_the_schema(client):
    whole = ask(client, n=4, response_format=FORMAT)
    texts = [choice.message.content for choice in whole.choices]
    for choice in whole.choices:
        assert choice.finish_reason == "stop"
        jsonschema.validate(json.loads(choice.message.content), POINT)
    pieces = dict.fromkeys(range(4), "")
    for chunk in ask(client, n=4, response_format=FORMAT, stream=True):
        for choice in chunk.choices:
            pieces[choice.index] += choice.delta.content or ""
    assert list(pieces.values()) == texts


def test_the_clients_own_parser_reads_a_pydantic_class(client):
    class Point(pydantic.BaseModel):
        x: int = pydantic.Field(ge=0, le=99)
        is_sea: bool

    answer = client.chat.completions.parse(
        model="default", messages=PIRATE, response_format=Point, seed=2, max_tokens=100
    )
    point = answer.choices[0].message.parsed
    assert isinstance(point, Point) and 0 <= point.x <= 99


@pytest.mark.slow
def test_free_requests_in_the_same_batch_get_the_same_replies(client):
    def text_of_pair(pair):
        seed, form = pair
        fields = {"response_format": FORMAT} if form else {}
        return ask(client, seed=seed, **fields).choices[0].message.content

    pairs = [(seed, form) for seed in range(4) for form in (False, True)]
    alone = [text_of_pair(pair) for pair in pairs]
    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(text_of_pair, pairs)) == alone


@pytest.mark.parametrize(
    ("fields", "param", "message"),
    [
        ({"response_format": {"type": "json_schema"}}, "response_format", "json_schema is missing"),
        ({"response_format": {"type": "xml"}}, "response_format.type", "'xml'"),
        (
            {"response_format": {"type": "json_object", "json_schema": FORMAT["json_schema"]}},
            "response_format",
            "give the type json_schema",
        ),
        (
            {
                "response_format": {
                    "type": "json_schema",
                    "json_schema": {"name": "odd", "schema": {"not": {}}},
                }
            },
            "response_format",
            'Unimplemented keys: ["not"]',
        ),
        ({"frequency_penalty": 2.1}, "frequency_penalty", "2.1"),
        ({"presence_penalty": -3}, "presence_penalty", "-3"),
        ({"tool_choice": "required"}, "tool_choice", "the declared tools are none"),
        ({"tool_choice": "any"}, "tool_choice", "'any'"),
    ],
)
def test_what_cannot_be_done_is_refused(client, fields, param, message):
    with pytest.raises(openai.BadRequestError) as excinfo:
        ask(client, **fields)
    assert excinfo.value.param == param and message in excinfo.value.body["message"]


def test_a_missing_library_is_refused_with_its_name(client, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "llguidance", None)
    with pytest.raises(openai.BadRequestError, match=r"holdfast-llm\[grammar\]") as excinfo:
        ask(client, response_format={"type": "json_object"})
    assert excinfo.value.param == "response_format"


# Tools

ASKED = list(tiny.chat("Be kind.", "What is it?"))


@pytest.mark.parametrize("stream", only_fast((False, True), True))
@pytest.mark.parametrize(
    ("choice", "names", "seeds"),
    [
        ("required", {"add", "look_up"}, 6),
        ({"type": "function", "function": {"name": "look_up"}}, {"look_up"}, 2),
    ],
)
def test_a_forced_call_is_made_whatever_the_model_would_write(
    tool_server, choice, names, seeds, stream
):
    called_names = set()
    for seed in range(seeds):
        fields = {"tools": TOOLS, "tool_choice": choice, "seed": seed, "stream": stream}
        answer = ask(client_of(tool_server), ASKED, **fields, parallel_tool_calls=False)
        if stream:
            *_, last = answer
            (call,), reason = last.choices[0].delta.tool_calls, last.choices[0].finish_reason
        else:
            (call,) = answer.choices[0].message.tool_calls
            reason = answer.choices[0].finish_reason
        assert reason == "tool_calls"
        jsonschema.validate(json.loads(call.function.arguments), NUMBERED)
        called_names.add(call.function.name)
    assert called_names == names


def test_strict_tools_are_called_in_their_form_or_not_at_all(tool_server):
    """Wherever the model opens a call, what follows is one; an ordinary reply stays possible."""
    parser = CallParser("mine", calling_model())
    assert parser.form.opening == "<tool_call>"
    answers = [
        ask(
            client_of(tool_server),
            ASKED,
            tools=[tool("add", strict=True)],
            seed=seed,
            max_tokens=30,
        )
        for seed in range(4)
    ]
    for answer in answers:
        assert answer.choices[0].finish_reason in ("stop", "length", "tool_calls")


@pytest.mark.parametrize("added", (False, True), ids=["spelt", "added"])
def test_strict_calls_are_what_a_matcher_allows(added):
    from holdfast.models.grammar_masks import compile_grammar
    from holdfast.models.grammars import Function, strict_calls

    local = calling_model()
    if added:  # as Qwen's tags are, which are one token each
        tokens = copy.deepcopy(local.tokenizer)
        tokens.add_tokens(["<tool_call>", "</tool_call>"])
        local = replace(local, tokenizer=tokens)
    form = CallParser("mine", local).form
    assert bool(form.special) is added
    grammar = strict_calls(form, [Function("add", NUMBERED), Function("look_up", {})])
    start = compile_grammar(grammar, local.tokenizer, local.stop_ids).start
    for text, valid in (
        ("It is nine.", True),
        ('I look.\n<tool_call>\n{"name": "add", "arguments": {"x": 1}}\n</tool_call>', True),
        ('\n<tool_call>\n{"name": "look_up", "arguments": {"any": [1]}}\n</tool_call>!', True),
        ('\n<tool_call>\n{"name": "add", "arguments": {"x": 3}}\n</tool_call>', False),
        ('\n<tool_call>\n{"name": "sub", "arguments": {"x": 1}}\n</tool_call>', False),
        ("\n<tool_call>\nno", False),
    ):
        ids = local.tokenizer(text, add_special_tokens=False).input_ids
        matcher = start.deep_copy()
        is_valid = matcher.validate_tokens(ids) == len(ids)
        if is_valid:
            matcher.consume_tokens(ids)
        assert (is_valid and matcher.is_accepting()) is valid, text


def test_a_tool_that_is_not_declared_is_refused_by_name(tool_server):
    fields = {"tool_choice": {"type": "function", "function": {"name": "fly"}}, "tools": TOOLS}
    with pytest.raises(openai.BadRequestError) as excinfo:
        ask(client_of(tool_server), ASKED, **fields)
    assert excinfo.value.param == "tool_choice"
    assert (
        "'fly'" in excinfo.value.body["message"] and "add, look_up" in excinfo.value.body["message"]
    )


def test_a_format_beside_tools_is_refused_unless_none_is_called(tool_server):
    fields = {"tools": TOOLS, "response_format": FORMAT}
    with pytest.raises(openai.BadRequestError) as excinfo:
        ask(client_of(tool_server), ASKED, **fields)
    assert excinfo.value.param == "response_format"
    answer = ask(client_of(tool_server), ASKED, **fields, tool_choice="none").choices[0]
    jsonschema.validate(json.loads(answer.message.content), POINT)


def test_a_call_that_cannot_be_parsed_is_said_to_be_unparsed(tool_server):
    parser = CallParser("mine", calling_model())
    for text, unparsed in (
        ("It is nine.", False),
        ("I look.\n<tool_call>\n{", True),
        ("I look.\n<tool_call>\n[3]\n</tool_call>", True),
    ):
        assert parser.parse(text, "", TOOLS) == [] and parser.is_unparsed(text) is unparsed
    fields = {"tools": TOOLS, "tool_choice": "required", "max_tokens": 16}
    cut = ask(client_of(tool_server), ASKED, **fields).choices[0]
    assert cut.finish_reason == "length" and cut.message.tool_calls is None
    assert cut.model_extra["holdfast"] == {"unparsed_call": True}
    *_, last = ask(client_of(tool_server), ASKED, **fields, stream=True)
    assert last.choices[0].model_extra["holdfast"] == {"unparsed_call": True}


def test_a_call_may_open_with_one_of_several_texts():
    calls = {name: value for name, value in CALLS_IN_TAGS.items() if name != "open_pattern"}
    model = calling_model({**calls, "open": ["<tool_call>", "[CALL]"]})
    parser = CallParser("mine", model)
    (call,) = parser.parse('[CALL]{"name": "add", "arguments": {"x": 1}}</tool_call>', "", TOOLS)
    assert call["function"]["name"] == "add"
    assert parser.is_unparsed("I look. [CALL]{") and not parser.is_unparsed("It is nine.")


def test_a_stop_id_without_a_text_does_not_cut_a_call_off():
    local = calling_model()
    unknown = len(local.tokenizer) + 7
    assert local.tokenizer.decode([unknown]) == ""
    with_unknown = replace(local, stop_ids=local.stop_ids | {unknown})
    assert CallParser("mine", with_unknown).form == CallParser("mine", local).form is not None


def test_a_template_whose_calls_cannot_be_forced_is_refused():
    model = calling_model({**CALLS_IN_TAGS, "open_pattern": "<other>"})
    with served(model, RequestLimits(tokens=40)) as running:
        with pytest.raises(openai.BadRequestError) as excinfo:
            ask(client_of(running), ASKED, tools=TOOLS, tool_choice="required", max_tokens=40)
        assert (excinfo.value.param, excinfo.value.code) == ("tool_choice", "no_call_form")
        strict = [tool("add", strict=True)]
        with pytest.raises(openai.BadRequestError) as excinfo:
            ask(client_of(running), ASKED, tools=strict, max_tokens=40)
        assert (excinfo.value.param, excinfo.value.code) == ("tools", "no_call_form")
