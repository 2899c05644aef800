"""`repair` and `check-and-retry`, which look at replies by the rules of the prompt."""

import asyncio
import dataclasses
from collections import Counter
from functools import partial

import pytest
from chat_server import completion, refusal
from scripted_model import ScriptedModel
from tiny import model

from holdfast import drift
from holdfast.drift.benchmark import check_before_loading
from holdfast.drift.cases import Case, Rule
from holdfast.drift.prompt_rules import CaseRules, with_rules
from holdfast.errors import ModelError, RequestFailed, UsageError
from holdfast.generation.sampling import Sampling
from holdfast.measures.turns import When
from holdfast.methods import CheckAndRetry, Reminder, Repair, compile_methods, parse, spec_of
from holdfast.methods.exchanges import split_exchanges
from holdfast.models.checked_replies import generate_checked
from holdfast.models.requests import Request, TokenUsage
from holdfast.records import read_run
from holdfast.report.how_measured import about_runs

SIGN = Rule(
    "sign", ("Hi?",), {"name": "ends_with", "word": "Tony"}, text="Sign with Tony.", kind="closing"
)
SHORT = Rule(
    "short",
    ("Hi?",),
    {"name": "at_most_words", "count": 3},
    text="Write at most three words.",
    kind="length",
)
SUITE = drift.Suite("bots", (Case("tony", "rules", "Rules.", rules=(SIGN, SHORT)),), ("Hi!",))


@dataclasses.dataclass(frozen=True)
class LoudAndRude:
    """Two rules: "LOUD" in a reply breaks the first, "damn" the second."""

    texts: tuple[str, ...] = ("No shouting.", "No swearing.")

    def broken(self, user, reply, *, is_cut=False):
        breaches = ("LOUD" in reply and "quiet" not in user, "damn" in reply and not is_cut)
        return tuple(
            text for text, is_broken in zip(self.texts, breaches, strict=True) if is_broken
        )

    def of_kinds(self, kinds):
        return self


def dialog(*texts):
    roles = ("user", "assistant")
    turns = [{"role": roles[n % 2], "content": text} for n, text in enumerate(texts)]
    return ({"role": "system", "content": "Be calm."}, *turns)


def contents(messages):
    return [message["content"] for message in messages]


RUDE_DIALOG = dialog("a", "LOUD", "b", "fine", "c", "LOUD damn", "d")


class Signs(ScriptedModel):
    """Signs only when reminded."""

    def text(self, request):
        messages = request.compiled.edit(request.messages, request.editing_seed)
        return "Hello. Tony" if "[Reminder" in messages[-1]["content"] else "Hello."


# Exchanges


def test_exchanges_are_the_chat_in_pieces():
    tool = {"role": "tool", "content": "7"}
    messages = (*RUDE_DIALOG[:3], tool, *RUDE_DIALOG[3:])
    before, exchanges = split_exchanges(messages)
    assert before == [RUDE_DIALOG[0]]
    assert [exchange.user["content"] for exchange in exchanges] == ["a", "b", "c", "d"]
    messages_again = [message for exchange in exchanges for message in exchange.messages]
    assert (*before, *messages_again) == messages
    assert split_exchanges(RUDE_DIALOG[:1]) == ([RUDE_DIALOG[0]], [])


# `repair`


def test_repair_drops_the_exchanges_that_broke_a_rule():
    repair = Repair().with_rules(LoudAndRude())
    assert contents(repair.edit(RUDE_DIALOG, 0)) == ["Be calm.", "b", "fine", "d"]
    # the exchange to be answered, or continued, stays
    assert contents(repair.edit(RUDE_DIALOG[:-1], 0)) == ["Be calm.", "b", "fine", "c", "LOUD damn"]
    assert repair.edit(RUDE_DIALOG[:2], 0) == RUDE_DIALOG[:2]
    messages = dialog("a", "fine", "b")
    assert repair.edit(messages, 0) == messages


def test_repair_keeps_instructions_in_the_exchanges_that_it_drops():
    """A message of the developer holds on, though the reply before it broke a rule."""
    instruction = {"role": "system", "content": "Be brief from now on."}
    summary = {"role": "summary", "content": ""}  # the proxy's role for items that are no turns
    talk = (*RUDE_DIALOG[:3], instruction, summary, {"role": "user", "content": "e"})
    repair = Repair().with_rules(LoudAndRude())
    assert repair.edit(talk, 0) == (RUDE_DIALOG[0], instruction, summary, talk[-1])


def test_repair_marks_the_exchanges_that_broke_a_rule():
    repair = Repair("mark").with_rules(LoudAndRude())
    whole = repair.edit(RUDE_DIALOG, 0)
    assert contents(whole) == [
        "Be calm.",
        "a",
        "LOUD",
        "[Your last reply broke this rule: No shouting.]\n\nb",
        "fine",
        "c",
        "LOUD damn",
        "[Your last reply broke these rules: No shouting. No swearing.]\n\nd",
    ]
    for end in range(1, len(RUDE_DIALOG) + 1):
        assert repair.edit(RUDE_DIALOG[:end], 0) == whole[:end]


# `check-and-retry`


class Draws(ScriptedModel):
    """Gives these replies in turn, and notes the last messages and seeds that it got."""

    def __init__(self, *texts):
        self.texts, self.asked, self.seeds = list(texts), [], []

    def text(self, request):
        assert not request.compiled.retries  # which engines know nothing of
        messages = request.compiled.edit(request.messages, request.editing_seed)
        self.asked.append(messages[-1]["content"])
        self.seeds.append(request.seed)
        return self.texts.pop(0)


def draw_checked(model, n=2):
    methods = (CheckAndRetry(n).with_rules(LoudAndRude()),)
    return asyncio.run(generate_checked(model, Request(dialog("a"), methods, seed=5)))


@pytest.mark.parametrize(
    ("draws", "reply", "discarded", "draws_asked"),
    [
        (["fine"], "fine", [], ["a"]),
        (["LOUD", "ok"], "ok", ["LOUD"], ["a", "[Reminder: No shouting.]\n\na"]),
        # none is without a breach: the one that breaks the fewest rules, and the earliest of those
        (
            ["LOUD damn", "damn", "LOUD"],
            "damn",
            ["LOUD damn", "LOUD"],
            [
                "a",
                "[Reminder: No shouting. No swearing.]\n\na",
                "[Reminder: No swearing.]\n\na",
            ],
        ),
        ([""], "", [], ["a"]),
        # a retry without text breaks no rule, and is no reply either
        (
            ["LOUD", ""],
            "LOUD",
            [""],
            ["a", "[Reminder: No shouting.]\n\na"],
        ),
    ],
    ids=["kept", "kept when drawn again", "never kept", "empty", "empty when drawn again"],
)
def test_a_reply_that_breaks_a_rule_is_drawn_again(draws, reply, discarded, draws_asked):
    model = Draws(*draws)
    outcome = draw_checked(model)
    assert outcome.text == reply
    assert [draft.text for draft in outcome.discarded] == discarded
    assert outcome.retry_failed is ("" in discarded)
    assert model.asked == draws_asked and not model.texts
    assert len(set(model.seeds)) == len(model.seeds)


def test_no_more_than_n_replies_are_drawn_again():
    model = Draws("LOUD", "LOUD")
    assert len((draw_checked(model, n=1)).discarded) == 1
    assert len((draw_checked(Draws("LOUD"), n=0)).discarded) == 0


def test_a_retry_that_fails_leaves_what_was_drawn():
    class Fails(Draws):
        async def generate(self, request):
            if len(self.asked) == 1:
                raise RequestFailed("The server is down.", "connection")
            return await super().generate(request)

    outcome = draw_checked(Fails("LOUD"))
    assert outcome.text == "LOUD" and not outcome.discarded and outcome.retry_failed
    with pytest.raises(RequestFailed):
        model = Fails("LOUD")
        model.asked.append("")
        draw_checked(model)


def test_a_reply_that_was_cut_does_not_break_what_its_end_decides():
    class Cut(Draws):
        async def generate(self, request):
            return dataclasses.replace(await super().generate(request), stop_reason="length")

    assert draw_checked(Cut("damn")).discarded == ()
    assert len(draw_checked(Cut("LOUD", "ok")).discarded) == 1
    rules = CaseRules(Case("tony", "rules", "Rules.", rules=(SIGN, SHORT)))
    reply = "It is rather a lot of"
    assert rules.broken("Hi?", reply) == (SIGN.text, SHORT.text)
    assert rules.broken("Hi?", reply, is_cut=True) == (SHORT.text,)
    rules.cut_replies.add(reply)
    assert rules.broken("Hi?", reply) == (SHORT.text,)


def test_a_model_by_itself_draws_nothing_again():
    with pytest.raises(ModelError):
        model().generate(dialog("a"), [CheckAndRetry().with_rules(LoudAndRude())])


# The rules of the prompt


def test_rules_are_read_before_other_methods_add_text():
    """The reminder says "quiet", at which the rule would not apply."""
    reminder = Reminder(1, text="quiet please")
    for methods in ((reminder, Repair()), (Repair(), reminder)):
        methods_with_rules = with_rules(LoudAndRude(), methods)
        assert contents(compile_methods(methods_with_rules).edit(RUDE_DIALOG, 0)) == [
            "Be calm.",
            "[Reminder: quiet please]\n\nb",
            "fine",
            "[Reminder: quiet please]\n\nd",
        ]


def test_a_rule_without_a_text_is_said_by_its_sentence_of_the_prompt_or_by_the_prompt():
    prompt = "Be Tony. Sign every reply with Tony. Three words are enough."
    rules = (dataclasses.replace(rule, text="") for rule in (SIGN, SHORT))
    case_rules = CaseRules(Case("tony", "rules", prompt, rules=rules))
    assert case_rules.texts == ("Sign every reply with Tony.", prompt)
    assert case_rules.broken("Hi?", "It is a lot of words.") == case_rules.texts
    retry = CheckAndRetry().with_rules(case_rules)
    *_, last = retry.remind(dialog("a"), [prompt, prompt])
    assert last["content"] == f"[Reminder: {prompt}]\n\na"


@pytest.mark.parametrize("method", [Repair(), CheckAndRetry()])
def test_a_method_that_needs_rules_says_so_where_there_are_none(method):
    act = method.edit if isinstance(method, Repair) else partial(method.broken, is_cut=False)
    with pytest.raises(UsageError) as unknown:
        act(RUDE_DIALOG, "x" if isinstance(method, CheckAndRetry) else 0)
    assert unknown.value.value == method.name
    # the rules are no part of its spec, so that records name it as it was asked for
    assert parse(spec_of([method.with_rules(LoudAndRude())])) == (method,)


def test_a_suite_without_texts_is_checked(tmp_path):
    french = "Ce matin, j'ai fait une longue promenade."

    class French(ScriptedModel):
        """Replies in French only when reminded."""

        def text(self, request):
            messages = request.compiled.edit(request.messages, request.editing_seed)
            is_reminded = "[Reminder: Always reply in French.]" in messages[-1]["content"]
            return french if is_reminded else "This morning I went for a long walk."

    suite = drift.load_suite("everyday").only(["french-1"])
    settings = drift.Settings(rounds=2, conversations=1, user_prompt="empty")
    methods = ["none", "check-and-retry", "repair"]
    run = drift.run(French(), suite, tmp_path / "run", settings, methods)
    scores = {
        record.method: {probe.score for probe in record.probes} for record in run.conversations
    }
    assert scores == {"none": {0.0}, "check-and-retry": {1.0}, "repair": {0.0}}
    # so that no page advises what was measured only on suites whose rules have texts
    assert not run.manifest.checkable


# Refusals before a run


def test_several_retries_are_refused():
    with pytest.raises(UsageError):
        drift.run(
            Signs(), SUITE, "unused", drift.Settings(), ["check-and-retry+check-and-retry:n=3"]
        )


def test_methods_that_cannot_work_are_refused_before_a_run_begins(tmp_path):
    rule = Rule("name", ("Who are you?",), {"regex": "Tony"}, text="Your name is Tony.")
    unchecked = dataclasses.replace(SUITE, cases=(Case("tony", "rules", "Rules.", rules=(rule,)),))
    window = drift.Settings(context="slide", window=2, user_prompt="empty")
    summarised = drift.Settings(context="summarise", window=2, user_prompt="empty")
    every = drift.Settings(user_prompt="empty")
    for suite, settings, method in (
        (unchecked, every, "repair"),
        (unchecked, every, "check-and-retry"),
        (unchecked, every, "reminder:when=broken"),
        (SUITE, every, "reminder:text=rules,kinds=closng"),
        (SUITE, window, "reminder:every=5"),
        (SUITE, window, "reminder:every=1,after=2"),
        (SUITE, summarised, "repair"),
    ):
        with pytest.raises(UsageError):
            drift.run(Signs(), suite, tmp_path / "run", settings, [method])
        with pytest.raises(UsageError):  # before a model is loaded
            check_before_loading(suite, tmp_path / "run", settings, [method])
        assert not (tmp_path / "run").exists()


def test_a_method_that_would_not_check_a_probe_is_refused(tmp_path):
    rule = dataclasses.replace(
        SUITE.cases[0].rules[0], probes=("Any gas stoves left?",), when=When(user=r"any \w+ left")
    )
    case = dataclasses.replace(SUITE.cases[0], rules=(rule, *SUITE.cases[0].rules[1:]))
    suite = dataclasses.replace(SUITE, cases=(case,))
    every = drift.Settings(user_prompt="empty")
    with pytest.raises(UsageError) as caught:
        check_before_loading(suite, tmp_path / "run", every, ["none", "check-and-retry"])
    assert caught.value.value == "Any gas stoves left?"
    check_before_loading(suite, tmp_path / "run", every, ["none", "repetition:probability=1"])
    wider = dataclasses.replace(rule, when=When(user=r"any [\w ]+ left"))
    case = dataclasses.replace(case, rules=(wider, *case.rules[1:]))
    matched = dataclasses.replace(SUITE, cases=(case,))
    check_before_loading(matched, tmp_path / "run", every, ["none", "check-and-retry"])


# Runs


def test_a_run_records_how_often_replies_were_drawn_again(tmp_path):
    settings = drift.Settings(
        rounds=2, conversations=2, user_prompt="empty", sampling=Sampling(max_new_tokens=5)
    )
    methods = ["none", "check-and-retry"]
    folder = tmp_path / "run"
    drift.run(Signs(), SUITE, folder, settings, methods)
    records = read_run(folder).conversations
    assert len(records) == 2 * 2
    for record in records:
        retries = 1 if record.method == "check-and-retry" else None
        assert {turn.retries for turn in record.turns if turn.speaker == "agent"} == {retries}
        assert {probe.retries for probe in record.probes} == {retries}
        assert {probe.score for probe in record.probes if probe.rule == "sign"} == {
            1.0 if retries else 0.0
        }


def run_at_endpoint(serve, folder, answer_to_retry):
    """Runs check-and-retry at an endpoint that answers retries by `answer_to_retry(attempt)`."""
    attempts = Counter()  # at each retry, by its chat

    def answer(body, number):
        if "[Reminder" not in body["messages"][-1]["content"]:
            return completion("Hello.")
        chat = str(body["messages"])
        attempts[chat] += 1
        return answer_to_retry(attempts[chat])

    model, _ = serve(answer, max_retries=2)
    settings = drift.Settings(rounds=1, conversations=1, user_prompt="empty")
    return drift.run(model, SUITE, folder, settings, ["check-and-retry:n=1"])


def replies_of(run):
    (record,) = run.conversations
    return [turn for turn in record.turns if turn.speaker == "agent"] + [*record.probes]


@pytest.mark.parametrize(
    ("answer", "num_retries"),
    [(refusal(500, "Out of memory."), None), (completion(""), 1)],
    ids=["refused", "empty"],
)
def test_a_run_records_that_a_retry_failed(serve, tmp_path, monkeypatch, answer, num_retries):
    monkeypatch.setattr("openai._base_client.INITIAL_RETRY_DELAY", 0.001)
    run = run_at_endpoint(serve, tmp_path / "run", lambda attempt: answer)
    replies = replies_of(run)
    assert {(reply.retries, reply.retry_failed) for reply in replies} == {(num_retries, True)}
    (about,) = about_runs([run], ["run"])
    count = len(replies)
    num_redrawn = count if num_retries else 0
    assert dict(about.rows)["replies drawn again"] == (
        f"check-and-retry:n=1 {num_redrawn} of {count} (failed for {count})"
    )


@pytest.mark.parametrize("status", [429, 503, 529])
def test_a_retry_at_an_endpoint_waits_for_a_busy_server(serve, tmp_path, status):
    busy = refusal(status, "Slow down.", headers={"Retry-After-Ms": "10"})
    kept = completion("Hello. Tony")
    run = run_at_endpoint(serve, tmp_path / "run", lambda attempt: busy if attempt == 1 else kept)
    assert {(reply.retries, reply.retry_failed) for reply in replies_of(run)} == {(1, None)}
    assert {turn.text for turn in run.conversations[0].turns if turn.speaker == "agent"} == {
        "Hello. Tony"
    }


def test_a_page_says_what_methods_cost_in_tokens_and_draws(tmp_path):
    class Counted(Signs):
        async def generate(self, request):
            reply = await super().generate(request)
            messages = request.compiled.edit(request.messages, request.editing_seed)
            tokens_read = sum(len(message["content"].split()) for message in messages)
            return dataclasses.replace(reply, billed=TokenUsage(tokens_read, 1))

    settings = drift.Settings(rounds=2, conversations=2, user_prompt="empty")
    methods = ["none", "check-and-retry"]
    run = drift.run(Counted(), SUITE, tmp_path / "run", settings, methods)
    tokens_read = {
        method: [record.tokens.read for record in run.conversations if record.method == method]
        for method in methods
    }
    (about,) = about_runs([run], ["run"])
    rows = dict(about.rows)
    increase = sum(tokens_read["check-and-retry"]) / sum(tokens_read["none"]) - 1
    assert increase > 1
    assert f"(+{increase:.0%})" in rows["tokens read per conversation"]
    replies = 2 * (2 + len(run.conversations[0].probes))  # of two rounds, and to the probes
    assert rows["replies drawn again"] == f"check-and-retry {replies} of {replies}"
