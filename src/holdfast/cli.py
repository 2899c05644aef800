"""The command line. Exit codes: 0 done; 1 it could not be done, or was interrupted; 2 the command is malformed."""

from __future__ import annotations

import argparse
import json
import shlex
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from holdfast.errors import HoldfastError, UsageError

DRIFT_EXAMPLES = """examples:
  holdfast drift                                            the model in the package on its own prompts
  holdfast drift --method none --method split-softmax:exponent=0.5 --out runs/fix
  holdfast drift --model meta-llama/Llama-3.2-1B-Instruct --suite core --rounds 8
  holdfast drift --model http://localhost:8000/v1 --endpoint-model my-model --suite core --system-as first-user
  holdfast drift --suite li2024:hundred_system_prompts.py --scoring released
  holdfast drift --suite my_prompts.yaml --user-prompt empty

Repeating a command resumes it. Methods are listed by `holdfast methods`, measures by `holdfast measures`."""


def main(argv: Sequence[str] | None = None) -> int:
    """Runs one command and returns its exit code."""
    arguments = _parser().parse_args(argv)
    try:
        arguments.run(arguments)
    except HoldfastError as error:
        print(f"holdfast: {error}", file=sys.stderr)
        return 2 if isinstance(error, UsageError) else 1
    except KeyboardInterrupt:
        print(f"\nholdfast: interrupted. {getattr(arguments, 'on_interrupt', '')}".rstrip(), file=sys.stderr)
        return 1
    except BrokenPipeError:  # the reader of a table went away
        sys.stderr.close()
        return 1
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="holdfast", description="Measure how a chat model lets go of its system prompt, and hold it to it.",
        epilog="Try: holdfast drift", formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action=_Version, nargs=0, help="print the version and leave")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    _add_drift(commands)
    _add_report(commands)
    _add_trace(commands)
    _add_geometry(commands)
    _add_reproduce(commands)
    _add_calibrate(commands)
    _add_tasks(commands)
    _add_generate(commands)
    _add_profile(commands)
    for name, listed, line in (("measures", _list_measures, "list the measures"), ("methods", _list_methods, "list the steering methods")):
        command = commands.add_parser(name, help=line, description=line.capitalize() + ", one line each.")
        command.set_defaults(run=listed)
    return parser


class _Version(argparse.Action):
    def __call__(self, parser, namespace, values, option_string=None):
        from holdfast import __version__

        print(f"holdfast {__version__}")
        parser.exit()


def _add_drift(commands) -> None:
    drift = commands.add_parser(
        "drift", help="measure drift in self-chats", epilog=DRIFT_EXAMPLES, formatter_class=argparse.RawDescriptionHelpFormatter,
        description="Two copies of a model talk under different system prompts; at every round a probe asks, and a measure scores, "
        "whether the agent still follows its own (stability) or follows the other's (adoption). Li et al. 2024, Figure 3.",
    )
    add = drift.add_argument
    _add_model(add)
    add("--suite", default="starter", metavar="starter|core|li2024:PATH|FILE.yaml", help="system prompts and probes (default: %(default)s); li2024:hub reads the hub")
    add("--scoring", choices=("strict", "released"), default="strict", help="of li2024: mended, or as published (default: %(default)s)")
    add("--allow-code", action="store_true", help="let the suite name Python functions as measures")
    add("--rounds", type=int, default=8, help="default: %(default)s")
    add("--conversations", type=int, default=200, help="default: %(default)s")
    add("--method", action="append", metavar="SPEC", help="none, split-softmax:exponent=0.5, ...; repeat to compare on the same pairs (default: none)")
    add("--user-prompt", choices=("suite", "empty"), default="suite", help="empty: the user model has no system prompt (default: %(default)s)")
    add("--system-as", choices=("role", "first-user"), default="role", help="where the system prompt stands (default: %(default)s)")
    add("--probes-per-round", type=int, default=1, help="default: %(default)s")
    add("--probe-at", choices=("in-place", "after-round"), default="in-place", help="of the user's turn, or after a full round (default: %(default)s)")
    add("--no-adoption", action="store_true", help="do not ask the user's probes")
    add("--temperature", type=float, default=1.0, help="default: %(default)s")
    add("--top-p", type=float, default=0.9, help="default: %(default)s")
    add("--max-new-tokens", type=int, default=400, help="per reply (default: %(default)s)")
    add("--seed", type=int, default=0, help="default: %(default)s")
    add("--batch", type=int, default=48, help="conversations side by side (default: %(default)s)")
    add("--out", type=Path, help="the run's folder (default: runs/drift-MODEL-SUITE-SEED)")
    add("--report", type=Path, metavar="FILE.html", help="where the page goes (default: report.html in the run's folder)")
    drift.set_defaults(run=_drift)


def _add_model(add) -> None:
    add("--model", default="default", metavar="default|PATH|HUB_ID|URL", help="the chat model (default: the one in the package)")
    add("--endpoint-model", metavar="NAME", help="with a URL: the model's name there")
    add("--api-key-env", default="OPENAI_API_KEY", metavar="VAR", help="with a URL: the environment variable of the key (default: %(default)s)")
    add("--concurrency", type=int, default=8, help="with a URL: requests at a time (default: %(default)s)")
    add("--device", help="cpu, cuda, ... (default: CUDA if there is one)")
    add("--dtype", help="float32, bfloat16, ... (default: float32 on the CPU, the checkpoint's elsewhere)")
    add("--trust-remote-code", action="store_true", help="let code that comes with the model run (default: never)")


def _add_report(commands) -> None:
    report = commands.add_parser(
        "report", help="make one page of one or more runs", formatter_class=argparse.RawDescriptionHelpFormatter,
        description="Writes one self-contained page, with its figures as SVG and PNG files beside it.",
        epilog="examples:\n  holdfast report runs/fix --out report.html\n  holdfast report runs/main runs/control --out both.html",
    )
    report.add_argument("folders", nargs="+", type=Path, metavar="DIR", help="run folders")
    report.add_argument("--out", type=Path, default=Path("report.html"), help="default: %(default)s")
    report.set_defaults(run=_report)


def _add_trace(commands) -> None:
    trace = commands.add_parser(
        "trace", help="see how attention to the prompt decays", formatter_class=argparse.RawDescriptionHelpFormatter,
        description="Reads the attention mass on the system prompt at every generated token of self-chats, in every head (Li et al. 2024, Figure 4),\n"
        "sets it against even attention, and says whether low mass goes with lost probes.",
        epilog="examples:\n  holdfast trace\n  holdfast trace --model chat-model --compare base-model      two models side by side (Figure 8)",
    )
    add = trace.add_argument
    _add_model(add)
    add("--compare", metavar="MODEL", help="a second model, held beside the first")
    add("--suite", default="starter", help="whose prompts the dialogs are held under (default: %(default)s)")
    add("--conversations", type=int, default=40, help="default: %(default)s")
    add("--rounds", type=int, default=8, help="default: %(default)s")
    add("--head", metavar="LAYER.HEAD", help="shown by itself (default: the one whose mass falls most)")
    add("--method", default="none", metavar="SPEC", help="applied to the agent (default: %(default)s)")
    add("--seed", type=int, default=0, help="default: %(default)s")
    add("--out", type=Path, default=Path("runs/trace"), help="a folder (default: %(default)s)")
    trace.set_defaults(run=_trace, allow_code=False)


def _add_geometry(commands) -> None:
    geometry = commands.add_parser(
        "geometry", help="check the theory of drift, and read a model's own geometry", formatter_class=argparse.RawDescriptionHelpFormatter,
        description="Checks Theorem 5.1 and Propositions A.1 and A.2 of Li et al. 2024 on random instances, draws the norms of a model's embeddings\n"
        "(Figure 7), and reads effective dimension and opening angle of its hidden states over self-chats.",
        epilog="examples:\n  holdfast geometry\n  holdfast geometry --model meta-llama/Llama-3.2-1B-Instruct --conversations 40",
    )
    add = geometry.add_argument
    _add_model(add)
    add("--suite", default="starter", help="whose prompts the dialogs are held under (default: %(default)s)")
    add("--conversations", type=int, default=12, help="default: %(default)s")
    add("--rounds", type=int, default=8, help="default: %(default)s")
    add("--seed", type=int, default=0, help="default: %(default)s")
    add("--out", type=Path, default=Path("runs/geometry"), help="a folder (default: %(default)s)")
    geometry.set_defaults(run=_geometry, allow_code=False)


def _add_reproduce(commands) -> None:
    reproduce = commands.add_parser(
        "reproduce", help="make a paper's figures on your model, each with its claims judged", formatter_class=argparse.RawDescriptionHelpFormatter,
        description="Runs Figures 3 to 9 of Li et al. 2024 (li2024), or the tables and figures of Zhang et al. 2024, PASTA (zhang2024), and writes one page:\n"
        "each figure, the paper's claims in our words, and whether this run supports them, contradicts them or cannot tell. Repeating the command resumes it.",
        epilog="examples:\n  holdfast reproduce li2024 --out runs/li2024\n  holdfast reproduce li2024 --model chat-model --base base-model --scale paper "
        "--capability mmlu:hub --out runs/li2024\n  holdfast reproduce zhang2024 --out runs/zhang2024\n  holdfast reproduce zhang2024 --model base-model "
        "--child chat-model --data bios.jsonl --data counterfact.json --scale paper",
    )
    add = reproduce.add_argument
    add("paper", choices=("li2024", "zhang2024"))
    _add_model(add)
    add("--base", metavar="MODEL", help="li2024: the model before its chat training, for Figure 8")
    add("--endpoint", metavar="URL", help="li2024: of the model of Figure 9; with --endpoint-model (default: the model itself)")
    add("--suite", default="starter", help="li2024 (default: %(default)s)")
    add("--capability", default="knowledge", help="li2024: as of holdfast calibrate (default: %(default)s)")
    add("--child", metavar="MODEL", help="zhang2024: the model after further training, for Table 13 (default: a small model is trained a little here)")
    add("--data", action="append", metavar="synthetic|PATH|hub:NAME", help="zhang2024: as of holdfast tasks (default: synthetic)")
    add("--scale", default="small", metavar="smallest|small|paper", help="default: %(default)s")
    add("--seed", type=int, default=0, help="default: %(default)s")
    add("--out", type=Path, help="a folder (default: runs/PAPER)")
    reproduce.set_defaults(run=_reproduce, allow_code=False)


def _reproduce(arguments: argparse.Namespace) -> None:
    def other(name: str | None):
        return _load(argparse.Namespace(**{**vars(arguments), "model": name})) if name else None

    foreign = ("child", "data") if arguments.paper == "li2024" else ("base", "endpoint")
    if given := next((name for name in foreign if getattr(arguments, name)), None):
        raise UsageError(f"--{given} plays no part in {arguments.paper}; leave it out.")
    out = arguments.out or Path("runs") / arguments.paper
    arguments.on_interrupt = f"What is finished is kept in {out}; repeat the command to go on."
    if arguments.paper == "li2024":
        from holdfast import drift
        from holdfast.reproduce import li2024

        scale, suite = li2024.scale_of(arguments.scale), drift.load_suite(arguments.suite)
        model, endpoint, base = _load(arguments), other(arguments.endpoint), other(arguments.base)
        page = li2024.reproduce(li2024.Task(model, suite, out, scale, arguments.seed, arguments.capability, base, endpoint, tell=print))
    else:
        from holdfast.reproduce import zhang2024

        wanted = zhang2024.scale_of(arguments.scale)
        data = tuple(arguments.data or ("synthetic",))
        page = zhang2024.reproduce(zhang2024.Task(_load(arguments), out, wanted, arguments.seed, data, other(arguments.child), tell=print))
    print(f"Page: {page.resolve()}")


def _trace(arguments: argparse.Namespace) -> None:
    from holdfast import drift, methods
    from holdfast.report.decay import describe, lines
    from holdfast.report.decay_figures import write_decay_figures
    from holdfast.study.decay import Sizes, check, hold

    sizes = Sizes(conversations=arguments.conversations, rounds=arguments.rounds, seed=arguments.seed)
    head = None
    if arguments.head:
        given = methods.read_heads(arguments.head)
        if len(given) > 1:
            raise UsageError(f"--head takes one head, not {arguments.head!r}; write it LAYER.HEAD.")
        (head,) = given
    chosen, suite, first = methods.parse(arguments.method), drift.load_suite(arguments.suite), _load(arguments)
    check(first, head)
    models = [first]
    if arguments.compare:
        arguments.model = arguments.compare
        models.append(_load(arguments))
        check(models[1], head)
        if models[1].fingerprint == first.fingerprint:
            raise UsageError(f"{arguments.compare!r} is the same model as the first; name another one to compare it with.")
    arguments.on_interrupt = f"Finished dialogs are kept in {arguments.out}; repeat the command to go on."
    found = []
    for name, model in zip(("model", "compared"), models, strict=False):
        found.append(describe(model.name, *hold(model, suite, arguments.out / name, sizes, chosen), head))
        (arguments.out / name / "trace.json").write_text(json.dumps(found[-1], indent=1) + "\n", encoding="utf-8")
        print(*lines(found[-1]), sep="\n")
    for path in write_decay_figures(found[0], arguments.out / "figures", found[1:]):
        if path.suffix == ".png":
            print(f"Figure: {path.resolve()}")


def _geometry(arguments: argparse.Namespace) -> None:
    from holdfast import drift
    from holdfast.report.geometry import write_geometry_figures
    from holdfast.study.geometry import Sizes, study

    sizes = Sizes(conversations=arguments.conversations, rounds=arguments.rounds, seed=arguments.seed)
    suite, model = drift.load_suite(arguments.suite), _load(arguments)
    arguments.on_interrupt = f"Finished dialogs are kept in {arguments.out}; repeat the command to go on."
    found = study(model, suite, arguments.out, sizes, tell=print)
    for path in write_geometry_figures(found, arguments.out):
        if path.suffix == ".png":
            print(f"Figure: {path.resolve()}")


def _add_calibrate(commands) -> None:
    calibrate = commands.add_parser(
        "calibrate", help="what each fix costs, and which to take", formatter_class=argparse.RawDescriptionHelpFormatter,
        description="Sweeps the strength of every method; measures for each setting stability (all ordered pairs of one prompt per category) and a\n"
        "capability asked in the middle of the same dialogs; draws one against the other, and names the most stable setting within a budget.\n"
        "Li et al. 2024, section 6.3, Figures 5 and 6.",
        epilog="examples:\n  holdfast calibrate --budget 2\n"
        "  holdfast calibrate --sweep split-softmax:exponent=0.9,0.7,0.5 --sweep repetition:probability=0.5,1 --capability mmlu:data/mmlu\n"
        "  holdfast drift --method runs/calibrate/method.json\n\nRepeating a command resumes it.",
    )
    add = calibrate.add_argument
    _add_model(add)
    add("--suite", default="starter", metavar="starter|core|li2024:PATH|FILE.yaml", help="where the prompts come from (default: %(default)s)")
    add("--prompts", metavar="ID,ID,...", help="which of them talk (default: one of each category)")
    add("--capability", default="knowledge", metavar="knowledge|mmlu:PATH|mmlu:hub|perplexity:FILE|lm-eval:TASK",
        help="what may be lost (default: %(default)s, which suits the model in the package)")
    add("--shots", type=int, default=0, help="of MMLU's dev questions in front of each question (default: %(default)s)")
    add("--reading", choices=("likeliest", "written"), default="likeliest", help="of an answer: the likeliest option, or the letter in the text (default: %(default)s)")
    add("--sweep", action="append", metavar="SPEC", help="a method with several values of one knob, as split-softmax:exponent=0.9,0.7; repeatable (default: five methods)")
    add("--questions", type=int, default=200, help="default: %(default)s")
    add("--draws", type=int, default=5, help="conversations of each ordered pair (default: %(default)s)")
    add("--rounds", type=int, default=8, help="default: %(default)s")
    add("--ask-at", type=int, default=4, help="the user turn that is the question (default: %(default)s)")
    add("--budget", type=float, metavar="D", help="points that may be lost (default: 1); given, the setting is written to method.json in the folder")
    add("--max-new-tokens", type=int, default=400, help="per reply (default: %(default)s)")
    add("--system-as", choices=("role", "first-user"), default="role", help="where the system prompt stands (default: %(default)s)")
    add("--seed", type=int, default=0, help="default: %(default)s")
    add("--out", type=Path, default=Path("runs/calibrate"), help="a folder (default: %(default)s)")
    calibrate.set_defaults(run=_calibrate)


def _calibrate(arguments: argparse.Namespace) -> None:
    from holdfast import drift, knobs
    from holdfast.chat import Sampling
    from holdfast.methods import parse_sweep
    from holdfast.report import calibration as report
    from holdfast.report.calibration_figures import write_calibration_figures
    from holdfast.study.calibrate import DEFAULT_SWEEPS, Plan, calibrate, choose_prompts, conversations
    from holdfast.study.capability import load_capability

    sweeps = arguments.sweep or DEFAULT_SWEEPS
    settings = 1 + sum(len(parse_sweep(sweep).settings) for sweep in sweeps)
    budget = knobs.number_between("calibrate", "budget", 1.0 if arguments.budget is None else arguments.budget, 0)
    plan = Plan(arguments.draws, arguments.rounds, arguments.ask_at, arguments.reading, arguments.seed, arguments.system_as,
                Sampling(max_new_tokens=arguments.max_new_tokens))
    suite = choose_prompts(drift.load_suite(arguments.suite), arguments.prompts.split(",") if arguments.prompts else ())
    capability = load_capability(arguments.capability, arguments.questions, arguments.seed, arguments.shots)
    model = _load(arguments)
    arguments.on_interrupt = f"What is finished is kept in {arguments.out}; repeat the command to go on."
    talks = conversations(suite, plan)
    with _Bar(settings * (talks * plan.rounds + min(talks, len(capability.items)))) as bar:
        calibrate(model, suite, capability, arguments.out, sweeps, plan, command=shlex.join(["holdfast", *sys.argv[1:]]), progress=bar)
    found = report.read_calibration(arguments.out)
    chosen = report.pick(found, budget)
    report.write_summary(found, arguments.out / "calibration.json")
    print(report.table(found))
    for path in write_calibration_figures(found, budget, arguments.out):
        if path.suffix == ".png":
            print(f"Figure: {path.resolve()}")
    if arguments.budget is not None:
        report.write_method_file(found, chosen, arguments.out / "method.json")
        print(f"Method: {(arguments.out / 'method.json').resolve()}")
    print(report.answer(found, chosen))


def _tell_foreign_files(specs: Sequence[str], model) -> None:
    """Says where a method file was calibrated on another model."""
    from holdfast import methods

    for spec in filter(methods.is_file, specs):
        made_for = methods.read_method_file(spec.strip()).get("model_fingerprint")
        if made_for not in (None, model.fingerprint):
            print(f"holdfast: {spec} was calibrated on another model than {model.name}; calibrate again for this one.", file=sys.stderr)


def _add_tasks(commands) -> None:
    tasks = commands.add_parser(
        "tasks", help="ask PASTA's tasks, with prompts or steering", formatter_class=argparse.RawDescriptionHelpFormatter,
        description="JSON formatting, pronouns changing, Bias in Bios and CounterFact (Zhang et al. 2024): prompting baselines on the unsteered\n"
        "model, and steering methods on the zero-shot prompt, on the same samples. Greedy decoding. Repeating a command resumes it.",
        epilog="examples:\n  holdfast tasks --baseline zero-shot --baseline marked --baseline few-shot\n"
        "  holdfast tasks --task json --task pronouns --instruction shortened --samples 500\n"
        "  holdfast tasks --task counterfact --data counterfact.json --model meta-llama/Llama-3.2-1B-Instruct",
    )
    add = tasks.add_argument
    add("--task", action="append", metavar="json|pronouns|bios|counterfact", help="repeat for several (default: all four)")
    _add_model(add)
    add("--method", action="append", metavar="SPEC", help="steers the zero-shot prompt towards its emphasised part; repeat to compare")
    add("--baseline", action="append", metavar="zero-shot|marked|quoted|few-shot", help="a prompt for the unsteered model; repeat to compare (default: zero-shot)")
    add("--data", action="append", metavar="synthetic|PATH|hub:NAME", help="CounterFact in ROME's JSON, its core as CSV, or Bias in Bios; once per kind (default: synthetic)")
    add("--instruction", choices=("original", "shortened", "rephrased"), default="original", help="of json and pronouns (default: %(default)s)")
    add("--split", choices=("train", "validation", "test"), default="test", help="default: %(default)s")
    add("--samples", type=int, default=200, help="per task (default: %(default)s)")
    add("--draws", type=int, default=5, help="of three demonstrations, with few-shot (default: %(default)s)")
    add("--no-generation", action="store_true", help="of bios and counterfact: compare probabilities alone, without fluency and consistency")
    add("--seed", type=int, default=0, help="default: %(default)s")
    add("--batch", type=int, default=32, help="samples side by side (default: %(default)s)")
    add("--out", type=Path, default=Path("runs/tasks"), help="a folder (default: %(default)s)")
    tasks.set_defaults(run=_tasks)


def _tasks(arguments: argparse.Namespace) -> None:
    from holdfast import methods, tasks
    from holdfast.report.tasks import table

    settings = tasks.Settings(
        tasks=tuple(arguments.task or tasks.CATALOGUE), samples=arguments.samples, split=arguments.split, instruction=arguments.instruction,
        baselines=tuple(arguments.baseline or ["zero-shot"]), draws=arguments.draws, seed=arguments.seed, batch=arguments.batch,
        generate=not arguments.no_generation,
    )
    chosen = [methods.parse(spec) for spec in arguments.method or ()]
    data = tasks.load_data(arguments.data or [tasks.SYNTHETIC], settings)
    model = _load(arguments)
    arguments.on_interrupt = f"Finished samples are kept in {arguments.out}; repeat the command to go on."
    with _Bar(len(settings.tasks) * len(tasks.variants_of(settings, chosen)) * settings.samples, "sample") as bar:
        run = tasks.run(model, data, arguments.out, settings, chosen, command=shlex.join(["holdfast", *sys.argv[1:]]), progress=bar)
    print(table(run), end="")


def _add_generate(commands) -> None:
    generate = commands.add_parser(
        "generate", help="answer one chat", formatter_class=argparse.RawDescriptionHelpFormatter,
        description="Answers one chat, steered by methods that hold on to its system prompt, or to the parts that are emphasised.",
        epilog="examples:\n  holdfast generate --system \"Reply in French.\" --user \"Do you like the garden?\" --method split-softmax:exponent=0.5\n"
        "  holdfast generate --user \"Anna is a nurse. Name her job in JSON.\" --emphasis \"in JSON\" --method pasta:alpha=0.01,heads=heads.json\n"
        "  holdfast generate --user \"Anna is a nurse. Name her job *in JSON*.\" --marks --method boost:factor=4",
    )
    add = generate.add_argument
    _add_model(add)
    add("--system", metavar="TEXT", help="the system prompt (default: none)")
    add("--user", metavar="TEXT", required=True, help="the user's message")
    add("--emphasis", action="append", nargs="+", metavar=("TEXT", "OCCURRENCE"), help="hold on to this text in place of the system prompt; repeatable; its occurrence, from 1, where it is in the chat more than once")
    add("--marks", action="store_true", help="*like this* in a message is emphasis; \\* is an asterisk")
    add("--method", default="none", metavar="SPEC", help="split-softmax:exponent=0.5, ... (default: none)")
    add("--system-as", choices=("role", "first-user"), default="role", help="where the system prompt stands (default: %(default)s)")
    add("--temperature", type=float, default=1.0, help="0 takes the likeliest token (default: %(default)s)")
    add("--top-p", type=float, default=0.9, help="default: %(default)s")
    add("--max-new-tokens", type=int, default=400, help="default: %(default)s")
    add("--seed", type=int, default=0, help="default: %(default)s")
    generate.set_defaults(run=_generate)


def _generate(arguments: argparse.Namespace) -> None:
    from holdfast import methods
    from holdfast.chat import Request, Sampling

    messages = [{"role": "system", "content": arguments.system}] if arguments.system else []
    messages.append({"role": "user", "content": arguments.user})
    request = Request(
        messages, methods.parse(arguments.method), Sampling(arguments.temperature, arguments.top_p, arguments.max_new_tokens), arguments.seed,
        system_as=arguments.system_as, emphasis=tuple(map(_emphasis, arguments.emphasis or ())), marks=arguments.marks,
    )
    print(_load(arguments).generate_batch([request])[0].text)


def _add_profile(commands) -> None:
    profile = commands.add_parser(
        "profile", help="find the heads to steer", formatter_class=argparse.RawDescriptionHelpFormatter,
        description="Steers every head of a model alone on the samples of one or several tasks, and ranks the heads. Zhang et al. 2024, Algorithm 1.",
        epilog="A line of samples: {\"messages\": [{\"role\": \"user\", \"content\": \"Anna is a nurse. Her job:\"}], \"emphasis\": [\"nurse\"],\n"
        "  \"continuations\": [\" nurse\", \" pilot\"], \"right\": 0}\n"
        "examples:\n  holdfast profile --task json --task pronouns --task bios --task counterfact --by accuracy --top 16\n  holdfast profile --samples jobs.jsonl\n"
        "  holdfast profile --samples jobs.jsonl --samples facts.jsonl --top 20 --combine intersection --out runs/heads\n"
        "  holdfast generate --user \"...\" --emphasis \"...\" --method pasta:alpha=0.01,heads=runs/heads/heads.json\n\nRepeating a command resumes it.",
    )
    add = profile.add_argument
    _add_model(add)
    add("--task", action="append", metavar="json|pronouns|bios|counterfact", help="one of PASTA's tasks; repeatable")
    add("--data", action="append", metavar="synthetic|PATH|hub:NAME", help="of --task, as of holdfast tasks (default: synthetic)")
    add("--count", type=int, default=200, help="training samples of each --task (default: %(default)s)")
    add("--samples", action="append", type=Path, metavar="FILE.jsonl", help="a task of your own; repeatable")
    add("--method", default="pasta:alpha=0.01", metavar="SPEC", help="what each head is steered by (default: %(default)s)")
    add("--by", choices=("probability", "accuracy"), default="probability", help="of the right continuation (default: %(default)s)")
    add("--halving", action="store_true", help="drop the worse half of the heads after a quarter of the samples, and again after half of them")
    add("--top", type=int, metavar="K", help="write heads.json with the best K heads of the task, or of the tasks together")
    add("--combine", choices=("intersection", "union"), default="intersection", help="of the best K of several tasks (default: %(default)s)")
    add("--system-as", choices=("role", "first-user"), default="role", help="where the system prompt stands (default: %(default)s)")
    add("--seed", type=int, default=0, help="default: %(default)s")
    add("--out", type=Path, default=Path("runs/profile"), help="a folder (default: %(default)s)")
    profile.set_defaults(run=_profile)


def _profile(arguments: argparse.Namespace) -> None:
    from holdfast import methods, tasks
    from holdfast.report.profile import write_profile
    from holdfast.study.profiling import Plan, profile, read_samples
    from holdfast.study.task_samples import task_samples

    steering = methods.parse(arguments.method)
    if len(steering) != 1:
        raise UsageError(f"--method takes one attention method to steer each head by, not {arguments.method!r}.")
    plan = Plan(steering[0], arguments.by, arguments.halving, system_as=arguments.system_as, seed=arguments.seed)
    samples: dict = {path.stem: read_samples(path) for path in arguments.samples or ()}
    if len(samples) < len(arguments.samples or ()):
        raise UsageError(f"Two of the files {', '.join(map(str, arguments.samples))} have one name, which names their folders; rename one.")
    if arguments.task:
        settings = tasks.Settings(tuple(arguments.task), arguments.count, "train")
        data = tasks.load_data(arguments.data or [tasks.SYNTHETIC], settings)
        if doubled := next((name for name in settings.tasks if name in samples), None):
            raise UsageError(f"--task {doubled} and a file of samples have one name, which names their folders; rename the file.")
        samples |= {name: task_samples(data, tasks.CATALOGUE[name], settings) for name in settings.tasks}
    if not samples:
        raise UsageError("There is nothing to profile heads on; give --task or --samples.")
    model = _load(arguments)
    arguments.on_interrupt = f"Finished samples are kept in {arguments.out}; repeat the command to go on."
    rankings = []
    for name, some in samples.items():
        with _Bar(len(some), "sample") as bar:
            found = profile(model, some, arguments.out / name, plan, command=shlex.join(["holdfast", *sys.argv[1:]]), progress=bar, tell=bar.tell)
        rankings.append(found.ranking)
        for line in write_profile(arguments.out / name):
            print(line)
    if arguments.top is not None:
        chosen = getattr(methods, arguments.combine)(rankings, arguments.top)
        methods.write_heads(arguments.out / "heads.json", chosen)
        print(f"{len(chosen)} heads: {(arguments.out / 'heads.json').resolve()}")


def _emphasis(words: Sequence[str]) -> str | tuple[str, int]:
    """What one --emphasis gives."""
    if len(words) == 1:
        return words[0]
    if len(words) > 2 or not words[1].isdecimal():
        raise UsageError(f"--emphasis takes a text and at most its occurrence, not {' '.join(words)!r}; put the text into quotes, and repeat the option.")
    return words[0], int(words[1])


def _drift(arguments: argparse.Namespace) -> None:
    from holdfast import drift, methods, report
    from holdfast.chat import Sampling

    settings = drift.Settings(
        rounds=arguments.rounds, conversations=arguments.conversations, seed=arguments.seed,
        sampling=Sampling(arguments.temperature, arguments.top_p, arguments.max_new_tokens),
        user_prompt=arguments.user_prompt, system_as=arguments.system_as, probes_per_round=arguments.probes_per_round,
        probe_at=arguments.probe_at, adoption=not arguments.no_adoption, batch=arguments.batch,
    )
    chosen = [methods.parse(spec) for spec in arguments.method or ["none"]]
    suite = drift.load_suite(arguments.suite, scoring=arguments.scoring, allow_code=arguments.allow_code)
    model = _load(arguments)
    _tell_foreign_files(arguments.method or (), model)
    out = arguments.out or Path("runs") / _folder_name(arguments)
    arguments.on_interrupt = f"Finished conversations are kept in {out}; repeat the command to go on."
    with _Bar(len(chosen) * settings.conversations * settings.rounds) as bar:
        run = drift.run(model, suite, out, settings, chosen, command=shlex.join(["holdfast", *sys.argv[1:]]), progress=bar)
    print(report.table(run))
    ended = sum("ended" in record for record in run.records)
    if ended:
        print(f"{ended} of {len(run.records)} dialogs filled the model's context; later rounds are means over the others.")
    print(_tokens_line(run.records))
    page = report.write([out], arguments.report or out / "report.html")
    print(f"Report: {page.resolve()}")


def _load(arguments: argparse.Namespace):
    if arguments.model.startswith(("http://", "https://")):
        from holdfast.endpoint import connect

        if not arguments.endpoint_model:
            raise UsageError(f"The endpoint {arguments.model} needs --endpoint-model, the model's name there.")
        return connect(arguments.model, arguments.endpoint_model, arguments.api_key_env, concurrency=arguments.concurrency)
    _quiet_transformers()
    from holdfast.loading import load

    return load(arguments.model, arguments.device, arguments.dtype, trust_remote_code=arguments.trust_remote_code)


def _quiet_transformers() -> None:
    """Leaves the terminal to our own progress bar."""
    from transformers.utils import logging

    logging.set_verbosity_error()
    logging.disable_progress_bar()


def _folder_name(arguments: argparse.Namespace) -> str:
    parts = (arguments.endpoint_model or arguments.model, arguments.suite, str(arguments.seed))
    return "drift-" + "-".join("".join(ch if ch.isalnum() or ch == "." else "_" for ch in part.split("/")[-1]) for part in parts)


def _tokens_line(records: list[dict]) -> str:
    forwarded, least, seconds = (sum(values) for values in zip(*(
        (r["tokens"]["forwarded"], r["tokens"]["least"], r["seconds"]) for r in records), strict=True))
    ratio = f", {forwarded / least:.3f} times the least possible" if least else ""
    return f"{forwarded:,} tokens forwarded{ratio}, in {seconds:,.0f} s."


def _report(arguments: argparse.Namespace) -> None:
    from holdfast import report

    print(f"Report: {report.write(arguments.folders, arguments.out).resolve()}")


def _list_measures(arguments: argparse.Namespace) -> None:
    from holdfast import measures

    _print_catalogue(measures.catalogue())


def _list_methods(arguments: argparse.Namespace) -> None:
    from holdfast import methods

    _print_catalogue([(name, ", ".join(knobs), line) for name, knobs, line in methods.catalogue()])


def _print_catalogue(rows) -> None:
    heads = [f"{name}({arguments})" if arguments else name for name, arguments, _ in rows]
    width = min(44, max(map(len, heads)))
    for head, (_, _, line) in zip(heads, rows, strict=True):
        print(f"{head:<{width}}  {line}" if len(head) <= width else f"{head}\n{'':<{width}}  {line}")


class _Bar:
    """What is done, tokens per second where they are told, and time left; silent where the error output is no terminal."""

    def __init__(self, total: int, unit: str = "round"):
        from tqdm import tqdm

        self.bar = tqdm(total=total, unit=unit, disable=not sys.stderr.isatty(), dynamic_ncols=True)
        self.tokens, self.started = 0, time.monotonic()

    def __enter__(self) -> _Bar:
        return self

    def __exit__(self, *_: object) -> None:
        self.bar.close()

    def tell(self, line: str) -> None:
        """Prints a line above the bar."""
        self.bar.write(line)

    def __call__(self, done: int, tokens: int = 0) -> None:
        self.tokens += tokens
        if self.tokens:
            self.bar.set_postfix_str(f"{self.tokens / (time.monotonic() - self.started):,.0f} tokens/s", refresh=False)
        self.bar.update(done)


if __name__ == "__main__":
    sys.exit(main())
