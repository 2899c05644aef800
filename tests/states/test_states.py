"""Keys, hidden states and attention outputs edited inside forward passes.

Each architecture is compared with an eager reimplementation: plain hooks written here, one row, no
cache.
"""

import threading

import pytest
import torch
from fitted_files import METHODS, write_for
from tiny import DEVICE, chat, model

import holdfast
from holdfast import methods
from holdfast.errors import ModelError, Unsteerable, UsageError
from holdfast.generation.batch import SequenceGroup, batch_of
from holdfast.generation.sampling import Sampling
from holdfast.generation.token_requests import TokenPrompt, TokenSequence
from holdfast.methods import Ability, Boost, Seka, SplitSoftmax, Vector, compile_methods
from holdfast.methods.kinds import kind_of
from holdfast.models.event_loop import run_sync
from holdfast.models.requests import Request
from holdfast.states import Site, abilities, edit_states, sites_of, watch_states
from holdfast.states.edits import EditGroup

# of logits, relative to the largest: the same float32 products in other shapes
ROUNDING = 2e-5
GREEDY = Sampling(0.0, 1.0, 6)
CHATS = (
    chat("always talk about cheese", "the old town"),
    chat("talk about rain", "the garden is green", "music", "people talk about bread"),
)
ARCHITECTURES = {
    "llama": {},  # grouped queries, no norm of keys
    "qwen3": {},  # a norm of each head's keys, tokens first
    "gemma3_text": {
        "num_hidden_layers": 4,
        "sliding_window": 8,
        "layer_types": ("sliding_attention", "full_attention") * 2,
    },
    "olmo2": {},  # a norm of all heads' keys together
    "smollm3": {"no_rope_layers": (1, 0, 1)},  # a layer without rotation
    # states beside attention
    "lfm2": {"layer_types": ("conv", "full_attention", "full_attention")},
    "phi": {"partial_rotary_factor": 0.5},  # partial rotation
}


def build(kind: str):
    return model(kind, **ARCHITECTURES.get(kind, {}))


def fitted_file(local, tmp_path, method: str, seed: int = 0):
    points = sites_of(local.hf_model).points
    site = {"capping": Site.HIDDEN, "vector": Site.HIDDEN}.get(method, Site.KEYS)
    layers = tuple(sorted(points[site]))
    file = tmp_path / f"{method}-{seed}.safetensors"
    return write_for(local, file, method, seed, layers=layers, chosen=layers[-2:])


def steerer(local, tmp_path, method: str, seed: int = 0, **parameters):
    """A method strong enough for a visible effect."""
    strong = {
        "seka": {"gain": 3.0, "rest_gain": 1.0},
        "prism": {"gain": 2.0, "value_gain": 1.0},
        "capping": {"percentile": 20.0},
        "vector": {"factor": 2.0},
    }[method]
    file = fitted_file(local, tmp_path, method, seed)
    return methods.all_methods.BY_NAME[method](file, **(strong | parameters))


def stream_of(local, talk) -> TokenPrompt:
    return local.session().render(Request(talk)).token_request.prompts[0]


# The eager reimplementation


def eager_logits(local, prompt: TokenPrompt, method, reply=()) -> torch.Tensor:
    """The logits of every token of one row, by plain hooks on modules that are named here."""
    hf, ids = local.hf_model, torch.tensor([[*prompt.token_ids, *reply]], device=DEVICE)
    span = torch.zeros_like(ids[0], dtype=torch.bool)
    span[: len(prompt.span)] = torch.tensor(prompt.span)
    start = len(prompt.token_ids) if getattr(method, "reply_only", False) else 0
    handles = []
    for layer, block in enumerate(layers_of(hf)):
        if layer not in method.touched_layers:
            continue
        if method.kind is methods.MethodKind.RESIDUAL:
            handles.append(hook_hidden_states(block, method, layer, start))
        else:
            handles += hook_keys_and_values(block, method, layer, span, sites_of(hf).head_size)
    try:
        with torch.inference_mode():
            return hf(input_ids=ids, use_cache=False).logits[0]
    finally:
        for handle in handles:
            handle.remove()


def hook_hidden_states(block, method, layer, start):
    """Edits what a block returns for the tokens from `start` on."""

    def edit(module, inputs, output):
        hidden, *others = output if isinstance(output, tuple) else (output,)
        edited = method.edit_hidden(hidden[:, start:], layer)
        hidden = torch.cat([hidden[:, :start], edited], 1)
        return (hidden, *others) if isinstance(output, tuple) else hidden

    return block.register_forward_hook(edit)


def hook_keys_and_values(block, method, layer, span, head_size):
    """Edits the keys and the values of the span."""

    def hook(module, edit):
        def edit_span(module, inputs, output):
            states = by_head(output, len(span), head_size)
            edited = edit(states[None], layer)[0].where(span[:, None, None], states)
            return in_layout_of(output, edited)

        return module.register_forward_hook(edit_span)

    attention = next(m for m in block.modules() if hasattr(m, "k_proj"))
    keys = hook(part_of(attention, "k"), method.edit_keys)
    return keys, hook(attention.v_proj, method.edit_values)


def by_head(output: torch.Tensor, count: int, size: int) -> torch.Tensor:
    """The states of `count` tokens of one row, [token, head, size], from any of the layouts
    [1, token, head * size], [1, token, head, size] and [1, head, token, size].
    """
    if output.ndim == 3:
        return output[0].unflatten(-1, (-1, size))
    return output[0] if output.shape[1] == count else output[0].transpose(0, 1)


def in_layout_of(output: torch.Tensor, states: torch.Tensor) -> torch.Tensor:
    """States [token, head, size] in the layout of `output`."""
    if output.ndim == 3:
        return states.flatten(-2)[None]
    return (states if output.shape[1] == len(states) else states.transpose(0, 1))[None]


def part_of(attention, letter: str) -> torch.nn.Module:
    """The norm of the queries or keys, or else their projection."""
    parts = (getattr(attention, f"{letter}_{name}", None) for name in ("norm", "layernorm", "proj"))
    return next(part for part in parts if isinstance(part, torch.nn.Module))


def layers_of(hf):
    lists = [m for m in hf.modules() if isinstance(m, torch.nn.ModuleList)]
    return next(m for m in lists if len(m) == hf.config.num_hidden_layers)


def apart_by(first: torch.Tensor, second: torch.Tensor) -> float:
    return float((first - second).abs().max() / second.abs().max())


def run(local, prompt: TokenPrompt, reply=(), methods=()) -> torch.Tensor:
    """The logits of every token, in one pass of the runner."""
    steered = TokenPrompt(prompt.token_ids, prompt.span, compile_methods(methods))
    sequence = TokenSequence(steered, list(reply))
    device, count = local.runner.device, len(sequence)
    batch = batch_of(SequenceGroup([sequence], device), [0], num_logits=count)
    return local.runner.forward(batch).logits[0]


# The runner against it


@pytest.mark.parametrize("kind", ARCHITECTURES)
@pytest.mark.parametrize("method", METHODS)
def test_a_steered_pass_equals_one_edited_by_plain_hooks(kind, method, tmp_path):
    local = build(kind)
    steering_method = steerer(local, tmp_path, method)
    local.check([steering_method])
    for talk in CHATS:
        prompt = stream_of(local, talk)
        expected = eager_logits(local, prompt, steering_method)
        plain = run(local, prompt)
        assert apart_by(expected, plain) > 100 * ROUNDING, f"{method} does nothing to {kind}"
        assert apart_by(run(local, prompt, methods=[steering_method]), expected) < ROUNDING
    assert torch.equal(run(local, prompt), plain)


@pytest.mark.parametrize("kind", ("llama", "gemma3_text", "lfm2"))
def test_replies_in_a_mixed_batch_match_each_request_alone(kind, tmp_path):
    local = build(kind)
    steerers = [steerer(local, tmp_path, name) for name in METHODS]
    other_seka = steerer(local, tmp_path, "seka", seed=1)
    by_name = dict(zip(METHODS, steerers, strict=True))
    vector = by_name["vector"]
    reply_only = Vector(vector.file, 2.0, "reply")
    mixed = (by_name["seka"], Boost(3), vector)
    method_sets = [(), *((m,) for m in steerers), (other_seka,), mixed, (reply_only,)]
    requests = [Request(CHATS[n % 2], own_set, GREEDY, n) for n, own_set in enumerate(method_sets)]
    batched = local.generate_batch(requests)
    for request, reply in zip(requests, batched, strict=True):
        prompt = stream_of(local, request.messages)
        tokens, own_set = list(reply.token_ids), request.methods
        if len(own_set) > 1:
            continue
        # teacher-forced with plain hooks: each token is the likeliest at its position
        if not own_set:
            logits = run(local, prompt, tokens)
        else:
            logits = eager_logits(local, prompt, own_set[0], tokens)
        start = len(prompt.token_ids) - 1
        outputs = logits[start : start + len(tokens)]
        best = outputs.amax(-1)
        values = outputs.gather(-1, torch.tensor(tokens, device=DEVICE)[:, None])[:, 0]
        assert float((best - values).max()) <= 1e-3 * float(best.abs().max()), own_set
    assert len({reply.token_ids for reply in batched}) > 3


@pytest.mark.parametrize("method", METHODS)
def test_neutral_parameters_change_no_bit(method, tmp_path):
    local = build("llama")
    parameter = {"capping": "strength", "vector": "factor"}.get(method, "gain")
    neutral_method = methods.all_methods.BY_NAME[method](
        fitted_file(local, tmp_path, method), **{parameter: 0.0}
    )
    prompt = stream_of(local, CHATS[0])
    assert torch.equal(run(local, prompt, methods=[neutral_method]), run(local, prompt))


@pytest.mark.parametrize("method", METHODS)
def test_keys_cached_under_one_steering_never_serve_another(method, tmp_path):
    local = build("llama")
    first, second = steerer(local, tmp_path, method), steerer(local, tmp_path, method, seed=7)
    talk, longer = CHATS[0], (*CHATS[0], {"role": "assistant", "content": "rain"}, CHATS[0][1])
    for before, after in ((first, second), (first, first), ((), first), (first, ())):
        before, after = (m if m == () else (m,) for m in (before, after))
        session = local.session()
        opening = session.generate_batch([Request(talk, before, GREEDY, thread="t", keep=True)])[0]
        grown = (*talk, {"role": "assistant", "content": opening.text}, longer[-1])
        behind = session.generate_batch([Request(grown, after, GREEDY, thread="t")])[0]
        anew = local.session()
        anew.generate_batch([Request(talk, after, Sampling(0, 1, 1), thread="t", keep=True)])
        alone = local.generate_batch([Request(grown, after, GREEDY)])[0]
        if behind.prompt_ids == alone.prompt_ids:
            assert behind.token_ids == alone.token_ids, (before, after)
        if before != after and after and compile_methods(after).affects_pre_span:
            assert behind.forwarded >= len(behind.prompt_ids)


def test_scores_are_those_of_the_edited_pass(tmp_path):
    local = build("llama")
    for name in METHODS:
        steering_method = steerer(local, tmp_path, name)
        score = local.score(CHATS[0], ["music bread"], [steering_method])
        (inputs,) = run_sync(local.session().score_inputs([Request(CHATS[0])], [["music bread"]]))
        prompt, (reply_ids,) = inputs.prompt, inputs.replies
        logits = eager_logits(local, prompt, steering_method, reply_ids).double().log_softmax(-1)
        start = len(prompt.token_ids) - 1
        total = sum(float(logits[start + n, token]) for n, token in enumerate(reply_ids))
        assert score.log_probabilities[0] == pytest.approx(total, abs=1e-3)


# Blocks around a plain model


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("side", ("left", "right"))
def test_a_block_edits_a_plain_model(method, side, tmp_path):
    local = build("qwen3")
    steering_method = steerer(local, tmp_path, method)
    prompts = [stream_of(local, talk) for talk in CHATS]
    width = max(len(prompt.token_ids) for prompt in prompts)
    ids, mask, span = torch.zeros(3, 2, width, dtype=torch.long, device=DEVICE)
    for row, prompt in enumerate(prompts):
        count = len(prompt.token_ids)
        columns = slice(width - count, width) if side == "left" else slice(0, count)
        ids[row, columns] = torch.tensor(prompt.token_ids)
        mask[row, columns] = 1
        span[row, columns] = torch.tensor(prompt.span).long()
    positions = (mask.cumsum(1) - 1).clamp(min=0)
    with holdfast.steering(local, span.bool(), [[steering_method], []]), torch.inference_mode():
        logits = local.hf_model(input_ids=ids, attention_mask=mask, position_ids=positions).logits
    pair = eager_logits(local, prompts[0], steering_method), run(local, prompts[1])
    for row, (prompt, expected) in enumerate(zip(prompts, pair, strict=True)):
        count = len(prompt.token_ids)
        row_logits = logits[row, -count:] if side == "left" else logits[row, :count]
        assert apart_by(row_logits, expected) < ROUNDING
    assert not any(module._forward_hooks for module in local.hf_model.modules())


def test_a_block_edits_generate_and_beams_and_leaves_no_hooks(tmp_path):
    local = build("llama")
    prompt = stream_of(local, CHATS[0])
    ids, span = (torch.tensor([row], device=DEVICE) for row in (prompt.token_ids, prompt.span))
    for name in METHODS:
        method = steerer(local, tmp_path, name)
        with holdfast.steering(local.hf_model, span, method):
            options = {"attention_mask": torch.ones_like(ids), "do_sample": False}
            output = local.hf_model.generate(ids, max_new_tokens=5, **options)
            options |= {"num_beams": 2, "num_return_sequences": 2}
            beams = local.hf_model.generate(ids, max_new_tokens=3, **options)
        reply_ids = output[0, ids.shape[1] :].tolist()
        expected = list(local.generate(CHATS[0], [method], Sampling(0.0, 1.0, 5)).token_ids)
        assert [token for token in reply_ids if token not in local.stop_ids] == expected, name
        assert beams.shape[0] == 2
    with (
        pytest.raises(RuntimeError, match="broken"),
        holdfast.steering(local.hf_model, span, method),
    ):
        local.hf_model.model.layers[2].register_forward_pre_hook(_broken)
        local.hf_model(input_ids=ids)
    local.hf_model.model.layers[2]._forward_pre_hooks.clear()
    assert not any(module._forward_hooks for module in local.hf_model.modules())


# Methods, files and layers that are refused


def _broken(module, inputs):
    raise RuntimeError("broken")


def test_models_offer_their_abilities_and_refuse_other_methods_by_name(tmp_path):
    def offered(kind):
        return abilities(model(kind).hf_model)

    assert offered("llama") == {Ability.KEYS, Ability.RESIDUAL}
    assert offered("gpt_neox") == offered("phi3") == offered("mamba") == {Ability.RESIDUAL}
    local = build("llama")
    seka = steerer(local, tmp_path, "seka")
    with pytest.raises(ModelError, match=r"^seka:file=\w{16}"):
        model("phi3").check([seka])


def test_a_file_of_another_model_is_refused(tmp_path):
    local, other_model, wider = build("llama"), model("llama", seed=1), build("gemma3_text")
    for name in METHODS:
        steering_method = steerer(local, tmp_path, name)
        with pytest.raises(ModelError, match=f"{name} .*fingerprint"):
            other_model.check([steering_method])
        with pytest.raises(ModelError, match=f"{name} .*3 layers.*4 of"):
            wider.check([steering_method])
        with pytest.raises(ModelError, match=f"holdfast fit {name}"):
            wider.generate(CHATS[0], [steering_method])


def test_nonexistent_heads_and_layers_are_refused(tmp_path):
    local = build("llama")
    seka, vector = fitted_file(local, tmp_path, "seka"), fitted_file(local, tmp_path, "vector")
    with pytest.raises(UsageError) as excinfo:
        local.check([Seka(seka, heads={(0, 3)})])
    assert (excinfo.value.option, excinfo.value.value) == ("heads", (0, 3))
    assert excinfo.value.allowed == 2, "key-value heads"
    with pytest.raises(UsageError) as excinfo:
        local.check([Vector(vector, layers={9})])
    assert (excinfo.value.option, excinfo.value.value) == ("layers", 9)
    assert excinfo.value.allowed == (0, 1, 2)
    with pytest.raises(UsageError) as excinfo:
        local.check([Seka(seka, threshold=1e9)])
    assert excinfo.value.option == "threshold"
    profiled = methods.HeadSet([(0, 1)], methods.Shape(3, 4))
    with pytest.raises(UsageError) as excinfo:
        local.check([Seka(seka, heads=profiled)])
    assert (excinfo.value.option, excinfo.value.value, excinfo.value.allowed) == ("heads", 4, 2)


def test_residual_methods_work_without_a_system_prompt_and_others_are_refused(tmp_path):
    local = build("llama")
    bare = chat("", "the old town")
    seka, vector = steerer(local, tmp_path, "seka"), steerer(local, tmp_path, "vector", factor=6.0)
    with pytest.raises(UsageError, match=r"^seka"):
        local.generate_batch([Request(bare, [seka, SplitSoftmax(0.5)], GREEDY)])
    prompt = stream_of(local, bare)
    expected = eager_logits(local, prompt, vector)[-1].argmax()
    assert local.generate(bare, [vector], GREEDY).token_ids[:1] == (int(expected),)


def test_a_layer_that_cannot_be_edited_is_refused_with_those_that_can(tmp_path):
    local = build("llama")
    layers = ", ".join(map(str, sorted(sites_of(local.hf_model).points[Site.KEYS])))
    edits = _key_edits(local, tmp_path, layer=9)
    with pytest.raises(Unsteerable, match=f"Layer 9 .*layers {layers}"):
        edit_states(local.hf_model, edits).__enter__()


# Custom methods and hooks


def test_a_custom_method_edits_hidden_states():
    from dataclasses import dataclass
    from typing import ClassVar

    @dataclass(frozen=True)
    class Louder:
        name: ClassVar[str] = "louder"
        touched_layers: ClassVar[frozenset[int]] = frozenset({1})
        reply_only: ClassVar[bool] = False
        by: float = 2.0

        def edit_hidden(self, hidden, layer):
            return hidden * self.by

    local = build("llama")
    assert kind_of(Louder()) is methods.MethodKind.RESIDUAL
    prompt = stream_of(local, CHATS[0])
    local.check([Louder()])
    assert apart_by(run(local, prompt, methods=[Louder()]), run(local, prompt)) > 1e-3


def _pass(local, *token_ids):
    with torch.inference_mode():
        local.hf_model(input_ids=torch.tensor([token_ids], device=DEVICE), use_cache=False)


def test_only_passes_of_the_same_thread_are_watched():
    local = build("llama")
    with watch_states(local.hf_model, [Site.KEYS]) as states:
        _pass(local, 1, 2, 3)
        thread = threading.Thread(target=_pass, args=(local, 4, 5))
        thread.start()
        thread.join()
    assert {keys.shape[1] for keys in states[Site.KEYS].values()} == {3}


def _key_edits(local, tmp_path, layer=None):
    method = steerer(local, tmp_path, "seka")
    if layer is not None:
        file = tmp_path / "other.safetensors"
        method = type(method)(write_for(local, file, "seka", 0, layers=(layer,), chosen=(layer,)))
    return [EditGroup(compile_methods([method]), None, None, None)]


@pytest.mark.parametrize("watches", [False, True])
def test_no_hook_stays_if_one_cannot_be_registered(watches, tmp_path, monkeypatch):
    local = build("llama")
    edits = _key_edits(local, tmp_path)
    points = sites_of(local.hf_model).points[Site.KEYS]
    last = points[max(points)].module

    def refuse(hook):
        raise RuntimeError("no hook")

    monkeypatch.setattr(last, "register_forward_hook", refuse)
    hooks = (
        watch_states(local.hf_model, [Site.KEYS]) if watches else edit_states(local.hf_model, edits)
    )
    with pytest.raises(RuntimeError, match="no hook"), hooks:
        pass
    assert not any(module._forward_hooks for module in local.hf_model.modules())
