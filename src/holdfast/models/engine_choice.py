"""Which engine runs a GGUF file: our own, on dequantised weights, or llama.cpp's kernels.

The rules, of which the first that applies decides (docs/llama.md has what they were measured on):

1. The engine chosen by hand; refused if it cannot do what is asked.
2. Ours, if holdfast-llama is not installed or cannot do what is asked.
3. llama.cpp, if the dequantised weights do not fit into the memory of the GPU, or of the machine
   if there is none.
4. Ours, if there is a GPU.
5. llama.cpp for one chat, and for a server, which may have one client at a time: with few replies
   at a time, a token waits for the weights to be read, and quantised weights have fewer bytes. With
   several clients, it depends on the processor which engine is faster.
6. Ours for many replies at a time: a pass is arithmetic then, which bfloat16 does faster.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from holdfast.errors import HoldfastError, ModelError, UsageError
from holdfast.methods import Method
from holdfast.methods.kinds import Ability, in_words
from holdfast.models.capabilities import check_requirements
from holdfast.models.engine_plugins import abilities_in
from holdfast.models.gguf import GGUF, megabytes

ENGINES = ("auto", "torch", "llama")
INSTALL = "pip install 'holdfast-llm[llama]'"
Work = Literal["chat", "loop", "server"]
_COPIES_WHILE_LOADING = 2  # of the weights in memory, while they are loaded without a GPU
_OVERHEAD = 1_500_000_000  # bytes of libraries, and of keys and values


@dataclass(frozen=True)
class EngineNeeds:
    """The needs that a command has of a model's engine.

    Args:
        work: one chat, conversations that run together, or a server's requests.
        methods: lists of methods, each for a reply.
        abilities: what the command itself needs.
        options: given options that only our engine takes, with their values.
    """

    work: Work = "loop"
    methods: Sequence[Sequence[Method]] = ()
    abilities: frozenset[Ability] = frozenset()
    options: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Machine:
    """The memory and the processor that a machine offers a model.

    Args:
        memory: bytes.
        itemsize: bytes of a weight of a large model, once dequantised.
        gpu_memory: bytes of the GPU that our engine would use; 0 if there is none.
    """

    memory: int
    itemsize: int
    gpu_memory: int = 0

    @classmethod
    def current(cls) -> Machine:
        """This machine; imports torch."""
        import torch

        from holdfast.generation.memory import memory_of_this_process
        from holdfast.models.placement import multiplies_bfloat16

        gpu = torch.cuda.get_device_properties(0).total_memory if torch.cuda.is_available() else 0
        itemsize = 2 if gpu or multiplies_bfloat16() else 4
        return cls(memory_of_this_process(), itemsize, gpu)


@dataclass(frozen=True)
class EngineChoice:
    """The engine that runs a model, and why in a sentence; "" if there was nothing to choose."""

    engine: Literal["torch", "llama"]
    sentence: str = ""


def read_engine(words: Sequence[str] | None) -> tuple[str, list[str]]:
    """The engine that --engine names ("auto" if none), and the options of an engine.

    Raises:
        UsageError: an unknown engine, or several.
    """
    options = [value for value in words or () if "=" in value]
    names = [value for value in words or () if "=" not in value]
    for name in names:
        if name not in ENGINES:
            raise UsageError(
                f"--engine {name} is neither an engine ({', '.join(ENGINES)}) nor an option of"
                " one, such as context=2048.",
                option="engine",
                value=name,
                allowed=ENGINES,
            )
    if len(names) > 1:
        raise UsageError(
            f"--engine names {' and '.join(names)}, and one engine runs a model; leave out one."
        )
    return (names[0] if names else "auto"), options


def choose_engine(
    name: str, gguf: GGUF | None, engine: str, needs: EngineNeeds, machine: Machine | None = None
) -> EngineChoice:
    """Chooses the engine of a model.

    Args:
        name: the model's, as the user wrote it.
        gguf: the header of its file; None if it is no GGUF file.
        engine: one of `ENGINES`.
        needs: what is asked of it.
        machine: None: this one.

    Raises:
        UsageError: the engine chosen by hand cannot do what is asked.
        ModelError: it is not installed.
    """
    if engine == "torch" or (engine == "auto" and gguf is None):
        return EngineChoice("torch")
    abilities = abilities_in("llama")  # None: it is not installed
    why_not = _why_not(gguf, abilities, needs)
    if engine == "llama":  # rule 1
        _check_llama(name, is_installed=abilities is not None or gguf is None, why_not=why_not)
        return EngineChoice("llama")
    assert gguf is not None
    memory = _Memory.of(gguf, machine or Machine.current())
    if abilities is None:  # rule 2
        return _without_llama(name, memory)
    return _by_rules(name, memory, why_not, needs.work)


def _check_llama(name: str, *, is_installed: bool, why_not: str) -> None:
    """Refuses llama.cpp, chosen by hand, if it cannot run a model."""
    if not is_installed:
        raise ModelError(
            f"--engine llama needs holdfast-llama, which is not installed here; {INSTALL}, or"
            " leave --engine out.",
            option="engine",
            value="llama",
        )
    if why_not:
        raise UsageError(
            f"--engine llama cannot run {name} here, as {why_not}; leave --engine out.",
            option="engine",
            value="llama",
        )


def _without_llama(name: str, memory: _Memory) -> EngineChoice:
    """Chooses our engine, as llama.cpp's is not installed; recommends it if memory is short."""
    if memory.fits:
        return EngineChoice("torch")
    return EngineChoice(
        "torch",
        f"{_in_torch(name, memory)}: {memory.shortage}; {INSTALL} runs them as they are"
        f" ({megabytes(memory.on_disk)}).",
    )


def _by_rules(name: str, memory: _Memory, why_not: str, work: Work) -> EngineChoice:
    """Chooses between the two engines by the rules 2 to 6.

    Args:
        name: the model's, as the user wrote it.
        memory: the memory that its weights need, and that there is.
        why_not: why llama.cpp cannot do what is asked, as a clause; "" if it can.
        work: the kind of work.
    """
    in_torch = _in_torch(name, memory)
    in_llama = f"{name} runs in llama.cpp, on its weights as they are ({megabytes(memory.on_disk)})"
    if why_not:  # rule 2
        return EngineChoice("torch", f"{in_torch}, as {why_not}.")
    if not memory.fits:  # rule 3
        return EngineChoice("llama", f"{in_llama}: {memory.shortage}; --engine torch tries it.")
    if memory.on_gpu:  # rule 4
        return EngineChoice(
            "torch", f"{in_torch}, as there is a GPU; --engine llama chooses llama.cpp."
        )
    if work == "chat":  # rule 5
        return EngineChoice(
            "llama",
            f"{in_llama}: a single chat is answered faster there; --engine torch chooses"
            " Holdfast's own engine.",
        )
    if work == "server":
        return EngineChoice(
            "llama",
            f"{in_llama}: one client at a time is answered faster there; for several, try --engine"
            " torch, Holdfast's own engine, which takes every method.",
        )
    return EngineChoice(  # rule 6
        "torch",
        f"{in_torch}: many replies at a time are generated faster there; --engine llama needs less"
        " memory.",
    )


def _in_torch(name: str, memory: _Memory) -> str:
    """That a model runs in our engine, as the beginning of a sentence."""
    size = megabytes(memory.dequantised)
    return f"{name} runs in Holdfast's own engine, dequantised to {size}"


@dataclass(frozen=True)
class _Memory:
    """The memory that a GGUF file's weights take, and that a machine offers, in bytes."""

    on_disk: int
    dequantised: int
    needed: int  # by our engine, while it loads and runs the model
    offered: int
    on_gpu: bool

    @classmethod
    def of(cls, gguf: GGUF, machine: Machine) -> _Memory:
        dequantised = machine.itemsize * gguf.num_weights
        on_gpu = machine.gpu_memory > 0
        needed = dequantised * (1 if on_gpu else _COPIES_WHILE_LOADING) + _OVERHEAD
        offered = machine.gpu_memory or machine.memory
        return cls(gguf.path.stat().st_size, dequantised, needed, offered, on_gpu)

    @property
    def fits(self) -> bool:
        return self.needed <= self.offered

    @property
    def shortage(self) -> str:
        """That it does not fit, as a clause."""
        return (
            f"its weights, dequantised, need about {megabytes(self.needed)} of memory, and this"
            f" {'GPU' if self.on_gpu else 'machine'} has {megabytes(self.offered)}"
        )


def _why_not(gguf: GGUF | None, abilities: frozenset[Ability] | None, needs: EngineNeeds) -> str:
    """Why llama.cpp cannot do what is needed, as a clause; "" if it can."""
    if gguf is None:
        return "it is no GGUF file"
    if needs.options:
        option, value = next(iter(needs.options.items()))
        return f"{option} {value} is for Holdfast's own engine"
    if abilities is None:
        return ""
    if lacking := needs.abilities - abilities:
        return f"the command needs {in_words(lacking)}, which llama.cpp does not offer"
    for methods in needs.methods:
        try:
            check_requirements(methods, abilities, "llama.cpp", "")
        except ModelError as error:
            return str(error).rstrip(" ;.")
        except HoldfastError:  # no engine can; loading the model says so
            return ""
    return ""
