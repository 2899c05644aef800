"""Self-chat of two models under two system prompts, probed at every round (Li et al. 2024, section 3.1).

The agent sees [s_B, a1, b1, ..., ai]. The user model sees the same dialog with the roles swapped under s_A; chats begin with a user
message, so its first one recaps a1 and b1. Round i's probe forks the agent's dialog in place of a_i and never enters it.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from holdfast.chat import Message, Reply, Request, Session
from holdfast.drift.cases import Case
from holdfast.drift.settings import Settings
from holdfast.seeds import seed_of

if TYPE_CHECKING:
    from holdfast.drift.suites import Suite
    from holdfast.methods import Method


@dataclass(frozen=True)
class Pairing:
    """One conversation before it begins: who talks, and what is asked.

    Args:
        number: counted from 0; draws depend on it and on the seed alone, so longer runs begin like shorter ones.
        agent: the case of the agent, whose prompt is s_B.
        user: the case of the user model, whose prompt is s_A; None where it has none.
        starter: a_1.
        probes: p_B, asked at every round.
        adoption_probes: p_A; empty where the user model has no prompt.
    """

    number: int
    agent: Case
    user: Case | None
    starter: str
    probes: tuple[str, ...]
    adoption_probes: tuple[str, ...]


@dataclass
class _Talk:
    """One conversation on its way."""

    pairing: Pairing
    turns: list[dict[str, Any]] = field(default_factory=list)
    probes: list[dict[str, Any]] = field(default_factory=list)
    sequences: list[tuple[str, tuple[int, ...]]] = field(default_factory=list)
    forwarded: int = 0

    def said(self, speaker: str) -> list[str]:
        return [turn["text"] for turn in self.turns if turn["speaker"] == speaker]

    def count(self, view: str, reply: Reply) -> None:
        """Remembers what the model had to read for `reply`, and what it did read."""
        self.forwarded += reply.forwarded
        if reply.prompt_ids is not None and reply.token_ids is not None:
            written = reply.token_ids if reply.stop_reason == "stop" else reply.token_ids[:-1]
            self.sequences.append((view, reply.prompt_ids + written))


def draw_pairing(suite: Suite, settings: Settings, number: int) -> Pairing:
    """The conversation `number` of a run: a random ordered pair of different cases, a starter, and the probes."""
    rng = random.Random(seed_of("pairing", settings.seed, number))
    alone = settings.user_prompt == "empty"
    agent = rng.choice(suite.cases)
    user = rng.choice([case for case in suite.cases if case.id != agent.id]) if len(suite.cases) > 1 else None
    starter = rng.choice(suite.starters)
    probes = tuple(_ask(case, settings.probes_per_round, rng) if case else () for case in (agent, user))
    if alone:  # drawn all the same, so that the control has the agents, starters and probes of the main run
        return Pairing(number, agent, None, starter, probes[0], ())
    return Pairing(number, agent, user, starter, probes[0], probes[1] if settings.adoption else ())


def _ask(case: Case, count: int, rng: random.Random) -> tuple[str, ...]:
    order = rng.sample(case.probes, len(case.probes))
    return tuple(order[index % len(order)] for index in range(count))


def converse(
    session: Session,
    pairings: Sequence[Pairing],
    methods: Sequence[Method],
    settings: Settings,
    on_round: Callable[[int, int], None] = lambda conversations, tokens: None,
) -> list[dict[str, Any]]:
    """Runs conversations in lockstep and returns one record each, without its method's name.

    Args:
        session: a fresh session of the model, which plays both sides.
        pairings: the conversations.
        methods: applied to the agent alone, in its turns and its probes.
        settings: the protocol.
        on_round: told after every round how many conversations took part and how many tokens were forwarded.
    """
    started = time.monotonic()
    talks = [_Talk(pairing) for pairing in pairings]
    for number in range(1, settings.rounds + 1):
        before = sum(talk.forwarded for talk in talks)
        _user_turns(session, talks, settings, number)
        _agent_turns(session, talks, methods, settings, number)
        on_round(len(talks), sum(talk.forwarded for talk in talks) - before)
    seconds = (time.monotonic() - started) / len(talks)
    return [_record(talk, seconds) for talk in talks]


def _user_turns(session: Session, talks: list[_Talk], settings: Settings, number: int) -> None:
    if number == 1:
        for talk in talks:
            talk.turns.append(_turn(number, "user", Reply(talk.pairing.starter, None, "stop")))
        return
    requests = [
        _request(talk, _user_view(talk), (), settings, (number, "user"), thread="user", keep=True) for talk in talks
    ]
    for talk, reply in zip(talks, session.generate_batch(requests), strict=True):
        talk.count("user", reply)
        talk.turns.append(_turn(number, "user", reply))


def _agent_turns(session: Session, talks: list[_Talk], methods, settings: Settings, number: int) -> None:
    """The agent's turn and, as forks, its probes.

    Probes in place of the user's turn go into the same batch, but for round 1, where the turn computes the system prompt for them.
    """
    asked: list[tuple[_Talk, str, int, str]] = []
    for talk in talks:
        asked += [(talk, "stability", index, question) for index, question in enumerate(talk.pairing.probes)]
        asked += [(talk, "adoption", index, question) for index, question in enumerate(talk.pairing.adoption_probes)]
    in_place = settings.probe_at == "in-place"

    def probes(in_place: bool) -> list[Request]:
        return [
            _request(talk, [*_agent_view(talk, number if in_place else None), {"role": "user", "content": question}], methods,
                     settings, (number, kind, index), thread="agent", trace=settings.trace)
            for talk, kind, index, question in asked
        ]

    turns = [
        _request(talk, _agent_view(talk), methods, settings, (number, "agent"), thread="agent", keep=True, trace=settings.trace)
        for talk in talks
    ]
    together = in_place and number > 1
    replies = session.generate_batch(turns + (probes(in_place) if together else []))
    for talk, reply in zip(talks, replies, strict=False):
        talk.count("agent", reply)
        talk.turns.append(_turn(number, "agent", reply))
    answers = replies[len(talks) :] if together else session.generate_batch(probes(in_place))
    for (talk, kind, index, question), reply in zip(asked, answers, strict=True):
        talk.count("agent", reply)
        talk.probes.append(_probed(talk.pairing, number, kind, index, question, reply))


def _request(talk: _Talk, messages: list[Message], methods, settings: Settings, draw: tuple, *, thread: str, keep=False, trace=False) -> Request:
    number = talk.pairing.number
    return Request(
        messages=tuple(messages),
        methods=tuple(methods),
        sampling=settings.sampling,
        seed=seed_of("reply", settings.seed, number, *draw),
        conversation_seed=seed_of("methods", settings.seed, number),
        thread=(thread, number),
        keep=keep,
        trace=trace,
        system_as=settings.system_as,
    )


def _system(case: Case | None) -> list[Message]:
    return [{"role": "system", "content": case.system_prompt}] if case and case.system_prompt else []


def _agent_view(talk: _Talk, before: int | None = None) -> list[Message]:
    """[s_B, a1, b1, ...] with all turns, or with those of the rounds before `before`."""
    turns = [turn for turn in talk.turns if before is None or turn["round"] < before]
    roles = {"user": "user", "agent": "assistant"}
    return _system(talk.pairing.agent) + [{"role": roles[turn["speaker"]], "content": turn["text"]} for turn in turns]


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
    return {"round": number, "speaker": speaker, "text": reply.text, "stop_reason": reply.stop_reason, "mass": _mass(reply)}


def _probed(pairing: Pairing, number: int, kind: str, index: int, question: str, reply: Reply) -> dict[str, Any]:
    case = pairing.agent if kind == "stability" else pairing.user
    score = case.measure.score(reply.text)
    return {
        "round": number, "kind": kind, "probe": index, "question": question, "reply": reply.text,
        "score": score.value, "reason": score.reason, "mass": _mass(reply),
    }


def _mass(reply: Reply) -> float | None:
    """Mean mass over layers, heads and the tokens of the reply."""
    return None if reply.trace is None else round(float(reply.trace.mass.mean()), 6)


def _record(talk: _Talk, seconds: float) -> dict[str, Any]:
    pairing = talk.pairing
    return {
        "conversation": pairing.number,
        "agent": _person(pairing.agent),
        "user": _person(pairing.user),
        "turns": talk.turns,
        "probes": talk.probes,
        "tokens": {"forwarded": talk.forwarded, "least": least_tokens(talk.sequences)},
        "seconds": round(seconds, 3),
    }


def _person(case: Case | None) -> dict[str, Any]:
    if case is None:
        return {"id": None, "category": None, "system_prompt": ""}
    return {"id": case.id, "category": case.category, "system_prompt": case.system_prompt}


def least_tokens(sequences: Sequence[tuple[str, tuple[int, ...]]]) -> int:
    """Tokens to forward when every token of every view is forwarded once: the nodes of the prefix trees of the views."""
    total, previous = 0, ("", ())
    for view, ids in sorted(sequences):
        shared = 0
        if view == previous[0]:
            shared = next((i for i, (a, b) in enumerate(zip(ids, previous[1], strict=False)) if a != b), min(len(ids), len(previous[1])))
        total += len(ids) - shared
        previous = view, ids
    return total
