"""Holdfast's models in lm-evaluation-harness, against its own `hf` models and `model.score`."""

import itertools
import json
import subprocess
import sys
from functools import cache
from importlib.metadata import entry_points
from importlib.resources import files

import pytest

lm_eval = pytest.importorskip("lm_eval", reason="make integrations installs it")

from lm_eval.api.instance import Instance  # noqa: E402
from lm_eval.models.huggingface import HFLM  # noqa: E402
from lm_eval.tasks import TaskManager  # noqa: E402

import holdfast  # noqa: E402
from holdfast.errors import HoldfastError, PromptTooLong, UsageError  # noqa: E402
from holdfast.integrations.lm_eval import register  # noqa: E402
from holdfast.integrations.lm_eval.harness_model import HoldfastLM  # noqa: E402
from holdfast.models.checkpoint import DEFAULT_FOLDER  # noqa: E402
from holdfast.models.requests import Request  # noqa: E402

FLOAT32 = 2e-4  # of a sum over a reply's tokens; the harness pads and batches differently
SYSTEM = "Always reply in French."
QUESTIONS = 6

TASK = """
task: holdfast_NAME
dataset_path: json
dataset_kwargs: {data_files: {test: FILE}}
test_split: test
"""
TASKS = {
    "choices": """output_type: multiple_choice
doc_to_text: "{{question}}"
doc_to_choice: "{{choices}}"
doc_to_target: answer
metric_list: [{metric: acc}, {metric: acc_norm}]
""",
    "writing": """output_type: generate_until
doc_to_text: "{{question}} I think"
doc_to_target: "{{choices[answer]}}"
generation_kwargs: {until: ["."], max_gen_toks: 24}
metric_list: [{metric: exact_match}]
""",
    "rolling": """output_type: loglikelihood_rolling
doc_to_text: ""
doc_to_target: "{{question}} {{choices}}"
metric_list: [{metric: word_perplexity}]
""",
}


@pytest.fixture(scope="module")
def tasks(tmp_path_factory):
    """A folder of tasks over a local file of questions."""
    folder = tmp_path_factory.mktemp("tasks")
    text = (files("holdfast") / "assets" / "knowledge.jsonl").read_text(encoding="utf-8")
    questions = folder / "questions.jsonl"
    questions.write_text("\n".join(text.splitlines()[:QUESTIONS]) + "\n", encoding="utf-8")
    for name, task in TASKS.items():
        definition = TASK.replace("NAME", name).replace("FILE", json.dumps(str(questions))) + task
        (folder / f"{name}.yaml").write_text(definition, encoding="utf-8")
    return folder


@pytest.fixture(scope="module")
def evaluate(tasks, tmp_path_factory):
    """evaluate(model, arguments, task, **options) -> what the harness's own function returns."""
    manager = TaskManager(include_path=str(tasks), include_defaults=False)
    patch = pytest.MonkeyPatch()
    patch.setenv("HF_DATASETS_CACHE", str(tmp_path_factory.mktemp("cache")))
    register()

    def run(model, arguments, task, **options):
        settings = {"task_manager": manager, "bootstrap_iters": 0, "device": "cpu", **options}
        model_options = {"model_args": arguments, "tasks": [f"holdfast_{task}"]}
        return lm_eval.simple_evaluate(model, **model_options, **settings)

    yield run
    patch.undo()


def hf():
    return {"pretrained": str(DEFAULT_FOLDER), "dtype": "float32"}


@cache
def model():
    return holdfast.load("default")


def answers(results):
    """Each request's answer, in the order of the samples."""
    (samples,) = results["samples"].values()
    return [sample["resps"] for sample in sorted(samples, key=lambda entry: entry["doc_id"])]


def logprobs(results):
    """[question, choice]: log-probability, and whether it is the greedy reply."""
    return [[choice[0] for choice in choices] for choices in answers(results)]


def metrics(results):
    (values,) = results["results"].values()
    return {name: value for name, value in values.items() if "stderr" not in name}


CHAT = {"apply_chat_template": True, "system_instruction": SYSTEM}


@pytest.mark.parametrize("options", [{}, {"num_fewshot": 0, **CHAT}], ids=["plain", "chat"])
def test_unsteered_models_score_choices_as_hf_does(evaluate, options):
    hf_results = evaluate("hf", hf(), "choices", batch_size=4, **options)
    results_of_ours = evaluate("holdfast", {}, "choices", batch_size="auto", **options)
    assert metrics(results_of_ours) == metrics(hf_results)
    flat = [list(itertools.chain(*logprobs(results))) for results in (results_of_ours, hf_results)]
    assert len(flat[0]) == QUESTIONS * 4
    assert [greedy for _, greedy in flat[0]] == [greedy for _, greedy in flat[1]]
    expected = [value for value, _ in flat[1]]
    assert [value for value, _ in flat[0]] == pytest.approx(expected, abs=FLOAT32)


@pytest.mark.parametrize("options", [{}, CHAT], ids=["plain", "chat"])
def test_unsteered_models_write_the_texts_that_hf_writes(evaluate, options):
    of_hf = evaluate("hf", hf(), "writing", batch_size=1, **options)
    results = evaluate("holdfast", {}, "writing", batch_size="auto", **options)
    assert answers(results) == answers(of_hf)
    assert any(reply[0][0] for reply in answers(results)) and metrics(results) == metrics(of_hf)


def test_unsteered_models_have_the_perplexity_of_hf(evaluate):
    hf_results = evaluate("hf", hf(), "rolling", batch_size=1)
    results = evaluate("holdfast", {}, "rolling", batch_size="auto")
    (name,) = (name for name in metrics(results) if name.startswith("word_perplexity"))
    assert metrics(results)[name] == pytest.approx(metrics(hf_results)[name], rel=FLOAT32)


def test_texts_longer_than_the_context_are_cut_into_windows_as_in_hf(monkeypatch):
    text, limit = "The garden is green and the river is slow. " * 9, 32
    assert len(model().tokenizer(text).input_ids) > 3 * limit
    monkeypatch.setattr(HoldfastLM, "max_length", limit)
    request = [Instance("loglikelihood_rolling", {}, (text,), 0)]
    likelihoods = HoldfastLM(device="cpu").loglikelihood_rolling(request, disable_tqdm=True)
    hf_model = HFLM(**hf(), device="cpu", batch_size=1, max_length=limit)
    assert likelihoods == pytest.approx(hf_model.loglikelihood_rolling(request), rel=1e-5)


def test_steered_scores_match_those_of_the_model(evaluate):
    spec = "boost:factor=4"
    plain = evaluate("holdfast", {}, "choices", batch_size="auto", **CHAT)
    steered = evaluate("holdfast", {"method": spec}, "choices", batch_size="auto", **CHAT)
    (samples,) = steered["samples"].values()
    change = 0.0
    samples = sorted(samples, key=lambda entry: entry["doc_id"])
    for sample, before in zip(samples, logprobs(plain), strict=True):
        user = {"role": "user", "content": sample["doc"]["question"]}
        chat = [{"role": "system", "content": SYSTEM}, user]
        expected = model().score(chat, sample["doc"]["choices"], spec).log_probabilities
        scores = [choice[0][0] for choice in sample["resps"]]
        assert scores == pytest.approx(expected, abs=FLOAT32)
        change = max(change, *(abs(a - b) for a, (b, _) in zip(scores, before, strict=True)))
    assert change > 0.05


def test_steered_replies_match_those_of_the_model_up_to_the_stop_text(evaluate):
    spec = "split-softmax:exponent=0.3"
    results = evaluate("holdfast", {"method": spec}, "writing", batch_size="auto", **CHAT)
    (samples,) = results["samples"].values()
    sampling = holdfast.Sampling(temperature=0, top_p=1, max_new_tokens=24)
    for sample in samples:
        user = {"role": "user", "content": sample["doc"]["question"] + " I think"}
        chat = [{"role": "system", "content": SYSTEM}, user]
        reply = model().generate_batch([Request(chat, spec, sampling)])[0].text
        assert sample["resps"][0][0] == reply.split(".")[0]


def test_draws_depend_on_the_seed_but_not_on_the_batch_size(evaluate):
    options = {"gen_kwargs": {"do_sample": True, "temperature": 1.0, "top_p": 0.9}, **CHAT}
    first, repeat, other_seed = (
        answers(evaluate("holdfast", {"seed": seed}, "writing", batch_size=size, **options))
        for seed, size in ((0, "auto"), (0, 2), (1, "auto"))
    )
    assert first == repeat != other_seed


def test_the_entry_point_for_future_versions_names_the_model():
    (entry,) = entry_points(group="lm_eval.models", name="holdfast")
    assert entry.load() is HoldfastLM


def test_the_command_knows_the_model(tasks, tmp_path):
    """`holdfast lm-eval` is the harness's command with `--model holdfast` and its own results."""
    out = tmp_path / "results.json"
    words = f"run --tasks holdfast_choices --include_path {tasks} --limit 2 --device cpu"
    command = [sys.executable, "-m", "holdfast", "lm-eval", *words.split()]
    command += ["--output_path", str(out)]
    result = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert result.returncode == 0, result.stderr[-2000:]
    assert "holdfast_choices" in result.stdout and "|acc" in result.stdout
    (results_file,) = tmp_path.glob("results*.json")
    assert json.loads(results_file.read_text())["config"]["model"] == "holdfast"


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ({"method": "bost:factor=2"}, "There is no method 'bost'; did you mean 'boost'?"),
        ({"methd": "none"}, "A holdfast model has no argument 'methd'; did you mean 'method'?"),
        ({"batch_size": "many"}, "`--batch_size` is auto or a whole number, not 'many'."),
        ({"pretrained": "/nowhere"}, "/nowhere"),
    ],
)
def test_a_bad_argument_is_reported_in_one_sentence(arguments, expected):
    with pytest.raises(HoldfastError) as excinfo:
        HoldfastLM(**arguments)
    assert expected in str(excinfo.value)


def test_unsupported_requests_are_refused_by_name(evaluate):
    spec = "boost:factor=2"
    boost = {"method": spec}
    lm = HoldfastLM(device="cpu")
    messages = [{"role": "assistant", "content": "Sure"}]
    for option, value, ask in (
        ("method", spec, lambda: evaluate("holdfast", boost, "choices")),
        (
            "method",
            spec,
            lambda: evaluate("holdfast", boost, "choices", apply_chat_template=True),
        ),
        ("method", spec, lambda: evaluate("holdfast", boost, "rolling")),
        ("top_k", 5, lambda: evaluate("holdfast", {}, "writing", gen_kwargs={"top_k": 5})),
        ("chat_template", "mine", lambda: lm.chat_template("mine")),
        ("gen_prefix", "Sure", lambda: lm.apply_chat_template(messages, False)),
    ):
        with pytest.raises(UsageError) as excinfo:
            ask()
        assert (excinfo.value.option, excinfo.value.value) == (option, value)
    with pytest.raises(PromptTooLong) as excinfo:
        lm._loglikelihood_tokens([(None, [5] * 5000, [5])])
    assert (excinfo.value.value, excinfo.value.allowed) == (5000, 4096)
