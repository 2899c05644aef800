"""Loads models that are asked about rules: judges, and --model of `logs` and `suite`."""

import functools

from holdfast.cli.shared.endpoint_options import connect_endpoint, refuse_name_without_url
from holdfast.cli.shared.notes import note
from holdfast.cli.shared.options import EndpointOptions
from holdfast.drift.judges import MIN_KAPPA, Judging, load_judge
from holdfast.models.checkpoint import find_source, require_on_hub
from holdfast.models.model_names import is_url
from holdfast.models.protocol import ChatModel
from holdfast.records.judge_records import JudgeAgreement


def load_model_to_ask(model: str, arguments: EndpointOptions) -> ChatModel:
    """Loads the model of --model, for a command that runs without a model unless it is given."""
    check_model_to_ask(model, arguments)
    return connect_endpoint(model, arguments) if is_url(model) else load_judge(model, None)


def check_model_to_ask(model: str, arguments: EndpointOptions) -> None:
    """Refuses a name under which there is no model, before anything runs or torch is imported."""
    refuse_name_without_url(arguments, "model")
    if not is_url(model):
        require_on_hub(find_source(model))


def make_judging(*, force: bool) -> Judging:
    """Builds the loader of judges, which loads each judge, and prints its agreement, only once.

    Args:
        force: whether judges that agree poorly with their labelled replies are used, too.
    """

    @functools.cache
    def print_agreement(agreement: JudgeAgreement) -> None:
        note(_agreement_sentence(agreement))

    return Judging(functools.cache(load_judge), force, print_agreement)


def _agreement_sentence(agreement: JudgeAgreement) -> str:
    """Says how many labels a judge agrees with."""
    topic = agreement.case
    if agreement.rule:
        topic = f"{agreement.case}, rule {agreement.rule}"
    evidence = (
        f"the judge {agreement.model} of {topic} agrees with {agreement.agreed} of"
        f" {agreement.labels} labelled replies, Cohen's kappa {agreement.kappa:.2f} (follows:"
        f" {agreement.follows.text}; breaks: {agreement.breaks.text})"
    )
    if agreement.forced:
        return f"{evidence}; that is below {MIN_KAPPA}, but its use is forced."
    return f"{evidence}."
