"""The output of commands as approved texts in tests/data/approved, one file per command.

Sentences on results that no recorded run has are made from given numbers (`SENTENCES`).

    python tests/approved.py

runs every command below and rewrites the files; their difference is then reviewed like code. Tests
of single messages assert types and fields of errors; their wording is held here.
"""

import contextlib
import io
import os
import re
import shutil
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent / "support"))

import calibrations
import drift_sentences
import logged_dialogs

from holdfast.cli import main
from holdfast.version import __version__

DATA = Path(__file__).parent / "data"
APPROVED = DATA / "approved"
RUN, OTHER = "recorded/schema-3/drift", "recorded/schema-2/drift"
NAMES = ["attenuate", "boost:factor=4", "contain", "bots", "smollm2"]  # no commands
COMMANDS = {
    "holdfast": ["--help", "--version", "drifd", "--sede 3", "", *NAMES],
    "drift": [
        "drift --help",
        "drift --help-all",
        "drift --suite nowhere.yaml --out run",
        "drift --model gpt-4o --out run",
        "drift --model 127.0.0.1:9101/v1 --out run",
        "drift --temperature 9 --out run",
        "drift --max-new-tokens 0 --out run",
        "drift --method split-softmax:exponent=7 --out run",
        "drift --method bost --out run",
        "drift --suite starter --suite core --out run",
        "drift --rounds two --out run",
        "drift --context slide --out run",
        "drift --model smollm3 --out run",
        "drift --suite cores --out run",
        "drift --suite core --scoring strickt --out run",
        "drift --suite core --scoring released --out run",
        "drift --suite sys-ifeval --out run",
        "drift --context cut --window 3 --out run",
        "drift --user-prompt replayed --out run",
        f"drift --rounds 3 --out {RUN}",
        "drift --out logs",
    ],
    "remind": [
        "remind --help",
        "remind",
        "remind --suite nowhere.yaml --install",
        "remind --suite rules.yaml --yes",
    ],
    "report": [
        "report --help",
        f"report {RUN} --out page.html",
        f"report {RUN} {OTHER} --out page.html",
        "report recorded/schema-3/calibrate --out page.html",
        "report recorded/schema-3/tasks --out page.html",
        "report nowhere --out page.html",
        "report logs --out page.html",
        f"report {RUN} --out logs",
        f"report {RUN} {RUN} --out page.html",
    ],
    "compare": [
        "compare --help",
        f"compare {RUN}",
        f"compare {RUN} {RUN}",
        f"compare {RUN} nowhere",
        f"compare {RUN} recorded/schema-3/tasks",
        f"compare {OTHER} {RUN}",
        f"compare {RUN} recorded/schema-3/calibrate/stability --markdown",
    ],
    "export": ["export --help", f"export {RUN} --csv run.csv", f"export {RUN}"],
    "check": [
        "check --help",
        "check nowhere.yaml",
        "check --suite starter --min-stability 2",
        "check starter --min-stability 90",
        "check starter --min-stability 1",
        "check starter --error 5",
        "check starter --against nowhere",
        "check starter --smoke --all-rules",
    ],
    "logs": [
        "logs --help",
        "logs --help-all",
        "logs logs/nowhere.jsonl --suite starter",
        "logs talks.jsonl --suite bot.yaml --out scored",
        "logs talks.jsonl --suite bot.yaml --format claude-code --out other",
        "logs broken.jsonl --suite bot.yaml --out broken",
        "logs talks.jsonl --suite bot.yaml --format claude",
        "logs talks.jsonl --suites bot.yaml",
        "logs --suit bot.yaml",
        "logs many.jsonl --suite short.yaml --min-adherence 0.9 --out many",
        "logs one.jsonl --suite short.yaml --out one",
        "logs one.jsonl --suite only_probed.yaml --out only-probed",
        "logs one.jsonl --suite two.yaml --out two",
        "logs cities.jsonl --suite luna.yaml --min-adherence 0.3 --out cities",
        "logs cut.jsonl --suite cut.yaml --out cut",
        "logs damaged --suite short.yaml --out damaged-run",
    ],
    "suite": [
        "suite --help",
        "suite init nowhere.md --model default",
        "suite test bot.yaml --model default",
        "suite init bot.yaml --endpoint-model big",
    ],
    "calibrate": ["calibrate --help", "calibrate --sweep boost:factor=1..0 --out run"],
    "tasks": [
        "tasks --help",
        "tasks --task jsn --out run",
        "tasks --out recorded/schema-3/drift",
        "tasks --samples 3 --out recorded/schema-3/tasks",
        "tasks --out logs",
        "tasks --task json --out run --report logs",
        "tasks --task json --out run --report bot.yaml/page.html",
    ],
    "generate": [
        "generate --help",
        "generate --user Hello --method boost:factor=-1",
        "generate --user Hello --method boost:factor=2 --emphasis Goodbye",
        "generate --user Hello --device-map atuo",
        "generate --messages begun.json",
        "generate",
    ],
    "serve": ["serve --help", "serve --port 99999"],
    "proxy": [
        "proxy --help",
        "proxy --suite bot",
        "proxy --upstream localhost:8000 --suite luna",
        "proxy --upstream http://127.0.0.1:9 --port 0 --suite luna",
        "proxy --upstream http://127.0.0.1:9 --suite bot",
        "proxy --upstream http://127.0.0.1:9 --suite luna --method boost:factor=2",
        "proxy --upstream http://127.0.0.1:9 --suite short.yaml"
        " --method reminder:text=rules,kinds=length",
    ],
    "chat": ["chat --help"],
    "trace": ["trace --help", "trace --out recorded/schema-3/drift"],
    "precedent": ["precedent --help"],
    "map": ["map --help", "map nowhere", f"map {RUN}"],
    "geometry": ["geometry --help"],
    "reproduce": ["reproduce --help", "reproduce li2025"],
    "profile": ["profile --help"],
    "fit": ["fit --help", "fit seka --out x.safetensors --model vllm:tiny"],
    "measures": [
        "measures --help",
        "measures",
        "measures contains",
        "measures judge",
        "measures contain",
    ],
    "methods": ["methods --help", "methods", "methods boost", "methods hold", "methods bost"],
    "docs": ["docs --help", "docs serve"],
    "try": ["try --help", "try --minutes 0", "try --prompt vague.txt", "try --prompt nowhere.txt"],
    "completion": ["completion --help", "completion csh"],
}
SENTENCES = {
    "calibration-sentences": calibrations.sentences,
    "drift-sentences": drift_sentences.sentences,
}
FILES: dict[str, str | bytes] = {
    **logged_dialogs.FILES,
    "bot.yaml": (
        "name: bot\ncases:\n  - id: tony\n    system_prompt: Sign every message with Tony.\n"
        "    probes: [What is on the menu?]\n    measure: {name: ends_with, word: Tony}\n"
        "starters: [Hello!]\n"
    ),
    "talks.jsonl": (
        '{"messages": [{"role": "user", "content": "Hi"},'
        ' {"role": "assistant", "content": "Pizza. Tony"},'
        ' {"role": "user", "content": "And?"}, {"role": "assistant", "content": "Pasta."}]}\n'
    ),
    "begun.json": (
        '[{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Hello"}]\n'
    ),
    "vague.txt": "You are the assistant of Nordwind. Be friendly.\n",
    "broken.jsonl": '{"messages": [{"role": "user"\n',
}


@contextlib.contextmanager
def working_folder() -> Iterator[Path]:
    """A working folder with the files that the commands name, and a terminal of 80 columns."""
    before, environment = Path.cwd(), dict(os.environ)
    with tempfile.TemporaryDirectory() as folder:
        try:
            os.chdir(folder)
            os.environ |= {"COLUMNS": "80", "HF_HUB_OFFLINE": "1", "XDG_CACHE_HOME": folder}
            os.environ.pop("OPENAI_API_KEY", None)
            shutil.copytree(DATA / "recorded", "recorded")
            shutil.copytree(DATA / "logs", "logs")
            for name, text in FILES.items():
                Path(name).parent.mkdir(exist_ok=True)
                Path(name).write_bytes(text.encode() if isinstance(text, str) else text)
            yield Path(folder)
        finally:
            os.chdir(before)
            os.environ.clear()
            os.environ.update(environment)


def printed(command: str, folder: Path) -> str:
    """A command line, what it prints on both streams, and how it ends if that is no success."""
    out, err = io.StringIO(), io.StringIO()
    stdin, sys.stdin = sys.stdin, io.StringIO("")
    try:
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            code: object = main(command.split())
    except SystemExit as end:
        code = end.code
    finally:
        sys.stdin = stdin
    text = out.getvalue() + err.getvalue()
    text = text.replace(f"{folder}/", "").replace(str(folder), ".").replace(__version__, "VERSION")
    text = re.sub(r"\d+(\.\d+)? (seconds?|s|ms)\b", "N seconds", text)
    lines = [f"$ holdfast {command}".rstrip(), *(line.rstrip() for line in text.splitlines())]
    return "\n".join([*lines, *([f"exit code {code}"] if code else []), "", ""])


def texts() -> dict[str, str]:
    """The text of every file."""
    with working_folder() as folder:
        printed_by = {
            name: "".join(printed(command, folder) for command in commands)
            for name, commands in COMMANDS.items()
        }
    return printed_by | {name: write() for name, write in SENTENCES.items()}


if __name__ == "__main__":
    APPROVED.mkdir(exist_ok=True)
    for name, text in texts().items():
        (APPROVED / f"{name}.txt").write_text(text)
        print(f"tests/data/approved/{name}.txt")
