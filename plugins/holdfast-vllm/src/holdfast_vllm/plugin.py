"""The hook that vLLM calls in each of its processes, before it creates an engine."""

from __future__ import annotations


def register() -> None:
    """Installs Holdfast's attention backends and admission into this process's vLLM.

    Raises:
        ModelError: this version of vLLM is not supported; the server does not start.
    """
    import vllm
    from vllm.v1.attention.backends.registry import AttentionBackendEnum, register_backend
    from vllm.v1.worker.worker_base import WorkerBase

    from holdfast_vllm import endpoint, frontend, status
    from holdfast_vllm.versions import check_version

    check_version(vllm.__version__)
    # the CPU platform has only one backend; on CUDA, `--attention-backend CUSTOM` selects ours
    register_backend(AttentionBackendEnum.CPU_ATTN, "holdfast_vllm.cpu.Backend")
    register_backend(AttentionBackendEnum.CUSTOM, "holdfast_vllm.cuda.Backend")
    WorkerBase.holdfast_state = status.worker_state
    WorkerBase.holdfast_mass = status.worker_mass
    WorkerBase.holdfast_heads = status.worker_heads
    WorkerBase.holdfast_fingerprint = status.worker_fingerprint
    frontend.install()
    endpoint.install()
