"""The engine of local models: generates the replies to requests in shared forward passes.

It knows only token ids and three kinds of steering: tables for attention, edits of states, and
logits processors.

    scheduler = Scheduler(TransformersRunner(hf_model), stop_ids, batch_size=192)
    prompt = TokenPrompt(token_ids, span, compile_methods(methods))
    state = scheduler.submit(TokenRequest((prompt,)))
    while not state.done:
        scheduler.step()           # advances all requests; state.token_ids grows
    state.require_reply()          # raises the request's own error, if it has one

The words, each for one thing:

request    one reply to generate, after one prompt; or two, if a method contrasts their logits
sequence   a prompt and the tokens generated after it, so a request has one sequence or two
slot       the place of one running sequence in the KV cache, the keys and values of all of them
column     the place of one token in a slot, or in the keys that a pass reads
pass       one call of the model; its tensors have a row for each sequence that it forwards
prefix     the first tokens of a sequence, whose saved keys and values another one can reuse

The modules:

token_requests       requests, their prompts and sequences, and the replies so far
scheduler            decides when requests join and leave
decoder              prefills running requests and generates their tokens step by step
model_runner         the interface of a model for the scheduler, implemented here and by plug-ins
transformers_runner  the only place that calls the model; batch builds the inputs of a pass
slots                the KV cache of running sequences, stored in slot_layers (key_layers,
                     state_layers), with their slot_state; mapped_memory, the tensors that take
                     memory only where tokens were written
saved_kv             keys and values outside the slots, of a prefix; prefix_cache finds them by
                     their tokens
logits               edits logits by a second stream of logits, by penalties and by grammars
sampling             how tokens are drawn: temperature, nucleus and penalties
drawing              draws tokens from logits
reply_scoring        log-probabilities of given replies
memory               retries with smaller batches after memory ran out
cpu_threads          how torch uses the CPU's threads
request_errors       adds the name of a request to its errors
"""
