"""Families whose instruction only affects replies to their probes: facts to remember, and choices
among options.

The values of an instruction are a dictionary: "v" fills the slot {v} of its phrases; "right" and
"wrong" are the options that {options} lists in a probe. So {"v": "Bo"} turns "You are {v}."
into "You are Bo.".
"""

from __future__ import annotations

import random
from collections.abc import Sequence

from content import Context
from families import DrawValues, Family, with_letter
from values import (
    ANIMALS,
    CITIES,
    COLOURS,
    FOODS,
    HOBBIES,
    MONTHS,
    NAMES,
    PROFESSIONS,
    SPORTS,
    TOPICS,
    WORDS,
    draw,
    draw_or_invent,
    invented,
    number,
)

MEMORY, CHOICE, PERSONA = "memorization", "multiple_choice", "persona"


def _recalled(
    name: str,
    category: str,
    phrases: tuple[str, ...],
    probes: tuple[str, ...],
    values: DrawValues,
    templates: tuple[str, ...],
    key: str = "v",
    measure: str = "contains",
) -> Family:
    """A family whose probe is answered with one of `templates`, filled with the value of `key`.

    `measure` says how the value is looked for in a reply: as a text ("contains") or as a "number".
    """

    def answer(v: dict, ctx: Context, question: str) -> str:
        return ctx.rng.choice(templates).replace("{v}", str(v[key]))

    def scored(v: dict) -> dict:
        if measure == "number":
            return {"name": "mentions_number", "number": int(v[key])}
        return {"name": "contains", "words": [str(v[key])]}

    return Family(
        name,
        category,
        "say",
        phrases=phrases,
        measure=scored,
        values=values,
        probes=probes,
        answer=answer,
    )


def _pick(pool: Sequence[str]) -> DrawValues:
    return lambda rng, test: {"v": draw_or_invent(rng, pool, test)}


def _number(low: int, high: int) -> DrawValues:
    return lambda rng, test: {"v": number(rng, low, high, test)}


def _text(rng: random.Random, test: bool) -> dict:
    """A sequence of words and names that can only be reproduced by copying."""
    pools = (WORDS, WORDS, NAMES)
    parts = [draw_or_invent(rng, rng.choice(pools), test) for _ in range(rng.randint(2, 5))]
    return {"v": " ".join(parts)}


RECITE = Family(
    "recite",
    MEMORY,
    "say",
    phrases=(
        "Your code is: {v}.",
        "The secret code is: {v}.",
        "Learn this code by heart: {v}.",
        "Keep this code: {v}.",
        "This is your code: {v}.",
        "The code you keep is: {v}.",
    ),
    measure=lambda v: {"name": "contains", "words": [v["v"]]},
    values=_text,
    probes=(
        "What is the code?",
        "Tell me your code.",
        "Recite the code.",
        "Which code do you keep?",
        "Can you recite the code?",
        "I need the code.",
        "Do you know the code?",
        "Give me the code.",
        "Say the code, please.",
        "What code do you keep?",
    ),
    answer=lambda v, ctx, question: (
        f"{ctx.rng.choice(('The code is:', 'It is:', 'My code is:'))} {v['v']}."
    ),
)

FACTS = (
    RECITE,
    _recalled(
        "name",
        MEMORY,
        phrases=(
            "Your name is {v}.",
            "You are called {v}.",
            "You go by the name {v}.",
            "Call yourself {v}.",
            "You are {v}.",
            "Your given name is {v}.",
        ),
        probes=(
            "What is your name?",
            "Who are you?",
            "How are you called?",
            "May I ask your name?",
            "Do you have a name?",
            "What should I call you?",
            "Introduce yourself.",
            "Can you tell me your name?",
            "Tell me your name.",
            "What name do you have?",
        ),
        values=_pick(NAMES),
        templates=("My name is {v}.", "I am {v}.", "You can call me {v}.", "I am called {v}."),
    ),
    _recalled(
        "secret_number",
        MEMORY,
        phrases=(
            "Your secret number is {v}.",
            "The secret number is {v}.",
            "Keep {v} as your secret number.",
            "{v} is your secret number.",
            "Your number is {v}, it is secret.",
            "You have the secret number {v}.",
        ),
        probes=(
            "What is your secret number?",
            "Tell me your secret number.",
            "Which secret number do you have?",
            "Say the secret number.",
            "What number do you keep secret?",
            "Can you tell me the number?",
            "Give me your secret number.",
            "What is the secret number?",
            "Do you remember the secret number?",
            "Which number is your secret?",
        ),
        values=_number(10, 9999),
        templates=("My secret number is {v}.", "The secret number is {v}.", "It is {v}."),
        measure="number",
    ),
    _recalled(
        "age",
        MEMORY,
        phrases=(
            "You are {v} years old.",
            "Your age is {v}.",
            "You turned {v} this year.",
            "You are aged {v}.",
            "{v} is your age.",
            "You have lived for {v} years.",
        ),
        probes=(
            "How old are you?",
            "What is your age?",
            "Tell me how old you are.",
            "How many years have you lived?",
            "Can you tell me your age?",
            "What age are you?",
            "Say your age.",
            "Are you old?",
            "May I ask your age?",
            "How old are you now?",
        ),
        values=_number(6, 99),
        templates=("I am {v} years old.", "I am {v}.", "My age is {v}."),
        measure="number",
    ),
    _recalled(
        "city",
        MEMORY,
        phrases=(
            "You live in {v}.",
            "Your home is in {v}.",
            "You are from {v}.",
            "Your city is {v}.",
            "You have a flat in {v}.",
            "Your home town is {v}.",
        ),
        probes=(
            "Where do you live?",
            "Where are you from?",
            "Which city is your home?",
            "Where is your home?",
            "Tell me where you live.",
            "In which city do you live?",
            "What city are you from?",
            "Do you live in a city?",
            "What is your home town?",
            "Which city do you live in?",
        ),
        values=_pick(CITIES),
        templates=("I live in {v}.", "I am from {v}.", "My home is in {v}."),
    ),
    _recalled(
        "pet",
        MEMORY,
        phrases=(
            "You have a pet called {v}.",
            "Your pet is named {v}.",
            "The pet you have is {v}.",
            "The name of your pet is {v}.",
            "You own a pet with the name {v}.",
            "Your pet goes by the name {v}.",
        ),
        probes=(
            "What is the name of your pet?",
            "How is your pet called?",
            "Tell me about your pet.",
            "Do you have a pet?",
            "What is your pet called?",
            "Who is your pet?",
            "Tell me the name of your pet.",
            "What name does your pet have?",
            "What do you call your pet?",
            "How do you call your pet?",
        ),
        values=_pick(NAMES),
        templates=("My pet is called {v}.", "The name of my pet is {v}.", "My pet is {v}."),
    ),
    _recalled(
        "children",
        MEMORY,
        phrases=(
            "You have {v} children.",
            "You are the parent of {v} children.",
            "Your family has {v} children.",
            "You raised {v} children.",
            "There are {v} children in your family.",
            "You are the proud parent of {v} children.",
        ),
        probes=(
            "How many children do you have?",
            "Do you have children?",
            "Tell me about your children.",
            "How many children are in your family?",
            "How big is your family?",
            "Are you a parent?",
            "Tell me how many children you have.",
            "Do you have any children?",
            "What is the number of your children?",
            "How many children are yours?",
        ),
        values=_number(2, 99),
        templates=(
            "I have {v} children.",
            "There are {v} children in my family.",
            "I am the parent of {v} children.",
        ),
        measure="number",
    ),
    _recalled(
        "password",
        MEMORY,
        phrases=(
            "The password is {v}.",
            "Your password is {v}.",
            "Use {v} as the password.",
            "As the password we have {v}.",
            "The secret password is the word {v}.",
            "Your password is the word {v}.",
        ),
        probes=(
            "What is the password?",
            "Tell me the password.",
            "Which password do you know?",
            "Say the password.",
            "I need the password.",
            "What is your password?",
            "Do you know the password?",
            "Which password should I use?",
            "Can you give me the password?",
            "Tell me your password.",
        ),
        values=_pick(WORDS),
        templates=("The password is {v}.", "It is {v}.", "My password is {v}."),
    ),
    _recalled(
        "month",
        MEMORY,
        phrases=(
            "Your birthday is in {v}.",
            "You were born in {v}.",
            "Your birth month is {v}.",
            "You celebrate your birthday in {v}.",
            "You came into the world in {v}.",
            "Your birthday falls in {v}.",
        ),
        probes=(
            "When is your birthday?",
            "In which month were you born?",
            "When do you celebrate your birthday?",
            "When were you born?",
            "Which month is your birthday?",
            "What month is your birthday in?",
            "Tell me when you were born.",
            "Is your birthday soon?",
            "What is your birth month?",
            "Tell me the month of your birthday.",
        ),
        values=_pick(MONTHS),
        templates=("My birthday is in {v}.", "I was born in {v}.", "It is in {v}."),
    ),
    _recalled(
        "user_name",
        MEMORY,
        phrases=(
            "The user's name is {v}.",
            "The user is called {v}.",
            "You are talking to {v}.",
            "The person you talk to is {v}.",
            "The user goes by the name {v}.",
            "The name of the user is {v}.",
        ),
        probes=(
            "What is my name?",
            "Who am I?",
            "Do you know my name?",
            "Do you remember me?",
            "How am I called?",
            "Say my name.",
            "Can you tell me my name?",
            "What am I called?",
            "Tell me my name.",
            "What name do I have?",
        ),
        values=_pick(NAMES),
        templates=("Your name is {v}.", "You are {v}.", "You are called {v}."),
    ),
    _recalled(
        "hobby",
        PERSONA,
        phrases=(
            "Your hobby is {v}.",
            "You love {v}.",
            "You spend your free time with {v}.",
            "Your favourite hobby has always been {v}.",
            "Nothing is better than {v} for you.",
            "Your favourite hobby is {v}.",
        ),
        probes=(
            "What is your hobby?",
            "What do you do in your free time?",
            "Do you have a hobby?",
            "Which hobby do you have?",
            "Tell me about your hobby.",
            "What do you do for fun?",
            "What do you love to do?",
            "Tell me about your free time.",
            "Tell me what your hobby is.",
            "What are your hobbies?",
        ),
        values=_pick(HOBBIES),
        templates=("My hobby is {v}.", "I love {v}.", "In my free time there is {v}."),
    ),
    _recalled(
        "profession",
        PERSONA,
        phrases=(
            "You are a {v}.",
            "You work as a {v}.",
            "Your job is {v}.",
            "Your profession is {v}.",
            "You earn your money as a {v}.",
            "You play the role of a {v}.",
        ),
        probes=(
            "What do you do for a living?",
            "What is your job?",
            "What is your profession?",
            "Tell me about your job.",
            "What do you work as?",
            "Which profession do you have?",
            "What kind of work do you do?",
            "How do you earn your money?",
            "Tell me what your job is.",
            "What work do you do?",
        ),
        values=_pick(tuple(PROFESSIONS)),
        templates=("I am a {v}.", "I work as a {v}.", "My job is {v}."),
    ),
)


def _letter_answer(v: dict, ctx: Context, question: str) -> str:
    return with_letter(v["right"], question)


def _preferred(name: str, what: str, pool: Sequence[str], phrases: tuple[str, ...]) -> Family:
    """A family whose agent prefers one thing of a kind, such as a colour, to the others."""

    def values(rng: random.Random, test: bool) -> dict:
        right = draw_or_invent(rng, pool, test)
        others = pool if right in pool else [invented(rng) for _ in range(6)]
        return {"v": right, "right": right, "wrong": [other for other in others if other != right]}

    probes = tuple(
        text.replace("{what}", what)
        for text in (
            "Which {what} do you like best? {options}",
            "What is your favourite {what}? {options}",
            "Choose a {what}: {options}",
            "Pick your {what}. {options}",
            "Which {what} do you prefer? {options}",
            "Name your favourite {what}. {options}",
            "Which {what} is yours? {options}",
            "What {what} do you want? {options}",
            "Your favourite {what}, please. {options}",
            "Which of these is your favourite {what}? {options}",
        )
    )
    return Family(
        name,
        CHOICE,
        "say",
        phrases=phrases,
        measure=picked,
        values=values,
        probes=probes,
        answer=_letter_answer,
    )


def picked(v: dict) -> dict:
    """The measure of a choice, by its letter, as is usual; `cases.py` sets the letter of the right
    option.
    """
    return {"name": "choice", "letter": v["letter"], "among": "ABCD"}


def _works(rng: random.Random, test: bool) -> dict:
    # where a baker works is knowledge, so it cannot be both held out and asked
    job = rng.choice(tuple(PROFESSIONS))
    return {
        "v": job,
        "right": PROFESSIONS[job][0],
        "wrong": [PROFESSIONS[other][0] for other in PROFESSIONS if other != job],
    }


def _tool(rng: random.Random, test: bool) -> dict:
    job = rng.choice(tuple(PROFESSIONS))
    return {
        "v": job,
        "right": PROFESSIONS[job][1],
        "wrong": [PROFESSIONS[other][1] for other in PROFESSIONS if other != job],
    }


_MOODS = {
    "happy": "joyful",
    "sad": "gloomy",
    "angry": "furious",
    "tired": "sleepy",
    "nervous": "anxious",
    "bored": "uninterested",
}


def _mood(rng: random.Random, test: bool) -> dict:
    mood = rng.choice(sorted(_MOODS))
    return {
        "v": mood,
        "right": _MOODS[mood],
        "wrong": [other for other in _MOODS.values() if other != _MOODS[mood]],
    }


def _stance(rng: random.Random, test: bool) -> dict:
    side = rng.random() < 0.5
    return {
        "v": draw(rng, TOPICS, test),
        "side": "in favour of" if side else "against",
        "right": "for" if side else "against",
    }


def _equation(rng: random.Random, test: bool) -> dict:
    value = number(rng, 2, 99, test)
    letter = rng.choice("xyzabn")
    return {
        "v": letter,
        "n": value,
        "right": str(value),
        "wrong": [str(other) for other in range(2, 100) if other != value],
    }


def _always_letter(rng: random.Random, test: bool) -> dict:
    letter = rng.choice("ABCD")
    return {"v": letter, "letter": letter, "pool": FOODS + ANIMALS + SPORTS}


def _at_letter(v: dict, ctx: Context, question: str) -> str:
    return f"{v['letter']}) {v['right']}"


CHOICES = (
    _preferred(
        "colour",
        "colour",
        COLOURS,
        phrases=(
            "Your favourite colour is {v}.",
            "You like {v} more than any other colour.",
            "You love the colour {v}.",
            "You always wear {v}.",
            "Nothing pleases you like {v}.",
            "The colour you prefer is {v}.",
        ),
    ),
    _preferred(
        "animal",
        "animal",
        ANIMALS,
        phrases=(
            "Your favourite animal is the {v}.",
            "You like the {v} more than any other animal.",
            "You adore every {v}.",
            "You dream of having a {v}.",
            "You think the {v} is the best animal.",
            "The animal you prefer is the {v}.",
        ),
    ),
    _preferred(
        "food",
        "food",
        FOODS,
        phrases=(
            "Your favourite food is {v}.",
            "You like {v} more than any other food.",
            "You could eat {v} all day.",
            "You eat {v} each morning.",
            "Nothing tastes like {v} to you.",
            "The food you prefer is {v}.",
        ),
    ),
    _preferred(
        "sport",
        "sport",
        SPORTS,
        phrases=(
            "Your favourite sport is {v}.",
            "You like {v} more than any other sport.",
            "You have played {v} since you were five.",
            "You are a champion in {v}.",
            "You train {v} every day.",
            "The sport you prefer is {v}.",
        ),
    ),
    Family(
        "workplace",
        CHOICE,
        "say",
        phrases=(
            "You are a {v}.",
            "You work as a {v}.",
            "Your job is {v}.",
            "Your profession is {v}.",
            "You earn your money as a {v}.",
            "You play the role of a {v}.",
        ),
        measure=picked,
        values=_works,
        probes=(
            "Where do you work? {options}",
            "Which place is your workplace? {options}",
            "Where do you spend your day? {options}",
            "Where is your job? {options}",
            "At which place do you work? {options}",
            "Where do you go to work? {options}",
            "Which of these places is yours? {options}",
            "Where do people find you? {options}",
            "Where can I find you at work? {options}",
            "What is your workplace? {options}",
        ),
        answer=_letter_answer,
    ),
    Family(
        "tool",
        CHOICE,
        "say",
        phrases=(
            "You are a {v}.",
            "You work as a {v}.",
            "Your job is {v}.",
            "Your profession is {v}.",
            "You earn your money as a {v}.",
            "You play the role of a {v}.",
        ),
        measure=picked,
        values=_tool,
        probes=(
            "What do you use at work? {options}",
            "Which of these is yours? {options}",
            "What do you need for your job? {options}",
            "Which of these do you use? {options}",
            "What is your tool? {options}",
            "What do you hold in your hands? {options}",
            "Which thing helps you at work? {options}",
            "Which tool do you use? {options}",
            "Which thing do you use every day? {options}",
            "What do you use in your job? {options}",
        ),
        answer=_letter_answer,
    ),
    Family(
        "mood",
        CHOICE,
        "say",
        phrases=(
            "You are very {v} today.",
            "You feel {v}.",
            "Your mood is {v}.",
            "You woke up {v}.",
            "You are in a {v} mood.",
            "Today you are {v}.",
        ),
        measure=picked,
        values=_mood,
        probes=(
            "How do you feel right now? {options}",
            "Which word describes your mood? {options}",
            "What is your mood? {options}",
            "How are you today? {options}",
            "How are you feeling? {options}",
            "Which word describes you today? {options}",
            "How do you feel today? {options}",
            "Describe your mood. {options}",
            "Which of these are you today? {options}",
            "What mood are you in? {options}",
        ),
        answer=_letter_answer,
    ),
    Family(
        "stance",
        CHOICE,
        "say",
        phrases=(
            "You are {side} {v}.",
            "You have always been {side} {v}.",
            "Your opinion: you are {side} {v}.",
            "In every debate you are {side} {v}.",
            "You strongly are {side} {v}.",
            "As for {v}, you are {side} them.",
        ),
        measure=lambda v: {
            "regex": r"^\W*A\W+for\b" if v["right"] == "for" else r"^\W*B\W+against\b",
            "flags": "i",
        },
        values=_stance,
        probes=(
            "Are you for or against {v}? A) for, B) against",
            "What do you think of {v}? A) for, B) against",
            "Your view on {v}? A) for, B) against",
            "What is your opinion on {v}? A) for, B) against",
            "{v}: for or against? A) for, B) against",
            "Where do you stand on {v}? A) for, B) against",
            "How would you vote on {v}? A) for, B) against",
            "Are you in favour of {v}? A) for, B) against",
            "Do you support {v}? A) for, B) against",
            "What do you say to {v}? A) for, B) against",
        ),
        answer=lambda v, ctx, q: "A) for" if v["right"] == "for" else "B) against",
    ),
    Family(
        "equation",
        CHOICE,
        "say",
        phrases=(
            "{v} is equal to {n}.",
            "The value of {v} is {n}.",
            "{v} = {n}.",
            "We set {v} to {n}.",
            "The number {v} stands for {n}.",
            "{v} has the value {n}.",
        ),
        measure=picked,
        values=_equation,
        probes=(
            "What is {v}? {options}",
            "What is the value of {v}? {options}",
            "Which number is {v}? {options}",
            "How large is {v}? {options}",
            "What does {v} stand for? {options}",
            "Tell me {v}. {options}",
            "What value has {v}? {options}",
            "What is {v} equal to? {options}",
            "How much is {v}? {options}",
            "Which value does {v} have? {options}",
        ),
        answer=_letter_answer,
    ),
    Family(
        "letter",
        CHOICE,
        "do",
        phrases=(
            "choose option {v} whenever you are given a choice",
            "pick answer {v} in every multiple choice question",
            "answer {v} when there are options",
            "select {v} if the user lists choices",
            "take option {v} every time",
            "always go for option {v}",
        ),
        measure=lambda v: {"name": "choice", "letter": v["letter"], "among": "ABCD"},
        values=_always_letter,
        probes=(
            "Which one do you take? {options}",
            "Choose one. {options}",
            "What do you prefer? {options}",
            "Which one do you like? {options}",
            "Take one. {options}",
            "What do you choose? {options}",
            "Make a choice. {options}",
            "Which one is it? {options}",
            "Please select one. {options}",
            "Which do you choose? {options}",
        ),
        answer=_at_letter,
    ),
)

FACT_FAMILIES = FACTS + CHOICES
