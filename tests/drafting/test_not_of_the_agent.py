"""Statements about other people, other texts and other commands than the agent's."""

import pytest
from drafted_measures import measures_of

NOT_RULES = [
    "- Web developers never run Maven.",
    "- Users never run `npm`.",
    # what a user types to a coding agent is no shell command
    "- Run `/check` before commits.",
]
NOT_RULES_OF_BOTS = [
    'The source must start with "external:" and a name.',
    'Every ticket number must begin with "HD".',
    "- UI tests: `npx vitest run a.test.ts` (don't include `src/` in the path)",
]


@pytest.mark.parametrize("text", NOT_RULES)
def test_not_rules_of_the_agent(text: str) -> None:
    assert measures_of(text) == []


@pytest.mark.parametrize("text", NOT_RULES_OF_BOTS)
def test_not_rules_about_replies(text: str) -> None:
    assert measures_of(text, of_bot=True) == []


def test_similar_rules_stay() -> None:
    assert measures_of("- pnpm, never npm") != []
    assert measures_of("- Developers never run `npm publish`.") != []
    assert measures_of("- Run `/usr/local/bin/check` before commits.") != []
    for subject in ("Every reply", "The assistant", "Each of your messages"):
        assert measures_of(f'{subject} must start with "Ahoy".', of_bot=True) == [
            {"name": "starts_with", "word": "Ahoy"}
        ]
    assert measures_of('Never say "and/or".', of_bot=True) == [
        {"name": "never_contains", "words": ["and/or"]}
    ]


@pytest.mark.parametrize(
    "text",
    [
        "- Do not touch generated files: `dist/`, `target/`.",
        "- Never edit these folders: `dist/`, `target/`.",
        "- Generated files are never edited: `dist/`, `target/`.",
    ],
)
def test_files_after_a_colon(text: str) -> None:
    assert measures_of(text) == [
        {"name": "file_not_touched", "path": "dist/*"},
        {"name": "file_not_touched", "path": "target/*"},
    ]


def test_files_after_a_colon_with_an_exception() -> None:
    (measure,) = measures_of("- Do not touch generated files: `dist/`, unless asked.")
    assert (measure["name"], measure["changed"]) == ("asks_before", "dist/*")
