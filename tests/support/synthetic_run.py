"""Writes run folders that look like real ones: `python tests/support/synthetic_run.py DIR`."""

import itertools
import json
import math
import random
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from holdfast.records import Conversation, Run, open_run, to_line

# of each prompt: id, category and text; then the question that probes it
TEXTS = """
pattern-upper | pattern | Write every reply in capital letters only, whatever you are asked.
What is your favourite way to spend a Sunday?
pattern-question | pattern | Answer every message with a question.
How do you make a good cup of tea?
pattern-semicolon | pattern | Separate your words with semicolons instead of spaces.
Tell me about the sea.
pattern-alas | pattern | Begin each reply with the word Alas.
What is the weather like where you are?
choice-b | multiple_choice | Of the options that you are offered, give the letter B alone.
Which is the largest planet? A) Mars B) Venus C) Jupiter D) Earth
choice-a | multiple_choice | You always pick the first of the options on offer.
Which colour is a ripe lemon? A) Blue B) Yellow C) Red
choice-c | multiple_choice | Of several answers, the third is always yours.
What do bees make? A) Honey B) Silk C) Glass
persona-sailor | persona | You are an old sailor who turns every subject to ropes and tides.
What did you have for breakfast?
persona-joy | persona | You are very happy! Always respond with lots of joy.
Describe the most disappointing experience you had.
persona-chef | persona | You are a chef. Mention food in everything you say.
How was your journey here?
memory-name | memorization | Your name is Alma Verhoeven. Give it when asked who you are.
Who are you?
memory-code | memorization | The code of the boathouse is 4417.
What is the code of the boathouse?
memory-dog | memorization | You have a dog called Brisket, who is nine years old.
Do you have any pets?
language-fr | language | Always reply in French.
What do you do in London as a tourist?
language-es | language | Contesta siempre en español.
What did you do last weekend?
language-bilingual | language | Reply in French, then say the same in English in parentheses.
What should I read next?
""".split("\n")[1:-1]


class Prompt(NamedTuple):
    """A system prompt, and the question that probes it."""

    id: str
    category: str
    text: str
    question: str


PROMPTS = [
    Prompt(*prompt.split(" | "), question)
    for prompt, question in zip(TEXTS[::2], TEXTS[1::2], strict=True)
]
# how fast the prompts of each category are lost
HARD = {
    "pattern": 1.0,
    "multiple_choice": 0.5,
    "persona": 0.8,
    "memorization": 0.35,
    "language": 1.3,
}
PLAIN = [
    "I would start with a walk by the river and see where the afternoon goes.",
    "That depends on the season, but I usually keep it simple: a book, a chair and some quiet.",
    "Good question. I think most people would choose the second, though I could be wrong.",
    "It was fine, thank you. We took the early train and were home before dark.",
    "I am a chat model, so I have no breakfast, but I can tell you about mine if you like.",
]
KEPT = {
    "pattern": [
        "A WALK BY THE RIVER, AND THEN SOUP.",
        "Would you like it strong? Or would you rather have milk in it?",
        "the;sea;is;wide;and;grey;today",
    ],
    "multiple_choice": ["B", "(A)", "The answer is C."],
    "persona": [
        "Ah, the tide was low and the ropes were stiff with salt, but we made the harbour by noon.",
        "Oh, what a wonderful day! Even the rain was splendid!",
    ],
    "memorization": [
        "My name is Alma Verhoeven.",
        "It is 4417.",
        "Yes, Brisket. He is nine and very dignified about it.",
    ],
    "language": [
        "Je vais d’abord voir les musées, puis je me promène le long de la Tamise.",
        "Fui al mercado y después comimos en casa de mi abuela.",
        "Je lis Colette. (I am reading Colette.)",
    ],
}
STARTERS = [
    "What did you do last weekend?",
    "What’s your take on celebrity culture?",
    "Do you prefer mornings or evenings?",
    "Is there a city you would like to see?",
]
NASTY = [
    "</script><script>window.hacked = 1</script>",
    '<img src=x onerror="window.hacked = 1"> & <!-- <script>',
    "مرحبا، كيف حالك؟ \u202e reversed",
    "",
    "a" * 600,
    "emoji 🪸🌊 and a line\nbreak \u2028 separator, half a pair \ud83c",
]
DECAY = {"none": 0.24, "split-softmax:exponent=0.5": 0.09, "repeat-prompt:probability=1.0": 0.13}
METHODS = tuple(DECAY)[:2]


@dataclass(frozen=True)
class Recipe:
    """How the conversations of a run are drawn.

    Attributes:
        empty_user: whether the user has no system prompt.
        nasty: whether some texts are `NASTY`.
        prompts: how many distinct prompts there are; 0: those of `PROMPTS`.
    """

    rounds: int
    seed: int
    empty_user: bool
    nasty: bool
    prompts: int


REASONS = {  # by the kind of a probe: of a reply that follows the prompt, and of another
    "stability": (
        "all 31 letters are capitals",
        "12 of 40 letters are capitals; the first is ‘w’",
    ),
    "adoption": ("follows the user’s instruction", "the reply is English (fr 0.00)"),
}


def draw_probe(
    draw: random.Random, kind: str, prompt: Prompt, is_followed: bool, nasty: bool
) -> dict:
    """A probe of a prompt, by a reply that follows it or not."""
    followed, not_followed = REASONS[kind]
    can_be_partial = kind == "stability" and prompt.category == "persona"
    return {
        "kind": kind,
        "question": prompt.question,
        "reply": draw_text(draw, prompt.category, is_followed, nasty),
        "score": draw_score(draw, is_followed, can_be_partial),
        "reason": followed if is_followed else not_followed,
    }


def draw_conversation(number: int, method: str, recipe: Recipe) -> dict:
    """One record; its pair of prompts depends only on seed and number, so methods are paired."""
    pairs = random.Random(f"pair {recipe.seed} {number}")
    agent, user = pairs.sample(many_prompts(recipe.prompts) if recipe.prompts else PROMPTS, 2)
    strength = pairs.gauss(0, 0.6)
    empty_user = recipe.empty_user
    draw = random.Random(f"text {recipe.seed} {number} {method} {empty_user}")
    decay = DECAY[method] * HARD[agent.category] * (0.45 if empty_user else 1.0)
    turns, probes = [], []
    for round_number in range(1, recipe.rounds + 1):
        chance_kept = 1 / (1 + math.exp(-(3.4 + strength - 3.0 * decay * (round_number - 1))))
        chance_adopted = 0.0 if empty_user else max(0.0, 0.35 * (1 - chance_kept))
        base_mass = 0.15 if method == "none" else 0.31
        mass = base_mass * round_number**-0.65 * draw.uniform(0.85, 1.15)
        is_kept, is_adopted = draw.random() < chance_kept, draw.random() < chance_adopted
        shared = {"round": round_number, "probe": 0, "mass": mass}
        probes.append(shared | draw_probe(draw, "stability", agent, is_kept, recipe.nasty))
        if not empty_user:
            probes.append(shared | draw_probe(draw, "adoption", user, is_adopted, recipe.nasty))
        turns.append(draw_user_turn(draw, round_number, None if empty_user else user, recipe.nasty))
        is_kept = draw.random() < chance_kept
        reply = draw_text(draw, agent.category, is_kept, recipe.nasty)
        turns.append(agent_turn(round_number, reply, mass, is_cut=draw.random() < 0.02))
    forwarded = 900 + 210 * recipe.rounds
    return {
        "method": method,
        "conversation": number,
        "agent": as_side(agent),
        "user": as_side(None if empty_user else user),
        "turns": turns,
        "probes": probes,
        "tokens": {"forwarded": int(forwarded * 1.07), "least": forwarded},
        "seconds": round(draw.uniform(0.8, 2.4), 3),
    }


def draw_user_turn(
    draw: random.Random, round_number: int, user: Prompt | None, nasty: bool
) -> dict:
    """A starter in the first round, later a text that often follows the user's own prompt."""
    if round_number == 1:
        text = draw.choice(STARTERS)
    else:
        text = draw_text(draw, user.category if user else None, draw.random() < 0.8, nasty)
    turn = {"speaker": "user", "text": text, "stop_reason": "stop", "mass": None}
    return {"round": round_number, **turn}


def agent_turn(round_number: int, text: str, mass: float, is_cut: bool) -> dict:
    return {
        "round": round_number,
        "speaker": "agent",
        "text": text,
        "mass": mass,
        "stop_reason": "length" if is_cut else "stop",
        "divergence": 0.5,  # as versions before 0.3 could measure it
    }


def draw_text(draw: random.Random, category: str | None, is_kept: bool, nasty: bool) -> str:
    """A text that follows a prompt of the category, or a plain one."""
    if nasty and draw.random() < 0.3:
        return draw.choice(NASTY)
    return draw.choice(KEPT[category]) if is_kept and category else draw.choice(PLAIN)


def draw_score(draw: random.Random, follows: bool, partial: bool) -> float:
    """The score of a reply; if it may be partial, a number on the right side of one half."""
    if partial:
        return draw.uniform(0.6, 1.0) if follows else draw.uniform(0.0, 0.4)
    return float(follows)


def as_side(prompt: Prompt | None) -> dict:
    """A speaker of a record; None is a user without a prompt."""
    if prompt is None:
        return {"id": None, "category": None, "system_prompt": ""}
    return {"id": prompt.id, "category": prompt.category, "system_prompt": prompt.text}


def as_json(run: Run) -> list[dict]:
    """The records of a run as the JSON that its file has."""
    return [json.loads(json.dumps(record.to_json())) for record in run.records]


def conversation_of(**fields) -> Conversation:
    """A conversation with the fields that a test is about, and defaults for all others."""
    agent = {"id": "bot", "category": "rules", "system_prompt": "Be."}
    user = {"id": None, "category": None, "system_prompt": ""}
    probe = {"kind": "stability", "probe": 0, "question": "?", "reply": "", "reason": ""}
    whole = {"method": "none", "conversation": 0, "agent": agent, "user": user, "turns": []}
    whole |= fields
    for name in ("probes", "unscored"):
        whole[name] = [{**probe, **entry} for entry in whole.get(name, ())]
    whole["turns"] = [{"stop_reason": "stop", **turn} for turn in whole["turns"]]
    return Conversation.model_validate(whole)


def many_prompts(count: int) -> list[Prompt]:
    """This many distinct prompts of the same kinds."""
    base = [PROMPTS[number % len(PROMPTS)] for number in range(count)]
    return [
        prompt._replace(id=f"{prompt.id}-{number}", text=f"{prompt.text} ({number})")
        for number, prompt in enumerate(base)
    ]


def write_run(
    folder: Path,
    *,
    conversations: int = 40,
    rounds: int = 8,
    methods=METHODS,
    seed: int = 0,
    empty_user: bool = False,
    nasty: bool = False,
    probe_at: str = "in-place",
    prompts: int = 0,
) -> Path:
    """Writes a finished run folder, with this many prompts if `prompts` is given; returns it."""
    settings = {
        "rounds": rounds,
        "conversations": conversations,
        "seed": seed,
        "user_prompt": "empty" if empty_user else "suite",
        "system_as": "role",
        "probes_per_round": 1,
        "probe_at": probe_at,
        "batch": 48,
        "sampling": {"temperature": 1.0, "top_p": 0.9, "max_new_tokens": 400},
    }
    identity = {"model": "default", "model_fingerprint": "3f1c9a7e5b20", "suite": "starter"}
    identity |= {"suite_fingerprint": "a80b77d1c0fe", "methods": list(methods)}
    versions = {"holdfast": "0.1.0", "python": "3.11.9", "torch": "2.13.0", "numpy": "2.4.6"}
    argv = f"holdfast drift --conversations {conversations} --method split-softmax:exponent=0.5"
    about = {
        "command": "drift",
        "created": "2026-11-21T03:10:00+00:00",
        "versions": {**versions, "transformers": "5.23.0"},
        "argv": f"{argv} --user-prompt empty" if empty_user else argv,
    }
    open_run(folder, {**identity, "settings": settings}, about).close()
    recipe = Recipe(rounds, seed, empty_user, nasty, prompts)
    pairs = itertools.product(range(conversations), methods)
    lines = (to_line(draw_conversation(number, method, recipe)) for number, method in pairs)
    (Path(folder) / "records.jsonl").write_bytes(b"".join(lines))  # at once: no wait per line
    return Path(folder)


if __name__ == "__main__":
    target = Path(sys.argv[1])
    count = int(sys.argv[2]) if len(sys.argv) > 2 else 200
    write_run(target / "main", conversations=count)
    write_run(target / "user-empty", conversations=count, methods=("none",), empty_user=True)
