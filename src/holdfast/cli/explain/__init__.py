"""The commands that look for causes: precedent, trace, geometry."""
