"""The file `profile.json`: the heads of a profile, best first, for other programs."""

import json
from pathlib import Path

from holdfast.analysis.profile import Profile
from holdfast.analysis.statistics import Estimate
from holdfast.files import write_whole
from holdfast.methods.heads import Shape
from holdfast.records.model import List, RecordModel


class ScoredHead(RecordModel):
    """A head of a ranking."""

    layer: int
    head: int
    score: float  # with this head steered alone
    samples: int  # how many it was scored on
    gain: Estimate  # over the model without steering, on the same samples


class StoredRanking(RecordModel):
    """A ranking of heads."""

    made_for: Shape
    method: str  # its spec string, without heads
    by: str  # what the scores measure
    unsteered: float
    ranking: List[ScoredHead]  # best first


def write_ranking(profile: Profile, folder: Path) -> Path:
    """Writes `profile.json` into the folder of a profile; returns its path."""
    stored = StoredRanking(
        made_for=profile.shape,
        method=profile.method,
        by=profile.by,
        unsteered=profile.unsteered,
        ranking=tuple(
            ScoredHead(
                layer=layer,
                head=head,
                score=profile.scores[layer, head],
                samples=profile.samples[layer, head],
                gain=profile.gains[layer, head],
            )
            for layer, head in profile.ranking.heads
        ),
    )
    return write_whole(folder / "profile.json", json.dumps(stored.to_json(), indent=1) + "\n")
