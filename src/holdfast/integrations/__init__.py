"""Integrations of other tools; each needs an extra, and nothing else imports them."""
