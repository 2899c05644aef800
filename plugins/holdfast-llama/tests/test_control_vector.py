"""A fitted vector in llama.cpp itself: the file of `holdfast fit vector --gguf`."""

from __future__ import annotations

import ctypes
import json

import gguf
import llama_cpp
import numpy as np
import torch
from conftest import CHATS

from holdfast.chat.prompt import render
from holdfast.cli import main
from holdfast.generation.batch import SequenceGroup
from holdfast.generation.token_requests import TokenSequence
from holdfast.models.event_loop import run_sync
from holdfast.models.requests import Request

LOGIT_TOLERANCE = 1e-4


def control_vector(path):
    """The data of a file as llama.cpp's `common_control_vector_load_one` lays it out."""
    tensors = gguf.GGUFReader(path).tensors
    directions = {int(tensor.name.split(".")[1]): tensor.data for tensor in tensors}
    size = len(next(iter(directions.values())))
    data = np.zeros((max(directions), size), np.float32)
    for layer, direction in directions.items():
        data[layer - 1] += direction  # layer 0 has none
    return data


def holdfast_logits(model, spec):
    """The logits after a chat under a method, in Holdfast's own engine."""
    request = Request(CHATS[0], spec)
    (score_input,) = run_sync(model.session().score_inputs([request], [["x"]]))
    slots = model.runner.slots()
    slots.open(None)
    with torch.inference_mode():
        group = SequenceGroup([TokenSequence(score_input.prompt)], model.runner.device)
        return model.runner.forward_slots(slots, range(1), group).logits[0, -1].numpy()


def llama_logits(path, prompt_ids, vector):
    """The logits after a prompt with a control vector, in llama.cpp; without one if it is None."""
    llama = llama_cpp.Llama(
        str(path), n_ctx=512, n_threads=1, n_threads_batch=1, logits_all=True, type_k=0, type_v=0,
        verbose=False,
    )  # fmt: skip
    if vector is not None:
        data = vector.ctypes.data_as(ctypes.POINTER(ctypes.c_float))
        first_layer, last_layer = 1, 4
        arguments = data, vector.size, vector.shape[1], first_layer, last_layer
        assert llama_cpp.llama_set_adapter_cvec(llama.ctx, *arguments) == 0
    llama.eval(list(prompt_ids))
    return llama.scores[llama.n_tokens - 1].copy()


def test_llama_cpp_adds_what_the_method_adds(file_of, local_model, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    lines = [{"prompted": messages, "plain": messages[1:]} for messages in (*CHATS, *CHATS[::-1])]
    data = "".join(json.dumps(line) + "\n" for line in lines)
    (tmp_path / "data.jsonl").write_text(data)
    command = ["fit", "vector", "--model", str(file_of("F32")), "--data", "data.jsonl"]
    assert main([*command, "--out", "v.safetensors", "--gguf", "v.gguf"]) == 0

    steered = holdfast_logits(local_model, "vector:file=v.safetensors")
    plain = holdfast_logits(local_model, "none")
    prompt_ids = render(CHATS[0], local_model.tokenizer).token_ids
    llama_steered = llama_logits(file_of("F32"), prompt_ids, control_vector("v.gguf"))
    llama_plain = llama_logits(file_of("F32"), prompt_ids, None)
    assert abs(plain - llama_plain).max() < LOGIT_TOLERANCE
    assert abs(steered - llama_steered).max() < LOGIT_TOLERANCE
    assert abs(llama_steered - llama_plain).max() > 0.1
