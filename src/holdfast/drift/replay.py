"""Replays a dialog that was held: it stays as it was recorded, and the model answers the probes
alone, each in a copy of the dialog as far as it had gone.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from holdfast.drift.asking import Asking, probe_question
from holdfast.drift.dialogs import RECORDED, Recorded
from holdfast.drift.divergence import note_reply
from holdfast.drift.pairing import Probe
from holdfast.drift.settings import Settings
from holdfast.drift.window import WHOLE, Shown
from holdfast.errors import PromptError
from holdfast.models.protocol import Job
from holdfast.models.requests import Reply


def probed_rounds(dialog: Recorded, settings: Settings) -> int:
    """How many rounds of a dialog are probed: in place of a turn of the user, a probe stands behind
    the last answer too.
    """
    return min(settings.rounds, len(dialog.rounds) + (settings.probe_at == "in-place"))


@dataclass(frozen=True)
class Replay:
    """What follows what where a dialog is replayed.

    The first probe of the last round is asked first: what is computed for it holds the whole
    dialog, and serves all others.

    Args:
        asking: of the conversation.
        dialog: that was held.
    """

    asking: Asking
    dialog: Recorded

    def begin(self) -> Job:
        """The first probe of the last round."""
        settings = self.asking.settings
        for number, (said, answered) in enumerate(self.dialog.rounds[: settings.rounds], start=1):
            self.asking.dialog.turns += [_turn(number, "user", said)]
            note_reply(self.asking, number, Reply(answered, None, RECORDED), self._shown(number))
            self.asking.dialog.turns += [_turn(number, "agent", answered)]
        return self._first(probed_rounds(self.dialog, settings))

    def _shown(self, number: int) -> Shown:
        """What of the dialog a model in the place of the recorded one would have seen at a turn, if
        its context were large enough.
        """
        window = self.asking.settings.window
        return WHOLE if window is None else Shown(first=max(1, number - window + 1))

    def _first(self, number: int) -> Job:
        """The first probe of a round; then all others up to it, or the round before where it finds
        no room.
        """
        first, *more = self.asking.dialog.pairing.asked

        def then(room: bool) -> list[Job]:
            if room:
                earlier = [
                    self._probe(earlier, probe)
                    for earlier in range(1, number)
                    for probe in (first, *more)
                ]
                return [self._probe(number, probe) for probe in more] + earlier
            if number == 1:
                agent = self.asking.dialog.pairing.agent
                raise PromptError(
                    f"The system prompt of {agent.id!r} and one probe already fill the model's"
                    " context; use a shorter prompt."
                )
            self.asking.dialog.ended = {"round": number, "why": "context"}
            return [self._first(number - 1)]

        question = probe_question(self.asking.dialog, number, first, self._before(number), then)
        return self.asking.ask(replace(question, keep=True))

    def _probe(self, number: int, probe: Probe) -> Job:
        return self.asking.ask(
            probe_question(self.asking.dialog, number, probe, self._before(number))
        )

    def _before(self, number: int) -> int:
        """The first round that a round's probe does not see."""
        return number + (self.asking.settings.probe_at == "after-round")


def _turn(number: int, speaker: str, text: str) -> dict[str, Any]:
    return {
        "round": number,
        "speaker": speaker,
        "text": text,
        "stop_reason": RECORDED,
        "mass": None,
    }
