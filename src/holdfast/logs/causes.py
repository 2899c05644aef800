"""Why a rule was broken: where its text was when it was, from the transcript alone (docs/logs.md).

Nothing here is guessed: what the transcript does not show is `unknown`.
"""

import re
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from itertools import takewhile

from holdfast.drift.cases import Case, Rule
from holdfast.drift.rule_texts import text_of
from holdfast.logs.context import (
    AGENTS,
    AUTOMATIC_FILES,
    WITHOUT_PROMPTS,
    compactions,
    is_in_context,
)
from holdfast.logs.dialogs import LoggedDialog, LoggedTurn, size_of
from holdfast.measures.breaking_orders import breaking_orders
from holdfast.measures.patterns import find
from holdfast.measures.registry import FOLLOWED, Measure
from holdfast.measures.rule_statements import stated_in
from holdfast.measures.rule_text import (
    Passage,
    RuleText,
    orders_in,
    read_sentences,
    requests_in,
    shortened,
    words_before_paths,
)
from holdfast.measures.turns import AssistantTurn, ToolCall
from holdfast.records.cause_records import (
    BreachCause,
    CompactedRule,
    Evidence,
    LoggedCompaction,
    RuleInContext,
)
from holdfast.transcripts.formats import FORMATS
from holdfast.transcripts.transcript import Event, Kind, Transcript

_DOCUMENT = re.compile(r"\.(?:md|mdx|mdc|markdown|txt|rst|adoc)\b|\.(?:cursor|windsurf|cline)rules")
_READING = frozenset("check compare describe explain list mention name open read say show".split())
_WORDS_FORBIDDEN = ("never_contains", "never_mentions_number")


@dataclass(frozen=True)
class _Sighting:
    """A place on a path where a rule is said, or where something else is ordered."""

    position: int
    passage: Passage

    def is_after(self, other: "_Sighting") -> bool:
        return (self.position, self.passage.index) > (other.position, other.passage.index)


class _Reading:
    """A transcript, as the rules of its dialog are looked for in it."""

    def __init__(self, transcript: Transcript) -> None:
        self.transcript = transcript
        self.path = transcript.path

    @cached_property
    def compactions(self) -> list[int]:
        return compactions(self.path)

    def shows(self, number: int, position: int) -> bool:
        """Whether an event is in the context before another."""
        return is_in_context(self.path, self.compactions, number, position)

    def start_of_context(self, position: int) -> int:
        """Where the context before an event begins, but for system prompts."""
        before = bisect_left(self.compactions, position)
        return self.compactions[before - 1] if before else 0

    @cached_property
    def prompts(self) -> list[int]:
        """The positions of the system prompts."""
        return [position for position, event in enumerate(self.path) if event.is_prompt]

    def shows_prompts(self, position: int) -> bool:
        """Whether the transcript shows everything that was put before the model up to an event: it
        has a system prompt, and its format has no other that it does not record.
        """
        if self.transcript.format in WITHOUT_PROMPTS:
            return False
        before = takewhile(lambda number: number < position, self.prompts)
        return any(self.path[number].text.strip() for number in before)

    @cached_property
    def sizes(self) -> list[int]:
        """The size of everything before each event, in bytes."""
        sizes = [0]
        for event in self.path:
            sizes.append(sizes[-1] + size_of(event))
        return sizes

    @cached_property
    def files(self) -> list[str]:
        """The arguments of the call whose result each event is; "" for other events."""
        calls: dict[str, str] = {}
        last, files = "", []
        for event in self.path:
            if event.call is not None:
                last = " ".join(map(str, event.call.arguments.values()))
                calls[event.call.id] = last
            is_result = event.kind is Kind.TOOL_RESULT
            files.append(calls.get(event.call_id, last) if is_result else "")
        return files

    def is_document(self, position: int) -> bool:
        """Whether an event is the content of a text file, such as AGENTS.md, by its name."""
        return bool(_DOCUMENT.search(self.files[position]))

    def said(self, text: RuleText, rule: Rule) -> list[_Sighting]:
        """Where the rule is said; in the assistant's words and the output of tools only if it is
        word for word.
        """
        sightings: list[_Sighting] = []
        for position, event in enumerate(self.path):
            if not event.text or event.kind is Kind.ERROR:
                continue
            is_output = event.kind is Kind.TOOL_RESULT and not self.is_document(position)
            exactly = is_output or event.is_by_assistant
            passages = [text.said_in(event.text, exactly)]
            if not exactly:
                passages.append(stated_in(event.text, rule.measure))
            if event.is_prompt:
                passages.append(_recalled_in(event.text, rule.recalled))
            if found := [passage for passage in passages if passage is not None]:
                last = max(found, key=lambda passage: passage.index)
                sightings.append(_Sighting(position, last))
        return sightings

    def ordered_otherwise(self, rule: RuleText) -> list[_Sighting]:
        """Where the user, a file that was read, or a summary orders otherwise."""
        sightings: list[_Sighting] = []
        for position, event in enumerate(self.path):
            is_read = event.kind is Kind.TOOL_RESULT and self.is_document(position)
            if not (event.is_by_user or is_read or event.kind is Kind.COMPACTION):
                continue
            if passage := rule.ordered_otherwise_in(event.text, event.is_by_user):
                sightings.append(_Sighting(position, passage))
        return sightings


class DialogCauses:
    """Finds why the rules of a case were broken in a dialog."""

    def __init__(self, dialog: LoggedDialog, case: Case) -> None:
        self._dialog = dialog
        self._reading = _Reading(dialog.transcript)
        self._rules = {
            rule.id: _RuleInDialog(dialog, self._reading, rule, _rule_text(case, rule))
            for rule in case.all_rules
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
        logged = []
        for position in self._reading.compactions:
            event = self._reading.path[position]
            rules = (rule.compacted(position) for rule in self._rules.values())
            logged.append(
                LoggedCompaction(
                    turn=self._dialog.turn_at(position),
                    source=event.source or self._dialog.source,
                    event=event.id or None,
                    rules=tuple(rule for rule in rules if rule is not None),
                )
            )
        return tuple(logged)


def _rule_text(case: Case, rule: Rule) -> RuleText:
    return _read_rule(text_of(case, rule))


@lru_cache(maxsize=256)
def _read_rule(text: str) -> RuleText:
    """The text of a rule, whose words are read once for all dialogs."""
    return RuleText(text)


class _RuleInDialog:
    """A rule in a dialog."""

    def __init__(self, dialog: LoggedDialog, reading: _Reading, rule: Rule, text: RuleText) -> None:
        self._dialog = dialog
        self._reading = reading
        self._rule = rule
        self._text = text

    @cached_property
    def _said(self) -> list[_Sighting]:
        return self._reading.said(self._text, self._rule)

    @cached_property
    def _orders(self) -> list[_Sighting]:
        return self._reading.ordered_otherwise(self._text)

    def context_of(self, turn: LoggedTurn) -> RuleInContext:
        first = turn.positions[0]
        positions = (sighting.position for sighting in reversed(self._said))
        last = next((n for n in positions if self._reading.shows(n, first)), None)
        sizes, tokens = self._reading.sizes, None
        if last is not None:  # a system prompt stays before what the compaction left
            since = max(last + 1, self._reading.start_of_context(first))
            tokens = (sizes[first] - sizes[since]) // 4
        return RuleInContext(
            in_context=last is not None,
            tokens=tokens,
            calls=len(turn.done.earlier),
            compactions=bisect_left(self._reading.compactions, first),
        )

    def compacted(self, position: int) -> CompactedRule | None:
        """A compaction's effect on the rule; None if the rule was not in the context before."""
        path = self._reading.path
        shows = self._reading.shows
        if not any(shows(sighting.position, position) for sighting in self._said):
            return None
        end = position
        while end < len(path) and path[end].kind is Kind.COMPACTION:
            end += 1
        summary = [s for s in self._said if position <= s.position < end]
        return CompactedRule(
            rule=self._rule.id,
            in_summary=bool(summary),
            in_context=any(shows(sighting.position, end) for sighting in self._said),
            quote=summary[-1].passage.quote if summary else "",
        )

    def cause_of(self, turn: LoggedTurn) -> BreachCause:
        breach = breach_position(self._rule.measure, turn, self._reading.path)
        said = [sighting for sighting in self._said if sighting.position < breach]
        in_context = [s for s in said if self._reading.shows(s.position, breach)]
        if in_context:
            order = self._order(turn, breach, in_context)
            return order or self._present(in_context[-1])
        if said and not all(self._is_automatic(sighting) for sighting in said):
            return self._removed(said[-1], breach)
        if not said:
            if self._said_earlier is not None:
                return self._said_earlier
            if self._reading.shows_prompts(breach):
                return self._never_sent(breach)
        return self._order(turn, breach, []) or self._unknown(said)

    @property
    def _format(self) -> str:
        return self._reading.transcript.format

    def _is_automatic(self, sighting: _Sighting) -> bool:
        """Whether it is in a file that the agent puts into every context by itself."""
        file = AUTOMATIC_FILES.get(self._format)
        return file is not None and file in self._reading.files[sighting.position]

    def _order(
        self, turn: LoggedTurn, breach: int, said: Sequence[_Sighting]
    ) -> BreachCause | None:
        """The cause if something else was ordered after the rule was said."""
        asked = _asking(self._reading.path, turn, breach)
        last = self._restated(said)
        orders = [
            order
            for order in (*self._orders, *self._breaking, *self._asked_for(asked))
            if self._reading.shows(order.position, breach)
            and (last is None or order.is_after(last))
            and (order.passage.lasts or order.position in asked or not self._is_by_user(order))
        ]
        if not orders:
            return None
        order = max(orders, key=lambda o: (o.position, o.passage.lasts, o.passage.index))
        who = "the user" if self._is_by_user(order) else "a file that was read"
        if self._reading.path[order.position].kind is Kind.COMPACTION:
            who = "the summary of the dialog"
        evidence = [self._evidence("ordered", order)]
        if said:
            evidence.insert(0, self._evidence("said", said[-1]))
        return BreachCause(
            cause="outweighed", why=f"{who} ordered otherwise", evidence=tuple(evidence)
        )

    def _is_by_user(self, sighting: _Sighting) -> bool:
        return self._reading.path[sighting.position].is_by_user

    def _restated(self, said: Sequence[_Sighting]) -> _Sighting | None:
        """Where the rule was said last. What a program puts before the model again and again, such
        as the system prompt or a reminder, counts where it was first.
        """
        seen: set[str] = set()
        last: _Sighting | None = None
        for sighting in said:
            event = self._reading.path[sighting.position]
            is_again = event.text in seen and not event.is_by_user
            seen.add(event.text)
            if not is_again:
                last = sighting
        return last

    def _asked_for(self, asked: Sequence[int]) -> Iterator[_Sighting]:
        """The user's messages before the turn that ask for the very thing, or that `unless` of the
        rule names.
        """
        for position in asked:
            text = self._reading.path[position].text
            lifts = self._rule.unless.user
            if lifts and (match := find(lifts, text, "i")):
                yield _Sighting(position, Passage(match.group(), len(text), lasts=False))
            clauses = orders_in(text)
            if self._rule.measure.name == "commit_message":  # 'message "wip"' is no whole order
                clauses = [request.passage.quote for request in requests_in(text)]
            for clause in clauses:
                if _asks_to_break(clause, self._rule.measure):
                    yield _Sighting(position, Passage(clause, len(text), lasts=False))

    @cached_property
    def _breaking(self) -> list[_Sighting]:
        """Where the user asks for what the rule's measure forbids."""
        sightings: list[_Sighting] = []
        for position, event in enumerate(self._reading.path):
            if event.is_by_user and event.text:
                orders = breaking_orders(event.text, self._rule.measure)
                sightings += [_Sighting(position, passage) for passage in orders]
        return sightings

    def _present(self, said: _Sighting) -> BreachCause:
        return BreachCause(
            cause="present",
            why="the rule was in the context",
            evidence=(self._evidence("said", said),),
        )

    def _removed(self, said: _Sighting, breach: int) -> BreachCause:
        left = _Sighting(self._reading.start_of_context(breach), Passage("", 0))
        evidence = (self._evidence("said", said), self._evidence("left", left))
        why = "a compaction replaced the context, and what it put there does not say the rule"
        return BreachCause(cause="removed", why=why, evidence=evidence)

    @cached_property
    def _said_earlier(self) -> BreachCause | None:
        """The cause if the rule was said in an earlier dialog of the file that this one continues:
        a session before a new one, or requests that still had what this one leaves out.
        """
        for transcript, end, why in _earlier(self._dialog):
            reading = _Reading(transcript)
            said = [s for s in reading.said(self._text, self._rule) if s.position < end]
            if said:
                event = reading.path[said[-1].position]
                evidence = Evidence(
                    what="said",
                    turn=0,
                    source=event.source or transcript.source,
                    event=event.id or None,
                    quote=said[-1].passage.quote,
                )
                return BreachCause(cause="removed", why=why, evidence=(evidence,))
        return None

    def _never_sent(self, breach: int) -> BreachCause:
        start = self._reading.start_of_context(breach)
        count = breach - start + bisect_left(self._reading.prompts, start)
        return BreachCause(
            cause="never_sent",
            why=f"none of the {count} events before it says the rule, the system prompt included",
        )

    def _unknown(self, said: Sequence[_Sighting]) -> BreachCause:
        agent = AGENTS.get(self._format)
        if said:
            why = (
                f"not shown in this transcript: {agent} puts {AUTOMATIC_FILES[self._format]} into"
                " the context by itself"
            )
            return BreachCause(
                cause="unknown", why=why, evidence=(self._evidence("said", said[-1]),)
            )
        why = "not shown in this transcript, which has no system prompt"
        if self._format in WITHOUT_PROMPTS and self._reading.prompts:
            why = "not shown: the files that were loaded do not say it, nor does the transcript"
        elif agent:
            why = (
                "not shown in this transcript: it lacks the system prompt and the rule files of"
                f" {agent}"
            )
        return BreachCause(cause="unknown", why=why)

    def _evidence(self, what: str, sighting: _Sighting) -> Evidence:
        event = self._reading.path[sighting.position]
        return Evidence.model_validate(
            {
                "what": what,
                "turn": self._dialog.turn_at(sighting.position),
                "source": event.source or self._dialog.source,
                "event": event.id or None,
                "quote": sighting.passage.quote,
            }
        )


def _recalled_in(prompt: str, recalled: Measure | None) -> Passage | None:
    """The sentence of a prompt that states a rule as its `recalled` finds it in a reply."""
    if recalled is None or recalled.judged or recalled.score(prompt).value < FOLLOWED:
        return None
    sentences = [s for s in read_sentences(prompt) if recalled.score(s.text).value >= FOLLOWED]
    return shortened(sentences[-1]) if sentences else Passage("", 0)


def _asking(path: Sequence[Event], turn: LoggedTurn, breach: int) -> list[int]:
    """The positions of the user's messages that a turn answers."""
    first = turn.positions[0]
    while first > 0 and not path[first - 1].is_by_assistant:
        first -= 1
    return [n for n in range(first, breach) if path[n].is_by_user]


def breach_position(measure: Measure, turn: LoggedTurn, path: Sequence[Event]) -> int:
    """The position of the event with which a turn broke a rule, if its tool calls show it so far;
    else of the last event.
    """
    last = turn.positions[-1]
    if not measure.of_turn:
        return last
    low, high = 0, len(turn.positions) - 1  # what is broken stays broken

    def is_broken(count: int) -> bool:
        events = [path[position] for position in turn.positions[:count]]
        calls = tuple(event.call for event in events if event.call is not None)
        score = measure.score_so_far(replace(turn.done, text="", calls=calls))
        return score is not None and score.value < FOLLOWED

    if not is_broken(high + 1):
        return last
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if is_broken(middle + 1) else (middle + 1, high)
    return turn.positions[low]


def _asks_to_break(clause: str, measure: Measure) -> bool:
    """Whether an order asks for something that, if the assistant did it, would break a rule: a
    command in backticks, a commit message in quotes, a change of a file with this path, or a word
    that may not occur.
    """
    if measure.name in _WORDS_FORBIDDEN:
        return measure.score(clause).value < FOLLOWED
    if measure.name == "command_not_run":
        commands = re.findall(r"`([^`]+)`", clause)
        calls = [ToolCall("Bash", {"command": command}) for command in commands]
    elif measure.name == "file_not_touched":
        paths = [path for verb, path in words_before_paths(clause) if verb not in _READING]
        calls = [ToolCall("Edit", {"file_path": path}) for path in paths]
    elif measure.name == "commit_message":
        messages = re.findall(r"message:? [\"“'`]([^\"”'`]+)[\"”'`]", clause, re.IGNORECASE)
        calls = [ToolCall("Bash", {"command": f"git commit -m '{text}'"}) for text in messages]
    else:
        return False
    scores = (measure.score_turn(AssistantTurn("", (call,))) for call in calls)
    return any(score is not None and score.value < FOLLOWED for score in scores)


def _earlier(dialog: LoggedDialog) -> Iterator[tuple[Transcript, int, str]]:
    """The transcripts before a dialog that it continues, up to where they were cut, and how."""
    transcript = dialog.transcript
    if transcript.is_of_subagent:
        return
    is_session = FORMATS[transcript.format].has_events if transcript.format in FORMATS else False
    first = next((event for event in transcript.path if not event.is_prompt), None)
    for other in reversed(dialog.before()):
        if is_session:
            yield other, len(other.path), "it was said in an earlier session, and this is a new one"
            continue
        spoken = [(n, event) for n, event in enumerate(other.path) if not event.is_prompt]
        for place, (position, event) in enumerate(spoken):
            if place and event == first:
                why = "the request begins at a later message than the one that said it"
                yield other, position, why
