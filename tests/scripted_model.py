"""A model without weights for tests of protocols: what it answers is written in the test."""

from collections.abc import Sequence

from holdfast.models.protocol import Job
from holdfast.models.requests import Reply


class ScriptedModel:
    """A chat model and its own session; a subclass says what it answers."""

    name = fingerprint = "scripted"
    independent, runtime = True, {}

    def check(self, methods) -> None:
        """Takes every method."""

    def session(self):
        return self

    def forget(self, thread) -> None:
        """Keeps nothing of a thread."""

    def run(self, jobs: Sequence[Job]) -> None:
        waiting = list(jobs)
        while waiting:
            waiting += self.answered(waiting.pop(0))

    def answered(self, job: Job) -> Sequence[Job]:
        """The jobs that follow a job's answer."""
        return job.then(Reply(self.text(job), None, "stop"))

    def text(self, job: Job) -> str:
        raise NotImplementedError
