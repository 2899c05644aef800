"""Holdfast's models in lm-evaluation-harness, under the name `holdfast`.

    holdfast lm-eval --tasks arc_easy --model_args method=boost:factor=4 --apply_chat_template \\
        --system_instruction "Answer with one letter."

In Python, call `register()` before `lm_eval.simple_evaluate`. Versions of the harness that support
the entry point group `lm_eval.models` find the models by themselves.
"""

from __future__ import annotations

NAME = "holdfast"
_MODEL = "holdfast.integrations.lm_eval.harness_model:HoldfastLM"


def register() -> None:
    """Makes `--model holdfast` known to the harness in this process, without importing torch."""
    from lm_eval.api.registry import model_registry

    if NAME not in model_registry:
        model_registry.register(NAME, target=_MODEL)
