"""Other people's tools: Holdfast's models and benchmarks where they are at home.

Each needs its package, by an extra of its own; nothing else of Holdfast imports them.
"""
