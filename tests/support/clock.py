"""A clock for tests of what depends on time."""


class Clock:
    """A clock that stands still until it is set."""

    now = 0.0

    def __call__(self):
        return self.now
