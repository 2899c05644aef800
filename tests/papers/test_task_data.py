"""The data of the tasks: made up, in the paper's prompts, and from files."""

import csv
import gzip
import itertools
import json
import random
import sys
from pathlib import Path

import pytest
from paths import ROOT

from holdfast import tasks
from holdfast.errors import PromptError, UnknownName, UsageError
from holdfast.papers.zhang2024 import catalogue, data, published_data, synthetic
from holdfast.papers.zhang2024.catalogue import BIOS, COUNTERFACT, JSON, PRONOUNS
from holdfast.papers.zhang2024.data import BIOGRAPHIES, FACTS, SPLITS, mark, spans_of
from holdfast.papers.zhang2024.task_samples import draw_samples

FIRST_SENTENCE, BIOGRAPHY = "Ann is a nurse.", "Ann is a nurse. She likes tea."
ANN = data.Biography("Ann", "nurse", FIRST_SENTENCE, BIOGRAPHY, "Ann is a nurse. They like tea.")


# The paper's prompts


def test_the_instructions_of_json_match_the_paper():
    original, shortened, rephrased = (JSON.ask(ANN, wording) for wording in data.INSTRUCTIONS)
    question = "Answer the occupation of Ann and generate the answer as json format."
    example = 'Here is an example: {"name": , "occupation": , }.'
    instruction = f"{question} {example} Now generate the answer."
    assert original.prompts == (f"{BIOGRAPHY} {instruction}",)
    assert original.emphasis == (instruction,)
    assert shortened.prompts == (f"{BIOGRAPHY} {question}",)
    marked = mark(rephrased.prompts[0], rephrased.emphasis, "*")
    assert marked == f"*{question} {example}* {BIOGRAPHY} *Now generate the answer.*"
    assert JSON.score(original, original.reply) == {"format": 1, "prediction": 1}


@pytest.mark.parametrize("wording", data.INSTRUCTIONS)
def test_the_instructions_of_pronouns_are_emphasised_after_the_text(wording):
    sample = PRONOUNS.ask(ANN, wording)
    assert "'she' and 'he' with 'they'" in sample.emphasis[0]
    assert sample.prompts == (f"{BIOGRAPHY} {sample.emphasis[0]}",)


def test_the_prompt_of_a_biography_begins_the_answer():
    sample = BIOS.ask(ANN, "original", ("nurse",))
    assert sample.prompts == (f"{BIOGRAPHY} Ann has the occupation of",)


def test_the_prompts_of_a_changed_fact_match_the_paper():
    relation, other_prompts = "The pet of {} is a", ("At home Ann has a",)
    pet = data.ChangedFact("Ann", relation, "cat", "dog", other_prompts, "Bo has a cow.")
    fact = COUNTERFACT.ask(pet, "original")
    facts = "Previously, the pet of Ann is a cat. Currently, the pet of Ann is a dog. Bo has a cow."
    assert fact.prompts == (f"{facts} The pet of Ann is a", f"{facts} At home Ann has a")
    assert fact.emphasis == ("Currently, the pet of Ann is a dog.",)
    assert fact.options == ("dog", "cat")


def test_a_name_at_the_start_of_a_changed_fact_keeps_its_case():
    band = data.ChangedFact("The Who", "{} played in", "Leeds", "Rome")
    facts = "Previously, The Who played in Leeds. Currently, The Who played in Rome."
    assert COUNTERFACT.ask(band, "original").prompts == (f"{facts} The Who played in",)


def test_emphasis_is_marked_where_it_occurs_once():
    assert mark("say it now", ("it", "now"), '"') == 'say "it" "now"'
    assert spans_of("say it now", ("now", "it")) == [(4, 6), (7, 10)]
    with pytest.raises(PromptError, match=r"'it' occurs 2 times"):
        spans_of("say it, it", ("it",))


# Made-up data


def test_the_generator_is_deterministic_and_its_splits_share_nothing():
    splits = {split: synthetic.make_data(3, split, 200) for split in SPLITS}
    repeat, fewer = synthetic.make_data(3, "test", 200), synthetic.make_data(3, "test", 50)
    assert splits["test"] == repeat != synthetic.make_data(4, "test", 200)
    some = splits["test"].items[BIOGRAPHIES]["test"][:50]
    assert some == fewer.items[BIOGRAPHIES]["test"]
    people = {split: splits[split].items[BIOGRAPHIES][split] for split in SPLITS}
    facts = {split: splits[split].items[FACTS][split] for split in SPLITS}
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
    texts = " ".join(person.text for split in ("train", "validation") for person in people[split])
    assert "As a child" not in texts
    assert any("As a child" in person.text for person in people["test"])


def test_the_shape_sets_length_and_distraction():
    rng = random.Random(1)
    plain, full = synthetic.TextShape((2, 2), 0.0), synthetic.TextShape((16, 16), 1.0)
    for _ in range(50):
        short = synthetic.biography(rng, "test", plain)
        long = synthetic.biography(rng, "test", full)
        jobs = {*synthetic.OCCUPATIONS} & {*catalogue.words_of(short.text)}
        other_jobs = jobs - {short.occupation}
        assert short.text.count(".") == 3 and not other_jobs and long.text.count(".") == 17
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
    held_out = set(filter(values.held_out, itertools.chain(names, *pools)))
    rng, count = random.Random(2), 0
    for task in tasks.CATALOGUE:
        for _ in range(200):
            prompt, reply = dialogues.training_dialogue(task, rng)
            assert (prompt["role"], reply["role"]) == ("user", "assistant")
            text = prompt["content"] + reply["content"]
            assert prompt["content"] and reply["content"]
            assert not held_out & set(catalogue.words_of(text)) and "{person}" not in text
            assert not held_out & {word.strip(".,:?'\"") for word in text.split()}
            if task == "pronouns" and "they" in prompt["content"]:
                assert catalogue.all_pronouns_changed(reply["content"])
                count += 1
            elif task == "json" and "json" in prompt["content"]:
                parsed = json.loads(reply["content"])
                assert f"{parsed['name']} is a " in prompt["content"]
                count += 1
    assert count > 200
    with pytest.raises(UnknownName, match="jsn"):
        dialogues.training_dialogue("jsn", rng)
    whole = dialogues.Mix(facts=0.15, knowledge=0.15, tasks=1.0)
    assert all(len(dialogues.dialogue(rng, [], mix=whole)) == 2 for _ in range(20))
    monkeypatch.delattr(dialogues, "training_dialogue")  # not called at a task share of 0
    assert len([dialogues.dialogue(rng, []) for _ in range(100)]) == 100


def test_synthetic_data_supply_what_the_files_lack(tmp_path):
    settings = tasks.Settings(samples=4)
    file = write(tmp_path / "facts.json", [{**COUNTERFACT_ROW, "case_id": n} for n in range(20)])
    combined = tasks.load_data([file, tasks.SYNTHETIC], settings)
    synthetic_data = tasks.load_data([tasks.SYNTHETIC], settings)
    assert combined.items[BIOGRAPHIES] == synthetic_data.items[BIOGRAPHIES]
    assert combined.candidates == synthetic_data.candidates == synthetic.OCCUPATIONS
    assert combined.items[FACTS] == published_data.load_files(file).items[FACTS]
    bios = write(tmp_path / "bios.jsonl", [BIAS_IN_BIOS_ROW])
    with pytest.raises(UsageError, match=r"bios\.jsonl"):
        tasks.load_data([file, bios, tasks.SYNTHETIC], settings)


# Files


CORE = ROOT.parent / "shared" / "data" / "counterfact_core.csv.gz"


COUNTERFACT_ROW = {
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
BIAS_IN_BIOS_ROW = {
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
    dataset = published_data.load_files(write(tmp_path / "counterfact.json", [COUNTERFACT_ROW]))
    (fact,) = [fact for split in SPLITS for fact in dataset.items[FACTS][split]]
    paraphrases = tuple(COUNTERFACT_ROW["paraphrase_prompts"])
    language = "The mother tongue of {} is", "French", "English"
    assert fact == data.ChangedFact("Ann Lee", *language, paraphrases)
    doubled = published_data.load_files(
        write(tmp_path / "two.json", [COUNTERFACT_ROW, COUNTERFACT_ROW])
    )
    assert dataset.fingerprint != doubled.fingerprint


@pytest.mark.parametrize("suffix", ["jsonl", "csv", "json"])
def test_bias_in_bios_is_read(tmp_path, suffix):
    row = BIAS_IN_BIOS_ROW if suffix != "csv" else {**BIAS_IN_BIOS_ROW, "name": "Ann"}
    dataset = published_data.load_files(
        write(tmp_path / f"bios_test.{suffix}", [row, {**row, "title": "dj"}])
    )
    first = next(p for p in dataset.items[BIOGRAPHIES]["test"] if p.occupation == "yoga teacher")
    assert (first.name, first.text) == ("Ann", BIAS_IN_BIOS_ROW["raw"])
    assert first.first == "Ann Lee is a Yoga Teacher in Ohio."
    assert first.changed.endswith("They likes their cat.")
    assert dataset.items[BIOGRAPHIES]["train"] == []
    assert len(dataset.candidates) == 28 == len(set(dataset.candidates))
    assert dataset.candidates[0] == "accountant"


def test_a_folder_of_splits_is_read_and_a_single_file_is_split(tmp_path):
    for name, title in (("train", "dj"), ("dev", "poet"), ("test", "nurse")):
        write(tmp_path / f"bios-{name}-00000.jsonl", [{**BIAS_IN_BIOS_ROW, "title": title}])
    biographies = published_data.load_files(str(tmp_path)).items[BIOGRAPHIES]
    assert [biographies[split][0].occupation for split in SPLITS] == ["dj", "poet", "nurse"]
    rows = [{**BIAS_IN_BIOS_ROW, "raw": f"{BIAS_IN_BIOS_ROW['raw']} {n}"} for n in range(700)]
    path = write(tmp_path / "all.jsonl", rows)
    files, repeat, other_seed = (
        published_data.load_files(path, seed=seed).items[BIOGRAPHIES] for seed in (0, 0, 1)
    )
    assert [70 < len(files[split]) < 130 for split in SPLITS] == [True, True, False]
    assert sum(map(len, files.values())) == 700
    assert files["test"] == repeat["test"] != other_seed["test"]


@pytest.mark.skipif(not CORE.exists(), reason="../shared/data/counterfact_core.csv.gz is absent")
def test_the_core_of_counterfact_is_read():
    dataset = published_data.load_files(str(CORE))
    facts = [fact for split in SPLITS for fact in dataset.items[FACTS][split]]
    with gzip.open(CORE, "rt", newline="") as file:
        false = {row["statement"] for row in csv.DictReader(file) if row["label"] == "0"}
    assert len(facts) == 15982 and {fact.statement(fact.new) + "." for fact in facts} == false
    parts = [{fact.subject for fact in dataset.items[FACTS][split]} for split in SPLITS]
    assert len(set().union(*parts)) == sum(map(len, parts)) and len(parts[2]) > 4 * len(parts[0])
    samples = draw_samples(
        dataset, COUNTERFACT, tasks.Settings(tasks=("counterfact",), samples=500)
    )
    assert len(samples) == 500 and all(len(sample.prompts) == 1 for sample in samples)


# Files that are refused


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
NO_SLOT = {
    **COUNTERFACT_ROW,
    "requested_rewrite": {**COUNTERFACT_ROW["requested_rewrite"], "prompt": "It is"},
}
MISSING = ("requested_rewrite.target_new.str", "requested_rewrite.subject", "paraphrase_prompts")


@pytest.mark.parametrize(
    ("name", "good", "bad", "message"),
    [
        *(
            ("a.json", COUNTERFACT_ROW, without(COUNTERFACT_ROW, name), f"row 2 has no '{name}'")
            for name in MISSING
        ),
        (
            "a.json",
            COUNTERFACT_ROW,
            {**COUNTERFACT_ROW, "paraphrase_prompts": "one"},
            r"row 2: .* is 'one'.*list",
        ),
        ("a.json", COUNTERFACT_ROW, NO_SLOT, r"row 2: 'requested_rewrite.prompt' is 'It is'.*{}"),
        ("a.json", COUNTERFACT_ROW, "text", r"row 2 has no 'requested_rewrite.subject'"),
        ("a.csv", CORE_ROW, {**CORE_ROW, "target": ""}, r"row 2: 'target' is ''"),
        ("a.csv", CORE_ROW, {**CORE_ROW, "label": "no"}, r"row 2: 'label' is 'no'"),
        ("a.jsonl", BIAS_IN_BIOS_ROW, without(BIAS_IN_BIOS_ROW, "raw"), r"row 2 has no 'raw'"),
        (
            "a.jsonl",
            BIAS_IN_BIOS_ROW,
            without(BIAS_IN_BIOS_ROW, "start_pos"),
            r"row 2 has no 'start_pos'",
        ),
        (
            "a.jsonl",
            BIAS_IN_BIOS_ROW,
            {**BIAS_IN_BIOS_ROW, "start_pos": 900},
            r"row 2: 'start_pos' is 900",
        ),
        (
            "a.jsonl",
            BIAS_IN_BIOS_ROW,
            {**BIAS_IN_BIOS_ROW, "title": "wizard"},
            r"'title' is 'wizard'.*not one of the 28",
        ),
    ],
)
def test_malformed_rows_are_reported_with_their_field(tmp_path, name, good, bad, message):
    with pytest.raises(UsageError, match=message):
        published_data.load_files(write(tmp_path / name, [good, bad]))


def test_files_that_are_not_data_are_refused(tmp_path):
    row = '{{"raw": "Ann is a nurse.", "title": "{}", "start_pos": "{}"}}'.format
    for name, content, message in (
        ("BIOS.pkl", b"\x80\x04.", "is a pickle.*never read"),
        ("a.txt", b"x", "is not a .json"),
        ("a.json", b"{", "cannot be read"),
        ("b.json", b"{}", "a list of rows"),
        ("s.jsonl", row("\\ud800", 3).encode(), r"row 1 holds '\\ud800', half of a surrogate pair"),
        ("n.json", b"[" + b"9" * 5000 + b"]", "cannot be read .*digit"),
        ("n.jsonl", b'{"raw": ' + b"9" * 5000 + b"}", "Line 1 of .* is not JSON .*digit"),
        ("p.jsonl", row("nurse", "9" * 5000).encode(), "'start_pos' is .*at most 15 digits"),
        ("t.jsonl", row("9" * 5000, 3).encode(), "'title' is .*not one of the 28"),
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
        with pytest.raises(UsageError, match=message):
            published_data.load_files(str(tmp_path / name))
    (tmp_path / "empty").mkdir()
    for where, message in (("nowhere.json", "does not exist"), ("empty", "holds no .json")):
        with pytest.raises(UsageError, match=message):
            published_data.load_files(str(tmp_path / where))
