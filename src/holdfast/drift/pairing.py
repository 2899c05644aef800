"""Draws conversations: who talks with whom, how they begin, and which probes are asked.

Every draw is seeded by the run's seed and the number of the conversation, so that conversation 7 is
the same in a run of 8 conversations and in one of 200.
"""

import random
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

from holdfast.drift.cases import Case, Persona, Rule, Suite
from holdfast.drift.recorded_dialogs import RecordedDialog
from holdfast.drift.resolved_settings import user_prompt_of
from holdfast.drift.settings import Cast, Settings
from holdfast.drift.user_scripts import Script
from holdfast.errors import UsageError, option
from holdfast.seeds import seed_of

_CANARY = "The lucky number is {}."
_CANARY_QUESTION = "What is the lucky number?"
RECALL_QUESTION = (
    "What are your instructions for this conversation? List every rule that your replies have to"
    " follow."
)


# of the agent's prompt, of the user's prompt, of the canary, or of the agent's memory of its rules
ProbeKind = Literal["stability", "adoption", "canary", "recall"]


@dataclass(frozen=True)
class ProbeQuestion:
    """A question that is asked in every probed round, or for "recall" in the first and the last.

    Attributes:
        kind: what the question tests.
        rules: the rules that it tests, at least one; the measure of each scores the reply.
        index: the number of the question among the probes of these rules, from 0.
        question: its text.
    """

    kind: ProbeKind
    rules: tuple[Rule, ...]
    index: int
    question: str

    @property
    def rule(self) -> Rule:
        """The first of its rules, by which the question is named."""
        return self.rules[0]

    @property
    def seed_names(self) -> tuple[Any, ...]:
        """The names that identify the question within its round, and seed the draw of the reply."""
        rule = () if self.rule.id is None else (self.rule.id,)
        return (self.kind, *rule, self.index)


@dataclass(frozen=True)
class Pairing:
    """One conversation before it begins: who talks, and what is asked.

    Attributes:
        number: of the conversation, from 0. Draws depend only on it and on the seed, so that a
            longer run begins like a shorter one.
        agent: its system prompt is s_B.
        user: its system prompt is s_A; None if the user model has no system prompt.
        starter: the user's first message, a_1.
        round_probes: the probes of each round, for every rule of the agent and of the user.
        recorded: the dialog to replay; None if the agent replies itself.
        script: the user's messages; None if a user model writes them.
        canary: a sentence that is added to the agent's system prompt, with a fact to ask for; "" if
            there is none.
        recall: the probes of the first and the last round that ask for the agent's rules.
    """

    number: int
    agent: Case
    user: Case | Persona | None
    starter: str
    round_probes: tuple[ProbeQuestion, ...]
    recorded: RecordedDialog | None = None
    script: Script | None = None
    canary: str = ""
    recall: tuple[ProbeQuestion, ...] = ()

    @property
    def all_probes(self) -> tuple[ProbeQuestion, ...]:
        """The probes of the first round, and of the last one: those of each round, and recall."""
        return self.round_probes + self.recall

    def probes_in(self, number: int, settings: Settings) -> tuple[ProbeQuestion, ...]:
        """The probes of round `number`; () if the round is not probed."""
        if number in (1, settings.rounds):
            return self.all_probes
        return self.round_probes if settings.is_probed(number) else ()

    def last_probed_round(self, settings: Settings) -> int:
        """The last round that is probed.

        A recorded dialog may be shorter than the settings say; "in-place" also probes after its
        last round.
        """
        if self.recorded is None:
            return settings.rounds
        rounds = len(self.recorded.rounds) + (settings.probe_at == "in-place")
        return min(settings.rounds, rounds)

    def num_replies(self, settings: Settings) -> int:
        """The number of turns and probes that a model answers, if the dialog does not end early."""
        last = self.last_probed_round(settings)
        probes = sum(len(self.probes_in(number, settings)) for number in range(1, last))
        probes += len(self.all_probes)
        if self.recorded is not None:
            return probes
        # the model does not write a_1, nor any user turn of a script
        return probes + (settings.rounds if self.script else 2 * settings.rounds - 1)

    @property
    def stability_questions(self) -> tuple[str, ...]:
        """The questions about the agent's prompt (p_B)."""
        return tuple(probe.question for probe in self.round_probes if probe.kind == "stability")


def draw_conversation(
    suite: Suite, settings: Settings, number: int, cast: Cast = Cast()
) -> Pairing:
    """Draws conversation `number` of a run.

    Its user is a model, unless the cast has recorded dialogs or scripts.
    """
    if cast.dialogs is not None:
        pairing = _draw_replay(suite, settings, number, cast.dialogs.dialogs[number])
    elif cast.user_turns is not None:
        pairing = _draw_scripted(suite, settings, number, cast.user_turns.scripts)
    else:
        pairing = draw_pairing(suite, settings, number)
    if settings.recall:
        pairing = replace(pairing, recall=_recall_probes(pairing.agent))
    return _with_canary(pairing, settings.seed) if settings.canary else pairing


def draw_pairing(suite: Suite, settings: Settings, number: int) -> Pairing:
    """Draws conversation `number` between an agent and a user model: prompts, starter and probes.

    Starters and probes are drawn as if the user were another case of the suite, so that a run with
    personas, or with a user without a prompt, has the same as a run with pairs of the suite.
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


def _draw_pair(
    suite: Suite, settings: Settings, number: int, rng: random.Random
) -> tuple[Case, Case | None]:
    """Draws the cases of the agent and the user; the second is None if the suite has only one."""
    cases = suite.cases
    # drawn also if they are not used, as the draws that follow depend on it
    agent = rng.choice(cases)
    if len(cases) == 1:
        return agent, None
    user = rng.choice([case for case in cases if case.id != agent.id])
    if settings.pairs == "in-turn":
        agent = cases[number % len(cases)]
        user = rng.choice([case for case in cases if case.id != agent.id])
    elif settings.pairs == "balanced":
        lap, position = divmod(number, len(cases))
        distance = 1 + lap % (len(cases) - 1)
        agent, user = cases[position], cases[(position + distance) % len(cases)]
    elif settings.pairs == "all":  # in the order of permutations
        first, second = divmod(number % (len(cases) * (len(cases) - 1)), len(cases) - 1)
        if second >= first:
            second += 1
        agent, user = cases[first], cases[second]
    return agent, user


def _draw_persona(suite: Suite, settings: Settings, number: int) -> Persona:
    """Draws a persona; if pairs are not drawn, the order gives every case every persona."""
    if settings.pairs in ("random", "in-turn"):
        return random.Random(seed_of("persona", settings.seed, number)).choice(suite.personas)
    lap, position = divmod(number, len(suite.cases))
    return suite.personas[(position + lap) % len(suite.personas)]


def _draw_probes(
    kind: ProbeKind, case: Case, settings: Settings, number: int, rng: random.Random
) -> tuple[ProbeQuestion, ...]:
    """Draws the probes of every rule of a case; rules with the same probes share them.

    The draw for a rule with an id does not depend on the other rules.
    """
    probes: list[ProbeQuestion] = []
    for rules in case.rules_asked_together:
        rule = rules[0]
        if not rule.probes:
            raise UsageError(
                f"The case {case.id!r} has a rule without probes, which only `holdfast logs` can"
                " score; give it a probe."
            )
        rng_of_rule = rng
        if rule.id is not None:
            seed = seed_of("rule", settings.seed, number, kind, case.id, rule.id)
            rng_of_rule = random.Random(seed)
        order = rng_of_rule.sample(rule.probes, len(rule.probes))
        for index in range(settings.probes_per_round):
            probes.append(ProbeQuestion(kind, rules, index, order[index % len(order)]))
    return tuple(probes)


def _draw_replay(
    suite: Suite, settings: Settings, number: int, recorded: RecordedDialog
) -> Pairing:
    """Draws the case that a recorded dialog is replayed under.

    It is the case whose system prompt the dialog has, if there is one. The user's prompt is
    unknown, so there are no probes for adoption.
    """
    rng = random.Random(seed_of("pairing", settings.seed, number))
    agent = suite.case_with_prompt(recorded.system)
    if agent is None:
        agent = rng.choice(suite.cases)
        if settings.pairs != "random":
            agent = suite.cases[number % len(suite.cases)]
    probes = _draw_probes("stability", agent, settings, number, rng)
    return Pairing(number, agent, None, recorded.rounds[0].user, probes, recorded)


def _draw_scripted(
    suite: Suite, settings: Settings, number: int, scripts: Sequence[Script]
) -> Pairing:
    """Draws a conversation whose user messages come from a script.

    Every script is used once before any is used again, each time in a new order.
    """
    pairing = draw_pairing(suite, replace(settings, user_prompt="empty"), number)
    lap, position = divmod(number, len(scripts))
    order = list(scripts)
    random.Random(seed_of("user turns", settings.seed, lap)).shuffle(order)
    script = order[position]
    return replace(pairing, starter=script.messages[0].text, script=script)


def _recall_probes(agent: Case) -> tuple[ProbeQuestion, ...]:
    """The question that asks for the rules; the reply is scored for each rule of the agent.

    Raises:
        UsageError: the suite does not say how to recognise any rule of the agent in the reply.
    """
    rules = tuple(
        Rule(rule.id, (RECALL_QUESTION,), rule.recalled, kind=rule.kind, polarity=rule.polarity)
        for rule in agent.rules
        if rule.recalled is not None
    )
    if not rules:
        raise UsageError(
            f"No rule of the case {agent.id!r} has the field 'recalled', a measure that recognises"
            ' the rule in the reply to "what are your rules?"; add it, or leave out'
            f" {option('recall')}.",
            option="recall",
            value=agent.id,
        )
    return (ProbeQuestion("recall", rules, 0, RECALL_QUESTION),)


def _with_canary(pairing: Pairing, seed: int) -> Pairing:
    """Adds a fact to the agent's system prompt, and the probe that asks for it."""
    code = str(random.Random(seed_of("canary", seed, pairing.number)).randrange(1000, 10000))
    rule = Rule(None, (_CANARY_QUESTION,), {"name": "contains", "words": [code]})
    probe = ProbeQuestion("canary", (rule,), 0, _CANARY_QUESTION)
    return replace(
        pairing, canary=_CANARY.format(code), round_probes=(*pairing.round_probes, probe)
    )
