"""A short run over an endpoint, and the number of requests that it takes."""

from short_drift import ONE_QUESTION

from holdfast import drift
from holdfast.generation.sampling import Sampling

ROUNDS = 4
# for each conversation: turns without the starter, and two probes per round
REQUESTS = 2 * ROUNDS - 1 + 2 * ROUNDS


def measure(model, folder, conversations=6):
    """A run of `ONE_QUESTION`."""
    sampling = Sampling(temperature=1, top_p=1, max_new_tokens=9)
    settings = drift.Settings(rounds=ROUNDS, conversations=conversations, sampling=sampling)
    return drift.run(model, ONE_QUESTION, folder, settings)
