"""The versions of vLLM that the plug-in supports.

It depends on attention metadata, the request path and the renderer, none of which vLLM keeps stable
between minor versions.
"""

from __future__ import annotations

from holdfast.errors import ModelError

SUPPORTED = ("0.32",)


def check_version(version: str) -> None:
    """Refuses a vLLM that was not tested.

    Raises:
        ModelError: names this version and the supported ones.
    """
    if not version.startswith(tuple(f"{minor}." for minor in SUPPORTED)):
        raise ModelError(
            f"holdfast-vllm works with vLLM {' and '.join(SUPPORTED)}, not {version}; install a"
            " supported version, or uninstall holdfast-vllm to serve without steering."
        )
