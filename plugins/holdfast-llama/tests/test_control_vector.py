"""A fitted vector in llama.cpp itself: the file of `holdfast fit vector --gguf`."""

from __future__ import annotations

import ctypes
import json

import gguf
import llama_cpp
import numpy as np
import torch
from conftest import CHATS

from holdfast.cli import main
from holdfast.generation.batch import SequenceGroup
from holdfast.generation.sampling import Sampling
from holdfast.generation.token_requests import TokenSequence
from holdfast.models.event_loop import run_sync
from holdfast.models.requests import Request

LOGITS = 1e-4


def control_vector(path):
    """The data of a file as llama.cpp's `common_control_vector_load_one` lays it out."""
    directions = {int(t.name.split(".")[1]): t.data for t in gguf.GGUFReader(path).tensors}
    size = len(next(iter(directions.values())))
    data = np.zeros((max(directions), size), np.float32)
    for layer, direction in directions.items():
        data[layer - 1] += direction  # layer 0 has none
    return data


def test_llama_cpp_adds_what_the_method_adds(file_of, local_model, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    lines = [{"prompted": messages, "plain": messages[1:]} for messages in (*CHATS, *CHATS[::-1])]
    data = "".join(json.dumps(line) + "\n" for line in lines)
    (tmp_path / "data.jsonl").write_text(data)
    command = ["fit", "vector", "--model", str(file_of("F32")), "--data", "data.jsonl"]
    assert main([*command, "--out", "v.safetensors", "--gguf", "v.gguf"]) == 0

    (reply,) = local_model.generate_batch(
        [Request(CHATS[0], "vector:file=v.safetensors", Sampling(0, max_new_tokens=1))]
    )
    logits = []
    for spec in ("none", "vector:file=v.safetensors"):
        session = local_model.session()
        (score_input,) = run_sync(session.score_inputs([Request(CHATS[0], spec)], [["x"]]))
        slots = local_model.runner.slots()
        slots.open(None)
        sequence = TokenSequence(score_input.prompt)
        with torch.inference_mode():
            group = SequenceGroup([sequence], local_model.runner.device)
            output = local_model.runner.forward_slots(slots, range(1), group)
        logits.append(output.logits[0, -1].numpy())
    llama = llama_cpp.Llama(
        str(file_of("F32")), n_ctx=512, n_threads=1, n_threads_batch=1, logits_all=True,
        type_k=0, type_v=0, verbose=False,
    )  # fmt: skip
    llama_logits = []
    vector = control_vector(tmp_path / "v.gguf")
    pointer = vector.ctypes.data_as(ctypes.POINTER(ctypes.c_float))
    for size in (0, vector.size):
        if size:
            arguments = pointer, size, vector.shape[1], 1, 4
            assert llama_cpp.llama_set_adapter_cvec(llama.ctx, *arguments) == 0
        llama.reset()
        llama.eval(list(reply.prompt_ids))
        llama_logits.append(llama.scores[llama.n_tokens - 1].copy())
    for with_holdfast, with_llama in zip(logits, llama_logits, strict=True):
        assert abs(with_holdfast - with_llama).max() < LOGITS
    assert abs(llama_logits[1] - llama_logits[0]).max() > 0.1
