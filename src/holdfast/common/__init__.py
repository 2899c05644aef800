"""Foundations that any subpackage may import: ranges, seeds, files, validation."""
