"""Reads the configuration of the model in a GGUF file, with the help of transformers.

For most architectures transformers reads the keys of a file with the package `gguf`, which takes
ten seconds for a vocabulary of 150,000 tokens (see `gguf.py`), and it accepts only a path, no
header that has already been read. So it is given a small copy of the file, without the weights
and with a vocabulary of one token. Its newer loader is faster and is given the file itself.
"""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import numpy as np

from holdfast.models.gguf import GGUF, ROTARY_FACTORS, TOKENS
from holdfast.models.gguf_header import ARRAY, STRING

if TYPE_CHECKING:
    from transformers import PreTrainedConfig

_COPY = "copy.gguf"
_ONE_TOKEN = ["a"]
_SCALING = "gpt-oss.rope.scaling."


def uses_newer_loader(gguf: GGUF) -> bool:
    """Whether transformers reads this architecture without the package `gguf`."""
    from transformers.integrations.gguf import GGUF_CONFIG_ARCHS

    return gguf.architecture in GGUF_CONFIG_ARCHS


def read_config_fields(gguf: GGUF) -> dict[str, Any]:
    """Reads the fields of the configuration, under their names in transformers."""
    from transformers import PreTrainedConfig

    fields: dict[str, Any]
    with TemporaryDirectory() as folder:  # so that no file beside the GGUF file is read
        if uses_newer_loader(gguf):
            file = str(gguf.path.absolute())
            fields, _ = PreTrainedConfig.get_config_dict(folder, gguf_file=file)
            return fields
        _write_copy(gguf, Path(folder) / _COPY)
        fields, _ = PreTrainedConfig.get_config_dict(folder, gguf_file=_COPY)
    tokens = gguf.values.get(TOKENS)
    if tokens is not None and fields.get("vocab_size") == len(_ONE_TOKEN):
        fields["vocab_size"] = len(tokens.raw)  # without a key for it, transformers has counted
    if scaling := _gpt_oss_scaling(gguf):
        fields["rope_scaling"] = scaling
    return fields


def config_of(fields: dict[str, Any]) -> PreTrainedConfig:
    """Makes a configuration of these fields."""
    from transformers import AutoConfig

    kind = type(AutoConfig.for_model(fields["model_type"]))
    config: PreTrainedConfig = kind.from_dict(dict(fields))
    return config


def scale_positions(config: PreTrainedConfig, gguf: GGUF) -> None:
    """Adds the file's factors of the rotary frequencies, if any, which transformers ignores."""
    factors = next((t.data.tolist() for t in gguf.tensors if t.name == ROTARY_FACTORS), None)
    if factors is None:
        return
    config.rope_parameters = {
        **config.rope_parameters,
        "rope_type": "longrope",  # divides each frequency by its own factor
        "short_factor": factors,
        "long_factor": factors,
        "factor": 1.0,
        "attention_factor": 1.0,
        "original_max_position_embeddings": config.max_position_embeddings,
    }


def _write_copy(gguf: GGUF, path: Path) -> None:
    """Writes a GGUF file with the keys of the configuration and the names of the tensors."""
    from gguf import GGUFValueType, GGUFWriter

    writer = GGUFWriter(path, gguf.architecture)
    for key, value in gguf.values.items():
        is_vocabulary = value.is_array and key.startswith("tokenizer.")
        is_left_out = is_vocabulary or key.startswith(_SCALING)
        # the writer chooses its own alignment, and writes the architecture itself
        if is_left_out or key in ("general.architecture", "general.alignment"):
            continue
        if not value.is_array:
            writer.add_key_value(key, value.content, GGUFValueType(value.kind))
        elif value.raw:  # it cannot write an empty list
            kind = GGUFValueType(value.kind)
            writer.add_key_value(key, value.content, GGUFValueType(ARRAY), kind)
    if TOKENS in gguf.values:
        writer.add_key_value(TOKENS, _ONE_TOKEN, GGUFValueType(ARRAY), GGUFValueType(STRING))
    for tensor in gguf.tensors:
        writer.add_tensor(tensor.name, np.zeros(1, np.float32))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def _gpt_oss_scaling(gguf: GGUF) -> dict[str, Any]:
    """Reads the scaling of positions of gpt-oss; {} for other files.

    transformers (up to 5.24 at least) reads the lengths of these keys in place of their values.
    """
    scaling: dict[str, Any] = {}
    for key, value in gguf.values.items():
        if not key.startswith(_SCALING):
            continue
        name = key.removeprefix(_SCALING)
        if name == "type":
            scaling["rope_type"] = value.content
        elif name == "original_context_length":
            scaling["original_max_position_embeddings"] = int(value.content)
        elif name in ("factor", "attention_factor", "beta_fast", "beta_slow"):
            scaling[name] = float(value.content)
        else:
            scaling[name] = value.content
    return scaling if "rope_type" in scaling else {}
