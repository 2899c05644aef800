"""The published benchmark: read as text, matched by its wording, scored as published or mended."""

import json
from collections import Counter
from pathlib import Path

import pytest
from measure_rows import rows_of
from paths import ROOT

from holdfast.drift import li2024
from holdfast.drift.li2024 import measures_by_key
from holdfast.drift.suites import load_suite
from holdfast.errors import HoldfastError, UsageError
from holdfast.measures import build

TABLE = ROOT.parent / "shared" / "data" / "li2024_prompts.json"
needs_table = pytest.mark.skipif(
    not TABLE.is_file(), reason="../shared/data/li2024_prompts.json is absent"
)
LIST_OF = {
    "answer-string format pattern": "pattern_system_prompts",
    "character of the agent": "persona_system_prompts",
    "multi-choice responses": "multiple_choice_system_prompts",
    "memorization of certain facts": "memorization_system_prompts",
    "languages the agent speaks": "language_system_prompts",
}
# Mended by strict scoring though no defect is listed; the binding says what is mended.
BEYOND_THE_TABLE = {0, 1, 8, 9, 16, 18, 48, 49, 67, 69, 89, 93, 94, 99}.union(
    range(50, 54), range(70, 78), range(81, 88)
)


def published() -> list[dict]:
    return json.loads(TABLE.read_text(encoding="utf-8"))["prompts"]


def source_of(entries: list[dict]) -> str:
    """A file in the published form: lists of (prompt, probe, lambda)."""
    lines = ["import nltk", r"x = '\s'", "nltk.download('punkt')"]
    for category, name in LIST_OF.items():
        group = [e for e in entries if e["category"] == category]
        rows = [
            f"    ({e['system_prompt']!r}, {e['probe']!r}, lambda x: x.upper())," for e in group
        ]
        lines += [f"{name} = [", *rows, "]"]
    return "\n".join([*lines, "system_prompts = " + " + ".join(LIST_OF.values())]) + "\n"


@pytest.fixture
def write(tmp_path):
    def to_file(text: str | bytes) -> str:
        path = tmp_path / "hundred_system_prompts.py"
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return f"li2024:{path}"

    return to_file


@needs_table
def test_all_hundred_are_bound_in_the_papers_order(write):
    entries = published()
    suite = load_suite(write(source_of(entries)))
    expected = [(e["system_prompt"], (e["probe"],)) for e in entries]
    assert [(c.system_prompt, c.rules[0].probes) for c in suite.cases] == expected
    assert [c.id for c in suite.cases] == [f"li2024-{e['id']:02d}" for e in entries]
    counts = {"pattern": 29, "multiple_choice": 27, "persona": 14, "memorization": 27}
    assert Counter(c.category for c in suite.cases) == {**counts, "language": 3}
    # two entries have the same prompt and must stay separate
    assert len({c.system_prompt for c in suite.cases}) == 99
    assert suite.name == "li2024-strict" and len(suite.starters) == 40


@needs_table
def test_the_two_scorings_differ_only_for_the_listed_defects(write):
    path = write(source_of(published()))
    strict, released = load_suite(path), load_suite(path, scoring="released")
    assert strict.fingerprint != released.fingerprint and strict.notes != released.notes
    defects = {e["id"] for e in published() if e.get("defect")}
    assert {
        n for n, b in enumerate(measures_by_key().values()) if b.mends
    } == defects | BEYOND_THE_TABLE
    london = "London is lovely and the Tower is a must, so I went there early."
    for n, (a, b) in enumerate(zip(strict.cases, released.cases, strict=True)):
        if n not in defects | BEYOND_THE_TABLE:
            scores = (case.rules[0].measure.score(london).value for case in (a, b))
            assert len(set(scores)) == 1, a.id


ROWS = [tuple(row.values()) for row in rows_of("li2024.jsonl")]


@pytest.mark.parametrize(("number", "reply", "released", "strict"), ROWS)
def test_replies_score_as_published_and_as_mended(number, reply, released, strict):
    binding = list(measures_by_key().values())[number]
    assert build(binding.released).score(reply).value == pytest.approx(released, abs=0.02)
    assert build(binding.strict).score(reply).value == pytest.approx(strict, abs=0.02)


def test_published_moods_reach_the_top_of_the_mended_scale():
    binding = list(measures_by_key().values())[59]
    joy = "I love London! What a wonderful, happy, beautiful day with great friends!"
    assert build(binding.released).score(joy).value < 0.8 < build(binding.strict).score(joy).value


def test_every_binding_builds_and_scores_any_reply():
    assert len(measures_by_key()) == 100 and len({b.id for b in measures_by_key().values()}) == 100
    for binding in measures_by_key().values():
        for spec in (binding.released, binding.strict):
            for reply in ("", " \n", "A", "???", "\ud800", "Hello, it is 5 o'clock."):
                assert 0.0 <= build(spec).score(reply).value <= 1.0


@needs_table
def test_no_published_text_is_shipped():
    """The table holds hashes and measures only, and none of our own prompts is one of theirs."""
    assets = Path(li2024.__file__).parents[1] / "assets" / "suites"
    files = [(assets / name).read_text(encoding="utf-8") for name in ("li2024.json", "core.yaml")]
    plain = " ".join(" ".join(files).replace("\\", "").casefold().split())
    for entry in published():
        assert " ".join(entry["system_prompt"].casefold().split()) not in plain


@needs_table
def test_spacing_quotes_and_case_do_not_matter(write):
    def add_spaces(text):
        return "  " + text.replace(" ", "  ").replace("'", "’") + "\n"

    variants = [{**e, "system_prompt": add_spaces(e["system_prompt"])} for e in published()]
    cases = load_suite(write(source_of(variants))).cases
    assert [c.id for c in cases] == [b.id for b in measures_by_key().values()]


@needs_table
def test_missing_entries_are_named(write):
    entries = published()
    incomplete = [*entries[:7], {**entries[7], "probe": "And you?"}, *entries[8:], entries[3]]
    del incomplete[50]
    message = r"lacks 2 of the 100 published entries \(li2024-07, li2024-50\); give the published"
    with pytest.raises(UsageError, match=message):
        load_suite(write(source_of(incomplete)))


@needs_table
def test_strings_may_be_joined_and_lists_annotated(write):
    source = source_of(published())
    whole, parts = "'Always start your reply with", "'Always start ' + f'your ' 'reply with"
    joined = source.replace(whole, parts, 1)
    annotated = joined.replace("persona_system_prompts = [", "persona_system_prompts: list = [", 1)
    assert annotated.count(" + f'your '") == 1 and annotated.count(": list") == 1
    assert load_suite(write(annotated)).fingerprint == load_suite(write(source)).fingerprint


def test_the_file_is_never_run(write, tmp_path):
    trap = tmp_path / "ran"
    hostile = (
        f"open({str(trap)!r}, 'w').write('x')\n"
        f"x = [('a', 'b', open({str(trap)!r}, 'w')), (open({str(trap)!r}, 'w').name, 'b', None)]"
    )
    with pytest.raises(UsageError, match="lacks 100 of the 100"):
        load_suite(write(hostile))
    assert not trap.exists()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("x = [", r"is not Python \(line 1: "),
        ("x = '\x00'", r"(cannot be parsed|is not Python)"),
        (b"x = '\xff\xfe'", r"is not Python"),
        ("x = " + "(" * 2000 + ")" * 2000, r"(cannot be parsed|is not Python)"),
        ("", r"lacks 100 of the 100 published entries \(li2024-00, .*, \.\.\.\); give the"),
        ("x = [('only a prompt',), 'a prompt', ('a', 3, None), (f'{x}', 'b')]", r"lacks 100 of"),
    ],
)
def test_a_file_of_another_kind_is_named(write, text, message):
    with pytest.raises(UsageError, match=message):
        load_suite(write(text))


def test_absent_file_is_named(tmp_path):
    with pytest.raises(UsageError, match=r"absent.py .*No such file"):
        load_suite(f"li2024:{tmp_path / 'absent.py'}")


@needs_table
def test_hub_is_asked_for_the_dataset_file(monkeypatch, tmp_path):
    import huggingface_hub

    path = tmp_path / "from_hub.py"
    path.write_text(source_of(published()), encoding="utf-8")
    downloads = []

    def download(*arguments, **options):
        downloads.append((arguments, options))
        return str(path)

    monkeypatch.setattr(huggingface_hub, "hf_hub_download", download)
    assert len(load_suite("li2024:hub").cases) == 100
    arguments = ("Naomibas/llm-system-prompts-benchmark", "hundred_system_prompts.py")
    assert downloads == [(arguments, {"repo_type": "dataset"})]


def test_unreachable_hub_is_named(monkeypatch):
    import huggingface_hub

    def fail(*_, **__):
        raise OSError("no network")

    monkeypatch.setattr(huggingface_hub, "hf_hub_download", fail)
    message = r"could not be fetched from the hub dataset Naomibas.*pass li2024:PATH"
    with pytest.raises(HoldfastError, match=message) as excinfo:
        load_suite("li2024:hub")
    assert not isinstance(excinfo.value, UsageError), "no usage error"
