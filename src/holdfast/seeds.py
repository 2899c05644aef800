"""Seeds derived from what a draw is for, so that batching, order and resuming do not change it."""

import hashlib


def seed_of(*names: object) -> int:
    """Derives a seed in [0, 2**63) from `names`, the same on every machine; 1 and "1" differ."""
    digest = hashlib.sha256("\x1f".join(repr(name) for name in names).encode()).digest()
    return int.from_bytes(digest[:8], "big") >> 1
