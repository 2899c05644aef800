"""Families whose instruction shows when their probe asks: facts to remember, and choices among options."""

from __future__ import annotations

import random

from content import Context
from families import Family, chosen
from values import ANIMALS, CITIES, COLOURS, FOODS, HOBBIES, MONTHS, NAMES, PROFESSIONS, SPORTS, TOPICS, WORDS, draw, number

MEMORY, CHOICE, PERSONA = "memorization", "multiple_choice", "persona"


def _recalled(name: str, category: str, phrases, probes, values, templates: tuple[str, ...], key: str = "v", measure: str = "contains") -> Family:
    """A family whose probe is answered by one of `templates` with the value in it."""

    def answer(v: dict, ctx: Context, question: str) -> str:
        return ctx.rng.choice(templates).replace("{v}", str(v[key]))

    def scored(v: dict) -> dict:
        return {"name": "mentions_number", "number": int(v[key])} if measure == "number" else {"name": "contains", "words": [str(v[key])]}

    return Family(name, category, "say", phrases, None, scored, values, probes, answer)


def _pick(pool):
    return lambda rng, test: {"v": draw(rng, pool, test)}


def _number(low: int, high: int):
    return lambda rng, test: {"v": number(rng, low, high, test)}


def _text(rng: random.Random, test: bool) -> dict:
    """A sequence of words, names and digits that only copying can get right."""
    pools = (WORDS, WORDS, NAMES, "0123456789")
    return {"v": " ".join(draw(rng, rng.choice(pools), test) for _ in range(rng.randint(3, 12)))}


RECITE = Family(
    "recite", MEMORY, "say", ("Your code is: {v}.", "The secret code is: {v}.", "Learn this code by heart: {v}.", "Keep this code: {v}.", "This is your code: {v}.",
                              "The code you keep is: {v}."), None, lambda v: {"name": "contains", "words": [v["v"]]}, _text,
    ("What is the code?", "Tell me your code.", "Recite the code.", "Which code do you keep?", "Say the code, please."), lambda v, ctx, question: f"{ctx.rng.choice(('The code is:', 'It is:', 'My code is:'))} {v['v']}.")

FACTS = (
    RECITE,
    _recalled("name", MEMORY, ("Your name is {v}.", "You are called {v}.", "You go by the name {v}.", "Call yourself {v}.", "You are {v}.", "Your given name is {v}."),
              ("What is your name?", "Who are you?", "How are you called?", "May I ask your name?", "Tell me your name."), _pick(NAMES),
              ("My name is {v}.", "I am {v}.", "You can call me {v}.", "I am called {v}.")),
    _recalled("secret_number", MEMORY, ("Your secret number is {v}.", "The secret number is {v}.", "Keep {v} as your secret number.", "{v} is your secret number.",
              "Your number is {v}, it is secret.", "You have the secret number {v}."),
              ("What is your secret number?", "Tell me your secret number.", "Which secret number do you have?", "Do you remember the secret number?"), _number(10, 9999),
              ("My secret number is {v}.", "The secret number is {v}.", "It is {v}."), measure="number"),
    _recalled("age", MEMORY, ("You are {v} years old.", "Your age is {v}.", "You turned {v} this year.", "You are aged {v}.", "{v} is your age.", "You have lived for {v} years."),
              ("How old are you?", "What is your age?", "Tell me how old you are.", "May I ask your age?"), _number(6, 99),
              ("I am {v} years old.", "I am {v}.", "My age is {v}."), measure="number"),
    _recalled("city", MEMORY, ("You live in {v}.", "Your home is in {v}.", "You are from {v}.", "Your city is {v}.", "You have a flat in {v}.", "Your home town is {v}."),
              ("Where do you live?", "Where are you from?", "Which city is your home?", "What is your home town?"), _pick(CITIES),
              ("I live in {v}.", "I am from {v}.", "My home is in {v}.")),
    _recalled("pet", MEMORY, ("You have a pet called {v}.", "Your pet is named {v}.", "The pet you have is {v}.", "The name of your pet is {v}.", "You own a pet with the name {v}.", "Your pet goes by the name {v}."),
              ("What is the name of your pet?", "How is your pet called?", "Tell me about your pet.", "What do you call your pet?"), _pick(NAMES),
              ("My pet is called {v}.", "The name of my pet is {v}.", "My pet is {v}.")),
    _recalled("children", MEMORY, ("You have {v} children.", "You are the parent of {v} children.", "Your family has {v} children.", "You raised {v} children.", "There are {v} children in your family.", "You are the proud parent of {v} children."),
              ("How many children do you have?", "Do you have children?", "Tell me about your children.", "What is the number of your children?"), _number(2, 99),
              ("I have {v} children.", "There are {v} children in my family.", "I am the parent of {v} children."), measure="number"),
    _recalled("password", MEMORY, ("The password is {v}.", "Your password is {v}.", "Use {v} as the password.", "As the password we have {v}.", "The secret password is the word {v}.", "Your password is the word {v}."),
              ("What is the password?", "Tell me the password.", "Which password do you know?", "Can you give me the password?"), _pick(WORDS),
              ("The password is {v}.", "It is {v}.", "My password is {v}.")),
    _recalled("month", MEMORY, ("Your birthday is in {v}.", "You were born in {v}.", "Your birth month is {v}.", "You celebrate your birthday in {v}.", "You came into the world in {v}.", "Your birthday falls in {v}."),
              ("When is your birthday?", "In which month were you born?", "When do you celebrate your birthday?", "What is your birth month?"), _pick(MONTHS),
              ("My birthday is in {v}.", "I was born in {v}.", "It is in {v}.")),
    _recalled("user_name", MEMORY, ("The user's name is {v}.", "The user is called {v}.", "You are talking to {v}.", "The person you talk to is {v}.", "The user goes by the name {v}.", "The name of the user is {v}."),
              ("What is my name?", "Who am I?", "Do you know my name?", "Tell me my name."), _pick(NAMES),
              ("Your name is {v}.", "You are {v}.", "You are called {v}.")),
    _recalled("hobby", PERSONA, ("Your hobby is {v}.", "You love {v}.", "You spend your free time with {v}.", "Your favourite hobby has always been {v}.", "Nothing is better than {v} for you.", "Your favourite hobby is {v}."),
              ("What is your hobby?", "What do you do in your free time?", "Do you have a hobby?", "Tell me about your hobbies."), _pick(HOBBIES),
              ("My hobby is {v}.", "I love {v}.", "In my free time there is {v}.")),
    _recalled("profession", PERSONA, ("You are a {v}.", "You work as a {v}.", "Your job is {v}.", "Your profession is {v}.", "You earn your money as a {v}.", "You play the role of a {v}."),
              ("What do you do for a living?", "What is your job?", "What is your profession?", "Tell me about your work."), _pick(tuple(PROFESSIONS)),
              ("I am a {v}.", "I work as a {v}.", "My job is {v}.")),
)


def _letter_answer(v: dict, ctx: Context, question: str) -> str:
    return chosen(question, v["right"])


def _preferred(name: str, what: str, pool, phrases: tuple[str, ...]) -> Family:
    def values(rng: random.Random, test: bool) -> dict:
        right = draw(rng, pool, test)
        return {"v": right, "right": right, "wrong": [other for other in pool if other != right]}

    probes = tuple(text.replace("{what}", what) for text in (
        "Which {what} do you like best? {options}", "What is your favourite {what}? {options}", "Choose a {what}: {options}",
        "Pick your {what}. {options} Answer with the letter.", "Your favourite {what}, please. {options}"))
    return Family(name, CHOICE, "say", phrases, None, _picked, values, probes, _letter_answer)


def _picked(v: dict) -> dict:
    """The measure of a choice; the letter is known once the options are shuffled, so the option's text is what counts."""
    return {"name": "contains", "words": [v["right"]]}


def _works(rng: random.Random, test: bool) -> dict:
    job = draw(rng, tuple(PROFESSIONS), test)
    return {"v": job, "right": PROFESSIONS[job][0], "wrong": [PROFESSIONS[other][0] for other in PROFESSIONS if other != job]}


def _tool(rng: random.Random, test: bool) -> dict:
    job = draw(rng, tuple(PROFESSIONS), test)
    return {"v": job, "right": PROFESSIONS[job][1], "wrong": [PROFESSIONS[other][1] for other in PROFESSIONS if other != job]}


_MOODS = {"happy": "joyful", "sad": "gloomy", "angry": "furious", "tired": "sleepy", "nervous": "anxious", "bored": "uninterested"}


def _mood(rng: random.Random, test: bool) -> dict:
    mood = rng.choice(sorted(_MOODS))
    return {"v": mood, "right": _MOODS[mood], "wrong": [other for other in _MOODS.values() if other != _MOODS[mood]]}


def _stance(rng: random.Random, test: bool) -> dict:
    side = rng.random() < 0.5
    return {"v": draw(rng, TOPICS, test), "side": "in favour of" if side else "against", "right": "for" if side else "against"}


def _equation(rng: random.Random, test: bool) -> dict:
    value = number(rng, 2, 99, test)
    letter = rng.choice("xyzabn")
    return {"v": letter, "n": value, "right": str(value), "wrong": [str(other) for other in range(2, 100) if other != value]}


def _always_letter(rng: random.Random, test: bool) -> dict:
    letter = rng.choice("ABCD")
    return {"v": letter, "letter": letter, "pool": FOODS + ANIMALS + SPORTS}


def _any_options(v: dict, ctx: Context, question: str) -> str:
    start = question.index(f"{v['letter']}) ")
    return question[start:].split(",")[0].split(" Answer")[0]


CHOICES = (
    _preferred("colour", "colour", COLOURS, ("Your favourite colour is {v}.", "You like {v} more than any other colour.", "You love the colour {v}.", "You always wear {v}.", "Nothing pleases you like {v}.", "The colour you prefer is {v}.")),
    _preferred("animal", "animal", ANIMALS, ("Your favourite animal is the {v}.", "You like the {v} more than any other animal.", "You adore every {v}.", "You dream of having a {v}.", "You think the {v} is the best animal.", "The animal you prefer is the {v}.")),
    _preferred("food", "food", FOODS, ("Your favourite food is {v}.", "You like {v} more than any other food.", "You could eat {v} all day.", "You eat {v} each morning.", "Nothing tastes like {v} to you.", "The food you prefer is {v}.")),
    _preferred("sport", "sport", SPORTS, ("Your favourite sport is {v}.", "You like {v} more than any other sport.", "You have played {v} since you were five.", "You are a champion in {v}.", "You train {v} every day.", "The sport you prefer is {v}.")),
    Family("workplace", CHOICE, "say", ("You are a {v}.", "You work as a {v}.", "Your job is {v}.", "Your profession is {v}.", "You earn your money as a {v}.", "You play the role of a {v}."), None, _picked, _works,
           ("Where do you work? {options}", "Which place is your workplace? {options}", "Where do you spend your day? {options}", "Where can I find you at work? {options}"), _letter_answer),
    Family("tool", CHOICE, "say", ("You are a {v}.", "You work as a {v}.", "Your job is {v}.", "Your profession is {v}.", "You earn your money as a {v}.", "You play the role of a {v}."), None, _picked, _tool,
           ("What do you use at work? {options}", "Which of these is yours? {options}", "What do you need for your job? {options}", "Which thing do you use every day? {options}"), _letter_answer),
    Family("mood", CHOICE, "say", ("You are very {v} today.", "You feel {v}.", "Your mood is {v}.", "You woke up {v}.", "You are in a {v} mood.", "Today you are {v}."), None, _picked, _mood,
           ("How do you feel right now? {options}", "Which word describes your mood? {options}", "What is your mood? {options}", "Which of these are you today? {options}"), _letter_answer),
    Family("stance", CHOICE, "say", ("You are {side} {v}.", "You have always been {side} {v}.", "Your opinion: you are {side} {v}.", "In every debate you are {side} {v}.", "You strongly are {side} {v}.", "As for {v}, you are {side} them."), None,
           lambda v: {"regex": r"^\W*A\W+for\b" if v["right"] == "for" else r"^\W*B\W+against\b", "flags": "i"}, _stance,
           ("Are you for or against {v}? A) for, B) against", "What do you think of {v}? A) for, B) against", "Your view on {v}? A) for, B) against", "Do you support {v}? A) for, B) against"),
           lambda v, ctx, q: "A) for" if v["right"] == "for" else "B) against"),
    Family("equation", CHOICE, "say", ("{v} is equal to {n}.", "The value of {v} is {n}.", "{v} = {n}.", "We set {v} to {n}.", "The number {v} stands for {n}.", "{v} has the value {n}."), None, _picked, _equation,
           ("What is {v}? {options}", "What is the value of {v}? {options}", "Which number is {v}? {options}", "How much is {v}? {options}"), _letter_answer),
    Family("letter", CHOICE, "do", ("choose option {v} whenever you are given a choice", "pick answer {v} in every multiple choice question", "answer {v} when there are options", "select {v} if the user lists choices",
           "take option {v} every time", "always go for option {v}"), None, lambda v: {"name": "choice", "letter": v["letter"], "among": "ABCD"}, _always_letter,
           ("Which one do you take? {options}", "Choose one: {options}", "What do you prefer? {options}", "Please select one. {options}"), _any_options),
)

FACT_FAMILIES = FACTS + CHOICES
