"""Code, suites, commands, links and tables in the README and the pages under docs/ work."""

import importlib.util
import json
import pkgutil
import re
import shutil
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import openai
import pytest
from code_blocks import PAGES, ROOT, anchors_of, blocks_of, commands_of
from fitted_files import METHODS, write_for
from served import RunningServer, default_model, served

import holdfast
from holdfast import drift
from holdfast.cli import main
from holdfast.cli.main_parser import parser
from holdfast.drift import load_suite
from holdfast.methods import parse, write_heads
from holdfast.models.checkpoint import DEFAULT_FOLDER
from holdfast.records.manifest import CURRENT
from holdfast.serve.limits import RequestLimits

MESSAGES = [
    {"role": "system", "content": "Always reply in French."},
    {"role": "user", "content": "Do you like the garden?"},
]
# Names on the pages that do not exist here, and their replacements in the tests.
INSTEAD = {
    "Qwen/Qwen2.5-0.5B-Instruct": str(DEFAULT_FOLDER),
    'model="MODEL"': 'model="default"',
    '"/shared/llama", dtype="bfloat16"': '"default"',
    '"head:6379", 8': '"", 1',
    'run(model, "core"': 'run(model, "starter", settings=drift.Settings(2, 2)',
}
ADDRESS = "http://127.0.0.1:8000"
# Packages that only other environments install: `make integrations` and `make llama-test`.
NEEDS = {"scaling.md": "ray", "integrations.md": "lm_eval", "llama.md": "llama_cpp"}


def with_code(*languages: str) -> list[Path]:
    return [page for page in PAGES if blocks_of(page, *languages)]


@pytest.fixture(scope="module")
def server() -> Iterator[RunningServer]:
    with served(default_model(), RequestLimits(tokens=60), queue=8) as running:
        yield running


@pytest.fixture
def folder(tmp_path, monkeypatch) -> Path:
    """A working folder with the files that the pages name."""
    monkeypatch.chdir(tmp_path)
    shutil.copytree(ROOT / "tests/data/recorded/schema-3/drift", tmp_path / "runs" / "first")
    for path in ("heads.json", "runs/heads/heads.json"):
        write_heads(path, [(0, 1)])
    (tmp_path / "runs/calibrate").mkdir()
    (tmp_path / "runs/calibrate/method.json").write_text('{"method": "boost:factor=4"}')
    (pizza,) = blocks_of(ROOT / "docs" / "measuring.md", "yaml")
    (tmp_path / "pizza.yaml").write_text(pizza.text)
    vera = ROOT / "docs" / "my_bot_api.md"
    (tmp_path / "bot.yaml").write_text(blocks_of(vera, "yaml")[0].text)
    (tmp_path / "bot.txt").write_text(blocks_of(vera, "text")[0].text)
    (tmp_path / "prices.py").write_text("def in_euros(text):\n    return float('euro' in text)\n")
    for method in METHODS:
        write_for(default_model(), tmp_path / f"{method}.safetensors", method)
    return tmp_path


def names_for(page: Path, url: str) -> dict[str, Any]:
    """Names that a page uses without defining them."""
    if page.name == "vllm.md":  # `holdfast serve` reads the plug-in's spelling too
        return {"client": openai.OpenAI(base_url=f"{url}/v1", api_key="none"), "messages": MESSAGES}
    return {}


@pytest.mark.slow
@pytest.mark.parametrize("page", with_code("python"), ids=lambda page: page.name)
def test_python_blocks_run(page, folder, server, capsys):
    """The blocks of a page run in order, as a reader would run them."""
    if page.name in NEEDS:
        pytest.importorskip(NEEDS[page.name], reason="of another environment")
    names = {"__name__": "__main__", **names_for(page, server.url)}
    promised = []
    for block in blocks_of(page, "python"):
        code = block.text.replace(ADDRESS, server.url)
        for name, instead in INSTEAD.items():
            code = code.replace(name, instead)
        exec(compile("\n" * (block.line - 1) + code, str(page), "exec"), names)
        promised += [line[2:] for line in code.splitlines() if line.startswith('# {"')]
    if "stream" in names:  # the recipe of docs/steering.md
        pieces = names["stream"](names["hf_model"], names["tokenizer"], names["chats"])
        assert "".join(pieces).strip()
    lines = capsys.readouterr().out.strip().splitlines()
    assert len(promised) == 2 * (page.name == "emphasis.md")
    assert all(line in lines for line in promised)


UNPROBED = ("logs.md", "reminding.md")


@pytest.mark.parametrize("page", with_code("yaml"), ids=lambda page: page.name)
def test_suites_load(page, folder):
    for number, block in enumerate(blocks_of(page, "yaml")):
        (folder / f"{number}.yaml").write_text(block.text)
        path = str(folder / f"{number}.yaml")
        probed = page.name not in UNPROBED and "calls:" not in block.text  # labelled turns
        assert load_suite(path, allow_code=True, probed=probed).cases


def test_the_rules_of_the_pizza_bot_distinguish_kept_from_broken(folder):
    suite = load_suite("pizza.yaml")
    (case,) = suite.cases

    def scores(reply: str) -> dict[str, float]:
        return {rule.id: rule.measure.score(reply).value for rule in case.rules}

    rules = ("signs", "no-discount", "brief", "special")
    keeping_scores = scores("Calzone, half a meter. It is 9 euros. Tony")
    breaking_scores = scores("For you, with a discount: 8." + " Bye!" * 40)
    assert keeping_scores == dict.fromkeys(rules, 1) and breaking_scores == dict.fromkeys(rules, 0)
    assert suite.personas


COMMANDING = [page for page in PAGES if commands_of(page)]


@pytest.mark.parametrize("page", COMMANDING, ids=lambda page: page.name)
def test_commands_parse(page, folder):
    for words in commands_of(page):
        arguments = parser().parse_args(words)
        specs = getattr(arguments, "method", None) or ()
        if words[0] == "fit":  # takes only the name of a method
            continue
        for spec in [specs] if isinstance(specs, str) else specs:
            parse(spec)


def test_commands_are_found_on_the_pages():
    assert sum(len(commands_of(page)) for page in PAGES) > 50
    commands = [words for page in PAGES for words in commands_of(page)]
    assert ["remind", "--suite", "rules.yaml"] in commands  # behind a pipe


@pytest.mark.parametrize("page", with_code("json"), ids=lambda page: page.name)
def test_json_blocks_are_json(page):
    for block in blocks_of(page, "json"):
        is_whole = block.text.startswith(("{", "["))  # otherwise the fields of an object
        for text in _values(block.text) if is_whole else ["{" + block.text + "}"]:
            json.loads(text)


def _values(text: str) -> list[str]:
    """One value, or one per line."""
    try:
        json.loads(text)
    except ValueError:
        return text.splitlines()
    return [text]


@pytest.mark.skipif(not shutil.which("curl"), reason="no curl here")
def test_the_curl_request_is_answered(server):
    blocks = blocks_of(ROOT / "docs" / "serving.md", "sh")
    (command,) = [block.text for block in blocks if block.text.startswith("curl ")]
    words = ["bash", "-c", command.replace(ADDRESS, server.url)]
    result = subprocess.run(words, capture_output=True, text=True, timeout=120)
    assert result.returncode == 0, result.stderr
    assert '"choices"' in result.stdout and '"error"' not in result.stdout, result.stdout


LINKING = [*PAGES, ROOT / "CHANGELOG.md", ROOT / "SECURITY.md"]


@pytest.mark.parametrize("page", LINKING, ids=lambda page: page.name)
def test_links_lead_to_files_and_headings(page):
    for target in re.findall(r"\]\((?!https?:)([^)\s]+)\)", page.read_text()):
        path, _, anchor = target.partition("#")
        file = (page.parent / path).resolve() if path else page
        link = f"{page.name} links to {target}"
        assert file.exists() and (not anchor or anchor in anchors_of(file)), link


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_the_python_names_on_a_page_exist(page):
    for name in re.findall(r"\bholdfast(?:\.\w+){2,}", page.read_text()):
        if name != "holdfast.methods.lift":  # the example of a method to add
            assert is_module(name) or pkgutil.resolve_name(name) is not None


def is_module(name: str) -> bool:
    """Whether the package has a module of this name, which may need what is not installed."""
    path = ROOT / "src" / name.replace(".", "/")
    return path.is_dir() or path.with_suffix(".py").is_file()


def test_the_tables_match_the_records():
    code = ROOT / "benchmarks" / "tables.py"
    spec = importlib.util.spec_from_file_location("tables", code)
    tables = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(tables)
    documents = tables.documents()
    for path, text in documents.items():
        assert path.read_text() == text, f"{path.name}: run python benchmarks/tables.py"
    card = ROOT / "src/holdfast/assets/model/MODEL_CARD.md"
    texts = [path.read_text() for path in (*PAGES, card)]
    empty = [
        name for text in texts for name in re.findall(r"<!-- ([\w-]+) -->\n<!-- /\1 -->", text)
    ]
    assert not empty, f"nothing stands between the markers {empty}"
    assert sum("<!-- /" in text for text in documents.values()) > 10


def test_the_records_page_names_every_field_of_a_recorded_run():
    documented = set(re.findall(r"`([\w.]+)`", (ROOT / "docs" / "records.md").read_text()))
    files = [*(ROOT / f"tests/data/recorded/schema-{CURRENT}").rglob("manifest.json")]
    assert files
    for file in files:
        manifest = json.loads(file.read_text())
        assert set(manifest) <= documented, f"{file} has {set(manifest) - documented}"
        for line in (file.parent / "records.jsonl").read_text().splitlines():
            record = json.loads(line)
            fields = set(record).union(*record.get("turns", ()), *record.get("probes", ()))
            assert fields <= documented, f"{file.parent} has {fields - documented}"


@pytest.mark.parametrize("journey", ["a spec string", "a conversation"])
def test_the_stations_of_a_journey_are_where_how_it_works_says(journey):
    """Each type is defined in the file that its station links to, and their counts are right."""
    text = (ROOT / "docs" / "how.md").read_text(encoding="utf-8")
    section = text.split(f"## The journey of {journey}")[1].split("\n## ")[0]
    stations = re.findall(r"^\d\. \[.+?\]\(\.\./(\S+?)\): (.*)$", section, re.MULTILINE)
    types = [(file, re.findall(r"\*\*`(\w+)`\*\*", words)) for file, words in stations]
    for file, names in types:
        source = (ROOT / file).read_text(encoding="utf-8")
        assert all(f"\nclass {name}" in source for name in names), file
    assert len(stations) == 8 and sum(len(names) for _, names in types) == 6
    assert "Six types in eight files" in section


def files_run_by(work) -> set[str]:
    """The files of the package with a function that is called during `work`, in any thread."""
    called = set()

    def note(frame, event, _):
        if event == "call":
            called.add(frame.f_code.co_filename)

    threading.setprofile(note)
    sys.setprofile(note)
    try:
        work()
    finally:
        sys.setprofile(None)
        threading.setprofile(None)
    source = ROOT / "src" / "holdfast"
    return {str(Path(file).relative_to(source)) for file in called if file.startswith(str(source))}


@pytest.mark.slow
@pytest.mark.parametrize("journey", ["a spec string", "a conversation"])
def test_a_journey_passes_through_the_files_of_how_it_works(journey, tmp_path):
    """Those of its stations, and of a spec string also those that carry it between stations."""
    model = holdfast.load("default")
    messages = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Hi."}]

    def work():
        if journey == "a spec string":
            # no other test compiles this factor, so that no cache has what becomes of it
            model.generate(messages, "boost:factor=4.03125")
        else:
            sampling = holdfast.Sampling(max_new_tokens=4)
            settings = drift.Settings(rounds=2, conversations=1, sampling=sampling)
            drift.run(model, "starter", tmp_path / "run", settings)

    text = (ROOT / "docs" / "how.md").read_text(encoding="utf-8")
    section = text.split(f"## The journey of {journey}")[1].split("\n## ")[0]
    lines = re.findall(r"^\d\. .*$", section, re.MULTILINE)
    if journey == "a spec string":
        lines += re.findall(r"^- .*$", section, re.MULTILINE)
    named = {file for line in lines for file in re.findall(r"\b(\w+/[\w/]+\.py)\b", line)}
    named = {file.removeprefix("src/holdfast/") for file in named}
    named -= {"attention/gpu_step.py", "cli/shared/drift_run.py", "drift/dialog_replay.py"}
    assert len(named) > 10
    missing = named - files_run_by(work)
    assert not missing


def test_the_files_and_names_of_how_it_works_exist():
    text = (ROOT / "docs" / "how.md").read_text(encoding="utf-8")
    sources = {f"/{path}": path.read_text() for path in (ROOT / "src/holdfast").rglob("*.py")}
    files = set(re.findall(r"`([\w/]+\.py)`", text))
    names = set(re.findall(r"`(?:\w+\.)*([A-Z][a-z]\w+|[a-z]+_\w+)(?:\(\w*\))?`", text))
    assert len(files) > 30 and len(names) > 60
    absent = {file for file in files if not any(path.endswith(f"/{file}") for path in sources)}
    source = "\n".join(sources.values())
    absent |= {
        name
        for name in names
        if not re.search(rf"\b(?:class|def) {name}\b|^ *{name}\b[^=(]*[:=]", source, re.MULTILINE)
    }
    assert not absent


@pytest.mark.slow
def test_the_journey_of_a_coding_agent_prints_what_its_page_shows(tmp_path, monkeypatch, capsys):
    """Its commands run in order, as in examples/my-agent, but those that name other folders."""
    shutil.copytree(ROOT / "examples/my-agent", tmp_path, dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    page = ROOT / "docs" / "my_agent.md"
    for words in commands_of(page):
        if "--install" in words or "~/.codex/sessions" in words:
            continue
        with Path("hook.json").open() as hook:
            monkeypatch.setattr("sys.stdin", hook)
            main(words)
    output = capsys.readouterr()
    output_text = output.out + output.err + Path("rules.yaml").read_text()
    lines = [line for block in blocks_of(page, "text") for line in block.text.splitlines()]
    assert len(lines) > 15
    for line in lines:
        assert line == "[...]" or line.strip() in output_text, line


@pytest.mark.parametrize("folder", ["src", "plugins", "benchmarks", "tests"])
def test_docstrings_say_what_a_thing_is_or_does(folder):
    files = sorted((ROOT / folder).rglob("*.py"))
    opening = re.compile(r'^\s*r?"""What\b', re.MULTILINE)
    assert files
    assert not [str(path) for path in files if opening.search(path.read_text(encoding="utf-8"))]
