"""Directions that methods learn from a model before they steer it: `holdfast fit`."""
