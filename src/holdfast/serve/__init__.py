"""An OpenAI-compatible server around one model, with steering per request.

app            the FastAPI application; routes has its paths, access its keys and hosts
service        what all routes share: the model, the limits, the metrics
bodies         the bodies of requests, which body_model validates; body_parts, their messages and
               tools
responses_api  OpenAI's newer API, in terms of chats; responses_body, its requests
submissions    bodies -> requests to the engine; request_steering chooses their methods
answering      request -> answer, under the time limit
served_engine  the queue in front of the model's session
decoding       tokens -> pieces of text; tool_calls, the calls in a text
answer_formats pieces -> OpenAI's JSON; refusals, its errors
wire           JSON and events on the connection
server         runs uvicorn; connections, its time limits for clients that are slow
playground     a page on which to try the server
"""
