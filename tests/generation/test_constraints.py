"""Replies whose draws are constrained: penalties on repeated tokens, and grammars.

A penalty lowers the logits of earlier tokens; a mask of a grammar forbids all that it rules out.
"""

import json
import sys
from collections import Counter
from dataclasses import dataclass, field
from functools import cache

import jsonschema
import oracles
import pytest
import torch

import holdfast
from holdfast.errors import ModelError, ParameterOutOfRange, UsageError
from holdfast.generation.logits import constrain
from holdfast.generation.sampling import Penalties
from holdfast.generation.token_requests import RequestState, TokenPrompt, TokenRequest
from holdfast.models.grammar_masks import compile_grammar
from holdfast.models.grammars import CallForm, Function, Grammar, read_response_format
from holdfast.models.requests import Request

PIRATE = [
    {"role": "system", "content": "Talk like a pirate."},
    {"role": "user", "content": "What do you think about the garden?"},
]
PERSON = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "maxLength": 12},
        "age": {"type": "integer", "minimum": 0, "maximum": 99},
        "likes": {"type": "array", "items": {"enum": ["sea", "land"]}, "maxItems": 2},
    },
    "required": ["name", "age", "likes"],
    "additionalProperties": False,
}


@cache
def model():
    return holdfast.load("default", dtype="float64")


def format_of(schema, name="person"):
    return {"type": "json_schema", "json_schema": {"name": name, "schema": schema}}


@dataclass
class RowState:
    """The part of a request's state that constraints read."""

    token_ids: list[int]
    penalties: Penalties = Penalties()
    matcher: object = None

    @property
    def request(self):
        return TokenRequest((TokenPrompt((1, 2), (False, False)),), penalties=self.penalties)

    @property
    def token_counts(self):
        return Counter(self.token_ids)


@dataclass
class OneMask:
    """A matcher that always allows the same tokens, and remembers what it was asked about."""

    mask: torch.Tensor
    seen: list = field(default_factory=list)

    def prepare(self, token_ids):
        """Computes nothing in advance."""

    def allowed(self, token_ids):
        self.seen.append(list(token_ids))
        return self.mask


# Penalties


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16])
def test_penalties_equal_openais_formula(dtype):
    logits = torch.randn(4, 30, dtype=torch.float64, generator=torch.Generator().manual_seed(1))
    logits = logits.to(dtype)
    rows = [
        RowState([3, 3, 7, 3], Penalties(0.7, 0.0)),
        RowState([3, 3, 7], Penalties(0.0, -1.5)),
        RowState([3, 29, 29], Penalties(-2.0, 1.25)),
        RowState([3, 3, 3]),  # no penalty
    ]
    constrained, failed = constrain(rows, logits)
    assert failed == {} and logits[0, 3] != constrained[0, 3]
    for row, before, after in zip(rows, logits, constrained, strict=True):
        penalties = row.penalties.frequency, row.penalties.presence
        expected = oracles.penalised(before.double().tolist(), row.token_ids, *penalties)
        assert after.double().tolist() == pytest.approx(expected, abs=1e-6)
    assert torch.equal(constrain(rows[3:], logits[3:])[0], logits[3:])


def test_penalties_act_on_every_draw_of_a_reply():
    penalties = Penalties(frequency=-1.5, presence=-0.5)
    reply = model().generate(PIRATE, temperature=0, max_new_tokens=24, penalties=penalties)
    plain = model().generate(PIRATE, temperature=0, max_new_tokens=24)
    assert reply.text != plain.text
    ids, tokens = list(reply.prompt_ids), []
    for token in reply.token_ids:
        with torch.inference_mode():
            logits = model().hf_model(torch.tensor([ids])).logits[0, -1]
        penalised = oracles.penalised(logits.tolist(), tokens, -1.5, -0.5)
        assert penalised.index(max(penalised)) == token
        ids.append(token)
        tokens.append(token)


def test_a_row_counts_its_tokens_as_they_are_drawn():
    state = RequestState(TokenRequest((TokenPrompt((1, 2), (False, False)),)))
    for token in (3, 7, 3):
        assert state.add(token, frozenset({0})) is None
    state.commit()
    assert state.token_counts == {3: 2, 7: 1}
    state.add(3, frozenset({0}))
    state.roll_back()
    assert state.token_counts == {3: 2, 7: 1} and state.token_ids == [3, 7, 3]
    assert state.add(0, frozenset({0})) == "stop"
    assert state.token_counts == {3: 2, 7: 1}, "the token that ends a reply is not part of it"


def test_a_penalty_out_of_range_is_refused():
    with pytest.raises(ParameterOutOfRange, match=r"-2 to 2, not 2\.5") as excinfo:
        Penalties(presence=2.5)
    assert excinfo.value.option == "presence_penalty"


# Grammars


def json_object_grammar():
    grammar = read_response_format({"type": "json_object"})
    return compile_grammar(grammar, model().tokenizer, model().stop_ids)


def test_a_mask_forbids_tokens_beyond_the_vocabulary_and_leaves_other_rows():
    logits = torch.randn(3, 12)
    mask = torch.zeros(8, dtype=torch.bool)
    mask[[2, 5]] = True
    rows = [RowState([4]), RowState([1], matcher=OneMask(mask)), RowState([])]
    constrained, _ = constrain(rows, logits)
    assert constrained[1].isfinite().nonzero()[:, 0].tolist() == [2, 5]
    assert torch.equal(constrained[[0, 2]], logits[[0, 2]])
    assert torch.equal(constrained[1, [2, 5]], logits[1, [2, 5]])
    assert rows[1].matcher.seen == [[1]]


def test_replies_under_a_schema_always_parse_and_validate():
    requests = [
        Request(PIRATE, seed=seed, grammar=read_response_format(format_of(PERSON)))
        for seed in range(24)
    ]
    replies = model().generate_batch(requests)
    assert {reply.stop_reason for reply in replies} == {"stop"}
    for reply in replies:
        jsonschema.validate(json.loads(reply.text), PERSON)
    assert len({reply.text for reply in replies}) > 12


@pytest.mark.slow
def test_other_rows_of_a_batch_get_the_same_tokens_and_no_pass_is_added():
    grammar = read_response_format(format_of(PERSON))
    free = [Request(PIRATE, "boost:factor=2", seed=seed, trace=True) for seed in range(4)]
    constrained = [Request(PIRATE, seed=seed, grammar=grammar) for seed in range(4)]
    mixed = [request for pair in zip(free, constrained, strict=True) for request in pair]
    replies = model().generate_batch(mixed)
    alone = [model().generate_batch([request])[0] for request in mixed]
    for batched, single in zip(replies, alone, strict=True):
        assert batched.token_ids == single.token_ids
        assert batched.stop_reason == single.stop_reason
    for reply in alone:  # one pass per token, the prompt's included in the first
        passes = len(reply.token_ids) + (reply.stop_reason == "stop")
        assert reply.forwarded == len(reply.prompt_ids) + passes - 1


def test_a_constrained_reply_is_drawn_from_the_models_own_distribution():
    """Where a free greedy reply satisfies the grammar anyway, the constraint changes nothing."""
    free = model().generate(PIRATE, temperature=0, max_new_tokens=40)
    sampling = holdfast.Sampling(temperature=0, max_new_tokens=60)
    grammar = Grammar(f"start: {json.dumps(free.text)}", "the same text")
    (constrained,) = model().generate_batch([Request(PIRATE, sampling=sampling, grammar=grammar)])
    assert constrained.token_ids == free.token_ids and constrained.stop_reason == "stop"


def test_a_reply_that_is_cut_is_the_beginning_of_a_valid_one():
    reply = model().generate(
        PIRATE, response_format={"type": "json_object"}, max_new_tokens=2, seed=3
    )
    assert reply.stop_reason == "length" and reply.text.startswith("{")


@pytest.mark.parametrize("method", ["guidance:scale=1.5", "repetition:probability=1"])
def test_steering_and_a_schema_go_together(method):
    reply = model().generate(PIRATE, method, seed=2, response_format=format_of(PERSON))
    jsonschema.validate(json.loads(reply.text), PERSON)


def test_a_failed_step_takes_back_what_a_matcher_has_read():
    grammar = json_object_grammar()
    ids = model().tokenizer('{"a": 1}', add_special_tokens=False).input_ids
    matcher = grammar.matcher()
    for length in (0, 1, 3, 2, 1, 4, len(ids)):
        allowed = matcher.allowed(ids[:length])
        assert torch.equal(allowed, grammar.matcher().allowed(ids[:length]))
        following = ids[length] if length < len(ids) else min(model().stop_ids)
        assert allowed[following]
    assert matcher.allowed(ids).nonzero()[:, 0].tolist() == sorted(model().stop_ids)


def test_a_grammar_that_cannot_go_on_ends_its_own_row_alone():
    matcher = json_object_grammar().matcher()
    logits = torch.randn(2, len(model().tokenizer))
    wrong = model().tokenizer("no JSON", add_special_tokens=False).input_ids
    constrained, failed = constrain([RowState(wrong, matcher=matcher), RowState([])], logits)
    assert isinstance(failed[0], ModelError) and "a JSON object" in str(failed[0])
    assert torch.equal(constrained[1], logits[1])


def test_the_name_of_a_function_may_hold_that_of_the_example_and_letters_of_a_token():
    form = CallForm(
        space="",
        before='{"name": "example", ',
        after="}</end>",
        placeholder="example",
        opening="",
        special={"</e": 7, "</end>": 9},
    )
    call = form.call_rule(Function("my_example</end>", {"type": "array"}))
    assert call.startswith('"{\\"name\\": \\"" "my_example</end>" "\\", " %json {"type": "object"')
    assert call.endswith(' "}" <[9]>')


# Response formats


@pytest.mark.parametrize(
    ("schema", "message"),
    [
        ({"not": {"type": "string"}}, '"not"'),
        ({"type": "array", "uniqueItems": True}, "uniqueItems"),
        ({"type": "string", "pattern": "(?=a)b"}, "look-ahead"),
        ({"type": "strin"}, "strin"),
        ({"$ref": "https://example.org/x"}, "https://example.org/x"),
    ],
)
def test_a_schema_that_cannot_be_enforced_is_refused_with_the_reason(schema, message):
    with pytest.raises(UsageError) as excinfo:
        model().generate(PIRATE, response_format=format_of(schema, "odd"))
    assert excinfo.value.option == "response_format" and message in str(excinfo.value)
    assert "'odd'" in str(excinfo.value) and str(excinfo.value).count("\n") == 0


@pytest.mark.parametrize(
    "response_format",
    [
        "json",
        {"type": "xml"},
        {"type": "json_schema"},
        {"type": "json_schema", "json_schema": {"name": "a"}},
    ],
)
def test_an_unknown_response_format_is_refused(response_format):
    with pytest.raises(UsageError) as excinfo:
        read_response_format(response_format)
    assert excinfo.value.option == "response_format"


def test_the_text_format_means_no_constraint():
    assert read_response_format(None) is read_response_format({"type": "text"}) is None


def test_a_missing_library_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "llguidance", None)
    with pytest.raises(UsageError, match=r"llguidance; pip install 'holdfast-llm\[grammar\]'"):
        model().generate(PIRATE, response_format={"type": "json_object"})
    assert model().generate(PIRATE, max_new_tokens=2).text


def test_a_reply_that_is_continued_has_no_grammar_of_its_own():
    messages = [*PIRATE, {"role": "assistant", "content": '{"a":'}]
    with pytest.raises(UsageError, match="continue_final_message"):
        model().generate(
            messages, continue_final_message=True, response_format={"type": "json_object"}
        )
