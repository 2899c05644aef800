"""The releases of llama-cpp-python that the plug-in supports.

Each release bundles a different llama.cpp, with different structs and tensor names: 0.3.4, for
example, called the attention weights `kq_soft_max_ext`. So exact releases are pinned.
"""

from __future__ import annotations

from holdfast.errors import ModelError

SUPPORTED = ("0.3.36",)


def check_version(version: str) -> None:
    """Refuses a llama-cpp-python that was not tested.

    Raises:
        ModelError: names this version and the supported ones.
    """
    if version not in SUPPORTED:
        raise ModelError(
            f"holdfast-llama works with llama-cpp-python {' and '.join(SUPPORTED)}, not {version},"
            f" which bundles another llama.cpp; run pip install llama-cpp-python=={SUPPORTED[-1]}."
        )
