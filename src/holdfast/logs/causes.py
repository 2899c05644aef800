"""Why a rule was broken: where its text was when it was, from the transcript alone (docs/logs.md).

Nothing here is guessed: what the transcript does not show is `unknown`.
"""

import json
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from functools import cached_property, lru_cache
from typing import Literal, NamedTuple

from holdfast.drift.cases import Case, Rule
from holdfast.drift.rule_texts import text_of
from holdfast.errors import cut
from holdfast.logs.breach_places import answered_messages, breaking_call
from holdfast.logs.context import AGENTS, AUTOMATIC_FILES, WITHOUT_PROMPTS, Context
from holdfast.logs.counter_orders import CounterOrders
from holdfast.logs.dialogs import LoggedDialog, LoggedTurn
from holdfast.logs.sightings import SearchedTranscript, Sighting
from holdfast.measures.agent_tools import script_of
from holdfast.measures.orders import Passage
from holdfast.measures.rule_text import RuleText
from holdfast.records.cause_records import (
    BreachCause,
    BreachStep,
    CompactedRule,
    Evidence,
    LoggedCompaction,
    RuleInContext,
)
from holdfast.transcripts.formats import FORMATS
from holdfast.transcripts.transcript import Event, Kind, Transcript

_SHOWN = 300  # characters of a tool call that a record keeps
_Role = Literal["said", "left", "ordered"]  # of an event in a cause


class DialogCauses:
    """Finds why the rules of a case were broken in a dialog."""

    def __init__(self, dialog: LoggedDialog, case: Case) -> None:
        self._dialog = dialog
        self._searched = SearchedTranscript(dialog.transcript)
        self._rules = {
            rule.id: _RuleInDialog(dialog, self._searched, rule, _rule_text(case, rule))
            for rule in case.rules
        }

    def context_of(self, rule: str | None, turn: LoggedTurn) -> RuleInContext:
        """Where a rule was when a turn began."""
        return self._rules[rule].context_of(turn)

    def cause_of(self, rule: str | None, turn: LoggedTurn) -> BreachCause:
        """Why a turn broke a rule: the first that applies of the causes in docs/logs.md."""
        return self._rules[rule].cause_of(turn)

    @cached_property
    def compactions(self) -> tuple[LoggedCompaction, ...]:
        """The compactions of the dialog, and what each kept of the rules."""
        compactions: list[LoggedCompaction] = []
        for position in self._searched.contexts.compactions:
            event = self._searched.path[position]
            effects = (rule.compacted(position) for rule in self._rules.values())
            compactions.append(
                LoggedCompaction(
                    turn=self._dialog.turn_at(position),
                    source=event.source or self._dialog.source,
                    event=event.id or None,
                    rules=tuple(effect for effect in effects if effect is not None),
                )
            )
        return tuple(compactions)


def _rule_text(case: Case, rule: Rule) -> RuleText:
    return _read_rule(text_of(case, rule))


@lru_cache(maxsize=256)
def _read_rule(text: str) -> RuleText:
    """The text of a rule, whose words are read once for all dialogs."""
    return RuleText(text)


class _RuleInDialog:
    """A rule in a dialog."""

    def __init__(
        self, dialog: LoggedDialog, searched: SearchedTranscript, rule: Rule, text: RuleText
    ) -> None:
        self._dialog = dialog
        self._searched = searched
        self._rule = rule
        self._text = text
        self._orders = CounterOrders(searched, rule, text)

    @cached_property
    def _sightings(self) -> list[Sighting]:
        """Where the rule is said in the dialog."""
        return self._searched.sightings(self._text, self._rule)

    def context_of(self, turn: LoggedTurn) -> RuleInContext:
        first = turn.positions[0]
        context = self._searched.contexts.before(first)
        positions = (sighting.position for sighting in reversed(self._sightings))
        last = next(filter(context.shows, positions), None)
        return RuleInContext(
            in_context=last is not None,
            # a system prompt stays before what a compaction left
            tokens=None if last is None else context.size_since(last + 1) // 4,
            calls=len(turn.done.earlier),
            compactions=bisect_left(self._searched.contexts.compactions, first),
        )

    def compacted(self, position: int) -> CompactedRule | None:
        """A compaction's effect on the rule; None if the rule was not in the context before."""
        path = self._searched.path
        contexts = self._searched.contexts
        if not self._sightings_in(contexts.before(position)):
            return None
        end = position
        while end < len(path) and path[end].kind is Kind.COMPACTION:
            end += 1
        summary = [s for s in self._sightings if position <= s.position < end]
        return CompactedRule(
            rule=self._rule.id,
            in_summary=bool(summary),
            in_context=bool(self._sightings_in(contexts.before(end))),
            quote=summary[-1].passage.quote if summary else "",
        )

    def _sightings_in(self, context: Context) -> list[Sighting]:
        """Where the rule is said in a context."""
        return [sighting for sighting in self._sightings if context.shows(sighting.position)]

    def cause_of(self, turn: LoggedTurn) -> BreachCause:
        breaking = breaking_call(self._rule.measure, turn, self._searched.path)
        if breaking is None:  # the turn did as a whole, or with its text
            return self._cause_at(turn, turn.positions[-1])
        step = self._step_at(turn, breaking)
        return self._cause_at(turn, breaking).model_copy(update={"step": step})

    def _step_at(self, turn: LoggedTurn, breach: int) -> BreachStep | None:
        event = self._searched.path[breach]
        if event.call is None:
            return None
        before = (position for position in turn.positions if position <= breach)
        script = script_of(event.call) or json.dumps(dict(event.call.arguments), ensure_ascii=False)
        return BreachStep(
            call=sum(self._searched.path[position].call is not None for position in before),
            tool=event.call.name,
            text=cut(" ".join(script.split()), _SHOWN),
            source=event.source or self._dialog.source,
            event=event.id or None,
        )

    def _cause_at(self, turn: LoggedTurn, breach: int) -> BreachCause:
        context = self._searched.contexts.before(breach)
        earlier = [sighting for sighting in self._sightings if sighting.position < breach]
        # 1. The rule was in the context: outweighed by a later order, or else present.
        if in_context := self._sightings_in(context):
            order = self._outweighed(turn, context, in_context)
            return order or self._present(in_context[-1])
        # 2. It was said, and is gone: removed. A file that the agent puts into every context by
        # itself may still be there, which the log does not show.
        if earlier and not all(map(self._is_automatic, earlier)):
            return self._removed(earlier[-1], context)
        # 3. Nothing before the breach says it: removed if an earlier dialog does, and never sent if
        # the log shows all that was sent.
        if not earlier:
            if self._removed_with_earlier_dialog is not None:
                return self._removed_with_earlier_dialog
            if self._searched.shows_prompts(breach):
                return self._never_sent(context)
        # 4. The log does not show whether it was there; an order against it is shown all the same.
        return self._outweighed(turn, context, []) or self._unknown(earlier)

    @property
    def _format(self) -> str:
        return self._searched.transcript.format

    def _is_automatic(self, sighting: Sighting) -> bool:
        """Whether it is in a file that the agent puts into every context by itself."""
        file = AUTOMATIC_FILES.get(self._format)
        return file is not None and file in self._searched.files[sighting.position]

    def _outweighed(
        self, turn: LoggedTurn, context: Context, sightings: Sequence[Sighting]
    ) -> BreachCause | None:
        """The cause if something else was ordered after the rule was said."""
        path = self._searched.path
        answered = answered_messages(path, turn, context.position)
        last = self._restated(sightings)
        orders = [
            order
            for order in self._orders.before_turn(answered)
            if context.shows(order.position) and (last is None or order.is_after(last))
        ]
        if not orders:
            return None
        order = max(orders, key=lambda o: (o.position, o.passage.lasts, o.passage.index))
        event = path[order.position]
        if event.is_by_user:
            author = "the user"
        elif event.kind is Kind.COMPACTION:
            author = "the summary of the dialog"
        else:
            author = "a file that was read"
        evidence = [self._evidence("ordered", order)]
        if sightings:
            evidence.insert(0, self._evidence("said", sightings[-1]))
        return BreachCause(
            cause="outweighed", why=f"{author} ordered otherwise", evidence=tuple(evidence)
        )

    def _restated(self, sightings: Sequence[Sighting]) -> Sighting | None:
        """Where the rule was said last. What a program puts before the model again and again, such
        as the system prompt or a reminder, counts where it was first.
        """
        texts: set[str] = set()
        last: Sighting | None = None
        for sighting in sightings:
            event = self._searched.path[sighting.position]
            is_repeat = event.text in texts and not event.is_by_user
            texts.add(event.text)
            if not is_repeat:
                last = sighting
        return last

    def _present(self, sighting: Sighting) -> BreachCause:
        return BreachCause(
            cause="present",
            why="the rule was in the context",
            evidence=(self._evidence("said", sighting),),
        )

    def _removed(self, sighting: Sighting, context: Context) -> BreachCause:
        clearing = context.cleared_by(sighting.position)
        if clearing is None:
            why = "a compaction replaced the context, and what it put there does not say the rule"
            removal = context.start
        else:
            why = "the agent cleared what said it, such as an old tool result, from the context"
            removal = clearing
        evidence = (
            self._evidence("said", sighting),
            self._evidence("left", Sighting(removal, Passage("", 0))),
        )
        return BreachCause(cause="removed", why=why, evidence=evidence)

    @cached_property
    def _removed_with_earlier_dialog(self) -> BreachCause | None:
        """The cause if the rule was said in an earlier dialog of the file that this one continues:
        a session before a new one, or requests that still had what this one leaves out.
        """
        for transcript, end, why in _predecessors(self._dialog):
            searched = SearchedTranscript(transcript)
            sightings = searched.sightings(self._text, self._rule)
            last = next((s for s in reversed(sightings) if s.position < end), None)
            if last is not None:
                event = searched.path[last.position]
                evidence = _evidence_of("said", last, event, transcript.source, turn=0)
                return BreachCause(cause="removed", why=why, evidence=(evidence,))
        return None

    def _never_sent(self, context: Context) -> BreachCause:
        prompts = bisect_left(self._searched.prompts, context.start)
        count = context.position - context.start + prompts
        return BreachCause(
            cause="never_sent",
            why=f"none of the {count} events before it says the rule, the system prompt included",
        )

    def _unknown(self, sightings: Sequence[Sighting]) -> BreachCause:
        agent = AGENTS.get(self._format)
        if sightings:
            why = (
                f"not shown in this transcript: {agent} puts {AUTOMATIC_FILES[self._format]} into"
                " the context by itself"
            )
            return BreachCause(
                cause="unknown", why=why, evidence=(self._evidence("said", sightings[-1]),)
            )
        why = "not shown in this transcript, which has no system prompt"
        if self._format in WITHOUT_PROMPTS and self._searched.prompts:
            why = "not shown: the files that were loaded do not say it, nor does the transcript"
        elif agent:
            why = (
                "not shown in this transcript: it lacks the system prompt and the rule files of"
                f" {agent}"
            )
        return BreachCause(cause="unknown", why=why)

    def _evidence(self, role: _Role, sighting: Sighting) -> Evidence:
        event = self._searched.path[sighting.position]
        turn = self._dialog.turn_at(sighting.position)
        return _evidence_of(role, sighting, event, self._dialog.source, turn)


def _evidence_of(role: _Role, sighting: Sighting, event: Event, source: str, turn: int) -> Evidence:
    """The evidence of a sighting; `source` is that of an event which names none."""
    return Evidence(
        what=role,
        turn=turn,
        source=event.source or source,
        event=event.id or None,
        quote=sighting.passage.quote,
    )


class _Predecessor(NamedTuple):
    """A transcript that a dialog continues: up to a position on its path, and why not further."""

    transcript: Transcript
    end: int
    why: str


def _predecessors(dialog: LoggedDialog) -> Iterator[_Predecessor]:
    """The transcripts before a dialog that it continues."""
    transcript = dialog.transcript
    if transcript.is_of_subagent:
        return
    is_session = FORMATS[transcript.format].has_events if transcript.format in FORMATS else False
    first = next((event for event in transcript.path if not event.is_prompt), None)
    for other in reversed(dialog.before()):
        if is_session:
            why = "it was said in an earlier session, and this is a new one"
            yield _Predecessor(other, len(other.path), why)
            continue
        spoken = [(n, event) for n, event in enumerate(other.path) if not event.is_prompt]
        for number, (position, event) in enumerate(spoken):
            if number and event == first:
                why = "the request begins at a later message than the one that said it"
                yield _Predecessor(other, position, why)
