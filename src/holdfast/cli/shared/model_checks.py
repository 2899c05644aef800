"""Refuses models before anything is loaded, and says what a model cannot show or has not answered
at once.
"""

from __future__ import annotations

from collections.abc import Sequence

from holdfast.cli.shared.notes import note
from holdfast.errors import NoSuchModel, UsageError
from holdfast.methods import Method, spec_of
from holdfast.models.checkpoint import find_source, require_on_hub
from holdfast.models.model_names import engine_in, guess_endpoint, is_url
from holdfast.models.protocol import ChatModel
from holdfast.plurals import count_of


def check_model_exists(model: str) -> None:
    """Refuses a name under which there is no model."""
    if not is_url(model) and not engine_in(model):
        require_on_hub(find_source(model))


def check_layered_model(model: str, layers: str) -> None:
    """Refuses a model whose layers cannot be read, or that is not there.

    Args:
        layers: what is read in the layers, for the message: "hidden states".
    """
    if is_url(model):
        raise UsageError(
            f"--model {model} is an endpoint, whose {layers} cannot be read; give a folder or a"
            " name on the hub."
        )
    refuse_vendors_name(model)
    check_model_exists(model)


def refuse_vendors_name(model: str) -> None:
    """Refuses an address without its scheme, and the name of a vendor's model."""
    if guess_endpoint(model):
        raise NoSuchModel(
            f"--model {model} is not a folder, and this command takes no model behind an endpoint;"
            " give a folder, a name on the hub, or default."
        )


def refuse_engine_in_name(model: str) -> None:
    """Refuses a model that runs in another engine, such as `vllm:MODEL`."""
    if engine := engine_in(model):
        raise UsageError(
            f"{model} runs in {engine}, and this command needs a model that is loaded here; give a"
            " folder or a name on the hub."
        )


def warn_of_small_model(model: str, suite: str) -> None:
    """Warns that the default model shows little under prompts that it was not trained on."""
    if model == "default" and suite not in ("starter", "bot"):
        note(
            "the default model follows only a few prompts (those of --suite starter and bot); with"
            " others it only shows how the command works. For your bot, give --model."
        )


def warn_of_default_steering(model: ChatModel, steerings: Sequence[Sequence[Method]]) -> None:
    """Warns if a server steers by default, and no method of the command is that default."""
    default = getattr(model, "default_steering", "")
    if default and default not in map(spec_of, steerings):
        note(
            f"{model.name} is served with {default} by default, which this command switches off;"
            f" --method {default} measures it."
        )


def note_repeated_requests(model: ChatModel) -> None:
    """Says how many requests to a server were sent again, if any."""
    if num_repeated := getattr(model, "num_repeated", 0):
        note(
            f"{count_of(num_repeated, 'request')} failed and"
            f" {'was' if num_repeated == 1 else 'were'} sent again."
        )
