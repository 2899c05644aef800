"""The engine of local models: generates rows, which join and leave shared forward passes.

It knows only token ids and three kinds of steering: tables for attention, edits of states, and
logits processors.

    scheduler = Scheduler(Runner(hf_model), stop_ids, batch_size=192)
    state = scheduler.submit(Row((Stream(token_ids, span, compile_methods(methods)),)))
    while not state.done:
        scheduler.step()           # advances all rows; state.token_ids grows
    state.result()                 # a `Continuation`, or the row's own error

rows           prompts with their spans and methods, and the replies so far
scheduler      decides when rows join and leave
decoder        prefills running rows and generates their tokens step by step
row_runner     the interface of a model for the scheduler, implemented here and by plug-ins
runner         the only place that calls the model; batch builds the inputs of a pass
slots          keys, values and states of running rows, stored in slot_layers; mapped_memory,
               the tensors that take memory only where tokens were written
kv_cache       keys and values kept for a dialog's next turn; prefix_cache, for other prompts
logits         edits logits by a second stream, by penalties and by grammars
sampling       how tokens are drawn: temperature, nucleus and penalties
drawing        draws tokens from logits
reply_scoring  log-probabilities of given replies
memory         retries with smaller batches after memory ran out
cpu_threads    how torch uses the CPU's threads
row_errors     adds the name of a row to its errors
"""
