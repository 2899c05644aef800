"""Hooks of coding agents, which tell the model which rules it just broke or no longer has."""
