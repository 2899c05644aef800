"""A conversation in progress: what each side sees of it, and what is recorded."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from holdfast.chat.messages import Message, Tool
from holdfast.chat.templates import common_length
from holdfast.common.sampling import NO_CONTENT
from holdfast.drift.attention_traces import TurnTrace
from holdfast.drift.cases import Case, Persona, Rule
from holdfast.drift.pairing import Pairing, Probe
from holdfast.drift.settings import WHOLE, Shown
from holdfast.errors import cut
from holdfast.measures import Measure
from holdfast.measures.phrases import phrases_in_prompt, phrases_of_measure
from holdfast.measures.repeated_turns import repetitions
from holdfast.models.requests import Reply
from holdfast.records import Turn

Speaker = Literal["user", "agent"]
# the views of a dialog, each a thread of the engine
AGENT_VIEW: Speaker = "agent"
USER_VIEW: Speaker = "user"
_ROLES = {"user": "user", "agent": "assistant"}
_LONGEST_REASON = 500  # characters
WORTH_NOTING = (*NO_CONTENT, "length")  # stop reasons that a probe is recorded with
CUT = {"why": "cut", "reason": "cut at the token limit, and the rule needs the end"}
_NO_TEXT = {
    "cut": "cut at the token limit before the reply began",
    "tool_calls": "a tool call without text",
    "empty": "the reply is empty",
}


@dataclass
class Dialog:
    """One conversation in progress."""

    pairing: Pairing
    turns: list[Turn] = field(default_factory=list)  # of both sides
    probes: list[dict[str, Any]] = field(default_factory=list)  # in the order of their answers
    unscored: list[dict[str, Any]] = field(default_factory=list)  # probes with replies of no use
    unanswered: list[dict[str, Any]] = field(default_factory=list)
    ended: dict[str, Any] | None = None  # the round in which it ended early, and why
    traces: dict[int, TurnTrace] = field(default_factory=dict)  # of the agent's turns, by round
    forwarded: int = 0  # tokens that went through the model
    usage: list[tuple[int, int] | None] = field(default_factory=list)  # read and written, per reply
    # for each reply, its view and the tokens that the model had to process for it
    sequences: list[tuple[str, tuple[int, ...]]] = field(default_factory=list)
    shown: dict[str, Shown] = field(default_factory=dict)  # by view, in its last turn
    # by view, first round, and the round after the last
    summaries: dict[tuple[str, int, int], str] = field(default_factory=dict)

    @property
    def tools(self) -> tuple[Tool, ...]:
        """The tools that a replayed dialog declares."""
        return () if self.pairing.dialog is None else self.pairing.dialog.tools

    def count(self, view: str, reply: Reply) -> None:
        """Records the tokens that `reply` needed, and those that the model did process."""
        self.forwarded += reply.forwarded
        self.usage.append(reply.usage)
        if reply.prompt_ids is None or reply.token_ids is None or reply.stop_reason == "context":
            return
        written = reply.token_ids if reply.stop_reason == "stop" else reply.token_ids[:-1]
        self.sequences.append((view, reply.prompt_ids + written))


def system_of(pairing: Pairing) -> str:
    """The agent's system prompt as the model reads it, with its canary."""
    return "\n\n".join(filter(None, (pairing.agent.system_prompt, pairing.canary)))


def _system(text: str) -> list[Message]:
    return [{"role": "system", "content": text}] if text else []


def agent_view(dialog: Dialog, before: int | None = None, shown: Shown = WHOLE) -> list[Message]:
    """[s_B, a1, b1, ...] with all turns, or only those of the rounds before `before`."""
    messages = _system(system_of(dialog.pairing))
    for turn in dialog.turns:
        if shown.first <= turn.round and (before is None or turn.round < before):
            messages += messages_of(turn)
    return messages


def messages_of(turn: Turn) -> list[Message]:
    """The messages of a turn: one, unless the agent called tools."""
    text: Message = {"role": _ROLES[turn.speaker], "content": turn.text}
    return list(turn.messages) or [text]


def user_view(dialog: Dialog, shown: Shown = WHOLE) -> list[Message]:
    """The dialog with roles swapped under s_A; the first message recaps the first round shown."""
    opening, first, *rest = (turn for turn in dialog.turns if shown.first <= turn.round)
    recap = f"You asked: {opening.text}\nI answered: {first.text}"
    roles = {"user": "assistant", "agent": "user"}
    return [
        *_system(dialog.pairing.user.system_prompt if dialog.pairing.user else ""),
        {"role": "user", "content": recap},
        *({"role": roles[turn.speaker], "content": turn.text} for turn in rest),
    ]


def turn_of(
    number: int,
    speaker: Speaker,
    reply: Reply,
    shown: Shown = WHOLE,
    messages: Sequence[Message] = (),
) -> Turn:
    """A turn of round `number`; `messages` are those of a replayed turn with tool calls."""
    return Turn(
        round=number,
        speaker=speaker,
        text=reply.text,
        stop_reason=reply.stop_reason,
        mass=_mass(reply),
        reasoning=reply.reasoning or None,
        prompt_tokens=reply.billed[0] if reply.billed else None,
        left_out=shown.first - 1 or None,
        messages=tuple(messages),
    )


def _reasoning(reply: Reply) -> dict[str, str]:
    """The reasoning before a reply, which is neither scored nor part of the dialog."""
    return {"reasoning": reply.reasoning} if reply.reasoning else {}


def _prompt_tokens(reply: Reply) -> dict[str, int]:
    """How many tokens of the chat an endpoint reports to have read."""
    return {"prompt_tokens": reply.billed[0]} if reply.billed else {}


def places_of(number: int, probe: Probe) -> list[tuple[Rule, dict[str, Any]]]:
    """The fields that identify a probe in a record, by rule; all but the first share its reply."""
    places: list[tuple[Rule, dict[str, Any]]] = []
    for rule in probe.rules:
        name = {} if rule.id is None else {"rule": rule.id}
        shared = {} if rule is probe.rule else {"reply_of": probe.rule.id}
        fields = {"round": number, "kind": probe.kind, **name, "probe": probe.index, **shared}
        places.append((rule, fields))
    return places


def probed(number: int, probe: Probe, reply: Reply, shown: Shown = WHOLE) -> list[dict[str, Any]]:
    """The record of a probe: an entry for each of its rules, with its score or why it has none."""
    stop = {"stop_reason": reply.stop_reason} if reply.stop_reason in WORTH_NOTING else {}
    return [
        {
            **name,
            "question": probe.question,
            "reply": reply.text,
            **scored(rule.measure, reply),
            "mass": _mass(reply),
            **_reasoning(reply),
            **_prompt_tokens(reply),
            **shown.fields,
            **stop,
        }
        for rule, name in places_of(number, probe)
    ]


def add_probes(record: dict[str, Any], entries: Sequence[dict[str, Any]]) -> None:
    """Adds probes to a record, those without a score to its `unscored`."""
    for entry in entries:
        record.setdefault("probes" if "score" in entry else "unscored", []).append(entry)


def scored(measure: Measure, reply: Reply) -> dict[str, Any]:
    """The score and its reason, as recorded; the score is None if a model judges it later.

    A reply that is no evidence has `why` in place of a score: it has no text, or it was cut off at
    the token limit and the rule needs its end.
    """
    if reply.stop_reason == "refusal":
        return {"why": "refusal", "reason": "a refusal of the model or its server, not scored"}
    is_cut = reply.stop_reason == "length"
    if not reply.text.strip():
        why = "cut" if is_cut else "tool_calls" if reply.stop_reason == "tool_calls" else "empty"
        return {"why": why, "reason": _NO_TEXT[why]}
    if measure.judged:
        return {"score": None, "reason": "", "judge": measure.arguments["model"]}
    score = measure.score_cut(reply.text) if is_cut else measure.score(reply.text)
    if score is None:
        return dict(CUT)
    reason = score.reason + (" (the reply was cut off)" if is_cut else "")
    return {"score": score.value, "reason": cut(reason, _LONGEST_REASON)}


def _mass(reply: Reply) -> float | None:
    """Mean mass over layers, heads and the tokens of the reply."""
    if reply.trace is not None:
        return round(float(reply.trace.mass.mean()), 6)
    return round(sum(reply.masses) / len(reply.masses), 6) if reply.masses else None


def record_of(dialog: Dialog, seconds: float) -> dict[str, Any]:
    """The record of a conversation, without its method's name."""
    pairing = dialog.pairing
    rules = [(probe.kind, rule.id) for probe in pairing.every_probe for rule in probe.rules]
    places = {names: position for position, names in enumerate(dict.fromkeys(rules))}

    def order(probe: dict[str, Any]) -> tuple[int, int, int]:
        return probe["round"], places[probe["kind"], probe.get("rule")], probe["probe"]

    speakers = {"agent": pairing.agent, "user": pairing.user}
    record = {
        "conversation": pairing.number,
        "agent": person_of(pairing.agent),
        "user": person_of(pairing.user),
        "turns": [turn.to_json() for turn in with_repetition(dialog.turns, speakers)],
        "probes": sorted(dialog.probes, key=order),
        "tokens": _tokens(dialog),
        "seconds": round(seconds, 3),
    }
    if dialog.ended:
        record["ended"] = dialog.ended
    if dialog.unscored:
        record["unscored"] = sorted(dialog.unscored, key=order)
    if dialog.unanswered:
        record["unanswered"] = dialog.unanswered
    if dialog.summaries:
        record["summaries"] = [
            {"view": view, "rounds": [first, behind - 1], "text": text}
            for (view, first, behind), text in dialog.summaries.items()
        ]
    if recorded := pairing.dialog:
        same = recorded.system.strip() == pairing.agent.system_prompt.strip()
        prompt = "own" if same else "in place of another" if recorded.system else "added"
        record["replayed"] = {"line": recorded.line, "system_prompt": prompt}
    if pairing.canary:
        record["canary"] = pairing.canary
    if pairing.script:
        record["scripted"] = {"line": pairing.script.line}
    return record


def with_repetition(
    turns: Sequence[Turn], speakers: Mapping[str, Case | Persona | None]
) -> list[Turn]:
    """The turns of a dialog, each with how much of it repeats (`measures.repetition`); and, if that
    is much, how much of it repeats besides what its speaker is asked to say.
    """
    spoken = [(turn.speaker, turn.text) for turn in turns]
    repeats = repetitions(spoken)
    measured = [
        turn.model_copy(update={"repeats": repeated})
        for turn, repeated in zip(turns, repeats, strict=True)
    ]
    if not any(repeated.broken for repeated in repeats):
        return measured
    phrases = [_phrases_for(speakers.get(speaker), text) for speaker, text in spoken]
    unprompted = repetitions(spoken, phrases)
    return [
        turn.model_copy(update={"repeats_unprompted": besides}) if repeated.broken else turn
        for turn, repeated, besides in zip(measured, repeats, unprompted, strict=True)
    ]


def _phrases_for(speaker: Case | Persona | None, text: str) -> list[str]:
    """The phrases that a speaker is asked to say, as far as they may occur in a text."""
    if speaker is None:
        return []
    phrases = phrases_in_prompt(speaker.system_prompt)
    for rule in speaker.all_rules if isinstance(speaker, Case) else ():
        phrases += [*phrases_of_measure(rule.measure, text), *rule.follows]
    return phrases


def _tokens(dialog: Dialog) -> dict[str, int]:
    """Tokens forwarded, the least possible number, and those read and written, if known."""
    counts = {"forwarded": dialog.forwarded, "least": least_tokens(dialog.sequences)}
    known = [usage for usage in dialog.usage if usage is not None]
    if known and len(known) == len(dialog.usage):
        counts |= {"read": sum(read for read, _ in known), "written": sum(w for _, w in known)}
    return counts


def person_of(person: Case | Persona | None) -> dict[str, Any]:
    if person is None:
        return {"id": None, "category": None, "system_prompt": ""}
    category = person.category if isinstance(person, Case) else None
    return {"id": person.id, "category": category, "system_prompt": person.system_prompt}


def least_tokens(sequences: Sequence[tuple[str, tuple[int, ...]]]) -> int:
    """Tokens to forward if each is forwarded once: the nodes of the prefix trees of the views."""
    total, last_view = 0, ""
    last_ids: tuple[int, ...] = ()
    for view, ids in sorted(sequences):
        total += len(ids) - (common_length(ids, last_ids) if view == last_view else 0)
        last_view, last_ids = view, ids
    return total
