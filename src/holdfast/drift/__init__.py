"""The benchmark of Li et al. (2024): how well an agent keeps to its prompt over a conversation."""

from typing import TYPE_CHECKING, Any

from holdfast.lazy_imports import import_name

if TYPE_CHECKING:
    from holdfast.drift.asking_baseline import ask_baseline
    from holdfast.drift.benchmark import run
    from holdfast.drift.cases import CATEGORIES, Case, Persona, Rule, Suite
    from holdfast.drift.settings import Cast, Running, Settings
    from holdfast.drift.suites import load_suite

_LATER = {
    "ask_baseline": "holdfast.drift.asking_baseline",
    "run": "holdfast.drift.benchmark",
    **dict.fromkeys(("CATEGORIES", "Case", "Persona", "Rule", "Suite"), "holdfast.drift.cases"),
    **dict.fromkeys(("Cast", "Running", "Settings"), "holdfast.drift.settings"),
    "load_suite": "holdfast.drift.suites",
}


def __dir__() -> list[str]:
    return [*_LATER]


def __getattr__(name: str) -> Any:
    return import_name(__name__, _LATER, name)
