"""Head profiling: the scores are those of one head at a time; resuming; refusals."""

import asyncio
import json
import re
from dataclasses import replace

import pytest
from fast_set import only_fast
from page_outline import read_page
from scripted_model import Scripted
from tiny import chat, model

from holdfast import Boost, Pasta, Repetition, Sampling, SplitSoftmax, cli
from holdfast.analysis.profile import choose_heads, read_profile
from holdfast.analysis.statistics import Estimate
from holdfast.errors import HoldfastError, ModelError, RecordsError, UsageError
from holdfast.methods import HeadSet
from holdfast.papers.zhang2024.profiling import (
    ContinuationSample,
    ProfilingPlan,
    ReplySample,
    profile,
    profile_heads,
)
from holdfast.papers.zhang2024.profiling.head_scores import (
    PlainPassScorer,
    SharedPassScorer,
    can_share_passes,
    scorer_of,
)
from holdfast.papers.zhang2024.profiling.plan import Material, read_material
from holdfast.papers.zhang2024.profiling.profiling_samples import read_samples
from holdfast.report.profile_report import chosen_line

# float32: a shared pass sums in another order
TOLERANCE = 1e-4
WORDS = (
    "the garden is green and river runs slowly past old town where people talk about music bread"
    " cheese rain".split()
)
STEERING = (Pasta(0.01), Pasta(0.05, generated="scale"), Boost(8), SplitSoftmax(0.3))
SHARES_PASSES = {"gpt2": True, "gemma": True, "gpt_neox": True, "mistral": False, "gemma2": False}


def choice_sample(number: int, words: int = 12) -> ContinuationSample:
    """A sample with its emphasis at the end, in the middle or at the start."""
    text = [WORDS[(7 * number + 5 * index) % len(WORDS)] for index in range(words + number % 5)]
    position = (len(text), len(text) // 2, 0)[number % 3]
    text[position:position] = ["answer", "in", "one", "word"]
    right, several = number % (1 + number % 3), ("bread", "the old town", "rain and cheese")
    emphasis = ("answer in one word",)
    return ContinuationSample(chat("", " ".join(text)), emphasis, several[: 1 + number % 3], right)


SAMPLES = [choice_sample(number) for number in range(6)]
HEADS = [(layer, head) for layer in range(3) for head in range(4)]


def scores_one_head_at_a_time(tiny, samples, method, score) -> dict[tuple[int, int], list[float]]:
    return {
        head: [score(tiny, sample, (replace(method, heads=HeadSet([head])),)) for sample in samples]
        for head in HEADS
    }


def scorer(tiny, samples, plan):
    """The scorer that `profile` uses."""

    async def score_all():
        material = await read_material(tiny, samples, plan)
        return scorer_of(material, shares_passes=await can_share_passes(material))

    return asyncio.run(score_all())


def share_of_right_answer(tiny, sample, methods) -> float:
    score = tiny.score(sample.messages, sample.continuations, methods, emphasis=sample.emphasis)
    return score.log_probabilities[sample.right]


def write(path, rows) -> None:
    path.write_text("\n".join(json.dumps(row) for row in rows) + "\n")


def rows(count: int = 3) -> list[dict]:
    names = ("messages", "emphasis", "continuations", "right")
    return [{name: getattr(item, name) for name in names} for item in SAMPLES[:count]]


# Scores


@pytest.mark.parametrize("method", only_fast(STEERING, STEERING[0]), ids=lambda method: method.name)
def test_scores_and_ranking_equal_those_of_steering_one_head_at_a_time(method, tmp_path):
    tiny = model()
    assert isinstance(scorer(tiny, SAMPLES, ProfilingPlan(method)), SharedPassScorer)
    result = profile(tiny, SAMPLES, tmp_path / "run", ProfilingPlan(method))
    plain = scores_one_head_at_a_time(tiny, SAMPLES, method, share_of_right_answer)
    means = {head: sum(values) / len(values) for head, values in plain.items()}
    assert result.scores == pytest.approx(means, abs=TOLERANCE)
    assert result.ranking.heads == tuple(sorted(HEADS, key=lambda head: -means[head]))
    plainly = sum(share_of_right_answer(tiny, sample, ()) for sample in SAMPLES) / len(SAMPLES)
    assert result.unsteered == pytest.approx(plainly, abs=TOLERANCE)
    largest_move = max(abs(value - result.unsteered) for value in result.scores.values())
    assert largest_move > 100 * TOLERANCE, "no head does anything"


@pytest.mark.parametrize("kind", only_fast(SHARES_PASSES, "gemma2", "gpt2"))
def test_other_models_get_the_same_scores_by_shared_or_plain_passes(kind, tmp_path):
    fast = SHARES_PASSES[kind]
    tiny = model(kind, **({"sliding_window": 16} if kind == "mistral" else {}))
    expected = SharedPassScorer if fast else PlainPassScorer
    assert isinstance(scorer(tiny, SAMPLES[:2], ProfilingPlan()), expected)
    result = profile(tiny, SAMPLES[:2], tmp_path / "run")
    plain = scores_one_head_at_a_time(tiny, SAMPLES[:2], Pasta(0.01), share_of_right_answer)
    means = {head: sum(values) / 2 for head, values in plain.items()}
    assert result.scores == pytest.approx(means, abs=TOLERANCE)


def test_shared_passes_leave_the_model_unchanged_and_forward_less(tmp_path):
    tiny = model()
    before = dict(tiny.hf_model.named_modules())

    def hooks():
        """Those of every module; transformers leaves its own if hidden states were requested."""
        modules = before.values()
        return [(dict(m._forward_hooks), dict(m._forward_pre_hooks)) for m in modules]

    hooks_before = hooks()
    shared = scorer(
        tiny, [choice_sample(number, 90) for number in (0, 3, 6, 1, 4, 7)], ProfilingPlan()
    )
    passes, prompts = shared.passes, shared.material.prompts
    tokens_before = passes.forwarded
    for group in shared.groups():
        asyncio.run(replace(shared, material=shared.material.only(group)).score(HEADS))
    assert dict(tiny.hf_model.named_modules()) == before
    assert hooks() == hooks_before
    plain = sum(len(prompt.token_ids) for prompt in prompts) * (len(HEADS) + 1)
    assert passes.forwarded - tokens_before < 0.4 * plain


def questions(count: int = 3) -> list[ReplySample]:
    def score(text):
        return sum(map(ord, text)) % 97 / 97

    return [ReplySample(item.messages, item.emphasis, score) for item in SAMPLES[:count]]


@pytest.mark.parametrize("kind", only_fast(("llama", "gemma2"), "llama"))
def test_scores_of_replies_equal_those_of_steering_one_head_at_a_time(kind, tmp_path):
    tiny = model(kind, **({"query_pre_attn_scalar": 12} if kind == "gemma2" else {}))
    result = profile(tiny, questions(2), tmp_path / "run", ProfilingPlan(max_new_tokens=6))

    def score(tiny, item, methods):
        brief = Sampling(0, 1, 6)
        return item.score(tiny.generate(item.messages, methods, brief, emphasis=item.emphasis).text)

    plain = scores_one_head_at_a_time(tiny, questions(2), Pasta(0.01), score)
    means = {head: sum(values) / 2 for head, values in plain.items()}
    assert result.scores == pytest.approx(means, abs=TOLERANCE)
    assert len(set(result.scores.values())) > 2


def test_every_group_is_scored_as_the_first_choice_says(monkeypatch, tmp_path):
    """Replicas that chose for themselves might choose differently, close to the limit."""
    group_sizes = []

    async def refuse(material):
        group_sizes.append(len(material.samples))
        return False

    monkeypatch.setattr(profile_heads, "can_share_passes", refuse)
    monkeypatch.setattr(SharedPassScorer, "score", None)
    monkeypatch.setattr(Material, "by_rows", lambda self: [[n] for n in range(len(self.samples))])
    result = profile(model(), SAMPLES[:3], tmp_path / "run")
    assert group_sizes == [3] and set(samples_by_head(result).values()) == {3}


# Choice of heads


def samples_by_head(profile) -> dict:
    return {(row.layer, row.head): row.samples for row in profile.heads}


def gain(mean: float, n: int = 40, spread: float = 0.01) -> Estimate:
    """A head's gain, with an interval of twice the spread on either side."""
    return Estimate(n, mean, spread, mean - 2 * spread, mean + 2 * spread)


def test_heads_that_gain_nothing_are_not_chosen():
    best = HeadSet([(0, 0), (0, 1), (0, 2), (0, 3)])
    first = {(0, 0): gain(0.3), (0, 1): gain(0.00004), (0, 2): gain(-0.1), (0, 3): gain(0.01)}
    second = {**first, (0, 0): gain(0.2), (0, 1): gain(0.2), (0, 3): gain(-0.2)}
    alone = choose_heads(best, [first], "intersection")
    assert alone.heads == {(0, 0), (0, 3)} and (alone.certain, alone.left_out) == (1, 2)
    assert re.findall(r"\d+", chosen_line(alone))[:3] == ["1", "2", "2"]
    assert chosen_line(alone).endswith("; 2 heads that gain nothing were left out.")
    almost_all = choose_heads(HeadSet([(0, 0), (0, 1)]), [first], "intersection")
    assert chosen_line(almost_all).endswith("; 1 head that gains nothing was left out.")
    assert choose_heads(best, [first, second], "intersection").heads == {(0, 0)}
    assert choose_heads(best, [first, second], "union").heads == {(0, 0), (0, 1), (0, 3)}
    few = {head: gain(0.3, n=5) for head in best}
    assert choose_heads(best, [few], "intersection").certain == 0
    with pytest.raises(HoldfastError) as excinfo:
        choose_heads(HeadSet([(0, 1), (0, 2)]), [first], "intersection")
    assert (excinfo.value.option, excinfo.value.value) == ("top", 2)


# Resuming


def test_a_run_is_not_resumed_under_another_score(tmp_path):
    tiny, plan = model(), ProfilingPlan(max_new_tokens=6)
    profile(tiny, questions(2), tmp_path / "run", plan)
    files = [tmp_path / "run" / name for name in ("records.jsonl", "manifest.json")]
    before = [file.read_bytes() for file in files]
    record = json.loads(before[0].splitlines()[0])
    heads = sorted(name for names in record["replies"].values() for name in names)
    assert heads == sorted(record["scores"])
    profile(tiny, questions(2), tmp_path / "run", plan)  # other functions that score alike
    before = [file.read_bytes() for file in files]
    rescored = [replace(item, score=lambda text: len(text) + 2.0) for item in questions(2)]
    message = r"sample 1's reply '.*' is scored 0.\d+ there and \d+ by this command"
    with pytest.raises(RecordsError, match=message):
        profile(tiny, rescored, tmp_path / "run", plan)
    assert [file.read_bytes() for file in files] == before


def test_a_killed_run_resumes_where_it_stopped(tmp_path, monkeypatch):
    tiny, plan = model(), ProfilingPlan()
    samples = [choice_sample(number) for number in range(8)]
    whole = profile(tiny, samples, tmp_path / "whole", plan)
    monkeypatch.setattr("holdfast.papers.zhang2024.profiling.scored_prompts._MAX_PADDING", 0)
    groups = scorer(tiny, samples, plan).groups()
    assert len(groups) > 1
    score, calls = SharedPassScorer.score, []

    async def kill(self, heads):
        calls.append(len(heads))
        if len(calls) == 4:
            raise KeyboardInterrupt
        return await score(self, heads)

    monkeypatch.setattr(SharedPassScorer, "score", kill)
    with pytest.raises(KeyboardInterrupt):
        profile(tiny, samples, tmp_path / "run", plan)
    records_before = (tmp_path / "run" / "records.jsonl").read_text()
    assert records_before
    monkeypatch.setattr(SharedPassScorer, "score", score)
    resumed = profile(tiny, samples, tmp_path / "run", plan)
    records = (tmp_path / "run" / "records.jsonl").read_text()
    assert records.startswith(records_before) and records.count("\n") == 8
    assert resumed.scores == pytest.approx(whole.scores, abs=TOLERANCE)
    assert samples_by_head(resumed) == samples_by_head(whole)
    assert profile(tiny, samples, tmp_path / "run", plan).scores == resumed.scores
    assert (tmp_path / "run" / "records.jsonl").read_text() == records
    several = [item for item in samples if len(item.continuations) > 1] * 2
    with pytest.raises(RecordsError, match=r"by.*accuracy|samples"):
        profile(tiny, several, tmp_path / "run", replace(plan, by="accuracy"))
    with pytest.raises(RecordsError, match="model"):
        profile(model(seed=1), samples, tmp_path / "run", plan)


# The command and its files


def test_the_command_writes_a_ranking_a_heat_map_and_heads_that_steer(folder, tmp_path, capsys):
    write(tmp_path / "one.jsonl", rows())
    write(tmp_path / "two.jsonl", rows(2))
    first_file, second_file = (str(tmp_path / f"{name}.jsonl") for name in ("one", "two"))
    command = ["profile", "--model", str(folder), "--samples", first_file, "--samples", second_file]
    command += ["--out", str(tmp_path / "out")]
    assert cli.main([*command, "--top", "12"]) == 0
    stdout, warned = capsys.readouterr()
    assert "Unsteered -" in stdout
    assert "3 samples, fewer than 20" in stdout
    runs = [read_profile(tmp_path / "out" / name).gains for name in ("one", "two")]
    gaining = {head for head in runs[0] if all(round(gains[head].mean, 4) > 0 for gains in runs)}
    assert 0 < len(gaining) < 12 and f"\n{len(gaining)} heads: " in stdout
    warning_text = f"0 of these {len(gaining)} heads have a gain distinguishable from chance; "
    assert f"{warning_text}{12 - len(gaining)} head" in warned
    profile_json = json.loads((tmp_path / "out" / "one" / "profile.json").read_text())
    assert len(profile_json["ranking"]) == 12
    assert profile_json["ranking"][0]["score"] >= profile_json["ranking"][-1]["score"]
    assert profile_json["made_for"]["layers"] == 3
    assert (tmp_path / "out" / "one" / "heads.png").stat().st_size > 5000
    page = read_page(tmp_path / "out" / "report.html")
    assert page.tags.count("img") == 2
    heads = f"pasta:alpha=0.01,heads={tmp_path / 'out' / 'heads.json'}"
    steered = ["generate", "--model", str(folder), "--user", "the *river*", "--marks"]
    assert cli.main([*steered, "--method", heads, "--max-new-tokens", "4"]) == 0
    capsys.readouterr()
    first = tuple(read_profile(tmp_path / "out" / "one").ranking.heads)
    assert cli.main([*command, "--top", "1", "--combine", "union"]) == 0
    capsys.readouterr()
    heads_file = json.loads((tmp_path / "out" / "heads.json").read_text())
    assert first[0][1] in heads_file[str(first[0][0])]
    assert cli.main([*command, "--top", "13"]) == 2
    assert "from 1 to 12, not 13" in capsys.readouterr().err


def test_marks_in_a_sample_file_are_emphasis(tmp_path):
    row = {**rows(1)[0], "messages": [{"role": "user", "content": r"say *bread* \* now"}]}
    del row["emphasis"]
    write(tmp_path / "samples.jsonl", [row])
    (sample,) = read_samples(tmp_path / "samples.jsonl")
    assert sample.messages[0]["content"] == "say bread * now" and sample.emphasis == ((0, 4, 9),)


# Refusals


@pytest.mark.parametrize(
    ("line", "parts"),
    (
        ("{", ["Line 2", "not JSON"]),
        ("[]", ["Line 2", "the line has to be an object"]),
        ({"continuations": ...}, ["Line 2", "continuations is missing", "a list of texts"]),
        ({"right": True}, ["Line 2", "right has to be a whole number, not true"]),
        ({"emphasis": [["bread", "first"]]}, ["Line 2", "emphasis[0][1]", "a whole number"]),
        ({"emphasis": ["no such text"]}, ["Line 2", "'no such text'", "is in no message"]),
        ({"messages": [{"role": "user"}]}, ["Line 2", "Message 1", "content"]),
    ),
)
def test_bad_sample_files_are_refused_by_row_and_field(tmp_path, line, parts):
    good = rows(1)[0]
    sample = {**good, **line} if not isinstance(line, str) else {}
    fields = {name: value for name, value in sample.items() if value is not ...}
    bad = line if isinstance(line, str) else json.dumps(fields)
    (tmp_path / "samples.jsonl").write_text(json.dumps(good) + "\n" + bad + "\n")
    with pytest.raises(UsageError) as excinfo:
        read_samples(tmp_path / "samples.jsonl")
    assert all(part in str(excinfo.value) for part in ["samples.jsonl", *parts]), str(excinfo.value)


@pytest.mark.parametrize(
    ("samples", "plan", "parts"),
    (
        ([], {}, ["no samples"]),
        ([SAMPLES[0], *questions(1)], {}, ["Sample 2 is a ReplySample", "samples of one kind"]),
        ([{"messages": []}], {}, ["Sample 1 is a dict", "samples of one kind"]),
        ([replace(SAMPLES[0], continuations=(1, 2))], {}, ["Sample 1", "(1, 2)"]),
        ([replace(SAMPLES[0], continuations=("a", ""))], {}, ["Sample 1", "('a', '')"]),
        ([replace(SAMPLES[0], right=5)], {}, ["Sample 1", "right = 5"]),
        ([replace(SAMPLES[0], emphasis=())], {}, ["Sample 1", "neither emphasis nor a system"]),
        ([SAMPLES[0]], {"by": "accuracy"}, ["Sample 1", "rank by probability"]),
        (SAMPLES, {"method": Repetition(1)}, ["attention method", "Repetition"]),
        (SAMPLES, {"by": "luck"}, ["'luck'", "accuracy"]),
    ),
)
def test_unsuitable_samples_and_plans_are_refused_by_name(tmp_path, samples, plan, parts):
    with pytest.raises(UsageError) as excinfo:
        profile(model(), samples, tmp_path, ProfilingPlan(**plan))
    assert all(part in str(excinfo.value) for part in parts), str(excinfo.value)


def test_another_model_or_folder_is_refused_by_name(tmp_path):
    with pytest.raises(ModelError, match=r"scripted .*loaded here"):
        profile(Scripted(), SAMPLES, tmp_path)
    with pytest.raises(RecordsError, match="manifest"):
        read_profile(tmp_path)


def test_a_score_that_is_not_finite_is_refused(tmp_path):
    sample = replace(questions(1)[0], score=lambda text: float("nan"))
    with pytest.raises(UsageError) as excinfo:
        profile(model(), [sample], tmp_path / "run", ProfilingPlan(max_new_tokens=2))
    assert excinfo.value.option == "score"
