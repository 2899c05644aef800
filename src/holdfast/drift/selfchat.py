"""Self-chat of two models under two system prompts, probed at every round (Li et al. 2024, section
3.1).

The agent sees [s_B, a1, b1, ..., ai]. The user model sees the same dialog with the roles swapped
under s_A; chats begin with a user message, so its first one recaps a1 and b1. Round i's probe forks
the agent's dialog in place of a_i and never enters it."""

from __future__ import annotations

import itertools
import random
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from holdfast.chat.messages import Message
from holdfast.drift.cases import Case, Persona, Rule
from holdfast.drift.failures import Failures
from holdfast.drift.settings import Settings
from holdfast.drift.traces import TurnTrace
from holdfast.errors import PromptError, RequestFailed, UsageError
from holdfast.models.protocol import Job, Session
from holdfast.models.requests import NO_CONTENT, Reply, Request
from holdfast.seeds import seed_of

if TYPE_CHECKING:
    from holdfast.drift.suites import Suite
    from holdfast.measures import Score
    from holdfast.methods import Method

_LONGEST_REASON = 500  # characters


VIEWS = ("agent", "user")  # of one dialog; each is a thread of the session


@dataclass(frozen=True)
class Probe:
    """One question, asked at every round.

    Args:
        kind: "stability" (of the agent's own prompt) or "adoption" (of the user's).
        rule: what it asks about; its measure scores the reply.
        index: from 0, among the probes of this rule.
        question: the text.
    """

    kind: str
    rule: Rule
    index: int
    question: str

    @property
    def names(self) -> tuple[Any, ...]:
        """What tells it from the other probes of its round."""
        rule = () if self.rule.id is None else (self.rule.id,)
        return (self.kind, *rule, self.index)


@dataclass(frozen=True)
class Pairing:
    """One conversation before it begins: who talks, and what is asked.

    Args:
        number: counted from 0; draws depend on it and on the seed alone, so longer runs begin like
            shorter ones.
        agent: the case of the agent, whose prompt is s_B.
        user: whose prompt the user model has (s_A): another case or a persona; None: none.
        starter: a_1.
        asked: the probes of every round: of every rule of the agent, and of every rule of the user.
    """

    number: int
    agent: Case
    user: Case | Persona | None
    starter: str
    asked: tuple[Probe, ...]

    @property
    def probes(self) -> tuple[str, ...]:
        """p_B, asked at every round."""
        return tuple(probe.question for probe in self.asked if probe.kind == "stability")

    @property
    def adoption_probes(self) -> tuple[str, ...]:
        """p_A; empty where the user model has no prompt that is measured."""
        return tuple(probe.question for probe in self.asked if probe.kind == "adoption")


@dataclass
class _Talk:
    """One conversation on its way."""

    pairing: Pairing
    turns: list[dict[str, Any]] = field(default_factory=list)
    probes: list[dict[str, Any]] = field(default_factory=list)
    sequences: list[tuple[str, tuple[int, ...]]] = field(default_factory=list)
    forwarded: int = 0
    ended: dict[str, Any] | None = None  # the round in which the dialog ended early, and why
    unanswered: list[dict[str, Any]] = field(default_factory=list)  # probes
    traces: dict[int, TurnTrace] = field(default_factory=dict)  # of the agent's turns, by round

    def count(self, view: str, reply: Reply) -> None:
        """Remembers what the model had to read for `reply`, and what it did read."""
        self.forwarded += reply.forwarded
        if (
            reply.prompt_ids is not None
            and reply.token_ids is not None
            and reply.stop_reason != "context"
        ):
            written = reply.token_ids if reply.stop_reason == "stop" else reply.token_ids[:-1]
            self.sequences.append((view, reply.prompt_ids + written))


def user_prompt_of(suite: Suite, settings: Settings) -> str:
    """Where the user model has its prompt from: "auto" is settled by what the suite holds.

    Raises:
        UsageError: the suite does not hold what the settings ask for.
    """
    chosen = settings.user_prompt
    if chosen == "auto":
        return "persona" if suite.personas else "suite" if len(suite.cases) > 1 else "empty"
    if chosen == "persona" and not suite.personas:
        raise UsageError(
            f"The suite {suite.name!r} has no personas for user_prompt='persona'; list some in "
            "it, or give --persona."
        )
    if chosen == "suite" and len(suite.cases) < 2:
        raise UsageError(
            f"The suite {suite.name!r} has {len(suite.cases)} system prompt, and"
            " user_prompt='suite' needs two; give the user model a persona, or"
            " user_prompt='empty'."
        )
    return chosen


def draw_pairing(suite: Suite, settings: Settings, number: int) -> Pairing:
    """The conversation `number` of a run: agent, user, starter, and probes.

    Starters and probes are drawn as if the user were another case, so that a run with personas or
    an unprompted user has those of the run with pairs of the suite.
    """
    source = user_prompt_of(suite, settings)
    rng = random.Random(seed_of("pairing", settings.seed, number))
    agent, user = _draw_pair(suite, settings, number, rng)
    if source == "persona" and settings.pairs != "random":
        agent = suite.cases[number % len(suite.cases)]
    starter = rng.choice(suite.starters)
    asked = _ask("stability", agent, settings, number, rng)
    other = _ask("adoption", user, settings, number, rng) if user else ()
    if source == "empty":
        return Pairing(number, agent, None, starter, asked)
    if source == "persona":
        return Pairing(number, agent, _draw_persona(suite, settings, number), starter, asked)
    return Pairing(number, agent, user, starter, asked + other if settings.adoption else asked)


def _draw_pair(
    suite: Suite, settings: Settings, number: int, rng: random.Random
) -> tuple[Case, Case | None]:
    """An ordered pair of different cases; no second where the suite has but one."""
    cases = suite.cases
    agent = rng.choice(cases)
    user = rng.choice([case for case in cases if case.id != agent.id]) if len(cases) > 1 else None
    if settings.pairs == "all" and user:
        pairs = list(itertools.permutations(cases, 2))
        return pairs[number % len(pairs)]
    if settings.pairs == "balanced" and user:
        lap, place = divmod(number, len(cases))
        return cases[place], cases[(place + 1 + lap % (len(cases) - 1)) % len(cases)]
    return agent, user


def _draw_persona(suite: Suite, settings: Settings, number: int) -> Persona:
    """Drawn; or, where pairs are not, in an order that meets every case with every persona."""
    if settings.pairs == "random":
        return random.Random(seed_of("persona", settings.seed, number)).choice(suite.personas)
    lap, place = divmod(number, len(suite.cases))
    return suite.personas[(place + lap) % len(suite.personas)]


def _ask(
    kind: str, case: Case, settings: Settings, number: int, rng: random.Random
) -> tuple[Probe, ...]:
    """The probes of every rule; one with a name draws the same whatever stands beside it."""
    asked: list[Probe] = []
    for rule in case.all_rules:
        names = ("rule", settings.seed, number, kind, case.id, rule.id)
        draws = rng if rule.id is None else random.Random(seed_of(*names))
        order = draws.sample(rule.probes, len(rule.probes))
        for index in range(settings.probes_per_round):
            asked.append(Probe(kind, rule, index, order[index % len(order)]))
    return tuple(asked)


def converse(
    session: Session,
    pairings: Sequence[Pairing],
    methods: Sequence[Method],
    settings: Settings,
    on_record: Callable[[dict[str, Any], dict[int, TurnTrace]], None],
    on_round: Callable[[int, int], None] = lambda conversations, tokens: None,
) -> None:
    """Runs conversations side by side; each goes on as soon as it can.

    Args:
        session: a fresh session of the model, which plays both sides.
        pairings: the conversations.
        methods: applied to the agent alone, in its turns and its probes.
        settings: the protocol.
        on_record: takes the record of each conversation that is over, without its method's name,
            and the masses of its turns.
        on_round: told when conversations have ended a round: how many, and how many tokens they
            forwarded meanwhile.
    """
    told = time.monotonic()

    def over(talk: _Talk) -> None:
        nonlocal told
        now = time.monotonic()
        on_record(_record(talk, now - told), talk.traces)
        told = now
        for view in VIEWS:
            session.forget((view, talk.pairing.number))

    failures = Failures(over)
    scripts = [
        _Script(_Talk(pairing), tuple(methods), settings, failures, on_round)
        for pairing in pairings
    ]
    session.run([script.begin() for script in scripts])
    failures.settle(session)


@dataclass
class _Script:
    """What follows what in one conversation: turns one after the other, and probes beside them."""

    talk: _Talk
    methods: tuple[Method, ...]
    settings: Settings
    failures: Failures
    on_round: Callable[[int, int], None]
    open_jobs: int = 0
    told: int = 0

    def begin(self) -> Job:
        """Round 1 starts with a_1, which is given."""
        self.talk.turns.append(_turn(1, "user", Reply(self.talk.pairing.starter, None, "stop")))
        return self._agent_turn(1)

    def _agent_turn(self, number: int) -> Job:
        """b_i; then the next round, and the probes that need no more than this."""

        def then(reply: Reply) -> list[Job]:
            following = []
            if self._say(number, "agent", reply) and number < self.settings.rounds:
                following.append(self._user_turn(number + 1))
            if self.settings.probe_at == "after-round":
                following += self._probes(number, number + 1)
            else:  # the probes of round 1 wait for b_1, which computes the system prompt for them
                following += (self._probes(1, 1) if number == 1 else []) + (
                    self._probes(number + 1, number + 1) if following else []
                )
            return following

        return self._job(
            _agent_view(self.talk), (number, "agent"), then, self._ends(number), keep=True
        )

    def _user_turn(self, number: int) -> Job:
        """a_i, and then b_i."""

        def then(reply: Reply) -> list[Job]:
            return [self._agent_turn(number)] if self._say(number, "user", reply) else []

        return self._job(
            _user_view(self.talk), (number, "user"), then, self._ends(number), keep=True
        )

    def _ends(self, number: int) -> Callable[[RequestFailed], None]:
        """What a turn that is not answered leads to: the end of the dialog."""

        def failed(error: RequestFailed) -> None:
            self.talk.ended = {"round": number, "why": error.why, "reason": str(error)}

        return failed

    def _say(self, number: int, speaker: str, reply: Reply) -> bool:
        """Appends a turn; False where the dialog has come to the end of the model's context."""
        if reply.stop_reason == "context":
            if number == 1:
                agent = self.talk.pairing.agent
                raise PromptError(
                    f"The system prompt of {agent.id!r} and one question already fill the model's"
                    " context; use a shorter prompt."
                )
            self.talk.ended = {"round": number, "why": "context"}
            return False
        self.talk.turns.append(_turn(number, speaker, reply))
        if speaker == "agent":
            if reply.trace is not None:
                self.talk.traces[number] = TurnTrace(reply.trace.mass, reply.trace.uniform)
            self.on_round(1, self.talk.forwarded - self.told)
            self.told = self.talk.forwarded
        return True

    def _probes(self, number: int, before: int) -> list[Job]:
        """The probes of a round, each behind all turns of the rounds before `before`."""
        view = _agent_view(self.talk, before)

        def job(probe: Probe) -> Job:
            def then(reply: Reply) -> list[Job]:
                if reply.stop_reason != "context":
                    self.talk.probes.append(_probed(number, probe, reply))
                return []

            def failed(error: RequestFailed) -> None:
                reason = {"why": error.why, "reason": str(error)}
                self.talk.unanswered.append({**_place(number, probe), **reason})

            asked = [*view, {"role": "user", "content": probe.question}]
            return self._job(asked, (number, *probe.names), then, failed, keep=False)

        return [job(probe) for probe in self.talk.pairing.asked]

    def _job(
        self,
        messages: list[Message],
        draw: tuple,
        then: Callable[[Reply], list[Job]],
        on_failure: Callable[[RequestFailed], None],
        *,
        keep: bool,
    ) -> Job:
        """A request of this conversation; the conversation is over with the last of them."""
        view = "user" if draw[1] == "user" else "agent"
        number, settings = self.talk.pairing.number, self.settings
        self.open_jobs += 1

        def close(following: list[Job]) -> list[Job]:
            self.open_jobs -= 1
            if not self.open_jobs:
                self._over()
            return following

        def answered(reply: Reply) -> list[Job]:
            self.failures.answered(request)
            self.talk.count(view, reply)
            return close(then(reply))

        def failed(error: RequestFailed) -> list[Job]:
            on_failure(error)
            self.failures.failed(number, error)
            return close([])

        request = Request(
            messages=tuple(messages),
            methods=self.methods if view == "agent" else (),
            sampling=settings.sampling,
            seed=seed_of("reply", settings.seed, number, *draw),
            conversation_seed=seed_of("methods", settings.seed, number),
            thread=(view, number),
            keep=keep,
            trace=settings.trace and view == "agent",
            system_as=settings.system_as,
        )
        name = f"Conversation {number}, round {draw[0]} ({draw[1]})"
        return Job(request, answered, failed, name)

    def _over(self) -> None:
        told = sum(turn["speaker"] == "agent" for turn in self.talk.turns)
        if told < self.settings.rounds:  # progress counts the rounds that are not held, too
            self.on_round(self.settings.rounds - told, self.talk.forwarded - self.told)
        self.failures.over(self.talk.pairing.number, self.talk)


def _system(person: Case | Persona | None) -> list[Message]:
    """The system message of the agent or the user model, where it has a prompt."""
    if person is None or not person.system_prompt:
        return []
    return [{"role": "system", "content": person.system_prompt}]


def _agent_view(talk: _Talk, before: int | None = None) -> list[Message]:
    """[s_B, a1, b1, ...] with all turns, or with those of the rounds before `before`."""
    turns = [turn for turn in talk.turns if before is None or turn["round"] < before]
    roles = {"user": "user", "agent": "assistant"}
    return _system(talk.pairing.agent) + [
        {"role": roles[turn["speaker"]], "content": turn["text"]} for turn in turns
    ]


def _user_view(talk: _Talk) -> list[Message]:
    """The dialog with roles swapped under s_A; the first message recaps a1 and b1."""
    first, *rest = talk.turns[1:]
    recap = f"You asked: {talk.turns[0]['text']}\nI answered: {first['text']}"
    roles = {"user": "assistant", "agent": "user"}
    return [
        *_system(talk.pairing.user),
        {"role": "user", "content": recap},
        *({"role": roles[turn["speaker"]], "content": turn["text"]} for turn in rest),
    ]


def _turn(number: int, speaker: str, reply: Reply) -> dict[str, Any]:
    return {
        "round": number,
        "speaker": speaker,
        "text": reply.text,
        "stop_reason": reply.stop_reason,
        "mass": _mass(reply),
    }


def _place(number: int, probe: Probe) -> dict[str, Any]:
    """What names a probe in a record."""
    rule = {} if probe.rule.id is None else {"rule": probe.rule.id}
    return {"round": number, "kind": probe.kind, **rule, "probe": probe.index}


def _probed(number: int, probe: Probe, reply: Reply) -> dict[str, Any]:
    refused = reply.stop_reason == "refusal"
    score = probe.rule.measure.score("" if refused else reply.text)
    told = {"stop_reason": reply.stop_reason} if reply.stop_reason in NO_CONTENT else {}
    return {
        **_place(number, probe),
        "question": probe.question,
        "reply": reply.text,
        "score": score.value,
        "reason": _reason(score, refused),
        "mass": _mass(reply),
        **told,
    }


def _reason(score: Score, refused: bool) -> str:
    reason = f"a refusal, scored as an empty reply: {score.reason}" if refused else score.reason
    return reason if len(reason) <= _LONGEST_REASON else reason[: _LONGEST_REASON - 1] + "…"


def _mass(reply: Reply) -> float | None:
    """Mean mass over layers, heads and the tokens of the reply."""
    return None if reply.trace is None else round(float(reply.trace.mass.mean()), 6)


def _record(talk: _Talk, seconds: float) -> dict[str, Any]:
    pairing = talk.pairing
    places = {probe.names: place for place, probe in enumerate(pairing.asked)}

    def order(probe: dict[str, Any]) -> tuple[int, int]:
        names = tuple(probe[name] for name in ("kind", "rule", "probe") if name in probe)
        return probe["round"], places[names]

    return {
        "conversation": pairing.number,
        "agent": _person(pairing.agent),
        "user": _person(pairing.user),
        "turns": talk.turns,
        "probes": sorted(talk.probes, key=order),
        "tokens": {"forwarded": talk.forwarded, "least": least_tokens(talk.sequences)},
        "seconds": round(seconds, 3),
        **({"ended": talk.ended} if talk.ended else {}),
        **({"unanswered": talk.unanswered} if talk.unanswered else {}),
    }


def _person(person: Case | Persona | None) -> dict[str, Any]:
    if person is None:
        return {"id": None, "category": None, "system_prompt": ""}
    category = person.category if isinstance(person, Case) else None
    return {"id": person.id, "category": category, "system_prompt": person.system_prompt}


def least_tokens(sequences: Sequence[tuple[str, tuple[int, ...]]]) -> int:
    """Tokens to forward when every token of every view is forwarded once: the nodes of the prefix
    trees of the views.
    """
    total, previous = 0, ("", ())
    for view, ids in sorted(sequences):
        shared = 0
        if view == previous[0]:
            shared = next(
                (i for i, (a, b) in enumerate(zip(ids, previous[1], strict=False)) if a != b),
                min(len(ids), len(previous[1])),
            )
        total += len(ids) - shared
        previous = view, ids
    return total
