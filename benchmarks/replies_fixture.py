"""A safety net for refactorings: three models' replies, token for token, under every method.

    python benchmarks/replies_fixture.py --check                   # all that are installed
    python benchmarks/replies_fixture.py --check --model default   # one
    python benchmarks/replies_fixture.py                           # records them anew

It records greedy and sampled tokens, the attention mass at each of them, and the log-probabilities
of given replies: one request at a time, three under one method, sixteen under different methods,
forks of a dialog, and forks under another method. A method that is added adds lines, and changes
none; answers that differ only by rounding stay as they were recorded. `--check` computes everything
again, and prints the differences. Tokens are compared exactly, so a fixture is valid for one
version of torch and one kind of processor, both of which it records. Everything goes through the
public interface.

`make real-models` installs the two real models. Gemma's is a base model, and gets a template here.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import itertools
import json
import platform
import sys
import tempfile
import time
import warnings
from collections.abc import Iterator, Sequence
from pathlib import Path

import torch

import holdfast
from holdfast.cli import main as run_command
from holdfast.cli.look_up.methods import example_of
from holdfast.errors import ModelError
from holdfast.methods.all_methods import BY_NAME

FILE = Path(__file__).parents[1] / "tests" / "data" / "replies.json"
MASS_TOLERANCE = 2e-5  # masses are sums of float32 exponentials
SCORE_TOLERANCE = 2e-3  # of a log-probability, a sum over about ten tokens
DIGITS = 6
NEW_TOKENS = {"default": 16, "smollm2": 10, "gemma-3-270m": 6}
TEMPLATES = {
    "gemma-3-270m": (
        "<bos>{% for m in messages %}{{ m['role'] }}: {{ m['content'] }}\n{% endfor %}"
        "{% if add_generation_prompt %}assistant:{% endif %}"
    )
}
METHODS = (  # of the fixture, by spec string; those that have to be fitted are in `FITTED`
    "none",
    "split-softmax:exponent=0.5",
    "pasta:alpha=0.1",
    "boost:factor=8",
    "spotlight:target=0.3",
    "hold",
    "repetition:probability=1",
    "guidance:scale=2",
    "prompt-strength:scale=1.5",
    "anchoring:strength=1.5",
    "adacad",
)
# methods without replies here: the first adds nothing to dialogs as short as these, and the others
# need the rules of a suite
UNCOVERED = ("reminder", "repair", "check-and-retry")
# The methods of the batch `sixteen`, which repeats them in this order. A method that is added later
# is not among them, as it would give the others new chats and seeds; it has a batch of its own.
MIXED = (
    *("none", "split-softmax", "pasta", "boost", "spotlight", "hold", "repetition", "guidance"),
    *("prompt-strength", "anchoring", "adacad", "seka", "prism", "capping", "vector"),
)
PLACES = "The {} is by the {}. Many people like it."
FITTED = {  # methods that are fitted here, and the examples that they are fitted on
    ("seka", "prism"): [
        {
            "context": PLACES.format(first, second),
            "answer": second,
            "relevant": f"Where is the {first}?",
            "irrelevant": "What do you eat?",
        }
        for first, second in itertools.permutations(("garden", "river", "town"), 2)
    ],
    ("capping", "vector"): [
        {
            "prompted": [
                {"role": "system", "content": prompt},
                {"role": "user", "content": f"Do you like the {thing}?"},
            ],
            "plain": [{"role": "user", "content": f"Do you like the {thing}?"}],
        }
        for prompt in ("Always reply in French.", "Always reply in capital letters.")
        for thing in ("garden", "river", "town", "bread")
    ],
}
PROMPTS = ("Always reply in French.", "Your name is Anna. Always say so.", "Reply in one sentence.")
QUESTIONS = ("Do you like the garden?", "What is your name?", "Where does the river go?")
REPLIES = ("Oui, j'aime le jardin.", "No.")
LONG = "The river goes past the old town. " * 70  # longer than Gemma's window


def specs_by_name() -> dict[str, str]:
    """The spec of each method that needs no file: those above, and examples of any other."""
    specs = {spec.partition(":")[0]: spec for spec in METHODS}
    covered = {*specs, *itertools.chain(*FITTED), *UNCOVERED}
    return specs | {name: example_of(made) for name, made in BY_NAME.items() if name not in covered}


def answers_of(name: str, model, specs: dict[str, str]) -> Iterator[NamedAnswer]:
    """Yields every answer of a model.

    Args:
        specs: the spec string of each method, by the name of the method.
    """
    requests = Requests(specs, NEW_TOKENS[name])
    yield from batches_of_one_method(model, requests)
    for number, method in enumerate(("none", "boost", "guidance")):
        reply = model.session().generate_batch([requests.make(number, method)])[0]
        yield f"one/{method}", as_data(reply)
    yield from batches_of_many_methods(model, requests)
    yield from forks_of(model, requests)
    long_chat = [chat(0)[0], {"role": "user", "content": LONG + QUESTIONS[0]}]
    long = holdfast.Request(long_chat, specs["boost"], sampling=requests.greedy, trace=True)
    yield "long/boost", as_data(model.session().generate_batch([long])[0])


NamedAnswer = tuple[str, dict]  # "three/boost/0", and the tokens and masses of the reply


def chat(number: int, *more: str) -> list[dict[str, str]]:
    """One of nine chats; `more` are further turns."""
    system = PROMPTS[number % 3]
    question = QUESTIONS[number // 3 % 3]
    turns = zip(itertools.cycle(("user", "assistant")), (question, *more), strict=False)
    return [
        {"role": "system", "content": system},
        *({"role": role, "content": text} for role, text in turns),
    ]


class Requests:
    """Makes requests about the chats, which are answered greedily or by draws, in turn."""

    def __init__(self, specs: dict[str, str], new_tokens: int):
        self.specs = specs
        self.greedy = holdfast.Sampling(temperature=0, max_new_tokens=new_tokens)
        self.drawn = holdfast.Sampling(temperature=1, top_p=0.9, max_new_tokens=new_tokens)

    def make(self, number: int, method: str, *more: str, **options) -> holdfast.Request:
        """The request about a chat under a method, with further turns and other fields."""
        options = {"sampling": self.drawn if number % 2 else self.greedy, "seed": number} | options
        traced = method not in ("none", "repetition") or number == 0
        return holdfast.Request(chat(number, *more), self.specs[method], trace=traced, **options)


def batches_of_one_method(model, requests: Requests) -> Iterator[NamedAnswer]:
    """Yields three replies under each method, and the log-probabilities of given replies."""
    for method, spec in requests.specs.items():
        batch = [requests.make(number, method) for number in range(3)]
        for number, reply in enumerate(model.session().generate_batch(batch)):
            yield f"three/{method}/{number}", as_data(reply)
        scored = model.score(chat(0), REPLIES, spec)
        yield f"score/{method}", {"scores": rounded(scored.log_probabilities)}


def batches_of_many_methods(model, requests: Requests) -> Iterator[NamedAnswer]:
    """Yields the replies of the batch `sixteen`, and of a batch for each method added later."""
    specs = requests.specs
    cycle = itertools.cycle(method for method in MIXED if method in specs)
    batches = {"sixteen": list(itertools.islice(cycle, 16))}
    later = [name for name in specs if name not in MIXED]
    batches |= {f"mixed/{name}": ["none", name, "boost", name] for name in later}
    for name, methods in batches.items():
        batch = [requests.make(number, method) for number, method in enumerate(methods)]
        for number, reply in enumerate(model.session().generate_batch(batch)):
            yield f"{name}/{number}", as_data(reply)


def forks_of(model, requests: Requests) -> Iterator[NamedAnswer]:
    """Yields the replies in dialogs of two turns and their forks, which are under the method of
    their dialog and under another.
    """
    for method, other in (("none", "boost"), ("split-softmax", "none"), ("boost", "guidance")):
        session = model.session()
        name = f"forks/{method}"
        (first,) = session.generate_batch([requests.make(0, method, thread="talk", keep=True)])
        yield f"{name}/first", as_data(first)
        following = (first.text, "And the river?")
        forks = [
            requests.make(number, steering, *following, thread="talk")
            for number, steering in ((0, method), (3, method), (0, other), (3, other))
        ]
        for number, reply in enumerate(session.generate_batch(forks)):
            yield f"{name}/{number}", as_data(reply)
        next_turn = requests.make(0, method, *following, thread="talk", keep=True)
        (kept,) = session.generate_batch([next_turn])
        yield f"{name}/kept", as_data(kept)


def as_data(reply: holdfast.Reply) -> dict:
    """A reply as the fixture has it."""
    data = {"tokens": list(reply.token_ids), "stop": reply.stop_reason}
    if reply.token_masses:
        data["masses"] = rounded(reply.token_masses)
    return data


def rounded(values: Sequence[float]) -> list[float]:
    """Numbers as the fixture has them."""
    return [round(value, DIGITS) for value in values]


def compute(name: str, device: str = "cpu") -> dict[str, dict]:
    """All answers of a model, by name."""
    with warnings.catch_warnings(), tempfile.TemporaryDirectory() as scratch:
        warnings.simplefilter("ignore")  # the size of a GGUF
        model = holdfast.load(name, device, "float32")
        if name in TEMPLATES:
            model.tokenizer.chat_template = TEMPLATES[name]
        specs = specs_by_name()
        if name == "default":
            specs |= fit_all(Path(scratch))
        return dict(answers_of(name, model, specs))


def fit_all(scratch: Path) -> dict[str, str]:
    """Fits the methods that need it, on a few examples of the default model."""
    specs = {}
    for methods, examples in FITTED.items():
        data = scratch / f"{methods[0]}.jsonl"
        data.write_text("".join(f"{json.dumps(example)}\n" for example in examples))
        for method in methods:
            file = scratch / f"{method}.safetensors"
            output = io.StringIO()
            with contextlib.redirect_stdout(output), contextlib.redirect_stderr(output):
                code = run_command(["fit", method, "--out", str(file), "--data", str(data)])
            if code:
                sys.exit(output.getvalue())
            specs[method] = f"{method}:file={file}"
    return specs


def differences(recorded: dict[str, dict], now: dict[str, dict]) -> list[str]:
    """A line for each answer that differs now."""
    lines = [f"{name}: only in the fixture" for name in recorded.keys() - now.keys()]
    lines += [f"{name}: not in the fixture" for name in now.keys() - recorded.keys()]
    for name in recorded.keys() & now.keys():
        before = recorded[name]
        after = now[name]
        for part in ("tokens", "stop"):
            if before.get(part) != after.get(part):
                lines.append(f"{name}: {part} were {before.get(part)}, are {after.get(part)}")
        for part, tolerance in (("masses", MASS_TOLERANCE), ("scores", SCORE_TOLERANCE)):
            if moved := change_of_numbers(before.get(part, ()), after.get(part, ()), tolerance):
                lines.append(f"{name}: {part} {moved}")
    return sorted(lines)


def with_recorded(recorded: dict[str, dict], now: dict[str, dict]) -> dict[str, dict]:
    """The answers of now; one that differs from the recorded one only by rounding stays as it was,
    so that a diff of the fixture shows what changed.
    """
    answers = dict(now)
    for name in recorded.keys() & now.keys():
        if not differences({name: recorded[name]}, {name: now[name]}):
            answers[name] = recorded[name]
    return answers


def change_of_numbers(before: Sequence[float], after: Sequence[float], tolerance: float) -> str:
    """How numbers changed, in words; "" if all moved by at most the tolerance."""
    if len(before) != len(after):
        return f"were {len(before)}, are {len(after)}"
    moves = [abs(a - b) for a, b in zip(before, after, strict=True)]
    beyond = [move for move in moves if not move <= tolerance]  # including NaN
    return f"moved by up to {max(beyond):.2g}, more than {tolerance:g}" if beyond else ""


def read() -> dict:
    """The recorded fixture."""
    return json.loads(FILE.read_text()) if FILE.exists() else {"models": {}}


def write(fixture: dict) -> None:
    """Writes one line per answer, so that changes of the fixture are readable as a diff."""
    models = []
    for name, answers in sorted(fixture["models"].items()):
        lines = ",\n".join(f"   {json.dumps(k)}: {json.dumps(v)}" for k, v in answers.items())
        models.append(f"  {json.dumps(name)}: {{\n{lines}\n  }}")
    made_with = json.dumps(fixture["made_with"])
    joined = ",\n".join(models)
    FILE.write_text(f'{{\n "made_with": {made_with},\n "models": {{\n{joined}\n }}\n}}\n')


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n\n")[0])
    parser.add_argument("--check", action="store_true", help="compare, and write nothing")
    parser.add_argument("--device", default="cpu", help="cuda rounds differently")
    parser.add_argument("--model", choices=NEW_TOKENS, action="append", help="default: all")
    arguments = parser.parse_args()
    torch.set_num_threads(1)  # a different number would change the order of summation
    fixture = read()
    differing = 0
    for name in arguments.model or NEW_TOKENS:
        start = time.perf_counter()
        try:
            answers = compute(name, arguments.device)
        except ModelError as error:
            if "is not installed" not in str(error):
                raise
            print(f"{name}: left out. {error}")
            continue
        took = f"{len(answers)} answers, {time.perf_counter() - start:.0f} s"
        if arguments.check:
            lines = differences(fixture["models"].get(name, {}), answers)
            differing += len(lines)
            print(f"{name}: {took}, {len(lines) or 'no'} differences", *lines, sep="\n  ")
        else:
            fixture["models"][name] = with_recorded(fixture["models"].get(name, {}), answers)
            versions = {"torch": torch.__version__, "processor": platform.machine()}
            fixture["made_with"] = versions
            write(fixture)
            print(f"{name}: {took}, written")
    return 1 if differing else 0


if __name__ == "__main__":
    sys.exit(main())
