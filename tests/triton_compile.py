"""Compiles every kernel for GPUs that need not be there, and prints what came of it, as JSON.

Run by `test_triton.py` in a process without the interpreter. The launches that the host functions
would make are noted instead of made, and each is compiled as Triton would compile it for tensors
like these.
"""

from __future__ import annotations

import json
import re
import subprocess
import tempfile
from pathlib import Path

import torch
import triton
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource
from triton.runtime.jit import JITFunction

from holdfast.attention.cuda.arguments import Columns, LayerTable
from holdfast.attention.cuda.decode import decode
from holdfast.attention.cuda.prefill import prefill, shape_for, stages
from holdfast.attention.cuda.tiles import Sight, cut

NAMES = {
    torch.float32: "*fp32",
    torch.float16: "*fp16",
    torch.bfloat16: "*bf16",
    torch.uint8: "*u8",
    torch.int32: "*i32",
    torch.int64: "*i64",
    torch.bool: "*i1",
}
TOOLS = Path(triton.__file__).parent / "backends" / "nvidia" / "bin"


def launches(dtype: torch.dtype, size: int, heads: int, groups: int) -> list:
    """(kernel, its arguments by name) of a step and of a prompt, with everything asked for."""
    noted = []

    def note(kernel, *given, grid, warmup, **named):
        noted.append((kernel, dict(zip(kernel.arg_names, given, strict=False)) | named))

    JITFunction.run = note
    whole = torch.zeros(2, dtype=torch.long)
    span = torch.zeros(2, 256, dtype=torch.bool)
    columns = Columns(span, whole, span[:, 0].contiguous(), whole, whole, span)
    table = LayerTable(*torch.zeros(3, 2, heads))
    query = torch.zeros(2, heads, 256, size, dtype=dtype)
    key = torch.zeros(2, groups, 256, size, dtype=dtype)
    decode(query[:, :, :1].contiguous(), key, key, columns, table, 0.1, trace=True, splits=4)
    for sight in (Sight(offset=whole), Sight(mask=torch.ones(2, 1, 256, 256, dtype=torch.bool))):
        prefill(query, key, key, cut(columns, 256, sight, shape_for(size, dtype)), table, 0.1)
    return noted


def compiled(kernel, given: dict, capability: int) -> dict:
    """What a kernel needs on GPUs of a compute capability (90: 9.0)."""
    signature, constants, attributes = {}, {}, {}
    stages_there = stages((capability // 10, capability % 10), given["SIZE"])
    on_gpu = {"WIDEN": False, "STAGES": stages_there}
    given = given | {name: value for name, value in on_gpu.items() if name in given}
    for place, parameter in enumerate(kernel.params):
        value = given[parameter.name]
        is_tensor = isinstance(value, torch.Tensor)
        fixed = not (is_tensor or parameter.do_not_specialize)
        if parameter.is_constexpr or value is None or (fixed and value == 1):
            signature[parameter.name], constants[parameter.name] = "constexpr", value
            continue
        kinds = {int: "i32", float: "fp32"}
        signature[parameter.name] = NAMES[value.dtype] if is_tensor else kinds[type(value)]
        if is_tensor or (fixed and isinstance(value, int) and value % 16 == 0):
            attributes[(place,)] = [["tt.divisibility", 16]]
    options = {name: given[name] for name in ("num_warps", "num_stages") if name in given}
    if kernel.__name__ == "_attend_block":
        options["num_stages"] = given["STAGES"]
    source = ASTSource(kernel, signature, constants, attributes)
    made = triton.compile(source, GPUTarget("cuda", capability, 32), options)
    with tempfile.NamedTemporaryFile(suffix=".cubin") as file:
        Path(file.name).write_bytes(made.asm["cubin"])
        command = [TOOLS / "cuobjdump", "--dump-resource-usage", file.name]
        usage = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    buffers = re.search(r"local_alloc : \(\) -> !ttg.memdesc<(\d)x\d+x128xbf16", made.asm["ttgir"])
    return {
        "kernel": kernel.__name__,
        "capability": capability,
        "shared_bytes": made.metadata.shared,
        "registers": int(re.search(r"REG:(\d+)", usage)[1]),
        "stack_bytes": int(re.search(r"STACK:(\d+)", usage)[1]),
        "matrix_units": bool(re.search(r"mma[._]\S*m(16|64)n\d+k16", made.asm["ptx"])),
        "buffers": int(buffers[1]) if buffers else 0,  # of keys, in the first loop
    }


if __name__ == "__main__":
    step, merge, causal, masked = launches(torch.bfloat16, 128, 32, 8)
    for capability, noted in ((90, (step, merge, causal, masked)), (86, (step, causal))):
        for kernel, given in noted:
            print(json.dumps(compiled(kernel, given, capability)), flush=True)
