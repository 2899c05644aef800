"""Measures how much each turn of a dialog repeats earlier turns (`measures.repeated_turns`)."""

from collections.abc import Mapping, Sequence

from holdfast.drift.cases import Case, Persona
from holdfast.measures.phrases import phrases_in_prompt, phrases_of_measure
from holdfast.measures.repeated_turns import repetitions
from holdfast.records import Turn


def with_repetition(
    turns: Sequence[Turn], speakers: Mapping[str, Case | Persona | None]
) -> list[Turn]:
    """Adds to each turn how much of it repeats earlier turns.

    If that is much, adds also how much repeats besides the phrases that its speaker was told to
    say.

    Args:
        speakers: who is "agent" and "user"; one that is missing or None has no such phrases.
    """
    spoken = [(turn.speaker, turn.text) for turn in turns]
    repeats = repetitions(spoken)
    measured = [
        turn.model_copy(update={"repeats": repetition})
        for turn, repetition in zip(turns, repeats, strict=True)
    ]
    if not any(repetition.broken for repetition in repeats):
        return measured
    phrases = [_prompted_phrases(speakers.get(speaker), text) for speaker, text in spoken]
    repeats_unprompted = repetitions(spoken, phrases)
    return [
        turn.model_copy(update={"repeats_unprompted": unprompted}) if repetition.broken else turn
        for turn, repetition, unprompted in zip(measured, repeats, repeats_unprompted, strict=True)
    ]


def _prompted_phrases(speaker: Case | Persona | None, text: str) -> list[str]:
    """The phrases that a speaker is told to say, and that may occur in the text."""
    if speaker is None:
        return []
    phrases = phrases_in_prompt(speaker.system_prompt)
    for rule in speaker.rules if isinstance(speaker, Case) else ():
        phrases += [*phrases_of_measure(rule.measure, text), *rule.follows]
    return phrases
