"""The tasks and models that Inspect loads from Holdfast, through the entry point
`holdfast` of the group `inspect_ai`.

    inspect eval holdfast/drift --model holdfast/default -T conversations=48
    inspect eval holdfast/tasks --model holdfast/default -M method=boost:factor=4

Importing this registers names and loads no model, nor torch.
"""

from __future__ import annotations

from inspect_ai.model import ModelAPI, modelapi

from holdfast.integrations.inspect.drift import drift, self_chat, stability_and_adoption
from holdfast.integrations.inspect.tasks import measured, tasks

__all__ = ["drift", "holdfast", "measured", "self_chat", "stability_and_adoption", "tasks"]


@modelapi(name="holdfast")
def holdfast() -> type[ModelAPI]:
    """`holdfast/default`, `holdfast/PATH` and `holdfast/HUB_ID`."""
    from holdfast.integrations.inspect.provider import HoldfastAPI

    return HoldfastAPI
