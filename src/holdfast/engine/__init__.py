"""Forward passes of rows that come and go; knows token ids, and three kinds of steering: tables for
attention, edits of states, and logits processors.

rows.py        requests and results: Stream, Row, Continuation
batch.py       one forward pass, as tensors, and rows that generate
runner.py      the one place that calls the model
cache.py       slots: what is computed of the rows of a batch; slot_layers.py and state_layers.py
               have what each kind of layer keeps
prefixes.py    keys and values that outlive their pass, within a number of bytes
shared.py      the same for all prompts that begin with the same tokens
drawing.py     temperature and nucleus, from numbers that belong to the reply
decoder.py     rows that generate, forwarded together
processors.py  their logits processors, and the trials that these ask for
scheduler.py   the one admission loop: submit, step, cancel
scoring.py     log-probabilities of given replies
divergence.py  how far two chats part in what they expect of a reply
memory.py      memory that ran out

scheduler = Scheduler(Runner(hf_model), stop_ids, batch_size=192)
handle = scheduler.submit(Row((Stream(token_ids, span, methods),)))
for token in handle:                       # steps the scheduler; other rows go on with it
    ...
handle.result()                            # what the row became, or its own error
"""
