"""`holdfast fit`: what each method learns from a model, from which data, and how it is used."""

import dataclasses
import hashlib
import json
from contextlib import nullcontext

import pytest
import torch
from fast_set import only_fast
from fitted_files import METHODS, write_for
from scripted_model import ScriptedModel
from tiny import DEVICE, SHAPE, chat, model

from holdfast import methods
from holdfast.cli import main
from holdfast.drift.progress import ignore_steps
from holdfast.errors import HoldfastError, UnknownName, UsageError
from holdfast.generation.sampling import Sampling
from holdfast.methods import Vector
from holdfast.methods.all_methods import BY_NAME
from holdfast.models.requests import Request
from holdfast.states import Site, watch_states
from holdfast.study.fitting import hidden_directions, shipped_examples
from holdfast.study.fitting.examples import Contrast, Triplet, read_examples
from holdfast.study.fitting.fit import fit, fitted_methods, write_control_vector
from holdfast.study.fitting.hidden_directions import learn_capping, learn_vector
from holdfast.study.fitting.key_directions import learn_seka

HEAD_DIM = SHAPE["head_dim"]


def states(*shape: int) -> torch.Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(5))


@pytest.fixture(scope="module")
def pairs():
    """A few examples, for a random model."""
    return shipped_examples.triplets()[:12], shipped_examples.contrasts()[:4]


def test_every_method_that_takes_a_file_can_be_fitted():
    fields = {name: dataclasses.fields(method) for name, method in BY_NAME.items()}
    declared = {name for name, items in fields.items() if "file" in {field.name for field in items}}
    assert set(fitted_methods()) == declared == set(METHODS)


def few(name: str, pairs, folder):
    """A file of a few examples for a method."""
    triplets, contrasts = pairs
    lines = [vars(triplet) for triplet in triplets]
    if name in ("capping", "vector", "gcad"):
        lines = [{"prompted": contrast.prompted, "plain": contrast.plain} for contrast in contrasts]
    path = folder / "few.jsonl"
    path.write_text("\n".join(map(json.dumps, lines)))
    return path


# What is learned


@pytest.mark.parametrize("name", METHODS)
@pytest.mark.parametrize("kind", only_fast(("llama", "qwen3"), "llama"))
def test_a_fitted_file_steers_the_model_it_was_fitted_on(name, kind, tmp_path, pairs):
    local, data = model(kind), few(name, pairs, tmp_path)
    steps, progress = [], []

    def watch(step, total):
        steps.append(total)
        return nullcontext(lambda done, tokens=0: progress.append(done))

    fitted = fit(name, local, tmp_path / f"{name}.safetensors", data, watch=watch)
    assert sum(progress) == sum(steps) > 0, "every step is told of"
    refit = fit(name, local, tmp_path / "again.safetensors", data)
    assert refit == fitted, "the same model and data give the same file"
    assert fitted.made_from["data"] == "few.jsonl" and fitted.on.model == local.name
    method = BY_NAME[name](fitted)
    local.check([method])
    talk = chat("always talk about cheese", "the old town")
    assert local.generate(talk, [method], Sampling(0.0, 1.0, 4)).token_ids
    with pytest.raises(HoldfastError, match="was fitted on"):
        model(kind, seed=5).check([method])


def test_directions_of_keys_are_the_singular_vectors_of_their_covariance(pairs):
    local = model()
    examples = pairs[0][:4]
    learned = learn_seka(local, examples, lambda done: None)
    sums, count, distance = torch.zeros(HEAD_DIM, HEAD_DIM).double(), 0, 0.0
    for example in examples:
        keys = []
        for question in (None, example.relevant, example.irrelevant):
            text = f"Question: {question}\n" * (question is not None)
            text += f"Context: {example.context}"
            start = text.rindex(example.answer)
            part = (0, start, start + len(example.answer))
            request = Request([{"role": "user", "content": text}], emphasis=[part])
            prompt = local.session().render(request).token_request.prompts[0]
            with watch_states(local.hf_model, [Site.KEYS]) as watched, torch.inference_mode():
                ids = torch.tensor([prompt.token_ids], device=DEVICE)
                local.hf_model(input_ids=ids, use_cache=False)
            keys.append(watched[Site.KEYS][2][0].cpu()[torch.tensor(prompt.span), 1].double())
        neutral, relevant, irrelevant = keys
        if len({len(key) for key in keys}) > 1:
            continue
        sums += neutral.T @ relevant
        count += len(neutral)
        distance += float((relevant - irrelevant).norm(dim=-1).sum())
    covariance = sums / count
    vectors = learned.tensors["positive.vectors"][2, 1].double()
    values = learned.tensors["positive.values"][2, 1].double()
    assert torch.allclose(values, torch.linalg.svdvals(covariance), rtol=1e-4, atol=1e-6)
    # U^T Omega has orthogonal rows whose norms are the singular values
    rows = vectors.T @ covariance
    assert torch.allclose(rows.norm(dim=1), values, rtol=1e-3, atol=1e-5)
    assert float(learned.tensors["distance"][2, 1]) == pytest.approx(distance / count, rel=1e-4)


@pytest.mark.parametrize(("count", "length"), [(2, 6), pytest.param(4, 48, marks=pytest.mark.slow)])
def test_directions_of_replies_are_differences_of_means(pairs, monkeypatch, count, length):
    sampling = Sampling(1.0, 0.9, length)
    if length != hidden_directions._SAMPLING.max_new_tokens:
        monkeypatch.setattr(hidden_directions, "_SAMPLING", sampling)
    local, quiet, contrasts = model(), lambda done: None, pairs[1][:count]
    vector, capping = (learn(local, contrasts, quiet) for learn in (learn_vector, learn_capping))
    difference = vector.tensors["difference"]
    unit = -difference / difference.norm(dim=-1, keepdim=True)
    assert torch.allclose(capping.tensors["direction"], unit, atol=1e-5)
    percents = capping.tensors["percentiles"]
    assert (percents.diff(dim=-1) >= 0).all() and percents.shape == (3, 101)
    assert capping.default_layers == (2,) and len(vector.default_layers) == 1
    sides = []
    for number in (0, 1):
        means = []
        for seed, example in enumerate(contrasts):
            talk = (example.prompted, example.plain)[number]
            reply = local.generate(talk, (), sampling, seed)
            if not reply.token_ids:
                continue
            ids = torch.tensor([[*reply.prompt_ids, *reply.token_ids]], device=DEVICE)
            with torch.inference_mode():
                hidden = local.hf_model(ids, output_hidden_states=True).hidden_states[1].cpu()
            means.append(hidden[0, -len(reply.token_ids) :].double().mean(0))
        sides.append(torch.stack(means).mean(0))
    assert torch.allclose(difference[0].double(), sides[0] - sides[1], atol=1e-4)


# Data and models


def test_the_recipe_has_distinct_triplets_and_matched_contrasts():
    triplets = shipped_examples.triplets()
    assert len(set(triplets)) == len(triplets) == 144
    contrasts = shipped_examples.contrasts()
    assert len(contrasts) == 48
    assert all(contrast.prompted[0]["role"] == "system" for contrast in contrasts)
    assert all(contrast.prompted[1:] == contrast.plain for contrast in contrasts)


def test_custom_data_is_checked_and_fitted(tmp_path):
    path = tmp_path / "data.jsonl"
    line = {"context": "Anna lives in Rome.", "answer": "Rome"}
    line |= {"relevant": "Where?", "irrelevant": "Who?"}
    path.write_text(json.dumps(line) + "\n\n")
    assert read_examples(path, Triplet) == (Triplet(**line),)
    with pytest.raises(UsageError) as excinfo:
        read_examples(path, Contrast)
    assert (excinfo.value.option, excinfo.value.value) == (str(path), 1)
    path.write_text(json.dumps(line | {"answer": "Oslo"}))
    with pytest.raises(UsageError, match="'Oslo'"):
        read_examples(path, Triplet)
    path.write_text(json.dumps(line | {"answer": 3}))
    with pytest.raises(UsageError, match=r"Line 1 .* answer has to be a text, not 3"):
        read_examples(path, Triplet)
    path.write_text(json.dumps(line | {"relevant": " "}))
    with pytest.raises(UsageError, match="relevant is blank"):
        read_examples(path, Triplet)
    path.write_text("\n")
    with pytest.raises(UsageError, match="has no lines"):
        read_examples(path, Triplet)
    plain = [{"role": "user", "content": "Hi"}]
    chats = {"prompted": [{"role": "system", "content": "Be brief."}, *plain], "plain": plain}
    path.write_text(json.dumps(chats))
    (contrast,) = read_examples(path, Contrast)
    assert contrast.plain == contrast.prompted[1:]
    fitted = fit("vector", model(), tmp_path / "own.safetensors", path)
    assert fitted.made_from["data"] == "data.jsonl" and fitted.made_from["examples"] == 1


def test_a_file_is_identified_by_the_content_that_was_read(tmp_path):
    path = tmp_path / "data.jsonl"
    plain = [{"role": "user", "content": "Hi"}]
    chats = {"prompted": [{"role": "system", "content": "Be brief."}, *plain], "plain": plain}
    content = json.dumps(chats)
    path.write_text(content)

    def change_file(name, steps):
        path.write_text("changed during the fit")
        return ignore_steps(name, steps)

    fitted = fit("vector", model(), tmp_path / "own.safetensors", path, watch=change_file)
    assert fitted.made_from["sha256"] == hashlib.sha256(content.encode()).hexdigest()


def test_models_that_do_not_show_the_states_to_learn_from_are_refused(tmp_path):
    out = tmp_path / "x.safetensors"
    with pytest.raises(HoldfastError, match="Phi3ForCausalLM"):
        fit("seka", model("phi3"), out)
    with pytest.raises(UnknownName, match="seka"):
        fit("seeka", model(), out)
    with pytest.raises(HoldfastError, match="hidden states"):
        fit("seka", ScriptedModel(), out)


# The command


def test_the_command_fits_and_its_file_steers(tmp_path, monkeypatch, capsys):
    """On the bundled model; the file is used by its path, and refused for another method."""
    monkeypatch.chdir(tmp_path)
    lines = [json.dumps(vars(triplet)) for triplet in shipped_examples.triplets()[:8]]
    (tmp_path / "few.jsonl").write_text("\n".join(lines))
    assert main(["fit", "seka", "--out", "s.safetensors", "--data", "few.jsonl"]) == 0
    output = capsys.readouterr().out
    digest = methods.parse("seka:file=s.safetensors")[0].file.digest
    assert "--method seka:file=s.safetensors" in output and digest in output
    arguments = ["generate", "--system", "Always reply in French.", "--user", "What do you like?"]
    arguments += ["--max-new-tokens", "8", "--method"]
    assert main([*arguments, "seka:file=s.safetensors,gain=1"]) == 0
    assert main([*arguments, "vector:file=s.safetensors"]) == 2
    assert "`holdfast fit vector`" in capsys.readouterr().err
    assert main(["fit", "seka", "--out", "s.pt"]) == 2
    assert main(["fit", "boost", "--out", "s.safetensors"]) == 2
    assert main(["fit", "seka", "--model", "http://localhost:1/v1", "--out", "s.safetensors"]) == 2
    err = capsys.readouterr().err
    assert "'s.pt'" in err and "boost" in err and "is an endpoint" in err


def test_a_vector_is_written_as_a_control_vector_for_llama_cpp(tmp_path, monkeypatch, capsys):
    """It holds what `vector` adds by default in the chosen layers, and no other layers."""
    gguf = pytest.importorskip("gguf")
    fitted = write_for(model(), tmp_path / "vector.safetensors", "vector")
    write_control_vector(fitted, tmp_path / "vector.gguf")
    reader = gguf.GGUFReader(tmp_path / "vector.gguf")
    assert reader.fields["general.architecture"].contents() == "controlvector"
    assert reader.fields["controlvector.layer_count"].contents() == fitted.on.layers
    directions = {tensor.name: torch.from_numpy(tensor.data.copy()) for tensor in reader.tensors}
    assert directions.keys() == {f"direction.{layer}" for layer in fitted.chosen}
    for layer in fitted.chosen:
        nothing = torch.zeros(1, 1, fitted.on.hidden_size)
        addition = Vector(fitted).edit_hidden(nothing, layer)[0, 0]
        assert torch.equal(directions[f"direction.{layer}"], addition)

    first = dataclasses.replace(fitted, chosen=(0,))
    with pytest.raises(UsageError) as excinfo:
        write_control_vector(first, tmp_path / "first.gguf")
    assert (excinfo.value.option, excinfo.value.value) == ("gguf", 0)
    monkeypatch.chdir(tmp_path)
    assert main(["fit", "seka", "--out", "s.safetensors", "--gguf", "s.gguf"]) == 2
    assert "--gguf s.gguf" in capsys.readouterr().err
