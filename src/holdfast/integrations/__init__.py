"""Integrations of other tools; each needs an extra, and is imported only where it is used."""
