"""Why a rule was broken: where its text was at the breach, from the transcript alone
(docs/logs.md).

    system "Never push.", user "Fix it.", assistant `git push`
    -> BreachCause(cause="present", evidence=(the system prompt))
    system "Never push.", user "Push it this once.", assistant `git push`
    -> BreachCause(cause="outweighed", evidence=(the system prompt, the user's message))

Nothing here is guessed: the cause is `unknown` if the transcript does not show it.
"""

import json
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from functools import cached_property, lru_cache
from typing import Literal, NamedTuple

from holdfast.drift.cases import Case, Rule
from holdfast.drift.rule_texts import text_of_rule
from holdfast.errors import cut
from holdfast.logs.context import Context
from holdfast.logs.counter_orders import CounterOrders
from holdfast.logs.dialogs import LoggedDialog, LoggedTurn
from holdfast.logs.rule_sightings import (
    SearchedTranscript,
    Sighting,
    breaking_call,
    call_of_whole_turn,
)
from holdfast.logs.unrecorded_prompts import AGENTS, AUTOMATIC_FILES, WITHOUT_PROMPTS
from holdfast.measures.agent_acts.agent_tools import script_as_written
from holdfast.measures.wording.rule_text import RuleText
from holdfast.measures.wording.sentences import Passage
from holdfast.records.cause_records import (
    BreachCause,
    BreachStep,
    CompactedRule,
    Evidence,
    LoggedCompaction,
    RuleInContext,
)
from holdfast.transcripts.formats import FORMATS
from holdfast.transcripts.transcript import Event, EventKind, Transcript

_MAX_STEP_CHARACTERS = 300  # of a tool call in a record
_Role = Literal["said", "left", "ordered"]  # of an event in a cause


class _Predecessor(NamedTuple):
    """An earlier transcript that a dialog continues.

    Args:
        end: the position on its path up to which the dialog continues it.
        why: why a rule that was stated there is no longer in the context.
    """

    transcript: Transcript
    end: int
    why: str


class DialogCauses:
    """Finds the causes of the breaches in a dialog, by the rules of a case."""

    def __init__(self, dialog: LoggedDialog, case: Case) -> None:
        self._dialog = dialog
        self._searched = SearchedTranscript(dialog.transcript)
        self._rules = {
            rule.id: _RuleInDialog(dialog, self._searched, rule, _rule_text(case, rule))
            for rule in case.rules
        }

    def context_of(self, rule: str | None, turn: LoggedTurn) -> RuleInContext:
        """Where the text of a rule was when a turn began."""
        return self._rules[rule].context_of(turn)

    def cause_of(self, rule: str | None, turn: LoggedTurn) -> BreachCause:
        """Why a turn broke a rule: the first cause of those in docs/logs.md that applies."""
        return self._rules[rule].cause_of(turn)

    @cached_property
    def compactions(self) -> tuple[LoggedCompaction, ...]:
        """The compactions of the dialog, and which rules each kept."""
        compactions: list[LoggedCompaction] = []
        for position in self._searched.contexts.compaction_starts:
            event = self._searched.path[position]
            effects = (rule.effect_of_compaction(position) for rule in self._rules.values())
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
    return _read_rule(text_of_rule(case, rule))


@lru_cache(maxsize=256)
def _read_rule(text: str) -> RuleText:
    """Reads the text of a rule, once for all dialogs."""
    return RuleText(text)


class _RuleInDialog:
    """Finds where a dialog states a rule, and why its turns broke it."""

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
        """Where the dialog states the rule."""
        return self._searched.sightings(self._text, self._rule)

    def context_of(self, turn: LoggedTurn) -> RuleInContext:
        first = turn.positions[0]
        context = self._searched.contexts.before(first)
        positions = (sighting.position for sighting in reversed(self._sightings))
        last = next(filter(context.shows, positions), None)
        return RuleInContext(
            in_context=last is not None,
            # a system prompt stays in front of what a compaction left
            tokens=None if last is None else context.size_since(last + 1) // 4,
            calls=len(turn.done.earlier),
            compactions=bisect_left(self._searched.contexts.compaction_starts, first),
        )

    def effect_of_compaction(self, position: int) -> CompactedRule | None:
        """The effect of a compaction on the rule; None if the rule was not in context before it."""
        path = self._searched.path
        contexts = self._searched.contexts
        if not self._sightings_in(contexts.before(position)):
            return None
        end = position
        while end < len(path) and path[end].kind is EventKind.COMPACTION:
            end += 1
        summary = [s for s in self._sightings if position <= s.position < end]
        return CompactedRule(
            rule=self._rule.id,
            in_summary=bool(summary),
            in_context=bool(self._sightings_in(contexts.before(end))),
            quote=summary[-1].passage.quote if summary else "",
        )

    def _sightings_in(self, context: Context) -> list[Sighting]:
        """Where a context states the rule."""
        return [sighting for sighting in self._sightings if context.shows(sighting.position)]

    def cause_of(self, turn: LoggedTurn) -> BreachCause:
        breaking = breaking_call(self._rule.measure, turn, self._searched.path)
        if breaking is None:  # the turn broke it as a whole, or with its text
            cause = self._cause_at(turn, turn.positions[-1])
            breaking = call_of_whole_turn(self._rule.measure, turn, self._searched.path)
        else:
            cause = self._cause_at(turn, breaking)
        if breaking is None:
            return cause
        return cause.model_copy(update={"step": self._step_at(turn, breaking)})

    def _step_at(self, turn: LoggedTurn, breach: int) -> BreachStep | None:
        event = self._searched.path[breach]
        if event.call is None:
            return None
        before = (position for position in turn.positions if position <= breach)
        script = script_as_written(event.call) or json.dumps(
            dict(event.call.arguments), ensure_ascii=False
        )
        return BreachStep(
            call=sum(self._searched.path[position].call is not None for position in before),
            tool=event.call.name,
            text=cut(script.strip(), _MAX_STEP_CHARACTERS),
            source=event.source or self._dialog.source,
            event=event.id or None,
        )

    def _cause_at(self, turn: LoggedTurn, breach: int) -> BreachCause:
        """Finds why a rule was broken, from what stood in the context before the breach."""
        context = self._searched.contexts.before(breach)
        earlier = [sighting for sighting in self._sightings if sighting.position < breach]
        # 1. The rule was in the context: outweighed by a later order, or else present.
        if in_context := self._sightings_in(context):
            order = self._outweighed_cause(turn, context, in_context)
            return order or self._present_cause(in_context[-1])
        # 2. It was stated, and is gone: removed. A file that the agent puts into every context by
        # itself may still be there, which the log does not show.
        if earlier and not all(map(self._is_automatic, earlier)):
            return self._removed_cause(earlier[-1], context)
        # 3. Nothing before the breach states it: removed if an earlier dialog does, never sent if
        # the log shows all that was sent.
        if not earlier:
            if self._removed_with_earlier_dialog is not None:
                return self._removed_with_earlier_dialog
            if self._searched.shows_prompts(breach):
                return self._never_sent_cause(context)
        # 4. The log does not show whether it was there. An order against it counts all the same.
        return self._outweighed_cause(turn, context, []) or self._unknown_cause(earlier)

    @property
    def _format(self) -> str:
        return self._searched.transcript.format

    def _is_automatic(self, sighting: Sighting) -> bool:
        """Whether a sighting is in a file that the agent puts into every context by itself."""
        file = AUTOMATIC_FILES.get(self._format)
        return file is not None and file in self._searched.files[sighting.position]

    def _outweighed_cause(
        self, turn: LoggedTurn, context: Context, sightings: Sequence[Sighting]
    ) -> BreachCause | None:
        """The cause if something else was ordered after the rule was stated last; None if not."""
        order = self._orders.outweighing(turn, context, sightings)
        if order is None:
            return None
        event = self._searched.path[order.position]
        if self._orders.is_by_user(order.position):
            author = "the user"
        elif event.kind is EventKind.COMPACTION:
            author = "the summary of the dialog"
        else:
            author = "a file that was read"
        evidence = [self._evidence("ordered", order)]
        if sightings:
            evidence.insert(0, self._evidence("said", sightings[-1]))
        return BreachCause(
            cause="outweighed", why=f"{author} ordered otherwise", evidence=tuple(evidence)
        )

    def _present_cause(self, sighting: Sighting) -> BreachCause:
        evidence = self._evidence("said", sighting)
        why = "the rule was in the context"
        event = self._searched.path[sighting.position]
        if event.is_prompt and self._format in WITHOUT_PROMPTS:  # a file of --loaded
            why = f"the rule was in {evidence.source}, which was said to be loaded"
        return BreachCause(cause="present", why=why, evidence=(evidence,))

    def _removed_cause(self, sighting: Sighting, context: Context) -> BreachCause:
        clearing = context.cleared_by(sighting.position)
        if clearing is None:
            why = "a compaction replaced the context with text that does not state the rule"
            removal = context.start
        else:
            why = "the agent cleared the text that stated it, such as an old tool result"
            removal = clearing
        evidence = (
            self._evidence("said", sighting),
            self._evidence("left", Sighting(removal, Passage("", 0))),
        )
        return BreachCause(cause="removed", why=why, evidence=evidence)

    @cached_property
    def _removed_with_earlier_dialog(self) -> BreachCause | None:
        """The cause if an earlier dialog of the file, which this one continues, stated the rule: a
        session before a new one, or a request that still had messages which this one leaves out.
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

    def _never_sent_cause(self, context: Context) -> BreachCause:
        prompts = bisect_left(self._searched.prompts, context.start)
        count = context.end - context.start + prompts
        why = f"none of the {count} events before it, the system prompt included, states the rule"
        return BreachCause(cause="never_sent", why=why)

    def _unknown_cause(self, sightings: Sequence[Sighting]) -> BreachCause:
        """The cause of a breach before which the log shows no statement of the rule."""
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
        if self._searched.transcript.lacks_beginning:
            why = "not shown in this transcript, whose beginning is in another file"
        elif self._format in WITHOUT_PROMPTS and self._searched.prompts:
            why = "not shown: neither the loaded files nor the transcript state it"
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
    """A sighting as evidence; `source` is taken if the event names no source of its own."""
    return Evidence(
        what=role,
        turn=turn,
        source=event.source or source,
        event=event.id or None,
        quote=sighting.passage.quote,
    )


def _predecessors(dialog: LoggedDialog) -> Iterator[_Predecessor]:
    """The transcripts that a dialog continues, the latest first."""
    transcript = dialog.transcript
    if transcript.is_of_subagent:
        return
    is_session = FORMATS[transcript.format].has_events if transcript.format in FORMATS else False
    first = next((event for event in transcript.path if not event.is_prompt), None)
    for other in reversed(dialog.before()):
        if is_session:
            why = "it was stated in an earlier session, and this is a new one"
            yield _Predecessor(other, len(other.path), why)
            continue
        spoken = [(n, event) for n, event in enumerate(other.path) if not event.is_prompt]
        for number, (position, event) in enumerate(spoken):
            if number and event == first:
                why = "the request begins after the message that stated it"
                yield _Predecessor(other, position, why)
