"""The order in which files are run: the slowest first, so that none is left to one process at the
end (`make test`).
"""

SLOWEST = ("test_zhang2024.py", "test_drift.py")


def pytest_collection_modifyitems(items):
    """Puts the slowest files first; the others stay in their order."""
    places = {name: place for place, name in enumerate(SLOWEST)}
    items.sort(key=lambda item: places.get(item.path.name, len(places)))
