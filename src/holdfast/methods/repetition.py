"""System prompt repetition (Li et al. 2024, section 6.1)."""

import random
from collections.abc import Sequence
from typing import ClassVar

from holdfast.chat.messages import Message
from holdfast.errors import PromptError
from holdfast.methods.kinds import MethodKind
from holdfast.methods.parameters import method, number, parameter


@method
class Repetition:
    """Repeats the system prompt before each user message, with a probability; only the model sees
    it.

    SPR of Li et al. (2024), section 6.1, which does not specify a separator: here an empty line.
    Every user message, the first included, has its own draw, seeded by the conversation's seed and
    the message's number. So a repetition shown once is shown again at every later turn, and a
    message that has one under a small probability has one under a larger probability too.
    """

    name: ClassVar[str] = "repetition"
    kind: ClassVar[MethodKind] = MethodKind.MESSAGES
    edits_by_prompt: ClassVar[bool] = True
    source: ClassVar[str] = "Li et al. 2024, section 6.1"

    probability: float = parameter(
        "the probability for each user message; 0 changes nothing",
        number(0, 1, share=True),
        "0.5",
    )

    def edit(self, messages: Sequence[Message], seed: int) -> tuple[Message, ...]:
        """Returns the messages with repetitions; a `PromptError` without a system message."""
        prompts = [message["content"] for message in messages if message["role"] == "system"]
        if not prompts:
            raise PromptError(
                "repetition needs a system message to repeat, and this chat has none; put one at"
                " its start."
            )
        new_messages = []
        number = 0
        for message in messages:
            if message["role"] == "user":
                draw = random.Random(f"{self.name} {seed} {number}").random()
                if prompts[0] and draw < self.probability:
                    message = {**message, "content": f"{prompts[0]}\n\n{message['content']}"}
                number += 1
            new_messages.append(message)
        return tuple(new_messages)
