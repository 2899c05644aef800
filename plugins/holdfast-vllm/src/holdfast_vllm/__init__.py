"""Attention steering per request inside vLLM.

    wire.py        the keys of `vllm_xargs`, and what they ask for
    spans.py       which tokens of a prompt a request holds on to
    rows.py        what the rows of a batch asked for, by the runner's own numbers
    moves.py       which queries of a pass are moved, and what their keys are to them
    moved.py       attention weights moved by the methods, from scores
    masses.py      the mass on the prompt of requests that ask for it
    draws.py       tokens drawn as Holdfast's own engine draws them
    layers.py      what both backends ask of vLLM's layers and batches
    cpu.py         the CPU attention backend
      pages.py     keys and values from its cache
      kept.py      those of decoding rows, kept from step to step
      steps.py     rows of one query, by explicit scores
      chunks.py    several queries of a row, by fused kernels
    cuda.py        the CUDA attention backend, with kernel.py
      graphs.py    buffers of full CUDA graphs
    processor.py   the "logits processor" through which vLLM tells of requests
    admission.py   a request held against engine and prompt: its span is found
    frontend.py    where requests come in: they are admitted, and the prefix cache salted
    status.py      whether backend, frontend and processor are all live
    endpoint.py    GET /holdfast, the mass of a request, metrics
    offline.py     `vllm:MODEL`: an engine in this process as a chat model, with session.py
    versions.py    the versions of vLLM that this is known to work with
    plugin.py      what vLLM calls in each of its processes

The methods and their mathematics are `holdfast.methods` and `holdfast.attention`. Importing this
package imports nothing else, and changes nothing; `plugin.register` does.
"""

from __future__ import annotations

__version__ = "0.1.0"
