"""The examples of the quickstart and of the pages on logs and serving, from the record of
front_door.py.
"""

from __future__ import annotations

import json

from tabled.reading import read

ADDRESS = "http://127.0.0.1:8000/v1/chat/completions"
LEFT_OUT = "[...]"


def measurement_example() -> str:
    """`holdfast drift` with its first sentences and the table of rules, without other tables."""
    example = read("front_door")["measure"]
    first, *paragraphs = "\n".join(example["printed"]).split("\n\n")
    (rules,) = (text for text in paragraphs if text.startswith("Rule by rule"))
    assert "round 8" in rules, "the table no longer follows its title"
    return _command_and_output(example["command"], "\n".join([first, LEFT_OUT, rules, LEFT_OUT]))


def logs_example() -> str:
    """`holdfast logs` with its whole output."""
    example = read("front_door")["logs"]
    return _command_and_output(example["command"], "\n".join(example["printed"]))


def _command_and_output(command: str, output: str) -> str:
    return "\n".join(["```", command, "```", "```text", output, "```"])


def serving_example() -> str:
    """`holdfast serve` with a request, the steered and the unsteered reply, and the playground."""
    record = read("front_door")
    example = record["serve"]
    body = _json(example["request"]).replace("'", "\\u0027")
    request = f"curl {ADDRESS} -H 'Content-Type: application/json' -d '{body}'"
    unsteered_field = _json(example["unsteered"]).strip("{}")
    answers = [
        f'{LEFT_OUT} "content": {_json(example["reply"])} {LEFT_OUT}',
        f'{LEFT_OUT} "holdfast": {_json(example["holdfast"])} {LEFT_OUT}',
        f"# with {unsteered_field}:"
        f' {LEFT_OUT} "content": {_json(example["reply_unsteered"])} {LEFT_OUT}',
    ]
    kept = record["playground"]["kept"]  # by seed, whether column A and column B name the dish
    only_a = kept.count([True, False]) or "none"
    caption = (
        "*The playground, at http://127.0.0.1:8000: one conversation without a fix (A) and with it"
        " (B). We picked the question above, and this conversation: we stopped at seed"
        f" {len(kept)}, the first at which only B still names the dish; at {only_a} of those"
        " before, only A does.*"
    )
    return "\n".join(
        [
            *("```", example["command"], "# then, in another terminal:", request, "```"),
            *("```text", *answers, "```"),
            "",
            "![The playground, with two columns](RESULTS/front_door/playground.png)",
            "",
            caption,
        ]
    )


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)
