"""The options that several commands share.

A command's options are one class, which inherits from classes here and adds fields of its own:

    class ChatArguments(ModelOptions, MethodOptions, SystemOptions, DrawOptions): ...
"""

from pathlib import Path
from typing import Annotated, ClassVar, Literal

from holdfast.chat.messages import SYSTEM_AS
from holdfast.cli.shared.command import Arg, Options, RunFolder, file_to_write
from holdfast.drift.settings import ContextPolicy, ProbeAt, Settings
from holdfast.generation.sampling import Sampling
from holdfast.methods.kinds import Ability
from holdfast.models.engine_choice import Work

EngineOptions = Annotated[list[str] | None, Arg("auto|torch|llama|NAME=VALUE")]
Spec = Annotated[str, Arg("SPEC")]
Specs = Annotated[list[str] | None, Arg("SPEC")]
TEMPERATURE = 0.7  # the default for every model but the default model
CONVERSATIONS = 40  # twice the minimum for verdicts; the papers' 200 take hours on a real model


class PlacementOptions(Options):
    """Where and how a local model is loaded."""

    title = "a model that runs here"
    work: ClassVar[Work] = "loop"
    abilities: ClassVar[frozenset[Ability]] = frozenset()  # the abilities the model must have

    device: str | None = None
    """cpu, cuda, ... (default: CUDA if there is one)"""
    device_map: Annotated[str | None, Arg("MAP")] = None
    """auto, balanced, ...: spread over several devices, in place of --device"""
    dtype: str | None = None
    """float32, bfloat16, ... (default: auto, which on the CPU is bfloat16 for models of more than
    50 million parameters if the processor supports it, else float32; elsewhere the checkpoint's)"""
    trust_remote_code: bool = False
    """allow code that comes with the model to run (default: never)"""


class EndpointOptions(Options):
    """Options that apply only to a model behind a URL."""

    title = "a model behind a URL"

    endpoint_model: Annotated[str | None, Arg("NAME")] = None
    """the model's name at the endpoint (default: the one that it lists, if it lists only one)"""
    api_key_env: Annotated[str, Arg("VAR")] = "OPENAI_API_KEY"
    """the environment variable with the API key"""
    concurrency: int = 8
    """requests in flight per server"""
    timeout: Annotated[float, Arg("SECONDS")] = 120.0
    """seconds to wait for an answer while the server is silent"""
    requests_per_minute: Annotated[float | None, Arg("N")] = None
    """the most requests per minute, including retries (default: no limit)"""


class _NamedModel(Options):
    model: Annotated[str, Arg("MODEL")] = "default"
    """a folder, a GGUF file, a name on the Hugging Face hub, the URL of an endpoint (URL,URL shares
    the work among several), vllm:MODEL or llama:FILE.gguf; or smollm2, gemma-3-270m, qwen-0.5b or
    qwen-1.5b, once `python -m holdfast.models.install NAME` has installed it. Without --model, the
    default model: a tiny one in the package, which was trained to drift"""
    engine: EngineOptions = None
    """for a GGUF file: torch (Holdfast's own engine, on dequantised weights), llama (llama.cpp, on
    the weights as they are; needs holdfast-llama) or auto (default: by the machine's memory and the
    command); or an option of vLLM or llama.cpp, such as max_model_len=4096; repeatable"""


class _BatchOptions(Options):
    title = PlacementOptions.title

    chat_template: Annotated[str | None, Arg("plain|FILE")] = None
    """in place of the model's own: a Jinja file, or plain, which lets a base model continue the
    messages as one text"""
    batch_size: int | None = None
    """the most sequences forwarded together; fewer need less memory (default: 192; 48 for models of
    more than 50 million parameters on the CPU)"""


class ModelOptions(_NamedModel, EndpointOptions, PlacementOptions, _BatchOptions):
    """The model of a command: in this process, in an engine, or behind a URL."""


class _LocalModel(Options):
    model: Annotated[str, Arg("MODEL")] = "default"
    """a folder, a GGUF file, or a name on the Hugging Face hub. Without --model, the default model:
    a tiny one in the package, which was trained to drift"""


class LocalModelOptions(_LocalModel, PlacementOptions):
    """A model that is loaded in this process."""


class SeedOptions(Options):
    """The seed of a command."""

    seed: int = 0
    """seed of every random draw"""


class SuiteOptions(Options):
    """The system prompts."""

    suite: Annotated[str, Arg("SUITE")] = "starter"
    """the system prompts and their probes: starter, everyday, bots, core, bot, luna, a FILE.yaml of
    your own, li2024:PATH (or li2024:hub) or sys-ifeval:PATH"""


class ConversationsOptions(Options):
    """How many conversations there are."""

    conversations: int = CONVERSATIONS
    """how many conversations to run"""


class MethodOptions(Options):
    """How the agent is steered."""

    method: Spec = "none"
    """how the agent is steered, as in boost:factor=4; join several with +"""


class MethodsOptions(Options):
    """The steerings to compare."""

    method: Specs = None
    """how the agent is steered, as in boost:factor=4; join several with +; repeat to compare
    methods, among them none (default: none)"""


class RunOptions(Options):
    """The folder of a run."""

    out: Annotated[Path | None, Arg(action=RunFolder)] = None
    """the folder of the run, which repeating the command resumes (default:
    runs/COMMAND-MODEL-SUITE-SEED, such as runs/drift-smollm2-core-0)"""


class DrawOptions(SeedOptions):
    """How replies are drawn."""

    title = "replies"

    temperature: float | None = None
    """sampling temperature; 0 takes the likeliest token (default: 0.7; 1 for the default model)"""
    top_p: float = Sampling.top_p
    """probability mass that nucleus sampling draws from"""
    max_new_tokens: int = Sampling.max_new_tokens
    """the most tokens of a reply"""

    def sampling_for(self, model: str) -> Sampling:
        """How replies are drawn.

        Args:
            model: the value of --model; the default temperature depends on it.
        """
        temperature = self.temperature
        if temperature is None:
            # the default model was trained for the settings of Li et al. (2024)
            temperature = Sampling.temperature if model == "default" else TEMPERATURE
        return Sampling(temperature, self.top_p, self.max_new_tokens)


class SystemOptions(Options):
    """The place of the system prompt."""

    system_as: Annotated[str, Arg(choices=SYSTEM_AS)] = Settings.system_as
    """the system prompt's place: its own role, or the first user message (default: role)"""


class RayOptions(Options):
    """A Ray cluster to work on."""

    title = "a Ray cluster"

    ray: Annotated[str | None, Arg("ADDRESS", nargs="?", const="")] = None
    """run copies of the model on the Ray cluster at HOST:PORT, or auto (without an address:
    RAY_ADDRESS, else only this machine)"""
    replicas: Annotated[int | None, Arg("N")] = None
    """how many copies (default: one per GPU, or per machine without GPUs)"""


class RoundsOptions(Options):
    """The length of a conversation."""

    rounds: int = Settings.rounds
    """rounds per conversation"""


class UserTurnsOptions(Options):
    """Scripted user messages."""

    title = "the user's side"

    user_turns: Annotated[str | None, Arg("everyday|work|long|FILE.jsonl|none")] = None
    """scripted user messages: a JSON list per line, one dialog each; everyday is 40 bundled dialogs
    of 8 messages, work is 8 of 16, and long 8 of 32, with pasted texts, tool results and attempts
    to talk the model out of its rules. With none, a model plays the user (default: for a FILE.yaml
    as suite, bundled dialogs that are long enough, unless another option or the suite says who the
    user is; else none)"""


class UserOptions(UserTurnsOptions):
    """Who plays the user."""

    title = UserTurnsOptions.title

    user_prompt: Literal["auto", "suite", "persona", "empty"] = "auto"
    """the user model's system prompt: another prompt of the suite, a persona, or none (default: a
    persona if the suite has any, else another prompt if there is one)"""
    persona: Annotated[list[str] | None, Arg("TEXT")] = None
    """a system prompt for the user model, in place of the suite's personas; repeat for several"""
    user_model: Annotated[str | None, Arg("default|PATH|HUB_ID|URL")] = None
    """another model to play the user (default: --model plays both sides)"""
    user_endpoint_model: Annotated[str | None, Arg("NAME")] = None
    """with a URL as --user-model: the model's name at that endpoint (default: the one that it
    lists, if it lists only one)"""
    user_api_key_env: Annotated[str | None, Arg("VAR")] = None
    """with a URL as --user-model: the variable with its API key (default: that of --model)"""


class ConversationOptions(SystemOptions, RoundsOptions):
    """The protocol of probed conversations."""

    title = "conversations"

    allow_code: bool = False
    """allow the suite to use Python functions as measures"""
    probes_per_round: int = Settings.probes_per_round
    """probes of each rule in every round"""
    probe_every: Annotated[int, Arg("N")] = Settings.probe_every
    """ask probes only in every Nth round, the first and the last, which makes long runs cheaper
    (default: 1)"""
    probe_at: ProbeAt = Settings.probe_at
    """ask probes in place of the user's turn, or after a full round"""
    batch: int = Settings.batch
    """conversations that run side by side, on each actor with --ray"""
    context: ContextPolicy = Settings.context
    """when the model's context is full: stop the dialog, cut its oldest rounds, summarise the older
    half, or compact (like summarise, but the summary also replaces the agent's system prompt);
    slide shows only the last --window rounds from the start"""
    window: Annotated[int | None, Arg("ROUNDS")] = None
    """with --context slide: how many rounds are shown; with summarise and compact: how many may be
    shown before the older half is summarised (default: until the context is full)"""
    canary: bool = False
    """add a harmless fact to the agent's system prompt and ask for it in every round, to
    distinguish a server that cuts the prompt off from a model that no longer follows it"""
    recall: bool = False
    """ask the agent for its rules in the first and the last round, to distinguish rules that it no
    longer knows from those that it knows and breaks; for suites whose rules have `recalled`, such
    as bots"""
    force_judge: bool = False
    """use judges even if they agree poorly with the labelled replies of their rules"""


class DryRunOptions(Options):
    """`--dry-run`, and the prices of an endpoint."""

    title = "a dry run"

    dry_run: bool = False
    """run only the first few conversations, which are kept, estimate the time and cost of the whole
    command, and stop"""
    price_in: Annotated[float | None, Arg("PRICE")] = None
    """the price of a million tokens read, in any currency"""
    price_out: Annotated[float | None, Arg("PRICE")] = None
    """the price of a million tokens written, in any currency"""


class ReportOptions(Options):
    """Where the page is written."""

    report: Annotated[Path | None, Arg("FILE.html", type=file_to_write)] = None
    """where to write the page (default: report.html in the folder)"""


class BenchmarkOptions(
    ModelOptions, ConversationOptions, UserOptions, DrawOptions, RayOptions, DryRunOptions
):
    """A run of the benchmark."""
