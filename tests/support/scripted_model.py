"""A model without weights for protocol tests: each test scripts its answers."""

import asyncio

from holdfast.models.event_loop import run_sync
from holdfast.models.request_batches import generate_all
from holdfast.models.requests import Reply, Request


class ScriptedModel:
    """A chat model that is its own engine; subclasses provide the answers."""

    name = fingerprint = "scripted"
    independent, runtime = True, {}

    def check(self, methods) -> None:
        """Accepts every method."""

    def session(self):
        return self

    async def __aenter__(self):
        return self

    async def __aexit__(self, *error) -> None:
        """Does nothing: there is nothing to close."""

    def forget(self, thread) -> None:
        """Does nothing: threads have no state."""

    def generate_batch(self, requests):
        return run_sync(generate_all(self.generate, requests))

    async def generate(self, request: Request) -> Reply:
        await asyncio.sleep(0)  # other tasks ask meanwhile, as of a model that takes time
        return Reply(self.text(request), None, "stop")

    def text(self, request: Request) -> str:
        raise NotImplementedError


class Scripted(ScriptedModel):
    """A model that remembers every request, and answers with the number of its messages."""

    def __init__(self, context=100):
        self.requests, self.context = [], context

    async def generate(self, request):
        self.requests.append(request)
        full = len(request.messages) > self.context
        return Reply("", None, "context") if full else await super().generate(request)

    def text(self, request):
        return f"r{len(request.messages)}"
