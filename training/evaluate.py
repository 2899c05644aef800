"""Scores how well a checkpoint follows held-out instructions in round 1: the only criterion for
choosing checkpoints.

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
from statistics import fmean

import torch

sys.path.insert(0, str(Path(__file__).parent))
sys.path.insert(0, str(Path(__file__).parent.parent / "src"))
from cases import held_out_cases
from dialogues import dialogue
from knowledge import Question, ask

FAILS_BELOW = 0.7  # the score under which --show prints a reply


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


def score_cases(model, tokenizer, per_family: int, seed: int) -> list[dict]:
    """Held-out cases (see `held_out_cases`), with the fields `reply` and `score`."""
    from holdfast.measures import build

    state = torch.get_rng_state()
    model.eval()
    cases = held_out_cases(per_family, seed)
    chats = [
        [
            {"role": "system", "content": case["system_prompt"]},
            {"role": "user", "content": case["probes"][0]},
        ]
        for case in cases
    ]
    for case, text in zip(cases, replies(model, tokenizer, chats, seed), strict=True):
        case["reply"] = text
        case["score"] = build(case["measure"]).score(text).value
    torch.set_rng_state(state)
    return cases


def following(model, tokenizer, per_family: int = 3, seed: int = 1) -> float:
    """Mean round-1 score over held-out cases."""
    cases = score_cases(model, tokenizer, per_family, seed)
    return round(sum(case["score"] for case in cases) / len(cases), 4)


def knowledge(model, tokenizer, count: int = 200, seed: int = 0) -> dict[str, float]:
    """Share of knowledge questions answered correctly after three rounds of small talk: with four
    choices, and open-ended (with unseen sums).
    """
    shares = {}
    for name, with_choices in (("choices", True), ("open", False)):
        chats = []
        questions = []
        for index in range(count):
            rng = random.Random(f"knowledge {seed} {name} {index}")
            small_talk = [message for _ in range(3) for message in dialogue(rng, [])[-2:]]
            question = ask(rng, with_choices, test=True)
            chats.append([*small_talk, {"role": "user", "content": question.text}])
            questions.append(question)
        texts = replies(model, tokenizer, chats, seed)
        right = map(is_right, questions, texts)
        shares[name] = sum(right) / count
    return shares


def is_right(question: Question, text: str) -> bool:
    """Whether a text has the right reply: "Lima (B)", or "... is Lima" without choices."""
    if question.choices:
        return question.reply in text
    answer = re.escape(question.answer)
    return re.search(rf"\bis (?:called an? )?{answer}(?!\w)", text) is not None


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("model", type=Path)
    parser.add_argument("--per-family", type=int, default=8)
    parser.add_argument("--seed", type=int, default=2)
    parser.add_argument("--show", action="store_true", help="print the replies that fail")
    return parser.parse_args()


def print_scores(cases: list[dict]) -> None:
    """The mean score of each family, and of cases whose phrase was seen in training or not, the
    lowest first; then the mean of all cases.
    """
    scores = defaultdict(list)
    for case in cases:
        family, _, _ = case["id"].rpartition("-")
        scores[family].append(case["score"])
        scores["phrase unseen" if case["unseen_phrase"] else "phrase seen"].append(case["score"])
    for name, values in sorted(scores.items(), key=lambda item: fmean(item[1])):
        print(f"{fmean(values):.3f}  {name} ({len(values)})")
    print(f"{fmean(case['score'] for case in cases):.4f}  mean")


def print_failures(cases: list[dict]) -> None:
    fields = ("system_prompt", "reply", "score", "measure")
    for case in cases:
        if case["score"] < FAILS_BELOW:
            row = {name: case[name] for name in fields} | {"probe": case["probes"][0]}
            print(json.dumps(row, ensure_ascii=False))


def main() -> None:
    from transformers import AutoModelForCausalLM, AutoTokenizer

    args = parse_arguments()
    model = AutoModelForCausalLM.from_pretrained(args.model, dtype=torch.float32)
    tokenizer = AutoTokenizer.from_pretrained(args.model)
    cases = score_cases(model, tokenizer, args.per_family, args.seed)
    if args.show:
        print_failures(cases)
    print_scores(cases)
    for name, share in knowledge(model, tokenizer).items():
        print(f"{share:.3f}  knowledge, {name}")


if __name__ == "__main__":
    main()
