"""Times a few replies of a model, to see how many conversations fit into a time."""

import time
from dataclasses import replace

from holdfast.cli.progress import note
from holdfast.cli.time_box import Pilot
from holdfast.common.sampling import Sampling
from holdfast.common.seeds import seed_of
from holdfast.drift import Settings, Suite
from holdfast.drift.pairing import draw, prepare
from holdfast.drift.recorded_dialogs import UserTurns
from holdfast.drift.remaining import count_replies
from holdfast.models.protocol import ChatModel
from holdfast.models.requests import Request

_REPLIES = 4  # that are timed
_MAX_TOKENS = 64  # of each


def time_replies(
    model: ChatModel, suite: Suite, settings: Settings, user_turns: UserTurns | None
) -> Pilot:
    """How long the replies of a run take, by the beginnings of a few of them."""
    note("timing the model ...")
    given, settings = prepare(model, suite, settings, user_turns)
    pairings = [draw(suite, settings, given, number) for number in range(_REPLIES)]
    requests = [
        Request(
            messages=[
                {"role": "system", "content": pairing.agent.system_prompt},
                {"role": "user", "content": pairing.probes[0]},
            ],
            sampling=replace(settings.sampling, max_new_tokens=_MAX_TOKENS),
            seed=seed_of("pilot", settings.seed, pairing.number),
            name=f"First reply {pairing.number + 1} of {_REPLIES}",
        )
        for pairing in pairings
    ]
    if not model.independent:  # what runs here takes longer the first time
        model.generate_batch([replace(requests[0], sampling=Sampling(max_new_tokens=1))])
    began = time.monotonic()
    replies = model.generate_batch(requests)
    seconds = time.monotonic() - began
    cut = sum(reply.stop_reason == "length" for reply in replies)
    # a reply that is cut here is taken to be half as long as the longest that the run allows
    longer = max(1.0, settings.sampling.max_new_tokens / 2 / _MAX_TOKENS)
    numbers = range(_REPLIES)
    per_round = count_replies(suite, settings, given, numbers) / (_REPLIES * settings.rounds)
    return Pilot(len(replies), seconds * (1 + cut / len(replies) * (longer - 1)), per_round)
