"""An OpenAI-compatible server around one model, with steering per request."""
