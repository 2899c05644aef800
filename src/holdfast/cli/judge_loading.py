"""Models that judge replies, or that are asked about rules where --model may be left out."""

import functools

from holdfast.cli.endpoint_options import check_name, connect_endpoint
from holdfast.cli.options import EndpointOptions
from holdfast.cli.progress import note
from holdfast.drift.judges import Judging, load_judge
from holdfast.models.model_names import is_url
from holdfast.models.protocol import ChatModel
from holdfast.records.judge_records import Agreement
from holdfast.report.judge_agreement import agreement_line


def load_asked_model(model: str, arguments: EndpointOptions) -> ChatModel:
    """The model of --model where that may be left out: behind a URL, or loaded in this process."""
    check_name(arguments, "model")
    return connect_endpoint(model, arguments) if is_url(model) else load_judge(model, None)


def judging_of(force: bool) -> Judging:
    """How judges are loaded: each once per command, with its agreement printed once.

    `force` uses those that agree poorly with their labelled replies, too.
    """

    @functools.cache
    def print_agreement(agreement: Agreement) -> None:
        note(agreement_line(agreement))

    return Judging(functools.cache(load_judge), force, print_agreement)
