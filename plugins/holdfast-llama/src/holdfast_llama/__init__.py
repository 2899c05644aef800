"""Attention steering inside unmodified llama.cpp.

    weights.py    reads and rewrites attention weights between two nodes of the graph;
                  steered_rows.py: their sums over the span, layer_moves.py: their factors
    native.py     llama.cpp's models and contexts, through llama-cpp-python's bindings
    slots.py      llama.cpp as a model of Holdfast's engine
    model.py      `llama:FILE.gguf`: a chat model
    block.py      `steering`: for code that uses llama-cpp-python; span_search.py finds its span
    versions.py   the releases of llama-cpp-python that the plug-in supports

The methods and their mathematics are in `holdfast.methods`; dialogs, batches and draws are in
`holdfast.models` and `holdfast.generation`. Importing this package does not import llama.cpp.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from holdfast_llama.block import SteeringBlock, steering

__version__ = "0.2.0"
__all__ = ["SteeringBlock", "steering"]


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from holdfast_llama import block

    return getattr(block, name)
