"""Chat models that run in this process."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import ClassVar

import torch
import transformers
from transformers import PreTrainedModel, PreTrainedTokenizerFast

from holdfast.attention import check_heads, why_unreached
from holdfast.chat.emphasis import Part
from holdfast.chat.messages import Messages
from holdfast.errors import ModelError
from holdfast.generation.memory import memory_of_this_process
from holdfast.generation.transformers_runner import TransformersRunner
from holdfast.methods import Ability, Method, Methods, Shape, compile_methods, read_methods
from holdfast.models.capabilities import LOCAL_ABILITIES, check_requirements
from holdfast.models.event_loop import run_sync
from holdfast.models.fingerprint import Fingerprint
from holdfast.models.requests import Request
from holdfast.models.session import GeneratesInSessions
from holdfast.states import abilities, check_states


@dataclass(frozen=True)
class LocalModel(GeneratesInSessions):
    """A Hugging Face chat model in this process.

    Args:
        name: as given to `holdfast.load`.
        identity: its fingerprint, which changes with its weights.
        hf_model: the causal language model; it uses `holdfast.attention` if its class allows that.
        tokenizer: its fast tokenizer.
        stop_ids: the tokens that end a reply.
        reuses_cache: whether requests can share a pass and continue after computed tokens. A model
            that cannot do this runs them one by one, and encodes the whole chat for each reply.
        steerable: whether the attention mass on the prompt can be read and moved.
        batch_size: the most sequences forwarded together: one per request, or two if a method
            contrasts the logits of two prompts.
        prefix_memory: bytes of keys and values that a session keeps of its threads; None takes a
            quarter of the device's memory. Evicted ones are recomputed when needed.
    """

    name: str
    identity: Fingerprint
    hf_model: PreTrainedModel
    tokenizer: PreTrainedTokenizerFast
    stop_ids: frozenset[int]
    reuses_cache: bool
    steerable: bool
    batch_size: int = 192
    prefix_memory: int | None = None
    independent: ClassVar[bool] = False  # other requests of a batch may affect rounding

    def __repr__(self) -> str:
        return f"LocalModel({self.name!r}, {type(self.hf_model).__name__}, {self.hf_model.dtype})"

    @property
    def fingerprint(self) -> str:
        """A digest of the current configuration, weights and chat template."""
        return self.identity.current()

    def rehearse(
        self, messages: Messages, methods: Methods, *, emphasis: Sequence[Part] = ()
    ) -> tuple[Method, ...]:
        """Returns the methods with `hold` resolved: it becomes an attention method, by rehearsing a
        reply to the first turn.

        Raises:
            UsageError: a method has nothing to work on in this chat.
            PromptError: the emphasised text comes after the first turn.
        """
        request = Request(messages, methods, emphasis=emphasis)
        request.check_span()
        return run_sync(self.session().rehearse(request)).methods

    @cached_property
    def runner(self) -> TransformersRunner:
        """The model as the engine sees it."""
        return TransformersRunner(self.hf_model, batched=self.reuses_cache, name=self.name)

    @property
    def prefix_bytes(self) -> int:
        """Bytes of keys and values that a session keeps of its threads."""
        if self.prefix_memory is not None:
            return self.prefix_memory
        device = self.hf_model.device
        if device.type == "cuda":
            return torch.cuda.get_device_properties(device).total_memory // 4
        return memory_of_this_process() // 4

    def check(self, methods: Sequence[Method]) -> None:
        """Refuses methods that this model cannot apply.

        Raises:
            Unsteerable: the attention, or the states that a method edits, cannot be reached.
            ModelError: a method was fitted on another model.
            UsageError: a value is not a method, two methods need a second stream each, or a method
                names heads or layers that the model does not have.
        """
        compiled = compile_methods(read_methods(methods))
        description = f"{self.name} ({type(self.hf_model).__name__})"
        if not self.steerable:
            description = f"{description}, {why_unreached(self.hf_model)},"
        cure = "use a prompt method such as repetition"
        check_requirements(compiled.methods, self.capabilities, description, cure)
        check_heads(self.hf_model, (*compiled.attention, *compiled.rehearsed))
        if compiled.states:
            check_states(self.hf_model, compiled, self.fingerprint)

    @cached_property
    def capabilities(self) -> frozenset[Ability]:
        """The abilities that methods and studies can use."""
        capabilities = LOCAL_ABILITIES | abilities(self.hf_model)
        if self.steerable:
            capabilities |= {Ability.LOG_ODDS, Ability.REHEARSAL, Ability.REPLY_SPANS}
        return capabilities

    @property
    def runtime(self) -> dict[str, str | int]:
        """Versions and devices that rounding depends on."""
        device = self.hf_model.device
        on_gpu = device.type == "cuda"
        return {
            "device": torch.cuda.get_device_name(device) if on_gpu else device.type,
            "torch": torch.__version__,
            "transformers": transformers.__version__,
            "batch_size": self.batch_size,
        }

    @property
    def about(self) -> dict[str, object]:
        """Facts about the model for a run's manifest that are not part of its identity."""
        about: dict[str, object] = {"dtype": str(self.hf_model.dtype).removeprefix("torch.")}
        kinds = getattr(self.hf_model.config.get_text_config(), "layer_types", None) or ()
        # layers of linear attention have no softmax whose mass could be steered
        all_softmax = all("attention" in kind and "linear" not in kind for kind in kinds)
        if all_softmax and (shape := self._configured_shape) is not None:
            about["layers"] = shape.layers
            about["heads"] = shape.heads
        return about

    @property
    def _configured_shape(self) -> Shape | None:
        """The numbers of layers and of heads; None if the configuration does not have them."""
        config = self.hf_model.config.get_text_config()
        layers = getattr(config, "num_hidden_layers", None)
        heads = getattr(config, "num_attention_heads", None)
        if not isinstance(layers, int) or not isinstance(heads, int):
            return None
        return Shape(layers, heads, self.name)

    @property
    def shape(self) -> Shape:
        """The number of layers, and of heads in each, to which sets of heads refer.

        Layers of a hybrid model without attention are counted as well, though they have no heads.

        Raises:
            ModelError: the configuration has no such numbers, or the layers differ.
        """
        if (shape := self._configured_shape) is None:
            raise ModelError(
                f"{self.name} does not say how many layers and heads it has, or its layers differ,"
                " and only layers with equally many heads have a profile."
            )
        return replace(shape, fingerprint=self.fingerprint)

    @property
    def context(self) -> int | None:
        """The number of tokens that the model can see; None if its configuration does not say."""
        return getattr(self.hf_model.config.get_text_config(), "max_position_embeddings", None)
