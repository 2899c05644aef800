"""Hooks of coding agents: they say which rules were just broken, or have left the context."""
