"""Attention steering per request inside vLLM.

    wire.py           reads the keys of `vllm_xargs`
    spans.py          finds the tokens of a request's span in its prompt
    rows.py           the requests in the rows of a batch, by the runner's numbers
    moves.py          finds the queries of a pass to move, and the groups of their keys
    moved_weights.py  computes moved attention weights from scores
    masses.py         keeps the attention mass on the span, for requests with a trace
    draws.py          draws tokens as Holdfast's own engine does
    layers.py         both backends' access to vLLM's layers and batches
    cpu.py            the CPU attention backend
      pages.py        reads keys and values from vLLM's cache
      row_copies.py   keeps copies of decoding rows' keys and values from step to step
      steps.py        moves rows of one query, by explicit scores
      chunks.py       moves several queries of a row, by fused kernels
    cuda.py           the CUDA attention backend, with kernel.py
      graphs.py       buffers for full CUDA graphs
    processor.py      the "logits processor" through which vLLM reports requests
    admission.py      checks a request against engine and prompt, and finds its span
    frontend.py       the entry point of requests: admits them, and salts the prefix cache
    status.py         checks that backend, frontend and processor are all live
    endpoint.py       GET /holdfast, the mass of a request, metrics
    offline.py        `vllm:MODEL`: an engine in this process as a chat model, with session.py
    versions.py       the versions of vLLM that the plug-in supports
    plugin.py         the hook that vLLM calls in each of its processes

The methods and their mathematics are in `holdfast.methods` and `holdfast.attention`. Importing this
package imports nothing else and changes nothing; only `plugin.register` changes vLLM.
"""

from __future__ import annotations

__version__ = "0.2.0"
