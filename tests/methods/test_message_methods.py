"""Methods that edit messages: repetition of the prompt, and reminders."""

import dataclasses
import itertools

import method_examples
import oracles
import pytest

from holdfast import methods
from holdfast.errors import PromptError, UsageError
from holdfast.methods import MethodKind, Reminder, Repetition, SplitSoftmax

CHAT = (
    {"role": "system", "content": "Speak like a pirate."},
    {"role": "user", "content": "Hello."},
    {"role": "assistant", "content": "Arr."},
    {"role": "user", "content": "And then?"},
)


def _long_chat(rounds):
    chat = [CHAT[0]]
    for number in range(rounds):
        chat += [{"role": "user", "content": f"q{number}"}]
        chat += [{"role": "assistant", "content": f"a{number}"}]
    return tuple(chat)


def _repeated(messages):
    contents = [message["content"] for message in messages if message["role"] == "user"]
    return [int("pirate" in content) for content in contents]


MESSAGES = [m for m in method_examples.of_kind(MethodKind.MESSAGES) if m != methods.Repair()]


# All methods


@pytest.mark.parametrize("method", MESSAGES, ids=repr)
def test_messages_are_edited_as_the_oracle_does(method):
    chat = _long_chat(rounds=12)
    texts = [message["content"] for message in chat if message["role"] == "user"]
    for seed in range(5):
        edited = method.edit(chat, seed)
        edited_texts = [message["content"] for message in edited if message["role"] == "user"]
        assert edited_texts == oracles.ORACLES[method.name](method, texts, CHAT[0]["content"], seed)
    if (neutral := method_examples.neutral(method)) is not None:
        assert neutral.edit(chat, 0) == chat


@pytest.mark.parametrize("method", MESSAGES, ids=repr)
def test_a_message_method_continues_what_it_edited_before(method):
    """All but `repair`, whose purpose it is to take back what was shown."""
    if getattr(type(method), "needs_rules", None) is True:
        method = method.with_rules(Brief(("Be brief.",)))
    chat = _long_chat(rounds=12)
    whole = method.edit(chat, 0)
    for end in range(1, len(chat) + 1):
        assert method.edit(chat[:end], 0) == whole[:end]


def test_edit_messages_applies_prompt_methods_and_ignores_others():
    composed = methods.parse("split-softmax:exponent=0.5+repetition:probability=1")
    assert methods.compile_methods(composed).edit(list(CHAT), 0) == Repetition(1).edit(CHAT, 0)
    assert methods.compile_methods([SplitSoftmax(0.5)]).edit(list(CHAT), 0) == CHAT


# Repetition


def test_repetition_puts_the_system_prompt_before_each_user_message():
    chat = [dict(message) for message in CHAT]
    edited = Repetition(1).edit(chat, seed=3)
    prompt = "Speak like a pirate."
    expected = [prompt, f"{prompt}\n\nHello.", "Arr.", f"{prompt}\n\nAnd then?"]
    assert [message["content"] for message in edited] == expected
    assert [message["role"] for message in edited] == [message["role"] for message in CHAT]
    assert chat == list(CHAT)


def test_the_neutral_probability_is_the_identity():
    assert all(Repetition(0).edit(CHAT, seed) == CHAT for seed in range(50))


def test_repetition_never_changes_the_past():
    chat = _long_chat(rounds=12)
    for seed in range(20):
        whole = Repetition(0.5).edit(chat, seed)
        for end in range(1, len(chat) + 1):
            assert Repetition(0.5).edit(chat[:end], seed) == whole[:end]


def test_repetition_draws_per_conversation_and_message_with_its_probability():
    decisions = [_repeated(Repetition(0.3).edit(_long_chat(rounds=8), seed)) for seed in range(500)]
    assert len({tuple(row) for row in decisions}) > 50
    for column in zip(*decisions, strict=True):
        # 500 draws: a standard deviation of 0.02, and eight columns
        assert sum(column) / 500 == pytest.approx(0.3, abs=0.08)


def test_a_larger_probability_repeats_all_that_a_smaller_one_does():
    for seed in range(50):
        few = _repeated(Repetition(0.2).edit(_long_chat(rounds=8), seed))
        many = _repeated(Repetition(0.6).edit(_long_chat(rounds=8), seed))
        assert all(b >= a for a, b in zip(few, many, strict=True))


def test_repetition_draws_the_same_on_every_machine_and_version():
    assert _repeated(Repetition(0.5).edit(_long_chat(rounds=8), 0)) == [1, 1, 0, 0, 1, 0, 0, 1]


def test_repetition_needs_a_system_message():
    with pytest.raises(PromptError, match="system message"):
        Repetition(0.5).edit(CHAT[1:], seed=0)
    empty = ({"role": "system", "content": ""}, *CHAT[1:])
    assert Repetition(1).edit(empty, seed=0) == empty


# Reminders


@pytest.mark.parametrize("text", ["prompt", "Stay a pirate."])
@pytest.mark.parametrize("every", [0, 1, 2, 4, 5])
def test_reminders_stand_where_the_oracle_puts_them(every, text):
    chat = _long_chat(rounds=12)
    texts = [message["content"] for message in chat if message["role"] == "user"]
    for depth in range(7):
        reminder = Reminder(every, depth, text)
        edited = reminder.edit(chat, seed=0)
        edited_texts = [message["content"] for message in edited if message["role"] == "user"]
        assert edited_texts == oracles.reminder(reminder, texts, CHAT[0]["content"], 0)
        unedited = [(a, b) for a, b in zip(chat, edited, strict=True) if a["role"] != "user"]
        assert all(before is after for before, after in unedited)
    assert Reminder(0, 0, text).edit(chat, 0) == chat


def test_a_reminder_never_changes_the_past():
    chat = _long_chat(rounds=12)
    for reminder in (Reminder(), Reminder(2, 1), Reminder(3, 5, "Stay a pirate.")):
        whole = reminder.edit(chat, 0)
        for end in range(1, len(chat) + 1):
            assert reminder.edit(chat[:end], 0) == whole[:end]


def test_a_reminder_of_the_prompt_needs_one_and_any_other_does_not():
    with pytest.raises(PromptError, match="system message"):
        Reminder(1).edit(CHAT[1:], seed=0)
    reminder = Reminder(1, text="Stay a pirate.")
    assert reminder.edit(CHAT[1:], 0)[0]["content"] == "[Reminder: Stay a pirate.]\n\nHello."
    for method, idle in ((Reminder(), True), (reminder, False)):
        compiled = methods.compile_methods([method])
        assert compiled.needs_system_prompt is idle and not compiled.needs_span
        assert bool(compiled.lacking_target(prompted=False, emphasised=True)) is idle
    empty = ({"role": "system", "content": " "}, *CHAT[1:])
    assert Reminder(1).edit(empty, seed=0) == empty


def test_a_reminder_says_the_rules_of_a_prompt_once_it_knows_them():
    rules = Reminder(1, text="rules")
    with pytest.raises(UsageError) as excinfo:
        rules.edit(CHAT, seed=0)
    assert (excinfo.value.option, excinfo.value.value) == ("text", "rules")
    edited = rules.with_rules(Brief(("Be brief.", "Say Ahoy."))).edit(CHAT, seed=0)
    assert edited[1]["content"].startswith("[Reminder: Be brief. Say Ahoy.]\n\n")
    assert Reminder(1).with_rules(Brief(("Be brief.",))) == Reminder(1)


@dataclasses.dataclass(frozen=True)
class Brief:
    """Rules of which the first is broken by a reply of more than two words."""

    texts: tuple[str, ...]

    def broken(self, user, reply, *, is_cut=False):
        return self.texts[:1] if len(reply.split()) > 2 else ()

    def of_kinds(self, kinds):
        return Brief(self.texts[:1] if "length" in kinds else ())


def test_a_reminder_of_some_kinds_begins_where_they_fall():
    rules = Brief(("Be brief.", "Say Ahoy."))
    (reminder,) = methods.parse("reminder:every=1,text=rules,kinds=length/closing,after=2")
    assert reminder == Reminder(1, text="rules", kinds=("length", "closing"), after=2)
    assert methods.parse(methods.spec_of([reminder])) == (reminder,)
    chat = _long_chat(rounds=4)
    edited_texts = [
        message["content"]
        for message in reminder.with_rules(rules).edit(chat, seed=0)
        if message["role"] == "user"
    ]
    texts = [message["content"] for message in chat if message["role"] == "user"]
    assert edited_texts == [*texts[:2], *(f"[Reminder: Be brief.]\n\n{text}" for text in texts[2:])]
    # a prompt without rules of these kinds has nothing to be reminded of
    closing = dataclasses.replace(reminder, kinds=("closing",)).with_rules(rules)
    assert closing.edit(chat, seed=0) == tuple(chat)
    with pytest.raises(UsageError):
        reminder.edit(chat, seed=0)
    with pytest.raises(UsageError) as excinfo:
        Reminder(kinds=("length",))
    assert excinfo.value.option == "kinds"


def test_a_reminder_when_broken_follows_only_replies_that_broke_a_rule():
    words = ["Hi.", "One two three.", "Why?", "One two.", "And?", "One two three four.", "So?"]
    roles = itertools.cycle(("user", "assistant"))
    chat = [{"role": role, "content": text} for text, role in zip(words, roles, strict=False)]
    rules = Brief(("Be brief.", "Say Ahoy."))
    for text, statement in (("rules", "Be brief."), ("Keep to it.", "Keep to it.")):
        reminder = Reminder(1, text=text, when="broken").with_rules(rules)
        whole = reminder.edit(chat, seed=0)
        reminded = [at for at, message in enumerate(whole) if message is not chat[at]]
        assert reminded == [2, 6]
        assert whole[2]["content"] == f"[Reminder: {statement}]\n\nWhy?"
        for end in range(1, len(chat) + 1):  # what was shown never changes
            assert reminder.edit(chat[:end], 0) == whole[:end]
    # only every second message may have one
    fewer = Reminder(2, text="rules", when="broken").with_rules(rules).edit(chat, seed=0)
    assert [at for at, message in enumerate(fewer) if message is not chat[at]] == [2, 6]
    with pytest.raises(UsageError) as excinfo:
        Reminder(1, text="Keep to it.", when="broken").edit(chat, seed=0)
    assert excinfo.value.option == "when"
