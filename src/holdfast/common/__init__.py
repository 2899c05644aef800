"""Foundations that any room may import: ranges, seeds, files, validation."""
