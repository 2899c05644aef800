"""The names that Inspect loads through the entry point `holdfast`, without importing torch."""

from __future__ import annotations

from inspect_ai.model import ModelAPI, modelapi

from holdfast.integrations.inspect.drift import drift, self_chat, stability_and_adoption


@modelapi(name="holdfast")
def holdfast() -> type[ModelAPI]:
    """Provides the models `holdfast/default`, `holdfast/PATH` and `holdfast/HUB_ID`."""
    from holdfast.integrations.inspect.provider import HoldfastAPI

    return HoldfastAPI
