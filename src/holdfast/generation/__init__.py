"""Generates rows that join and leave, in shared forward passes: the engine of models that run here.
It knows only token ids and three kinds of steering: tables for attention, edits of states, and
logits processors.

    scheduler = Scheduler(Runner(hf_model), stop_ids, batch_size=192)
    state = scheduler.submit(Row((Stream(token_ids, span, compile_methods(methods)),)))
    while not state.done:
        scheduler.step()           # and with it the other rows; state.token_ids grows
    state.result()                 # a `Continuation`, or the row's own error
"""
