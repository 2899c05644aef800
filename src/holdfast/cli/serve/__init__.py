"""The commands that use a model, steered or not: serve, proxy, chat, generate."""
