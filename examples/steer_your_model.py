"""Steers a Hugging Face model that is already loaded, in a batch, and reads the attention mass.

python examples/steer_your_model.py
python examples/steer_your_model.py --model Qwen/Qwen2.5-0.5B-Instruct
"""

import argparse

import torch
from transformers import AutoModelForCausalLM, AutoTokenizer

import holdfast
from holdfast.models.checkpoint import DEFAULT_FOLDER  # the default model

QUESTIONS = ("Do you like the garden?", "What do you think about the city?")
CHATS = [
    [
        {"role": "system", "content": "Always reply in French."},
        {"role": "user", "content": question},
    ]
    for question in QUESTIONS
]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--model", default=str(DEFAULT_FOLDER), help="a folder, or a hub name")
    parser.add_argument("--method", default="boost:factor=4")
    arguments = parser.parse_args()

    model = AutoModelForCausalLM.from_pretrained(arguments.model, dtype=torch.float32)
    tokenizer = AutoTokenizer.from_pretrained(arguments.model)
    chats = holdfast.encode_chats(CHATS, tokenizer)  # padded on the left, with the span

    for method in ("none", arguments.method):
        torch.manual_seed(0)
        with holdfast.steering(model, chats.span_mask, method, trace=True) as steered:
            output = model.generate(**chats.inputs, max_new_tokens=30, do_sample=True)
        replies = output[:, chats.input_ids.shape[1] :]
        texts = tokenizer.batch_decode(replies, skip_special_tokens=True)
        for question, text, trace in zip(QUESTIONS, texts, steered.traces, strict=True):
            print(f"{method}: {question} -> {text.strip()}")
            print(f"  attention mass on the prompt: {trace.mass.mean():.3f}")


if __name__ == "__main__":
    main()
