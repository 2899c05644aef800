"""Chat models, in this process or behind an endpoint, and the engines that answer their requests.

    model = load("default")                        # or connect("http://localhost:8000/v1")
    async with model.session() as engine:
        reply = await engine.generate(Request(messages, "boost:factor=4"))

Any model:

protocol           the interfaces `ChatModel` and `Engine`, and what some of them have besides;
                   replicas, for a model with copies in other processes
requests           `Request`, `Reply` and `Token`; grammars has the texts that a reply may be, and
                   request_batches answers several at once
capabilities       refuses requests and methods that need more than a model has
checked_replies    draws replies again that break a rule
failures           a circuit breaker, which tells failed requests from a model that is down
streaming          passes a reply on piece by piece
function_model     `from_function`: a bot of your own as a chat model
event_loop         asynchronous code for synchronous callers

A model in this process, from its name to a reply:

model_names        where a model runs, from its name; engine_choice and engine_plugins, in whose
                   engine
loading            `load`; checkpoint finds the files, placement chooses device and dtype, and
                   loading_errors explains failures; model_properties, what a model can do
gguf               reads GGUF files (gguf_header, their tables), of which gguf_config,
                   gguf_tokenizer and gguf_weights make a model of transformers
local              `LocalModel`; fingerprint identifies its weights, packed_layers speeds them up
session            `LocalSession`, its engine: checks methods, renders, and awaits replies
rendering          requests -> tokens and spans; scoring_inputs, the same for given replies
rehearsals         turns methods such as `hold` into attention methods
grammar_masks      compiles grammars for a tokenizer
step_loop          lets tasks wait for replies; stepped_model steps the scheduler for them, and
                   passes on their new_tokens; thread_cache keeps what threads have computed

steering_blocks    `holdfast.steering`, for a model of transformers that is loaded already
install            `python -m holdfast.models.install` downloads the models that have short names

A model behind an endpoint:

connecting         `connect` and `connect_all`, which find the model's name; endpoint_address reads
                   address and key
endpoint           `EndpointModel` and its engine, which spreads requests over servers
endpoint_server    one server: its clients, its requests, and their retries
endpoint_requests  `Request` -> the body that the server reads
endpoint_answers   the server's answers -> `Reply`
endpoint_errors    why there was no reply, in a sentence
offered_steering   the steering that a server offers
"""
