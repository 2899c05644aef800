"""The fixes to try on a model, as far as measurements of it or of models like it tell."""

from holdfast.records.identity import Manifest

_RETRY = "check-and-retry:n=2"
_REPETITION = "repetition:probability=1"
_REPETITIONS = "repetition:probability=0.5,1"


def first_fix(manifest: Manifest, *, endpoint: bool) -> str | None:
    """The setting to try first; None if none is known to help on this model or one like it.

    docs/choosing.md has the measurements. Where all rules can be checked, it is retries, which were
    measured on Qwen2.5-Coder 0.5B and 1.5B. An endpoint can only have its messages edited, so
    repetition is all that is left to try there, even if it was not measured on that model.
    """
    if manifest.identity.model == "default":
        return "split-softmax:exponent=0.5"
    if manifest.identity.model == "smollm2":
        return _late_split_softmax(manifest, "0.7")
    if manifest.checkable:
        return _RETRY
    return _REPETITION if endpoint else None


def fixes_to_compare(manifest: Manifest, *, endpoint: bool) -> tuple[str, ...]:
    """The sweeps of a search for the best fix; () for the default model, which has its own."""
    if manifest.identity.model == "default":
        return ()
    retries = [_RETRY] if manifest.checkable else []
    if endpoint:
        return *retries, _REPETITIONS
    split_softmax = _late_split_softmax(manifest, "0.9,0.7,0.5")
    return *retries, split_softmax, "guidance:scale=1.25,1.5", _REPETITIONS


def _late_split_softmax(manifest: Manifest, exponents: str) -> str:
    """Split-softmax on the last third of the layers; on all, if the model's shape is unknown."""
    layers = manifest.layers
    heads = manifest.heads
    spec = f"split-softmax:exponent={exponents}"
    if not layers or not heads:
        return spec
    return f"{spec},heads={2 * layers // 3}-{layers - 1}.0-{heads - 1}"
