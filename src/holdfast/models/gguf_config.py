"""The configuration of the model in a GGUF file, as transformers reads it.

For most architectures transformers reads the keys of a file by the package `gguf`, which takes ten
seconds for a vocabulary of 150,000 tokens (see `gguf_header.py`), and it takes no header that was
read otherwise, only a path. So it is given a small copy of the file, without its weights and with a
vocabulary of one token. Its newer loader is faster and gets the file itself.
"""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import numpy as np

from holdfast.models.gguf_header import ARRAY, STRING, TOKENS, Header

if TYPE_CHECKING:
    from transformers import PreTrainedConfig

_COPY = "copy.gguf"
_ONE_TOKEN = ["a"]
_SCALING = "gpt-oss.rope.scaling."


def uses_newer_loader(header: Header) -> bool:
    """Whether transformers reads this architecture without the package `gguf`."""
    from transformers.integrations.gguf import GGUF_CONFIG_ARCHS

    return header.architecture in GGUF_CONFIG_ARCHS


def read_config_fields(header: Header) -> dict[str, Any]:
    """The fields of the configuration, under their names in transformers."""
    from transformers import PreTrainedConfig

    fields: dict[str, Any]
    with TemporaryDirectory() as folder:  # no file beside the GGUF file counts
        if uses_newer_loader(header):
            file = str(header.path.absolute())
            fields, _ = PreTrainedConfig.get_config_dict(folder, gguf_file=file)
            return fields
        _write_copy(header, Path(folder) / _COPY)
        fields, _ = PreTrainedConfig.get_config_dict(folder, gguf_file=_COPY)
    tokens = header.values.get(TOKENS)
    if tokens is not None and fields.get("vocab_size") == len(_ONE_TOKEN):
        fields["vocab_size"] = len(tokens.raw)  # which transformers counts if no key says it
    if scaling := _gpt_oss_scaling(header):
        fields["rope_scaling"] = scaling
    return fields


def config_of(fields: dict[str, Any]) -> PreTrainedConfig:
    """The configuration with these fields."""
    from transformers import AutoConfig

    kind = type(AutoConfig.for_model(fields["model_type"]))
    config: PreTrainedConfig = kind.from_dict(dict(fields))
    return config


def _write_copy(header: Header, path: Path) -> None:
    """Writes the keys that a configuration is read from, and the names of the tensors."""
    from gguf import GGUFValueType, GGUFWriter

    writer = GGUFWriter(path, header.architecture)
    for key, value in header.values.items():
        is_vocabulary = value.is_array and key.startswith("tokenizer.")
        is_left_out = is_vocabulary or key.startswith(_SCALING)
        # the writer has its own alignment, writes the architecture itself, and no empty lists
        if is_left_out or key in ("general.architecture", "general.alignment"):
            continue
        if not value.is_array:
            writer.add_key_value(key, value.content, GGUFValueType(value.kind))
        elif value.raw:
            kind = GGUFValueType(value.kind)
            writer.add_key_value(key, value.content, GGUFValueType(ARRAY), kind)
    if TOKENS in header.values:
        writer.add_key_value(TOKENS, _ONE_TOKEN, GGUFValueType(ARRAY), GGUFValueType(STRING))
    for tensor in header.tensors:
        writer.add_tensor(tensor.name, np.zeros(1, np.float32))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def _gpt_oss_scaling(header: Header) -> dict[str, Any]:
    """The scaling of positions of gpt-oss, for which transformers reads the lengths of the keys in
    place of their values (up to 5.24 at least); {} for other files.
    """
    scaling: dict[str, Any] = {}
    for key, value in header.values.items():
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
