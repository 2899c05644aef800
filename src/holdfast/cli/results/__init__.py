"""The commands that read runs: report, compare, map, export, join."""
