"""Checks values from outside, and words each refusal as one sentence."""
