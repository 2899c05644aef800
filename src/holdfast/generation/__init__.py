"""Generates rows that join and leave, in shared forward passes: the engine of models that run here.
It knows only token ids and three kinds of steering: tables for attention, edits of states, and
logits processors.

    scheduler = Scheduler(Runner(hf_model), stop_ids, batch_size=192)
    state = scheduler.submit(Row((Stream(token_ids, span, compile_methods(methods)),)))
    while not state.done:
        scheduler.step()           # and with it the other rows; state.token_ids grows
    state.result()                 # a `Continuation`, or the row's own error

rows           prompts with their spans and methods, and the replies to them so far
scheduler      which rows join and leave when
decoder        prefills and steps of the rows that run
row_runner     what the scheduler needs of a model, in this package or a plug-in
runner         the one place that calls the model; batch has the inputs of a pass
slots          keys, values and states of running rows, in slot_layers and state_layers
prefixes       the same of dialogs that go on; shared_prefixes of prompts that begin alike
processors     change logits by a second stream; constraints by penalties and grammars
drawing        tokens from logits
reply_scoring  log-probabilities of given replies
memory         smaller batches after memory ran out
row_errors     the name of a row in its errors
"""
