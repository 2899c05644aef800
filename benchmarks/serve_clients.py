"""The clients of `benchmarks/serve.py`: their requests, and the responses that they receive."""

from __future__ import annotations

import asyncio
import json
import random
import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import httpx2

from holdfast import drift

TOKENS = 64  # maximum length of a reply
STEERINGS = (
    "none",
    "boost:factor=2",
    "split-softmax:exponent=0.5",
    "spotlight:target=0.3",
    "guidance:scale=1.5",
    "boost:factor=4",
)
# questions whose answers are longer than the limit, so that all servers write equally many tokens
_TOPICS = (
    "the history of the bicycle",
    "how to plan a week of hiking in the mountains",
    "a lighthouse keeper who finds a letter",
    "how a steam engine works, step by step",
    "the differences between bread flour and cake flour",
    "a day in the life of a city tram driver",
    "how to learn to play the piano as an adult",
    "why the sky is blue and sunsets are red",
)
_ANSWERS = ("I like it very much.", "There is a lot to say about that, and most of it is good.")


@dataclass(frozen=True)
class ClientRequest:
    """One request.

    Args:
        messages: of a dialog of up to three rounds.
        steering: the methods as a spec string.
        seed: of the draws.
        disconnects_after: pieces of text after which the client disconnects; None: it stays.
    """

    messages: tuple[dict[str, str], ...]
    steering: str
    seed: int
    disconnects_after: int | None = None


@dataclass
class ClientResponse:
    """The response to a request.

    Args:
        text: of the reply, as far as it was received.
        sent: when the request was last sent, in seconds of `time.perf_counter`.
        pieces: when each piece of text arrived.
        disconnected: whether the client disconnected before the end.
        retries: how often the server was busy.
        error: the server's answer if it was not a reply.
    """

    text: str = ""
    sent: float = 0.0
    pieces: list[float] = field(default_factory=list)
    disconnected: bool = False
    retries: int = 0
    error: str = ""

    @property
    def first(self) -> float:
        """Seconds to the first piece of text."""
        return self.pieces[0] - self.sent


def random_requests(
    count: int, *, steered: bool, disconnecting: float = 0.0, seed: int = 0, long: bool = False
) -> list[ClientRequest]:
    """Random requests over the starter suite's prompts.

    Args:
        count: number of requests.
        steered: whether they use the methods in turn; otherwise none is steered.
        disconnecting: the share of clients that disconnect mid-reply.
        seed: of all random choices.
        long: whether they ask for texts that are longer than a reply may be.
    """
    suite = drift.load_suite("starter")
    draw = random.Random(seed)
    requests = []
    for number in range(count):
        case = draw.choice(suite.cases)
        messages = [{"role": "system", "content": case.system_prompt}]
        for question in draw.sample(suite.starters, number % 3):
            messages.append({"role": "user", "content": question})
            messages.append({"role": "assistant", "content": draw.choice(_ANSWERS)})
        question = draw.choice(case.rules[0].probes)
        if long:
            question = f"Write a detailed text of 500 words about {draw.choice(_TOPICS)}."
        messages.append({"role": "user", "content": question})
        steering = STEERINGS[number % len(STEERINGS)] if steered else "none"
        pieces = draw.randrange(6) if draw.random() < disconnecting else None
        requests.append(ClientRequest(tuple(messages), steering, draw.randrange(2**31), pieces))
    return requests


def without_disconnecting(requests: Sequence[ClientRequest]) -> list[ClientRequest]:
    """The same requests from clients that stay connected."""
    return [replace(request, disconnects_after=None) for request in requests]


async def send_all(
    url: str, model: str, requests: Sequence[ClientRequest], clients: int, *, steers: bool = True
) -> list[ClientResponse]:
    """Sends the requests, at most `clients` at a time; returns the responses in the order given.

    Args:
        url: of the server, without `/v1`.
        model: its name there.
        clients: how many ask at the same time, each one request after another.
        steers: whether the server accepts `steering`.
    """
    responses = [ClientResponse() for _ in requests]
    waiting = iter(range(len(requests)))
    # a connection per request: llama-server closes those that it has used without saying so
    limits = httpx2.Limits(max_connections=None, max_keepalive_connections=0)
    async with httpx2.AsyncClient(base_url=url, timeout=600, limits=limits) as http:

        async def client() -> None:
            for number in waiting:
                await _send(http, model, requests[number], responses[number], steers)

        await asyncio.gather(*(client() for _ in range(clients)))
    return responses


async def _send(
    http: httpx2.AsyncClient,
    model: str,
    request: ClientRequest,
    response: ClientResponse,
    steers: bool,
) -> None:
    """Sends a request until the server has room for it, and fills the response."""
    body = {
        "model": model,
        "messages": list(request.messages),
        "max_tokens": TOKENS,
        "temperature": 1.0,
        "top_p": 0.9,
        "seed": request.seed,
        "stream": True,
    }
    if steers:
        body["steering"] = request.steering
    while True:
        response.sent = time.perf_counter()
        async with http.stream("POST", "/v1/chat/completions", json=body) as answer:
            if answer.status_code == 429:
                response.retries += 1
                wait = float(answer.headers["retry-after"])
            elif answer.status_code != 200:
                response.error = f"{answer.status_code}: {(await answer.aread()).decode()[:300]}"
                return
            else:
                await _receive(answer, request, response)
                return
        await asyncio.sleep(wait)


async def _receive(
    answer: httpx2.Response, request: ClientRequest, response: ClientResponse
) -> None:
    """Receives the reply piece by piece, until it ends or the client disconnects."""
    ended = False
    async for line in answer.aiter_lines():
        if not line.startswith("data:"):
            continue
        data = line.removeprefix("data:").strip()
        if data == "[DONE]":
            ended = True
            continue
        event = json.loads(data)
        if "error" in event:
            response.error = str(event["error"])[:300]
            return
        for choice in event.get("choices", ()):
            ended = ended or bool(choice.get("finish_reason"))
            if piece := (choice.get("delta") or {}).get("content"):
                response.pieces.append(time.perf_counter())
                response.text += piece
        if (
            request.disconnects_after is not None
            and len(response.pieces) >= request.disconnects_after
        ):
            response.disconnected = True
            return
    if not ended:
        response.error = "the stream broke off"
