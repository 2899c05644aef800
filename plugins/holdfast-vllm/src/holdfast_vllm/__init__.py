"""Attention steering per request inside vLLM.

    wire.py        the keys of `vllm_xargs`, and what they request
    spans.py       the tokens of a prompt that are a request's span
    rows.py        the requests of a batch's rows, by the runner's own numbers
    moves.py       which queries of a pass are moved, and the group of each of their keys
    moved_weights.py  attention weights moved by the methods, from scores
    masses.py      the attention mass on the span, for requests that ask for it
    draws.py       draws tokens as Holdfast's own engine does
    layers.py      what both backends need from vLLM's layers and batches
    cpu.py         the CPU attention backend
      pages.py     keys and values from its cache
      row_copies.py  those of decoding rows, kept from step to step
      steps.py     rows of one query, by explicit scores
      chunks.py    several queries of a row, by fused kernels
    cuda.py        the CUDA attention backend, with kernel.py
      graphs.py    buffers of full CUDA graphs
    processor.py   the "logits processor" through which vLLM reports requests
    admission.py   checks a request against engine and prompt, and finds its span
    frontend.py    the entry point of requests: admits them, and salts the prefix cache
    status.py      whether backend, frontend and processor are all live
    endpoint.py    GET /holdfast, the mass of a request, metrics
    offline.py     `vllm:MODEL`: an engine in this process as a chat model, with session.py
    versions.py    the versions of vLLM that this is known to work with
    plugin.py      the hook that vLLM calls in each of its processes

The methods and their mathematics are in `holdfast.methods` and `holdfast.attention`. Importing this
package imports nothing else and changes nothing; `plugin.register` does.
"""

from __future__ import annotations

__version__ = "0.2.0"
