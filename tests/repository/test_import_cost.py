"""Importing is cheap and has no side effects, and a command imports no other command's module."""

import subprocess
import sys

import pytest
from paths import ROOT

from holdfast.cli.command_list import GROUPS

SOURCE = ROOT / "src"
PACKAGE = SOURCE / "holdfast"


def exists(layer: str) -> bool:
    return bool(layer) and ((PACKAGE / layer).is_dir() or (PACKAGE / f"{layer}.py").is_file())


LIGHT = (
    "__init__ files generation/sampling chat/prompt methods client measures records transcripts"
    " models/requests models/protocol models/endpoint models/connecting drift/suites"
    " drafting papers/zhang2024 analysis study logs coding_agents/reminding"
    " coding_agents/settings_files report proxy/wrapping proxy/proxy_app cli cli/logs/remind"
    " cli/serve/proxy cli/look_up/completion cli/shared/json_output cli/look_up/docs"
    " cli/shared/browser"
).split()
HEAVY = "torch transformers openai pandas matplotlib sklearn scipy ray datasets fastapi".split()
DRAWING = ["jinja2", "markupsafe", "holdfast.report", "holdfast.study", "PIL"]


LONG = {"proxy/wrapping", "papers/zhang2024", "cli/look_up/docs", "study", "drafting"}


@pytest.mark.parametrize(
    "light",
    [
        pytest.param(name, marks=pytest.mark.slow) if name in LONG else name
        for name in LIGHT
        if exists(name)
    ],
)
def test_importing_is_light(light, tmp_path):
    module = "holdfast" if light == "__init__" else f"holdfast.{light.replace('/', '.')}"
    assert_light([module], HEAVY, tmp_path)


def test_analysis_loads_no_model_and_draws_nothing(tmp_path):
    paths = [path.relative_to(SOURCE) for path in (PACKAGE / "analysis").glob("*.py")]
    modules = [".".join(path.with_suffix("").parts) for path in paths]
    assert len(modules) > 10
    assert_light(modules, HEAVY + DRAWING, tmp_path)


def assert_light(modules, heavy, tmp_path):
    """Importing the modules pulls in none of the heavy ones, and writes nothing."""
    names = {*heavy}
    script = f"import sys, {', '.join(modules)}; print(*sorted(set(sys.modules) & {names!r}))"
    command, env = [sys.executable, "-c", script], {"PYTHONPATH": str(SOURCE), "PATH": ""}
    captured = {"capture_output": True, "text": True, "timeout": 60}
    result = subprocess.run(command, env=env, cwd=tmp_path, **captured)
    assert result.returncode == 0, result.stderr
    assert result.stdout.split() == [], f"importing {modules} pulls in {result.stdout}"
    assert list(tmp_path.iterdir()) == [], "importing wrote files"


# Modules of commands


def command_modules_after(call, tmp_path):
    """The modules of `holdfast.cli` that a call of one of its functions imports."""
    script = (
        "import sys; from holdfast.cli import main; from holdfast.cli.main_parser import"
        f" read_command\n{call}\n"
        "print(*sorted(name for name in sys.modules if name.startswith('holdfast.cli.')))"
    )
    env = {"PYTHONPATH": str(SOURCE), "PATH": ""}
    result = subprocess.run(
        [sys.executable, "-c", script], env=env, cwd=tmp_path, capture_output=True, text=True
    )
    last_line = result.stdout.splitlines()[-1]
    return {name.removeprefix("holdfast.cli.") for name in last_line.split()}


def outside_shared(modules):
    """Those of these modules that belong to a group of commands."""
    return {name for name in modules if "." in name and not name.startswith("shared.")}


def test_a_command_imports_no_other_commands_module(tmp_path):
    imported = command_modules_after("read_command(['docs', 'logs'])", tmp_path)
    assert outside_shared(imported) == {"look_up.docs", "look_up.docs_site"}


@pytest.mark.parametrize("option", ["--version", "--help"])
def test_the_version_and_the_list_of_commands_need_no_commands_module(tmp_path, option):
    call = f"import contextlib\nwith contextlib.suppress(SystemExit): main(['{option}'])"
    imported = command_modules_after(call, tmp_path)
    assert "shared.argument_parser" in imported and not outside_shared(imported)


@pytest.mark.parametrize("group", GROUPS)
def test_the_commands_of_a_group_are_in_its_folder(group):
    folder = PACKAGE / "cli" / group.lower().replace(" ", "_")
    listed = {entry.module for entry in GROUPS[group].values()}
    files = [path for path in folder.glob("*.py") if "= Command(" in path.read_text()]
    made = {f"{folder.name}.{path.stem}" for path in files}
    assert listed == made
