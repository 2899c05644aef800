"""A run is a folder with `manifest.json` and `records.jsonl`, to which finished work is appended.

Every line is on the disk before the next conversation counts as done, so a run may be killed at
any moment and resumed by repeating its command. A line is one conversation, identified by its key
(method, conversation). In a run of `holdfast tasks` or `holdfast profile` it is one sample, whose
key is its task and variant, or its stage, and its number. Every line ends with its own checksum.
Requests that failed are noted in `failures.jsonl`; their records stay missing until the requests
are answered.

The types of records:

model              the base of all of them
conversation       `Conversation` with its turns and probes; cause_records, causes of broken rules
samples            records of samples, which have no dialog
judge_records      answers of judges; precedent_records, those of `holdfast precedent`
run_summary        `summary.json`, with the parts of each command: drift_summary, check_records,
                   logs_summary, comparison_summary; mean_estimate, means with their uncertainty
identity           `Manifest`: the command of a run, and what distinguishes it from other runs

A run folder:

folder             `open_run`: starts, resumes or extends a run; lock allows one process at a time
resuming           which part of each batch is left; compatibility, whether a command resumes a run
lines              records <-> lines with checksums; belonging refuses those that are not of the run
run                `read_run`: a folder -> `Run`; manifest reads the manifests of all versions
stored_logs        records of logs, read when needed; log_scores, their scores in columns
traces             the mass of every head at every token
joining            the shards of a run -> one folder
run_table          the records of a run as one table; export writes it
typed_options      the options of the command that made a run
"""

from holdfast.records.belonging import Record, RecordKey, key_of
from holdfast.records.cause_records import (
    CAUSES,
    BreachCause,
    BreachStep,
    CompactedRule,
    Evidence,
    LoggedCompaction,
    RuleInContext,
)
from holdfast.records.compatibility import Compatibility, superset, union
from holdfast.records.conversation import (
    Agent,
    CapabilityAnswer,
    CapabilityConversation,
    ContextSummary,
    Conversation,
    DialogRecord,
    Ended,
    LastReply,
    LogDialog,
    LogProbe,
    LogPrompt,
    LogTurn,
    Participant,
    Probe,
    ProbeKey,
    ProbeReply,
    Repeated,
    Replayed,
    Scripted,
    Tokens,
    Turn,
    Unanswered,
    Unscored,
)
from holdfast.records.drift_summary import MethodSummary, RuleSummary
from holdfast.records.export import write_csv, write_parquet
from holdfast.records.folder import OpenRun, open_run, refuse_early
from holdfast.records.joining import join_runs
from holdfast.records.lines import append_line, cut_torn_line, read_notes, to_line
from holdfast.records.lock import LOCK
from holdfast.records.manifest import MANIFEST, command_of
from holdfast.records.mean_estimate import Estimate, Judged
from holdfast.records.model import Failure
from holdfast.records.resuming import PendingBatch, batches, resume, unfinished
from holdfast.records.run import FAILURES, RECORDS, Run, read_earlier, read_run
from holdfast.records.run_summary import Summary
from holdfast.records.samples import HeadScores, TaskSample, TokenCounts
