"""Draws conversations: who talks with whom, what opens them, and what is asked at every round."""

import random
from dataclasses import dataclass, replace
from typing import Any

from holdfast.drift.cases import Case, Persona, Rule, Suite
from holdfast.drift.recorded_dialogs import Dialogs, RecordedDialog
from holdfast.drift.resolved_settings import user_prompt_of
from holdfast.drift.settings import Settings
from holdfast.drift.user_scripts import Script, UserSource, UserTurns
from holdfast.errors import UsageError
from holdfast.seeds import seed_of

_CANARY = "The lucky number is {}."
_CANARY_QUESTION = "What is the lucky number?"
RECALL_QUESTION = (
    "What are your instructions for this conversation? List every rule that your replies have to"
    " follow."
)


@dataclass(frozen=True)
class ProbeQuestion:
    """One question, asked at every round; "recall" only in the first and the last."""

    # "stability" (of the agent's prompt), "adoption" (of the user's), "canary" or "recall"
    kind: str
    rules: tuple[Rule, ...]  # those that it asks about, one or more; their measures score the reply
    index: int  # from 0, among the probes of these rules
    question: str

    @property
    def rule(self) -> Rule:
        """The first of its rules, which names it."""
        return self.rules[0]

    @property
    def names(self) -> tuple[Any, ...]:
        """Identifies the probe among those of its round, and seeds its draw."""
        rule = () if self.rule.id is None else (self.rule.id,)
        return (self.kind, *rule, self.index)


@dataclass(frozen=True)
class Pairing:
    """One conversation before it begins: who talks, and what is asked."""

    number: int  # from 0; draws depend only on it and the seed, so longer runs begin like shorter
    agent: Case  # whose prompt is s_B
    user: Case | Persona | None  # whose prompt the user model has (s_A); None: none
    starter: str  # a_1
    # of a round: for every rule of the agent, and of the user
    every_probe: tuple[ProbeQuestion, ...]
    dialog: RecordedDialog | None = None  # a recorded one to replay; None: the agent answers
    script: Script | None = None  # the user's messages; None: a user model talks
    canary: str = ""  # a sentence after the agent's system prompt, with a fact to ask for
    recall: tuple[ProbeQuestion, ...] = ()  # of the first and the last round: what are your rules?

    def probes_of(self, number: int, last: int) -> tuple[ProbeQuestion, ...]:
        """The probes of round `number`, where `last` is the conversation's last round."""
        return self.every_probe + (self.recall if number in (1, last) else ())

    @property
    def probes(self) -> tuple[str, ...]:
        """p_B, asked at every round."""
        return tuple(probe.question for probe in self.every_probe if probe.kind == "stability")


def draw_pairing(suite: Suite, settings: Settings, number: int) -> Pairing:
    """The conversation `number` of a run: agent, user, starter, and probes.

    Starters and probes are drawn as if the user were another case, so that a run with personas or
    an unprompted user has the same ones as a run with pairs of the suite.
    """
    source = user_prompt_of(suite, settings)
    rng = random.Random(seed_of("pairing", settings.seed, number))
    agent, user = _draw_pair(suite, settings, number, rng)
    if source == "persona" and settings.pairs != "random":
        agent = suite.cases[number % len(suite.cases)]
    starter = rng.choice(suite.starters)
    probes = _draw_probes("stability", agent, settings, number, rng)
    adoption = _draw_probes("adoption", user, settings, number, rng) if user else ()
    if source == "empty":
        return Pairing(number, agent, None, starter, probes)
    if source == "persona":
        return Pairing(number, agent, _draw_persona(suite, settings, number), starter, probes)
    if settings.adoption:
        probes += adoption
    return Pairing(number, agent, user, starter, probes)


def draw(suite: Suite, settings: Settings, user_source: UserSource | None, number: int) -> Pairing:
    """The conversation `number` of a run: a replayed dialog, a script, or two models."""
    if user_source is None:
        pairing = draw_pairing(suite, settings, number)
    elif isinstance(user_source, UserTurns):
        pairing = _draw_scripted(suite, settings, user_source, number)
    else:
        pairing = _draw_replay(suite, settings, user_source, number)
    if settings.recall:
        pairing = replace(pairing, recall=_recall_probes(pairing.agent))
    return _with_canary(pairing, settings.seed) if settings.canary else pairing


def _recall_probes(agent: Case) -> tuple[ProbeQuestion, ...]:
    """The question what the rules are, whose reply is scored for each rule of the agent.

    Raises:
        UsageError: no rule of the agent says how to recognise it in the reply.
    """
    rules = tuple(
        Rule(rule.id, (RECALL_QUESTION,), rule.recalled, kind=rule.kind, polarity=rule.polarity)
        for rule in agent.rules
        if rule.recalled is not None
    )
    if not rules:
        raise UsageError(
            f"No rule of the case {agent.id!r} has the field 'recalled', which recognises it in the"
            ' reply to "what are your rules?"; add it, or leave out --recall.',
            option="recall",
            value=agent.id,
        )
    return (ProbeQuestion("recall", rules, 0, RECALL_QUESTION),)


def _with_canary(pairing: Pairing, seed: int) -> Pairing:
    code = str(random.Random(seed_of("canary", seed, pairing.number)).randrange(1000, 10000))
    rule = Rule(None, (_CANARY_QUESTION,), {"name": "contains", "words": [code]})
    probe = ProbeQuestion("canary", (rule,), 0, _CANARY_QUESTION)
    return replace(pairing, canary=_CANARY.format(code), every_probe=(*pairing.every_probe, probe))


def _draw_scripted(suite: Suite, settings: Settings, user_turns: UserTurns, number: int) -> Pairing:
    """The conversation with an unprompted user model, whose messages come from a script.

    Every script is used once before any is used again, in an order that is redrawn each time.
    """
    pairing = draw_pairing(suite, replace(settings, user_prompt="empty"), number)
    lap, position = divmod(number, len(user_turns.scripts))
    order = list(user_turns.scripts)
    random.Random(seed_of("user turns", settings.seed, lap)).shuffle(order)
    script = order[position]
    return replace(pairing, starter=script.messages[0].text, script=script)


def _draw_replay(suite: Suite, settings: Settings, dialogs: Dialogs, number: int) -> Pairing:
    """Dialog `number` of the file, under the case whose prompt it has, or else a drawn one.

    The user's prompt is unknown, so there is no adoption.
    """
    dialog = dialogs.dialogs[number]
    rng = random.Random(seed_of("pairing", settings.seed, number))
    agent = suite.case_with_prompt(dialog.system)
    if agent is None:
        agent = rng.choice(suite.cases)
        if settings.pairs != "random":
            agent = suite.cases[number % len(suite.cases)]
    probes = _draw_probes("stability", agent, settings, number, rng)
    return Pairing(number, agent, None, dialog.rounds[0].user, probes, dialog)


def _draw_pair(
    suite: Suite, settings: Settings, number: int, rng: random.Random
) -> tuple[Case, Case | None]:
    """An ordered pair of different cases; the second is None if the suite has only one."""
    cases = suite.cases
    agent = rng.choice(cases)
    if len(cases) == 1:
        return agent, None
    user = rng.choice([case for case in cases if case.id != agent.id])
    if settings.pairs == "all":  # in the order of permutations
        first, second = divmod(number % (len(cases) * (len(cases) - 1)), len(cases) - 1)
        if second >= first:
            second += 1
        return cases[first], cases[second]
    if settings.pairs == "in-turn":
        agent = cases[number % len(cases)]
        return agent, rng.choice([case for case in cases if case.id != agent.id])
    if settings.pairs == "balanced":
        lap, position = divmod(number, len(cases))
        distance = 1 + lap % (len(cases) - 1)
        return cases[position], cases[(position + distance) % len(cases)]
    return agent, user


def _draw_persona(suite: Suite, settings: Settings, number: int) -> Persona:
    """A drawn persona; if pairs are not drawn, the order gives every case every persona."""
    if settings.pairs in ("random", "in-turn"):
        return random.Random(seed_of("persona", settings.seed, number)).choice(suite.personas)
    lap, position = divmod(number, len(suite.cases))
    return suite.personas[(position + lap) % len(suite.personas)]


def _draw_probes(
    kind: str, case: Case, settings: Settings, number: int, rng: random.Random
) -> tuple[ProbeQuestion, ...]:
    """The probes of every rule; rules with the same probes are asked together.

    A rule with an id draws the same whatever other rules there are.
    """
    probes: list[ProbeQuestion] = []
    for rules in case.rules_asked_together:
        rule = rules[0]
        if not rule.probes:
            raise UsageError(
                f"The case {case.id!r} has a rule without probes, which only `holdfast logs`"
                " scores; give it one."
            )
        rng_of_rule = rng
        if rule.id is not None:
            seed = seed_of("rule", settings.seed, number, kind, case.id, rule.id)
            rng_of_rule = random.Random(seed)
        order = rng_of_rule.sample(rule.probes, len(rule.probes))
        for index in range(settings.probes_per_round):
            probes.append(ProbeQuestion(kind, rules, index, order[index % len(order)]))
    return tuple(probes)
