"""The examples run as their first lines say, none for long."""

import json
import os
import re
import resource
import subprocess
import sys
from pathlib import Path

import pytest
from paths import ROOT

from holdfast.models.checkpoint import REAL_MODELS, real_models_folder

EXAMPLES = ROOT / "examples"
SCRIPTS = {  # patterns of what each script must print
    "measure_a_prompt.py": (r"stability", r"concierge\.html"),
    "compare_fixes.py": (
        r"boost:factor=4: stability [+-]0\.\d+ \[.+\], (higher|lower|cannot tell)",
        r"repetition:probability=0\.5: stability",
    ),
    "steer_your_model.py": (
        r"none: Do you like the garden\? -> \w",
        r"boost:factor=4: What do you think about the city\? -> \w",
    ),
    "serve_and_call.py": (r"none: \w", r"boost:factor=4: \w", r"\n\w[^\n]+\n\Z"),
    "emphasise_with_pasta.py": (r"Heads: \d\.\d(, \d\.\d){7}\n", r"pasta:alpha=0\.01"),
}
LIMIT = 300  # seconds of processor time: the longest script took 34 on one machine, 125 on another
PATIENCE = 1200  # seconds of wall-clock time, for busy machines


def processor_seconds() -> float:
    """CPU time of the child processes waited for; the load of others does not count."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


@pytest.mark.slow
@pytest.mark.parametrize("name", SCRIPTS)
def test_the_script_runs(name, tmp_path):
    used = processor_seconds()
    env, captured = {**os.environ, "HF_HUB_OFFLINE": "1"}, {"capture_output": True, "text": True}
    command = [sys.executable, str(EXAMPLES / name)]
    result = subprocess.run(command, cwd=tmp_path, env=env, timeout=PATIENCE, **captured)
    assert result.returncode == 0, result.stderr
    for pattern in SCRIPTS[name]:
        assert re.search(pattern, result.stdout), result.stdout
    assert processor_seconds() - used < LIMIT


@pytest.mark.slow
def test_steering_raises_the_mass_that_the_scripts_show(tmp_path):
    command = [sys.executable, str(EXAMPLES / "steer_your_model.py")]
    captured = {"capture_output": True, "text": True, "check": True}
    result = subprocess.run(command, cwd=tmp_path, **captured)
    masses = [float(mass) for mass in re.findall(r"mass on the prompt: (0\.\d+)", result.stdout)]
    plain, steered = masses[:2], masses[2:]
    assert len(steered) == 2 and min(steered) > max(plain)


NOTEBOOK = EXAMPLES / "drift_of_your_bot.ipynb"


def run_the_cells(folder: Path, **settings: str) -> str:
    """Runs the notebook's code as a script, with other values of these names; what it prints."""
    cells = json.loads(NOTEBOOK.read_text(encoding="utf-8"))["cells"]
    code = "\n".join("".join(cell["source"]) for cell in cells if cell["cell_type"] == "code")
    for name, value in settings.items():
        code, count = re.subn(rf"^{name} = .*$", f"{name} = {value}", code, flags=re.MULTILINE)
        assert count == 1, name
    (folder / "notebook.py").write_text(code, encoding="utf-8")
    env = {**os.environ, "HF_HUB_OFFLINE": "1", "MPLBACKEND": "Agg"}
    command = [sys.executable, "notebook.py"]
    captured = {"capture_output": True, "text": True, "timeout": PATIENCE}
    result = subprocess.run(command, cwd=folder, env=env, **captured)
    assert result.returncode == 0, result.stderr
    return result.stdout


def assert_a_fix_was_served(output: str) -> None:
    fix = re.search(r"To be served: (\S+)", output)[1].partition(":")[0]
    questions = "Please talk about the holiday.", "Tell me your name.", "How old are you now?"
    assert all(re.search(rf"^{re.escape(text)} -> \S", output, re.MULTILINE) for text in questions)
    assert re.search(rf"'steering': '{fix}:.*'applied': True", output), output


@pytest.mark.slow
@pytest.mark.parametrize("fix", ["STEERING", "REMINDER"])
def test_the_cells_of_the_notebook_end_with_a_served_fix(fix, tmp_path):
    output = run_the_cells(tmp_path, fix=fix, **{"ROUNDS, CONVERSATIONS": "2, 4"})
    assert_a_fix_was_served(output)
    assert (tmp_path / "bot.html").is_file()


@pytest.mark.slow
@pytest.mark.skipif(
    not (real_models_folder() / REAL_MODELS["qwen-0.5b"]).exists(),
    reason="make real-models installs it",
)
def test_the_cells_of_the_notebook_run_on_a_real_model(tmp_path):
    settings = {"MODEL": '"qwen-0.5b"', "ROUNDS, CONVERSATIONS": "2, 2"}
    assert_a_fix_was_served(run_the_cells(tmp_path, **settings))


def test_the_notebook_runs(tmp_path):
    nbclient = pytest.importorskip("nbclient", reason="make docs installs it")
    nbformat = pytest.importorskip("nbformat", reason="make docs installs it")
    notebook = nbformat.read(NOTEBOOK, as_version=4)
    assert not any(cell.get("outputs") for cell in notebook.cells), "clear the outputs"
    resources = {"metadata": {"path": str(tmp_path)}}
    nbclient.NotebookClient(notebook, timeout=PATIENCE, resources=resources).execute()
    outputs = [output for cell in notebook.cells for output in cell.get("outputs", ())]
    assert any("image/png" in output.get("data", {}) for output in outputs)
    assert any("bot.html" in output.get("text", "") for output in outputs)


def test_every_example_is_listed_and_run():
    readme = (EXAMPLES / "README.md").read_text()
    scripts = {path.name for path in EXAMPLES.glob("*.py")}
    assert scripts == set(SCRIPTS)
    for path in (*EXAMPLES.glob("*.py"), *EXAMPLES.glob("*.ipynb")):
        assert f"]({path.name})" in readme
