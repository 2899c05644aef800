"""`loss_map.json`: the map of loss of one or several models, for other programs and for pages."""

from holdfast.records.model import List, Number, RecordModel
from holdfast.records.run_summary import Estimated

NAME = "loss_map.json"


class GroupLoss(RecordModel):
    """How a group of rules fares under one method (`analysis.loss_map.LossRow`)."""

    method: str
    grouping: str
    group: str
    rules: Number
    first: Estimated
    last: Estimated
    change: Estimated
    verdict: str


class KindRecall(RecordModel):
    """How often the rules of one kind are stated (`analysis.recalled_rules.RecallRow`)."""

    method: str
    kind: str
    stated_first: Estimated
    stated_last: Estimated
    broken: Number
    stated_of_broken: Estimated
    stated_of_kept: Estimated


class PooledRun(RecordModel):
    """A run that the numbers come from."""

    command: str  # as it was typed
    versions: dict[str, str]  # of Holdfast and of what it computes with
    conversations: Number


class ModelLoss(RecordModel):
    """The map of loss of one model, from one run or from several together."""

    name: str
    runs: List[PooledRun]
    groups: List[GroupLoss]
    recall: List[KindRecall]


class LossMap(RecordModel):
    """The maps that one command made."""

    models: List[ModelLoss]
