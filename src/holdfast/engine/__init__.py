"""Forward passes of rows that join and leave. The engine knows only token ids and three kinds of
steering: tables for attention, edits of states, and logits processors.

scheduler = Scheduler(Runner(hf_model), stop_ids, batch_size=192)
handle = scheduler.submit(Row((Stream(token_ids, span, compile_methods(methods)),)))
for token in handle:                       # steps the scheduler, and with it the other rows
    ...
handle.result()                            # what the row became, or its own error
"""
