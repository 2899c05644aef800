"""The benchmark of Li et al. (2024): how well an agent keeps to its prompt over a conversation.

What is measured:

cases              `Suite`, `Case` and `Rule`: system prompts, their rules, and the probes of each
suites             loads a suite by name: suite_file from YAML, li2024 and sys_ifeval from published
                   files; families halves a suite, for exploring and confirming
suite_file         YAML -> suite, by way of yaml_documents and suite_entries; rule_examples tests
                   the measures
settings           `Settings`, the protocol; resolved_settings fills in what depends on the suite
recorded_dialogs   dialogs to replay; user_scripts, messages to send in place of a user model's

A run:

benchmark          `run`: opens the folder, and runs the conversations that it lacks
run_identity       recognises the folder of the same run; shards divide a run among machines
pairing            draws a conversation: who talks with whom, and what is asked
selfchat           holds a conversation, and asks the probes (section 3.1 of the paper)
dialog_replay      replays a recorded dialog, and asks the probes
concurrent_dialogs holds many of either side by side; truncation_monitor warns of cut replies
dialog             a conversation in progress, and the chat that each side sees
dialog_requests    sends such chats to the model, with less of the dialog where it is too long
dialog_summaries   asks the model for summaries of what is left out
two_models         an engine of two models that take turns
prompt_rules       the rules of the prompt, for methods that remind the model of them;
                   rule_texts finds where the prompt states them
method_checks      refuses methods that cannot work in the dialogs of a run
probe_outcomes     scores the replies to probes; judges, those that a model has to score, whose
                   answers judge_answers keeps
dialog_records     dialogs -> records; turn_repetition measures how much turns repeat
asking_baseline    asks the same probes without a prompt
remaining          counts the work that is left; progress reports it
"""

from typing import TYPE_CHECKING, Any

from holdfast.lazy_imports import import_name

if TYPE_CHECKING:
    from holdfast.drift.asking_baseline import ask_baseline
    from holdfast.drift.benchmark import run
    from holdfast.drift.cases import CATEGORIES, Case, Persona, Rule, Suite
    from holdfast.drift.settings import Cast, Running, Settings
    from holdfast.drift.suites import load_suite

_LATER = {
    "ask_baseline": "holdfast.drift.asking_baseline",
    "run": "holdfast.drift.benchmark",
    **dict.fromkeys(("CATEGORIES", "Case", "Persona", "Rule", "Suite"), "holdfast.drift.cases"),
    **dict.fromkeys(("Cast", "Running", "Settings"), "holdfast.drift.settings"),
    "load_suite": "holdfast.drift.suites",
}


def __dir__() -> list[str]:
    return [*_LATER]


def __getattr__(name: str) -> Any:
    return import_name(__name__, _LATER, name)
