"""Requests to a small server, and the form of the error in an answer that refuses one."""

import json

import httpx2

from holdfast.serve.limits import RequestLimits

LIMITS = RequestLimits(tokens=16, seconds=20, body_bytes=16_000_000, messages=20, choices=4)
HELLO = [{"role": "user", "content": "hello there"}]
BRIEF = [{"role": "system", "content": "be brief about music"}, *HELLO]
# nested more deeply than the server accepts
DEEP: dict = {}
for _ in range(100):
    DEEP = {"properties": DEEP}


def post(url: str, path: str = "/v1/chat/completions", **body) -> httpx2.Response:
    """Posts a body to a path of the server."""
    content = json.dumps(body).encode()  # httpx would refuse a lone surrogate
    kind = {"Content-Type": "application/json"}
    return httpx2.post(url + path, content=content, headers=kind, timeout=30)


def error_of(answer: httpx2.Response) -> dict:
    """The error of an answer, which has all fields and is a sentence."""
    error = answer.json()["error"]
    assert error.keys() == {"message", "type", "param", "code"}
    assert error["message"].endswith(".") or "?" in error["message"], error
    return error
