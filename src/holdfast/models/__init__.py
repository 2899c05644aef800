"""Chat models: those that run here, and those behind an endpoint."""
