"""A run is a folder: `manifest.json`, and `records.jsonl`, to which what is finished is appended.

Every line is on the disk before the next conversation counts as done, so a run may be killed at
any moment and resumed by repeating its command. A line is one conversation, named by its key
(method, conversation); in a run of `holdfast tasks` or `holdfast profile` it is one sample, named
by its task and variant, or its stage, and by its number. It ends in a checksum of itself.
What was not answered is noted in `failures.jsonl`, and stays missing until it is.
"""

from holdfast.records.lines import append_line, cut_torn_line, read_notes, to_line
from holdfast.records.lock import LOCK
from holdfast.records.manifest import (
    MANIFEST,
    Compatibility,
    command_of,
    refuse_another,
    superset,
    union,
)
from holdfast.records.resuming import PendingBatch, batches, resume
from holdfast.records.run import (
    FAILURES,
    RECORDS,
    Key,
    Run,
    RunData,
    open_run,
    read_run,
    refuse_early,
)
from holdfast.records.tables import columns_of, write_csv, write_parquet
