"""PASTA's tasks: metrics checked by hand and by oracles, data, the generator, and runs."""

import csv
import gzip
import itertools
import json
import math
import random
import re
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from page_outline import read_page
from refusals import refusal_in
from synthetic_run import as_json
from test_drift import Scripted
from tiny import model

import holdfast
from holdfast import records, tasks
from holdfast.analysis.task_results import LEAST_FLUENCY, average, read_results
from holdfast.cli import main
from holdfast.errors import ModelError, PromptError, RecordsError, UnknownName, UsageError
from holdfast.generation.sampling import Sampling
from holdfast.methods import Pasta, Repetition
from holdfast.papers.zhang2024 import catalogue, data, published_data, synthetic
from holdfast.papers.zhang2024.catalogue import BIOS, COUNTERFACT, JSON, PRONOUNS
from holdfast.papers.zhang2024.data import BIOGRAPHIES, FACTS, SPLITS, mark, spans_of
from holdfast.papers.zhang2024.task_settings import demonstrations, draw_samples, request_of
from holdfast.report.task_tables import table

ROOT = Path(__file__).parents[1]
CORE = ROOT.parent / "shared" / "data" / "counterfact_core.csv.gz"
EXACT = 1e-12  # both sides are float64 sums of a few dozen terms

JSON_REPLIES = [  # reply, valid JSON in it, "nurse" as the occupation in it
    ('{"name": "Ann", "occupation": "nurse"}', 1, 1),
    ('Sure! {"name": "Ann", "occupation": "Nurse"}\nI hope this helps. {"name": ', 1, 1),
    ('{"name": "Ann \\"Annie\\" Lee", "occupation": "nurse"}', 1, 1),
    ('{"name": "Ann "Annie" Lee", "occupation": "nurse"}', 0, 0),
    ("{'name': 'Ann', 'occupation': 'nurse'}", 0, 0),
    ("{“name”: “Ann”, “occupation”: “nurse”}", 0, 0),
    ('{"name": "Ann", "occupation": "nurse",}', 0, 0),
    ('{"name": "Ann", "occupation": "nurse"', 0, 0),
    ('{"name": , "occupation": , }', 0, 0),
    ('{"name": "nurse", "occupation": "chef"}', 1, 0),
    ('{"name": "Ann", "occupation": "nursery owner"}', 1, 0),
    ('{"Name": "Ann", "Occupation": "head nurse"}', 1, 1),
    ('{"job": "nurse"}', 1, 1),
    ('{"person": {"name": "Ann", "occupation": ["chef", "nurse"]}}', 1, 1),
    ('{name} {"occupation": "nurse"}', 1, 1),
    ('{"occupation": "chef"} {"occupation": "nurse"}', 1, 0),
    ('{"occupation": NaN}', 0, 0),
    ('["nurse"]', 0, 0),
    ("{}", 1, 0),
    ("Ann is a nurse.", 0, 0),
    ("", 0, 0),
]
PRONOUN_REPLIES = [  # reply, she and he changed, all changed
    ("Ann is a nurse. They like their cat.", 1, 1),
    ("They're a nurse, and they've been one for years.", 1, 1),
    ("Ann is a nurse. They like her cat.", 1, 0),
    ("They like him, and the house is hers.", 1, 0),
    ("They taught himself chess.", 1, 0),
    ("They taught themselves chess; the house is theirs, not Sheila's or the heron's.", 1, 1),
    ("They like it. She's a nurse.", 0, 0),
    ("They like it, but HE does not.", 0, 0),
    ("They like it. He'd say so.", 0, 0),
    ("He likes them.", 0, 0),
    ("Their cat is here.", 0, 0),
    ("Ann is a nurse.", 0, 0),
    ("", 0, 0),
]


def json_by_substrings(reply: str) -> bool:
    """Whether the standard library parses some substring from a "{" to a "}"."""
    ends = [i for i, c in enumerate(reply) if c == "}"]
    for start in (i for i, c in enumerate(reply) if c == "{"):
        for end in ends:
            try:
                json.loads(reply[start : end + 1], parse_constant=lambda name: 1 / 0)
            except (ValueError, ZeroDivisionError):
                continue
            return True
    return False


def entropy_by_hand(tokens: list[str]) -> float:
    """(2/3 H2 + 4/3 H3) / 2 in bits, each n-gram's probability counted one by one."""
    total = 0.0
    for n, weight in ((2, 2 / 3), (3, 4 / 3)):
        grams = [tuple(tokens[i : i + n]) for i in range(len(tokens) - n + 1)]
        total += weight * -sum(
            grams.count(g) / len(grams) * math.log(grams.count(g) / len(grams)) / math.log(2)
            for g in set(grams)
        )
    return total / 2


@pytest.mark.parametrize(("reply", "valid", "right"), JSON_REPLIES)
def test_json_replies_scored_by_hand(reply, valid, right):
    ann = data.Biography("Ann", "nurse", "Ann is a nurse.", "Ann is a nurse.", "")
    sample = JSON.ask(ann, "original")
    assert JSON.score(sample, reply) == {"format": valid, "prediction": right}
    assert json_by_substrings(reply) == bool(valid)


def test_json_is_found_if_and_only_if_a_substring_parses():
    rng = random.Random(0)
    pieces = ('{"a": ', '"b": ', ": ", ", ", " ", "null", "\\", *'{}"1[]x', "{}")
    replies = ["".join(rng.choices(pieces, k=rng.randint(1, 9))) for _ in range(600)]
    found = [catalogue.first_object(reply) is not None for reply in replies]
    assert found == [json_by_substrings(reply) for reply in replies] and 20 < sum(found) < 580
    assert catalogue.first_object('{"a":' * 100_000) is None


def test_an_occupation_of_several_words_matches_only_as_a_whole():
    assert catalogue.holds_target({"occupation": "Senior Software_Engineer"}, "software engineer")
    assert not catalogue.holds_target({"occupation": "engineer of software"}, "software engineer")
    assert not catalogue.holds_target({"occupation": "adjunct"}, "dj")
    assert not catalogue.holds_target({"occupation": None}, "dj")


@pytest.mark.parametrize(("reply", "changed", "every"), PRONOUN_REPLIES)
def test_pronoun_replies_scored_by_hand(reply, changed, every):
    assert PRONOUNS.score(None, reply) == {"accuracy": changed, "all changed": every}


@pytest.mark.parametrize(
    ("text", "changed"),
    [
        ("She sold her house and he saw her.", "They sold their house and they saw them."),
        ("The cat is hers. Her cat knows him.", "The cat is theirs. Their cat knows them."),
        ("He taught himself; his dog saw her.", "They taught themselves; their dog saw them."),
        ("They saw the heron there, in Sheffield.", "They saw the heron there, in Sheffield."),
    ],
)
def test_pronouns_are_changed_in_any_text(text, changed):
    assert data.change_pronouns(text) == changed


def test_fluency_is_the_weighted_entropy_of_n_grams():
    words = "the old town is far from the river and the garden is far from the old town".split()
    assert catalogue.fluency(" ".join(words)) == pytest.approx(entropy_by_hand(words), abs=EXACT)
    marks = entropy_by_hand("They're here , aren't they ? They're here , aren't they ?".split())
    twice = catalogue.fluency("They're here, aren't they? They're here, aren't they?")
    assert twice == pytest.approx(marks, abs=EXACT)
    assert catalogue.fluency("no " * 50) == 0
    assert catalogue.fluency("one two three four five six seven eight nine") is None
    ten = catalogue.fluency("one two three four five six seven eight nine ten")
    # all different: log2 of 9 bigrams and of 8 trigrams
    assert ten == pytest.approx((2 / 3 * math.log2(9) + 4 / 3 * 3) / 2, abs=EXACT)
    assert ten > LEAST_FLUENCY


def test_choices_scored_by_hand():
    person = data.Biography("Ann", "nurse", "Ann is a nurse.", "Ann is a nurse. She likes tea.", "")
    sample = BIOS.ask(person, "original", ("chef", "judge", "nurse"))
    assert BIOS.score(sample, [(-3.0, -9.0, -2.5)]) == {"accuracy": 1}
    assert BIOS.score(sample, [(-2.0, -9.0, -2.5)]) == {"accuracy": 0}
    others = ("The instrument of Ann is the", "Ann is heard on the")
    fact = data.ChangedFact("Ann", "{} plays the", "harp", "flute", others)
    sample = COUNTERFACT.ask(fact, "original")
    scores = COUNTERFACT.score(sample, [(-1.0, -2.0), (-2.0, -1.0), (-3.0, -4.0)])
    assert scores == {"efficacy": 1, "paraphrase": 0.5}
    assert COUNTERFACT.score(sample, [(-1.0, -1.0)]) == {"efficacy": 0}


def test_prompts_and_emphasis_match_the_paper():
    first, text = "Ann is a nurse.", "Ann is a nurse. She likes tea."
    person = data.Biography("Ann", "nurse", first, text, "Ann is a nurse. They like tea.")
    original, shortened, rephrased = (JSON.ask(person, wording) for wording in data.INSTRUCTIONS)
    question = "Answer the occupation of Ann and generate the answer as json format."
    example = 'Here is an example: {"name": , "occupation": , }.'
    instruction = f"{question} {example} Now generate the answer."
    assert original.prompts == (f"{text} {instruction}",)
    assert original.emphasis == (instruction,)
    assert shortened.prompts == (f"{text} {question}",)
    marked = mark(rephrased.prompts[0], rephrased.emphasis, "*")
    assert marked == f"*{question} {example}* {text} *Now generate the answer.*"
    assert JSON.score(original, original.reply) == {"format": 1, "prediction": 1}
    for wording in data.INSTRUCTIONS:
        changed = PRONOUNS.ask(person, wording)
        assert "'she' and 'he' with 'they'" in changed.emphasis[0]
        assert changed.prompts == (f"{text} {changed.emphasis[0]}",)
    asked = BIOS.ask(person, "original", ("nurse",))
    assert asked.prompts == (f"{text} Ann has the occupation of",)
    relation, other = "The pet of {} is a", ("At home Ann has a",)
    pet = data.ChangedFact("Ann", relation, "cat", "dog", other, "Bo has a cow.")
    fact = COUNTERFACT.ask(pet, "original")
    facts = "Previously, the pet of Ann is a cat. Currently, the pet of Ann is a dog. Bo has a cow."
    assert fact.prompts == (f"{facts} The pet of Ann is a", f"{facts} At home Ann has a")
    assert fact.emphasis == ("Currently, the pet of Ann is a dog.",)
    assert fact.options == ("dog", "cat")
    band = data.ChangedFact("The Who", "{} played in", "Leeds", "Rome")
    told = "Previously, The Who played in Leeds. Currently, The Who played in Rome."
    assert COUNTERFACT.ask(band, "original").prompts == (f"{told} The Who played in",)
    assert mark("say it now", ("it", "now"), '"') == 'say "it" "now"'
    assert spans_of("say it now", ("now", "it")) == [(4, 6), (7, 10)]
    with pytest.raises(PromptError, match=r"'it' stands 2 times"):
        spans_of("say it, it", ("it",))


def test_the_generator_is_deterministic_and_its_splits_share_nothing():
    made = {split: synthetic.make_data(3, split, 200) for split in SPLITS}
    again, fewer = synthetic.make_data(3, "test", 200), synthetic.make_data(3, "test", 50)
    assert made["test"] == again != synthetic.make_data(4, "test", 200)
    some = made["test"].items[BIOGRAPHIES]["test"][:50]
    assert some == fewer.items[BIOGRAPHIES]["test"]
    people = {split: made[split].items[BIOGRAPHIES][split] for split in SPLITS}
    facts = {split: made[split].items[FACTS][split] for split in SPLITS}
    for pick in (
        lambda split: {person.name for person in people[split]},
        lambda split: {person.text for person in people[split]},
        lambda split: {fact.subject for fact in facts[split]},
    ):
        parts = [pick(split) for split in SPLITS]
        assert all(parts) and len(set().union(*parts)) == sum(map(len, parts))
    for split, some in people.items():
        words = [len(person.text.split()) for person in some]
        assert min(words) >= 25 and max(words) <= 90, split
        assert len({person.occupation for person in some}) > 20
        for person in some:
            assert person.text.count(person.first) == 1
            assert person.first.count(person.occupation) == 1
            assert "{" not in person.text + person.changed
            assert catalogue.SUBJECTS & set(catalogue.words_of(person.text))
            assert catalogue.all_pronouns_changed(person.changed)
    for fact in itertools.chain.from_iterable(facts.values()):
        assert fact.old != fact.new and fact.paraphrases and fact.subject not in fact.aside
    told = " ".join(person.text for split in ("train", "validation") for person in people[split])
    assert "As a child" not in told
    assert any("As a child" in person.text for person in people["test"])


def test_the_shape_sets_length_and_distraction():
    rng = random.Random(1)
    plain, full = synthetic.TextShape((2, 2), 0.0), synthetic.TextShape((16, 16), 1.0)
    for _ in range(50):
        short = synthetic.biography(rng, "test", plain)
        long = synthetic.biography(rng, "test", full)
        jobs = {*synthetic.OCCUPATIONS} & {*catalogue.words_of(short.text)}
        others = jobs - {short.occupation}
        assert short.text.count(".") == 3 and not others and long.text.count(".") == 17
        assert sum(catalogue.words_of(long.text).count(job) for job in synthetic.OCCUPATIONS) >= 8
        assert synthetic.changed_fact(rng, "test", synthetic.TextShape(asides=0)).aside == ""
    for wrong in (
        lambda: synthetic.TextShape((3, 2)),
        lambda: synthetic.TextShape((1, 17)),
        lambda: synthetic.TextShape(distraction=1.5),
        lambda: synthetic.TextShape((0, 2)),
        lambda: synthetic.biography(rng, "dev"),
    ):
        with pytest.raises(UsageError):
            wrong()


def test_training_dialogues_are_correct_and_contain_no_held_out_values(monkeypatch):
    sys.path.insert(0, str(ROOT / "training"))
    try:
        import dialogues
        import values
    finally:
        sys.path.pop(0)
    names = list(itertools.chain.from_iterable(synthetic.NAMES.values()))
    for name in names:
        assert values.held_out(name) == (synthetic.part_of(name) != "train")
    pools = [pool for name, pool in synthetic.POOLS.items() if name != "job"]
    held = set(filter(values.held_out, itertools.chain(names, *pools)))
    rng, scored = random.Random(2), 0
    for task in tasks.CATALOGUE:
        for _ in range(200):
            asked, reply = dialogues.training_dialogue(task, rng)
            assert (asked["role"], reply["role"]) == ("user", "assistant")
            said = asked["content"] + reply["content"]
            assert asked["content"] and reply["content"]
            assert not held & set(catalogue.words_of(said)) and "{person}" not in said
            assert not held & {word.strip(".,:?'\"") for word in said.split()}
            if task == "pronouns" and "they" in asked["content"]:
                assert catalogue.all_pronouns_changed(reply["content"])
                scored += 1
            elif task == "json" and "json" in asked["content"]:
                found = json.loads(reply["content"])
                assert f"{found['name']} is a " in asked["content"]
                scored += 1
    assert scored > 200
    with pytest.raises(UnknownName, match="jsn"):
        dialogues.training_dialogue("jsn", rng)
    whole = dialogues.Mix(facts=0.15, knowledge=0.15, tasks=1.0)
    assert all(len(dialogues.dialogue(rng, [], mix=whole)) == 2 for _ in range(20))
    monkeypatch.delattr(dialogues, "training_dialogue")  # not called at a task share of 0
    assert len([dialogues.dialogue(rng, []) for _ in range(100)]) == 100


FACT = {
    "case_id": 7,
    "paraphrase_prompts": ["Tea is served. Ann Lee, a native", "Ann Lee spoke the language"],
    "neighborhood_prompts": ["x"],
    "requested_rewrite": {
        "prompt": "The mother tongue of {} is",
        "relation_id": "P103",
        "subject": "Ann Lee",
        "target_new": {"str": "English", "id": "Q1860"},
        "target_true": {"str": "French", "id": "Q150"},
    },
}
BIO = {
    "raw": "Ann Lee is a Yoga Teacher in Ohio. She likes her cat.",
    "start_pos": 34,
    "title": "yoga_teacher",
    "name": ["Ann", "", "Lee"],
    "gender": "F",
}


def write(path: Path, rows) -> str:
    if path.suffix == ".json":
        path.write_text(json.dumps(rows))
    elif path.suffix == ".jsonl":
        path.write_text("\n".join(json.dumps(row) for row in rows) + "\n")
    else:
        with open(path, "w", newline="") as file:
            writer = csv.DictWriter(file, list(rows[0]))
            writer.writeheader()
            writer.writerows(rows)
    return str(path)


def test_the_json_of_rome_is_read(tmp_path):
    found = published_data.load_files(write(tmp_path / "counterfact.json", [FACT]))
    (fact,) = [fact for split in SPLITS for fact in found.items[FACTS][split]]
    paraphrases = tuple(FACT["paraphrase_prompts"])
    language = "The mother tongue of {} is", "French", "English"
    assert fact == data.ChangedFact("Ann Lee", *language, paraphrases)
    twice = published_data.load_files(write(tmp_path / "two.json", [FACT, FACT]))
    assert found.fingerprint != twice.fingerprint


@pytest.mark.parametrize("suffix", ["jsonl", "csv", "json"])
def test_bias_in_bios_is_read(tmp_path, suffix):
    row = BIO if suffix != "csv" else {**BIO, "name": "Ann"}
    found = published_data.load_files(
        write(tmp_path / f"bios_test.{suffix}", [row, {**row, "title": "dj"}])
    )
    first = next(p for p in found.items[BIOGRAPHIES]["test"] if p.occupation == "yoga teacher")
    assert (first.name, first.text) == ("Ann", BIO["raw"])
    assert first.first == "Ann Lee is a Yoga Teacher in Ohio."
    assert first.changed.endswith("They likes their cat.")
    assert found.items[BIOGRAPHIES]["train"] == []
    assert len(found.candidates) == 28 == len(set(found.candidates))
    assert found.candidates[0] == "accountant"


def test_a_folder_of_splits_is_read_and_a_single_file_is_split(tmp_path):
    for name, title in (("train", "dj"), ("dev", "poet"), ("test", "nurse")):
        write(tmp_path / f"bios-{name}-00000.jsonl", [{**BIO, "title": title}])
    found = published_data.load_files(str(tmp_path)).items[BIOGRAPHIES]
    assert [found[split][0].occupation for split in SPLITS] == ["dj", "poet", "nurse"]
    rows = [{**BIO, "raw": f"{BIO['raw']} {n}"} for n in range(700)]
    path = write(tmp_path / "all.jsonl", rows)
    one, again, other = (
        published_data.load_files(path, seed=seed).items[BIOGRAPHIES] for seed in (0, 0, 1)
    )
    assert [70 < len(one[split]) < 130 for split in SPLITS] == [True, True, False]
    assert sum(map(len, one.values())) == 700
    assert one["test"] == again["test"] != other["test"]


@pytest.mark.skipif(not CORE.exists(), reason="../shared/data/counterfact_core.csv.gz is absent")
def test_the_core_of_counterfact_is_read():
    found = published_data.load_files(str(CORE))
    facts = [fact for split in SPLITS for fact in found.items[FACTS][split]]
    with gzip.open(CORE, "rt", newline="") as file:
        false = {row["statement"] for row in csv.DictReader(file) if row["label"] == "0"}
    assert len(facts) == 15982 and {fact.statement(fact.new) + "." for fact in facts} == false
    parts = [{fact.subject for fact in found.items[FACTS][split]} for split in SPLITS]
    assert len(set().union(*parts)) == sum(map(len, parts)) and len(parts[2]) > 4 * len(parts[0])
    samples = draw_samples(found, COUNTERFACT, tasks.Settings(tasks=("counterfact",), samples=500))
    assert len(samples) == 500 and all(len(sample.prompts) == 1 for sample in samples)


def test_synthetic_data_supply_what_the_files_lack(tmp_path):
    settings = tasks.Settings(samples=4)
    file = write(tmp_path / "facts.json", [{**FACT, "case_id": n} for n in range(20)])
    both = tasks.load_data([file, tasks.SYNTHETIC], settings)
    made = tasks.load_data([tasks.SYNTHETIC], settings)
    assert both.items[BIOGRAPHIES] == made.items[BIOGRAPHIES]
    assert both.candidates == made.candidates == synthetic.OCCUPATIONS
    assert both.items[FACTS] == published_data.load_files(file).items[FACTS]
    bios = write(tmp_path / "bios.jsonl", [BIO])
    with pytest.raises(UsageError, match=r"bios\.jsonl"):
        tasks.load_data([file, bios, tasks.SYNTHETIC], settings)


def without(row: dict, dotted: str) -> dict:
    row = json.loads(json.dumps(row))
    *path, last = dotted.split(".")
    inner = row
    for part in path:
        inner = inner[part]
    del inner[last]
    return row


CORE_ROW = {"statement": "x", "label": "0", "relation": "{} is in", "subject": "A"}
CORE_ROW |= {"target": "B", "true_target": "C"}
NO_SLOT = {**FACT, "requested_rewrite": {**FACT["requested_rewrite"], "prompt": "It is"}}
MISSING = ("requested_rewrite.target_new.str", "requested_rewrite.subject", "paraphrase_prompts")


@pytest.mark.parametrize(
    ("name", "good", "bad", "says"),
    [
        *(("a.json", FACT, without(FACT, name), f"row 2 has no '{name}'") for name in MISSING),
        ("a.json", FACT, {**FACT, "paraphrase_prompts": "one"}, r"row 2: .* is 'one'.*list"),
        ("a.json", FACT, NO_SLOT, r"row 2: 'requested_rewrite.prompt' is 'It is'.*{}"),
        ("a.json", FACT, "text", r"row 2 has no 'requested_rewrite.subject'"),
        ("a.csv", CORE_ROW, {**CORE_ROW, "target": ""}, r"row 2: 'target' is ''"),
        ("a.csv", CORE_ROW, {**CORE_ROW, "label": "no"}, r"row 2: 'label' is 'no'"),
        ("a.jsonl", BIO, without(BIO, "raw"), r"row 2 has no 'raw'"),
        ("a.jsonl", BIO, without(BIO, "start_pos"), r"row 2 has no 'start_pos'"),
        ("a.jsonl", BIO, {**BIO, "start_pos": 900}, r"row 2: 'start_pos' is 900"),
        ("a.jsonl", BIO, {**BIO, "title": "wizard"}, r"row 2: 'title' is 'wizard'.*none of the 28"),
    ],
)
def test_malformed_rows_are_reported_with_their_field(tmp_path, name, good, bad, says):
    with pytest.raises(UsageError, match=says):
        published_data.load_files(write(tmp_path / name, [good, bad]))


def test_files_that_are_not_data_are_refused(tmp_path):
    row = '{{"raw": "Ann is a nurse.", "title": "{}", "start_pos": "{}"}}'.format
    for name, content, says in (
        ("BIOS.pkl", b"\x80\x04.", "is a pickle.*never read"),
        ("a.txt", b"x", "is no .json"),
        ("a.json", b"{", "cannot be read"),
        ("b.json", b"{}", "a list of rows"),
        ("s.jsonl", row("\\ud800", 3).encode(), r"row 1 holds '\\ud800', half of a surrogate pair"),
        ("n.json", b"[" + b"9" * 5000 + b"]", "cannot be read .*digit"),
        ("n.jsonl", b'{"raw": ' + b"9" * 5000 + b"}", "Line 1 of .* is not JSON .*digit"),
        ("p.jsonl", row("nurse", "9" * 5000).encode(), "'start_pos' is .*at most 15 digits"),
        ("t.jsonl", row("9" * 5000, 3).encode(), "'title' is .*none of the 28"),
        ("deep.json", b"[" * 100_000, "cannot be read"),
        ("deep.jsonl", b"[" * 100_000, "Line 1 of .* is not JSON"),
        ("z.json.gz", b"\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\xff\xff\xff", "cannot be unpacked"),
        ("c.json", b"[]", "no rows"),
        ("d.json", b'[{"a": 1}]', "first row has a"),
        ("a.jsonl", b'{"raw": "x"}\n{', "Line 2 of .* is not JSON"),
        ("f.csv", b"\xff\xfe", "is not UTF-8 text"),
        ("g.csv.gz", b"no gzip", "cannot be unpacked"),
    ):
        (tmp_path / name).write_bytes(content)
        with pytest.raises(UsageError, match=says):
            published_data.load_files(str(tmp_path / name))
    (tmp_path / "empty").mkdir()
    for where, says in (("nowhere.json", "does not exist"), ("empty", "holds no .json")):
        with pytest.raises(UsageError, match=says):
            published_data.load_files(str(tmp_path / where))


def long_tiny():
    return model(max_position_embeddings=4096)


THREE = ("zero-shot", "marked", "few-shot")
SMALL = tasks.Settings(samples=3, baselines=THREE, draws=2, batch=2, demonstrations=1)


def small_data(settings: tasks.Settings = SMALL) -> data.Data:
    shape = synthetic.TextShape((2, 2), 0.5, 0)
    return synthetic.make_data(settings.seed, settings.split, settings.samples, shape)


@pytest.fixture(autouse=True, scope="module")
def short_replies():
    """A random model never ends a reply: 12 tokens show as much as 256."""
    short = {name: replace(task, max_new_tokens=12) for name, task in tasks.CATALOGUE.items()}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("holdfast.papers.zhang2024.evaluate.CATALOGUE", short)
        yield


@pytest.fixture(scope="module")
def whole(tmp_path_factory) -> records.Run:
    """A run of every task under three baselines, uninterrupted."""
    return tasks.run(long_tiny(), small_data(), tmp_path_factory.mktemp("whole"), SMALL)


def kept(run: records.Run) -> list[dict]:
    steady = ({**record, "seconds": 0} for record in as_json(run))
    return sorted(steady, key=lambda record: (record["method"], record["conversation"]))


def test_interrupted_and_resumed_equals_uninterrupted(tmp_path, whole):
    assert len(whole.records) == 4 * 4 * 3
    left, out = [29], tmp_path / "parts"

    def stop(samples: int, tokens: int = 0) -> None:
        left[0] -= samples
        if left[0] < 0:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        tasks.run(long_tiny(), small_data(), out, SMALL, (), tasks.Running(progress=stop))
    path = out / records.RECORDS
    lines = path.read_bytes().splitlines(keepends=True)
    assert 0 < len(lines) < 48
    # as if killed in the middle of a batch and of a line
    path.write_bytes(b"".join(lines[:-2]) + lines[-1][:30])
    counted: list[int] = []
    running = tasks.Running(progress=lambda samples, tokens=0: counted.append(samples))
    again = tasks.run(long_tiny(), small_data(), out, SMALL, (), running)
    assert kept(again) == kept(whole) and sum(counted) == 48
    other = model(max_position_embeddings=4096, seed=1)
    with pytest.raises(RecordsError, match=r"has changed since|dtype is"):
        tasks.run(other, small_data(), out, SMALL)
    with pytest.raises(RecordsError, match=r"seed is 0"):
        tasks.run(long_tiny(), small_data(), out, replace(SMALL, seed=9))
    with pytest.raises(RecordsError, match="`holdfast tasks`"):
        holdfast.report.write([whole.folder], tmp_path / "page.html")


def test_an_extended_run_equals_one_made_at_once(tmp_path, whole):
    part = replace(SMALL, tasks=SMALL.tasks[:2], baselines=("zero-shot",), draws=1)
    tasks.run(long_tiny(), small_data(), tmp_path / "run", part)
    extended = tasks.run(long_tiny(), small_data(), tmp_path / "run", SMALL)
    assert kept(extended) == kept(whole)
    with pytest.raises(RecordsError, match=r"samples is 3 .* 2 "):
        tasks.run(long_tiny(), small_data(), tmp_path / "run", replace(SMALL, samples=2))


def test_records_and_table_agree(whole):
    run = whole
    results = {(result.task, result.variant): result for result in read_results(run)}
    assert list(results) == list(itertools.product(tasks.CATALOGUE, THREE))
    for (task, variant), result in results.items():
        mine = [r["scores"] for r in as_json(run) if (r["task"], r["variant"]) == (task, variant)]
        assert set(result.scores) == set(tasks.CATALOGUE[task].metrics)
        for name, values in result.scores.items():
            assert np.mean(values) == pytest.approx(np.mean([scores[name] for scores in mine]))
        assert len(result.draws) == (2 if variant == "few-shot" else 0)
    assert results["json", "zero-shot"].replies == 0
    assert results["bios", "zero-shot"].replies == 3
    assert results["bios", "few-shot"].replies == 6
    for record in as_json(run):
        if record["task"] == "bios":
            (values,) = record["log_probabilities"]
            assert len(values) == 28
            likeliest = synthetic.OCCUPATIONS[int(np.argmax(values))]
            assert record["scores"]["accuracy"] == float(likeliest == record["target"])
    zero = [result for (_, variant), result in results.items() if variant == "zero-shot"]
    numbers, means = average(zero)
    assert numbers.tolist() == [0, 1, 2]
    each = [np.mean([v.mean() for v in result.scores.values()]) for result in zero]
    assert means.mean() == pytest.approx(np.mean(each))
    said = table(run)
    assert "counterfact: 3 test samples" in said and "efficacy" in said
    assert "few-shot (2 draws)" in said
    assert re.search(r"^Average\b", said, re.MULTILINE)


def result_of(tmp_path, name: str, fluencies: list[float | None]) -> str:
    settings = {"tasks": ["pronouns"], "split": "test", "instruction": "original"}
    identity = {"settings": settings, "variants": ["zero-shot", "marked"]}
    values = {"zero-shot": [4.5] * len(fluencies), "marked": fluencies}
    with records.open_run(tmp_path / name, identity, {"command": "tasks"}) as run:
        for variant in values:
            for number, value in enumerate(values[variant]):
                scores = {"accuracy": float(variant == "marked"), "all changed": 0.0}
                record = {"method": f"pronouns {variant}", "conversation": number, "draw": 0}
                record |= {"task": "pronouns", "variant": variant, "scores": scores}
                run.append(records.TaskSample.model_validate({**record, "fluency": value}))
    return table(records.read_run(tmp_path / name))


def test_degenerate_results_are_excluded_and_reported(tmp_path):
    fine = result_of(tmp_path, "fine", [4.0, 2.0, 4.0, 4.0])
    assert "accuracy +1.00 [-0.18, +1.00]" in fine
    (line,) = [line for line in fine.splitlines() if "fluency under" in line]
    assert re.findall(r"[\d.]*\d", line) == ["4", "1", "3.0", "0"]
    poor = result_of(tmp_path, "poor", [2.0, 2.0, 4.0, None])
    assert re.search(r"marked: excluded .* 2\.67, .* 3\.0", poor)
    assert "minus zero-shot" not in poor
    # excluded but still shown
    assert re.search(r"1\.00 \[0\.\d\d, 1\.00\]", poor) and "2.67" in poor
    assert "excluded" not in result_of(tmp_path, "short", [2.0, None, None, None])


def test_few_shot_shows_training_samples_and_draws_differ():
    settings = tasks.Settings(tasks=("json",), samples=4, baselines=("few-shot",))
    made, task = synthetic.make_data(0, "test", 4), JSON
    shown = [demonstrations(made, task, settings, draw) for draw in (1, 2, 1)]
    assert shown[0] == shown[2] != shown[1]
    assert [m["role"] for m in shown[0]] == ["user", "assistant"] * 3
    train = {person.text for person in made.items[BIOGRAPHIES]["train"]}
    for asked, reply in zip(shown[0][::2], shown[0][1::2], strict=True):
        assert any(asked["content"].startswith(text) for text in train)
        assert catalogue.first_object(reply["content"])["name"] in asked["content"]
    within = tasks.Settings(tasks=("json",), samples=300, split="train", baselines=("few-shot",))
    made = synthetic.make_data(0, "train", 300)
    asked = {sample.prompts[0] for sample in draw_samples(made, task, within)}
    assert len(asked) == 300
    assert not asked & {message["content"] for message in demonstrations(made, task, within, 1)}


def test_methods_steer_towards_the_emphasised_part(tmp_path):
    settings = tasks.Settings(samples=2, draws=1)
    fixes = [(Pasta(1.0),), (Pasta(0.001),)]
    run = tasks.run(long_tiny(), small_data(), tmp_path / "a", settings, fixes)
    answers = {(record["method"], record["conversation"]): record for record in as_json(run)}
    differ = 0
    for (method, number), record in answers.items():
        if method.endswith(" zero-shot"):
            task = record["task"]
            nothing = answers[f"{task} pasta:alpha=1", number]
            assert (nothing["scores"], nothing["reply"]) == (record["scores"], record["reply"])
            differ += answers[f"{task} pasta:alpha=0.001", number]["reply"] != record["reply"]
    assert differ >= 4  # of 8 random replies
    user = {"role": "user", "content": "say it now"}
    asked = [user, {"role": "assistant", "content": "it"}, user]
    request = request_of(asked, ("it",), (Pasta(0.01),), Sampling(), 0)
    assert request.emphasis == ((2, 4, 6),) and request.methods == (Pasta(0.01),)
    with pytest.raises(UsageError) as raised:
        tasks.run(long_tiny(), small_data(), tmp_path / "b", settings, [(Repetition(1.0),)])
    assert (raised.value.option, raised.value.value) == ("method", "repetition")
    assert not (tmp_path / "b").exists()


def test_impossible_data_models_and_settings_are_refused(tmp_path):
    facts = data.Data("facts only", "x", {FACTS: {"test": [], "train": []}})
    test = {"test": small_data().items[BIOGRAPHIES]["test"]}
    untrained = data.Data("no training", "x", {BIOGRAPHIES: test})
    json_only = tasks.Settings(tasks=("json",), samples=2)
    counterfact = replace(json_only, tasks=("counterfact",))
    few_shot = replace(json_only, baselines=("few-shot",))
    for made, settings, says in (
        (facts, json_only, "json needs biographies"),
        (facts, counterfact, "0 test samples"),
        (untrained, few_shot, "0 training samples"),
    ):
        with pytest.raises(UsageError, match=says):
            tasks.run(long_tiny(), made, tmp_path / "a", settings)
    with pytest.raises(ModelError, match=r"scripted .*bios"):
        both = replace(json_only, tasks=("json", "bios"))
        tasks.run(Scripted(), small_data(), tmp_path / "a", both)
    twice = [(Pasta(0.5),), (Pasta(0.5),)]
    for settings, given, option, value in (
        (json_only, twice, "method", "pasta:alpha=0.5"),
        (tasks.Settings(baselines=()), (), "baselines", None),
    ):
        with pytest.raises(UsageError) as raised:
            tasks.variants_of(settings, given)
        assert (raised.value.option, raised.value.value) == (option, value)
    drawn = tasks.variants_of(tasks.Settings(baselines=("few-shot",), draws=2), [()])
    names = [("zero-shot", 0), ("few-shot", 1), ("few-shot", 2)]
    assert [(variant.name, variant.draw) for variant in drawn] == names
    assert tasks.variants_of(json_only, [()]) == tasks.variants_of(json_only)
    hard = tasks.load_data(["synthetic"], json_only, synthetic.TextShape((16, 16), 1.0))
    assert hard.fingerprint != tasks.load_data(["synthetic"], json_only).fingerprint
    assert hard.items[BIOGRAPHIES]["test"][0].text.count(".") == 17
    with pytest.raises(UsageError) as raised:
        tasks.load_data(["synthetic", "synthetic"], json_only)
    assert (raised.value.option, raised.value.value) == ("data", "synthetic")
    with pytest.raises(RecordsError, match="no finished sample"):
        with records.open_run(tmp_path / "b", {}, {"command": "tasks"}):
            pass
        read_results(records.read_run(tmp_path / "b"))


REPEATED = ["--task", "json", "--method", "repetition:probability=1", "--samples", "2"]


@pytest.mark.parametrize(
    ("argv", "says"),
    [
        (["--task", "jsn"], "There is no task 'jsn'; did you mean 'json'?"),
        (["--task", "json", "--task", "json"], "The task 'json' is given twice"),
        (["--instruction", "shortened"], "The task bios has no shortened instruction"),
        (["--samples", "0"], "samples as a whole number from 1 upwards, not 0"),
        (["--task", "json", "--data", "nowhere.json"], "nowhere.json does not exist"),
        (REPEATED, "repetition works on a system prompt"),
        (["--method", "past:alpha=0.01"], "did you mean 'pasta'?"),
    ],
)
def test_the_command_answers_bad_input_with_one_sentence(tmp_path, capsys, argv, says):
    assert main(["tasks", "--out", str(tmp_path / "out"), *argv]) == 2
    printed = refusal_in(capsys)
    assert printed.startswith("holdfast: ") and says in printed and printed.count("\n") == 1
    assert not (tmp_path / "out").exists()


@pytest.mark.slow
def test_the_command_runs_every_task_on_the_default_model(tmp_path, capsys):
    argv = "tasks --samples 4 --baseline zero-shot --baseline quoted --out".split()
    argv.append(str(tmp_path / "out"))
    assert main(argv) == 0
    first = capsys.readouterr().out
    assert all(f"{name}: 4 test samples" in first for name in tasks.CATALOGUE)
    assert re.search(r"^Average\b", first, re.MULTILINE)
    before = (tmp_path / "out" / "summary.json").read_bytes()
    assert main(argv) == 0 and capsys.readouterr().out == first
    assert (tmp_path / "out" / "summary.json").read_bytes() == before
    read_page(tmp_path / "out" / "report.html")
    run = records.read_run(tmp_path / "out")
    assert len(run.records) == 4 * 2 * 4 and run.manifest.identity.to_json()["model"] == "default"
