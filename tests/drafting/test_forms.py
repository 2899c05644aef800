"""Each form matches its example, which is how its pattern is read."""

import importlib
import pkgutil
from collections.abc import Iterator
from typing import Any

import pytest

import holdfast.drafting
from holdfast.drafting.grammar.forms import Form


def _forms_in(value: Any) -> Iterator[Form]:
    """The forms in a value of a module, which has them in tuples and in the fields of objects."""
    if isinstance(value, Form):
        yield value
    elif isinstance(value, tuple):
        for item in value:
            yield from _forms_in(item)
    elif type(value).__module__.startswith("holdfast.drafting") and hasattr(value, "__dict__"):
        yield from _forms_in(tuple(vars(value).values()))


MODULES = [
    importlib.import_module(module.name)
    for module in pkgutil.walk_packages(holdfast.drafting.__path__, "holdfast.drafting.")
]
FORMS = {
    (module.__name__.rpartition(".")[2], form.example, form.pattern.pattern): form
    for module in MODULES
    for value in vars(module).values()
    for form in _forms_in(value)
}


@pytest.mark.parametrize("form", FORMS.values(), ids=[f"{m}: {e}" for m, e, _ in FORMS])
def test_a_form_matches_its_example(form):
    match = form.pattern.fullmatch(form.example) or form.pattern.search(form.example)
    assert match, form.pattern.pattern
    # a part that may be missing, such as the words before the verb, is no excuse for the rest
    assert len(match[0]) >= len(form.example) / 3


def test_the_forms_of_all_modules_are_tested():
    assert len(FORMS) > 150
    assert {module for module, _, _ in FORMS} >= {
        "asking_rules",
        "commit_rules",
        "wording_rules",
    }
