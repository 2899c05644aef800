"""GET /holdfast, the mass of a request, and metrics.

GET /holdfast                  {"live": true, "methods": [...], "version": ...}
GET /holdfast/mass/REQUEST     the mass of a request with a trace, by the id of the reply
GET /v1/steering               full descriptions of the methods, as from `holdfast serve`
GET /v1/steering/mass/REQUEST  the mass again; if vLLM requires an API key, so do the last two
"""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter, FastAPI
from fastapi import Request as HttpRequest
from fastapi.responses import JSONResponse
from prometheus_client import Gauge

from holdfast.models.offered_steering import OfferedMethod, SteeringAnswer
from holdfast_vllm import __version__
from holdfast_vllm.frontend import ask, refusal_of
from holdfast_vllm.status import fingerprint_of
from holdfast_vllm.wire import offered_methods

router = APIRouter()
_LIVE = Gauge("holdfast_live", "1 if requests can be steered, as of the last GET /holdfast.")


def install() -> None:
    """Adds the routes to every server that this process builds."""
    from vllm.entrypoints.launchers import app as launcher

    inner = launcher.attach_endpoint_plugins
    if hasattr(inner, "_holdfast"):
        return

    def attach_endpoint_plugins(app: FastAPI, *args: Any, **kwargs: Any) -> None:
        inner(app, *args, **kwargs)
        app.include_router(router)

    attach_endpoint_plugins._holdfast = True  # type: ignore[attr-defined]
    launcher.attach_endpoint_plugins = attach_endpoint_plugins


@router.get("/holdfast")
async def state(request: HttpRequest) -> JSONResponse:
    """Reports whether requests can be steered, and by which methods."""
    refusal = await _refusal(request)
    description: dict[str, Any] = {
        "live": not refusal,
        "methods": [method["name"] for method in offered_methods()],
        "version": __version__,
    }
    return JSONResponse({**description, "refusal": refusal} if refusal else description)


@router.get("/v1/steering")
async def steering(request: HttpRequest) -> JSONResponse:
    """Answers `holdfast.connect`: the methods, how to request them, the model's fingerprint."""
    if refusal := await _refusal(request):
        refused = SteeringAnswer(wire_format="vllm", methods=[], refusal=refusal)
        return JSONResponse(refused.as_json())
    client = request.app.state.engine_client
    template = getattr(request.app.state.args, "chat_template", None)
    if template is None:
        template = getattr(client.renderer.tokenizer, "chat_template", None)
    ranks = await client.collective_rpc("holdfast_fingerprint", args=(str(template),))
    answer = SteeringAnswer(
        wire_format="vllm",
        fingerprint=fingerprint_of(ranks),
        methods=[OfferedMethod.model_validate(method) for method in offered_methods()],
    )
    return JSONResponse(answer.as_json())


async def _refusal(request: HttpRequest) -> str:
    refusal = refusal_of(await ask(request.app.state.engine_client))
    _LIVE.set(0 if refusal else 1)
    return refusal


@router.get("/holdfast/mass/{name}")
@router.get("/v1/steering/mass/{name}")
async def mass(name: str, request: HttpRequest) -> JSONResponse:
    """Returns the attention mass on the span of a request, per token and per layer."""
    masses = await request.app.state.engine_client.collective_rpc("holdfast_mass", args=(name,))
    known = [answer for answer in masses if answer]
    if not known:
        sentence = f"No mass is kept for {name!r}; send the request with holdfast_trace: 1."
        return JSONResponse({"error": {"message": sentence}}, status_code=404)
    return JSONResponse(
        {
            "id": name,
            "mass": _mean([answer["mass"] for answer in known]),
            "layers": _mean([answer["layers"] for answer in known]),
        }
    )


def _mean(ranks: list[list[float]]) -> list[float]:
    """Averages over tensor-parallel ranks, which all have the same number of heads."""
    return [sum(values) / len(values) for values in zip(*ranks, strict=True)]
