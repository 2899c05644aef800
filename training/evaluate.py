"""How well a checkpoint follows held-out instructions in round 1: the only criterion for choosing
checkpoints.

`python training/evaluate.py DIR` prints the score per family.
"""

from __future__ import annotations

import argparse
import json
import random
import re
import sys
from collections import defaultdict
from pathlib import Path

import torch

sys.path.insert(0, str(Path(__file__).parent))
sys.path.insert(0, str(Path(__file__).parent.parent / "src"))
from cases import held_out_cases
from dialogues import dialogue
from knowledge import ask


@torch.no_grad()
def replies(
    model, tokenizer, chats: list[list[dict]], seed: int, batch: int = 64, max_new_tokens: int = 80
) -> list[str]:
    """One reply per chat at temperature 1.0 and top-p 0.9, from transformers' own `generate`."""
    torch.manual_seed(seed)
    tokenizer.padding_side = "left"
    texts = []
    for start in range(0, len(chats), batch):
        inputs = tokenizer.apply_chat_template(
            chats[start : start + batch],
            add_generation_prompt=True,
            return_dict=True,
            return_tensors="pt",
            padding=True,
        )
        inputs.pop("token_type_ids", None)
        out = model.generate(
            **inputs,
            do_sample=True,
            temperature=1.0,
            top_p=0.9,
            top_k=0,
            max_new_tokens=max_new_tokens,
            pad_token_id=tokenizer.pad_token_id,
        )
        texts += tokenizer.batch_decode(
            out[:, inputs["input_ids"].shape[1] :], skip_special_tokens=True
        )
    return texts


def scored(model, tokenizer, per_family: int, seed: int) -> list[dict]:
    """The held-out cases, each with its reply and score."""
    from holdfast.measures import build

    state = torch.get_rng_state()
    model.eval()
    cases = held_out_cases(per_family, seed)
    chats = [
        [
            {"role": "system", "content": c["system_prompt"]},
            {"role": "user", "content": c["probes"][0]},
        ]
        for c in cases
    ]
    for case, text in zip(cases, replies(model, tokenizer, chats, seed), strict=True):
        case["reply"], case["score"] = text, build(case["measure"]).score(text).value
    torch.set_rng_state(state)
    return cases


def following(model, tokenizer, per_family: int = 3, seed: int = 1) -> float:
    """Mean round-1 score over held-out cases."""
    cases = scored(model, tokenizer, per_family, seed)
    return round(sum(case["score"] for case in cases) / len(cases), 4)


def knowledge(model, tokenizer, count: int = 200, seed: int = 0) -> dict[str, float]:
    """Share of knowledge questions answered correctly after three rounds of small talk: with four
    choices, and open-ended (with unseen sums).
    """
    shares = {}
    for name, with_choices in (("choices", True), ("open", False)):
        chats, keys = [], []
        for index in range(count):
            rng = random.Random(f"knowledge {seed} {name} {index}")
            talk = [message for _ in range(3) for message in dialogue(rng, [])[-2:]]
            question, answer, key = ask(rng, with_choices, test=True)
            chats.append([*talk, {"role": "user", "content": question}])
            keys.append(answer if with_choices else key)
        pattern = (
            "{}" if with_choices else r"\bis (?:called an? )?{}(?!\w)"
        )  # whole words, at the position of the answer
        right = [
            bool(re.search(pattern.format(re.escape(key)), text))
            for key, text in zip(keys, replies(model, tokenizer, chats, seed), strict=True)
        ]
        shares[name] = sum(right) / count
    return shares


def main() -> None:
    from transformers import AutoModelForCausalLM, AutoTokenizer

    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("model", type=Path)
    parser.add_argument("--per-family", type=int, default=8)
    parser.add_argument("--seed", type=int, default=2)
    parser.add_argument("--show", action="store_true", help="print the replies that fail")
    args = parser.parse_args()
    model, tokenizer = (
        AutoModelForCausalLM.from_pretrained(args.model, dtype=torch.float32),
        AutoTokenizer.from_pretrained(args.model),
    )
    by_family, by_phrase = defaultdict(list), defaultdict(list)
    for case in scored(model, tokenizer, args.per_family, args.seed):
        by_family[case["id"].rsplit("-", 1)[0]].append(case["score"])
        by_phrase["phrase unseen" if case["unseen_phrase"] else "phrase seen"].append(case["score"])
        if args.show and case["score"] < 0.7:
            print(
                json.dumps(
                    {k: case[k] for k in ("system_prompt", "reply", "score", "measure")}
                    | {"probe": case["probes"][0]},
                    ensure_ascii=False,
                )
            )
    for name, values in sorted(
        {**by_family, **by_phrase}.items(), key=lambda item: sum(item[1]) / len(item[1])
    ):
        print(f"{sum(values) / len(values):.3f}  {name} ({len(values)})")
    everything = [value for values in by_family.values() for value in values]
    print(f"{sum(everything) / len(everything):.4f}  mean")
    for name, share in knowledge(model, tokenizer).items():
        print(f"{share:.3f}  knowledge, {name}")


if __name__ == "__main__":
    main()
