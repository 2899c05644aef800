"""Fits a method on a model: learns its directions from examples, and writes them to a file."""

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from holdfast.drift.progress import Progress, Watch, ignore_steps
from holdfast.errors import UnknownName, UsageError, option
from holdfast.methods import Fitted, FittedOn, Vector, write_fitted
from holdfast.models.capabilities import require_layers
from holdfast.models.local import LocalModel
from holdfast.states import sites_of
from holdfast.study.fitting import shipped_examples
from holdfast.study.fitting.examples import Contrast, FitResult, Triplet, read_examples
from holdfast.study.fitting.hidden_directions import learn_capping, learn_vector
from holdfast.study.fitting.key_directions import learn_prism, learn_seka
from holdfast.validation.pydantic_errors import StrictModel


@dataclass(frozen=True)
class _Learner:
    """How a method learns from examples."""

    learn: Callable[[LocalModel, Any, Progress], FitResult]
    shipped_examples: Callable[[], Sequence[Any]]
    kind: type[StrictModel]  # of the examples
    steps: int = 1  # of progress, per example


_LEARNERS: Mapping[str, _Learner] = {
    "seka": _Learner(learn_seka, shipped_examples.triplets, Triplet),
    "prism": _Learner(learn_prism, shipped_examples.triplets, Triplet),
    "capping": _Learner(learn_capping, shipped_examples.contrasts, Contrast, 2),
    "vector": _Learner(learn_vector, shipped_examples.contrasts, Contrast, 2),
}


def fitted_methods() -> tuple[str, ...]:
    """Returns the names of the methods that learn from a model."""
    return tuple(_LEARNERS)


def fit(
    method: str,
    model: LocalModel,
    out: Path | str,
    data: Path | str | None = None,
    *,
    watch: Watch = ignore_steps,
) -> Fitted:
    """Fits a method on the shipped examples, or on a file of examples, and writes a .safetensors
    file.

    Raises:
        UnknownName: the method does not learn from a model.
        UsageError: the file of examples cannot be read.
        ModelError: the model does not provide the states on which the method is fitted.
    """
    if method not in _LEARNERS:
        raise UnknownName("method that is fitted", method, _LEARNERS)
    require_layers(model, f"hidden states and weights, on which {method} is fitted")
    learner = _LEARNERS[method]
    examples = learner.shipped_examples() if data is None else read_examples(data, learner.kind)
    source = _source_of(data)  # before the fit, during which the file may change
    with watch(method, learner.steps * len(examples)) as progress:
        result = learner.learn(model, examples, progress)
    return write_fitted(
        out,
        result.tensors,
        method=method,
        on=_fitted_on(model, result),
        layers=result.layers,
        chosen=result.default_layers,
        made_from={**source, "examples": len(examples), **result.facts},
    )


def _fitted_on(model: LocalModel, result: FitResult) -> FittedOn:
    """The facts about a model by which another model is refused."""
    sites = sites_of(model.hf_model)
    return FittedOn(
        model=model.name,
        fingerprint=model.fingerprint,
        layers=model.hf_model.config.get_text_config().num_hidden_layers,
        hidden_size=sites.hidden_size,
        key_heads=sites.key_heads if result.per_key_head else 0,
        head_size=sites.head_size if result.per_key_head else 0,
    )


def _source_of(data: Path | str | None) -> dict[str, str]:
    """Identifies the examples: a file by its name and content, not its folder; None is the shipped
    examples.
    """
    if data is None:
        return {"recipe": shipped_examples.NAME}
    path = Path(data)
    return {"data": path.name, "sha256": hashlib.sha256(path.read_bytes()).hexdigest()}


def write_control_vector(fitted: Fitted, out: Path) -> None:
    """Writes a fitted vector for llama.cpp; scale 1 there equals `vector:file=FILE` here.

    Raises:
        UsageError: the vector acts on layer 0, which llama.cpp does not support.
    """
    from gguf import GGUFWriter

    vector = Vector(fitted)
    if 0 in vector.touched_layers:
        raise UsageError(
            f"{fitted.path} was fitted for layer 0, and llama.cpp adds control vectors only after"
            f" later layers; fit it on other {option('data')}.",
            option="gguf",
            value=0,
            allowed="layers from 1 upwards",
        )
    writer = GGUFWriter(out, "controlvector")
    writer.add_string("controlvector.model_hint", fitted.on.model)
    writer.add_uint32("controlvector.layer_count", fitted.on.layers)
    for layer in sorted(vector.touched_layers):
        difference = fitted.tensor("difference")[fitted.index_of(layer)]
        writer.add_tensor(f"direction.{layer}", (vector.factor * difference).float().numpy())
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
