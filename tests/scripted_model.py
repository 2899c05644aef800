"""A model without weights for protocol tests: each test scripts its answers."""

from collections.abc import Sequence

from holdfast.models.protocol import Job
from holdfast.models.requests import Reply


class ScriptedModel:
    """A chat model that is its own session; subclasses provide the answers."""

    name = fingerprint = "scripted"
    independent, runtime = True, {}

    def check(self, methods) -> None:
        """Accepts every method."""

    def session(self):
        return self

    def forget(self, thread) -> None:
        """Does nothing: threads have no state."""

    def run(self, jobs: Sequence[Job]) -> None:
        waiting = list(jobs)
        while waiting:
            waiting += self.answered(waiting.pop(0))

    def answered(self, job: Job) -> Sequence[Job]:
        """Answers a job; returns the jobs that follow."""
        return job.then(Reply(self.text(job), None, "stop"))

    def text(self, job: Job) -> str:
        raise NotImplementedError
