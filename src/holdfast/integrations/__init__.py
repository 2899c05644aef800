"""Other people's tools; each needs its package, an extra, and nothing else imports them."""
