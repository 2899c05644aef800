"""Directions that methods learn from a model before they steer it: `holdfast fit`.

fit                fits a method, and writes its file
examples           the examples to learn from, read from a file, and what was learned
shipped_examples   the examples used without such a file
key_directions     learns SEKA and PRISM-Delta: directions of keys and values
hidden_directions  learns persona vectors and capping: directions of hidden states
"""
