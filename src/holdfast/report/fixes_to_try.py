"""The fixes to try on a model: those that a record shows to help, and those to compare."""

from holdfast.records.identity import Manifest

_RETRY = "check-and-retry:n=2"
_REPETITION = "repetition:probability=1"
_REPETITIONS = "repetition:probability=0.5,1"


def first_fix(manifest: Manifest, *, endpoint: bool) -> str | None:
    """The setting to try first: one that a record shows to help, or None.

    docs/choosing.md has the records. Retries have been measured on Qwen2.5-Coder 0.5B and 1.5B;
    behind an endpoint there is nothing else but to edit messages.
    """
    if manifest.identity.model == "default":
        return "split-softmax:exponent=0.5"
    if manifest.identity.model == "smollm2":
        return _late_split_softmax(manifest, "0.7")
    if manifest.checkable:
        return _RETRY
    return _REPETITION if endpoint else None


def fixes_to_compare(manifest: Manifest, *, endpoint: bool) -> tuple[str, ...]:
    """Sweeps of a search for the best fix; () on the default model, which has its own."""
    if manifest.identity.model == "default":
        return ()
    retries = [_RETRY] if manifest.checkable else []
    if endpoint:
        return *retries, _REPETITIONS
    split_softmax = _late_split_softmax(manifest, "0.9,0.7,0.5")
    return *retries, split_softmax, "guidance:scale=1.25,1.5", _REPETITIONS


def _late_split_softmax(manifest: Manifest, exponents: str) -> str:
    """Split-softmax on the last third of the layers, where that is known."""
    layers = manifest.layers
    heads = manifest.heads
    last_third = f",heads={2 * layers // 3}-{layers - 1}.0-{heads - 1}" if layers and heads else ""
    return f"split-softmax:exponent={exponents}{last_third}"
