"""Measures whether a bot keeps following its prompt in a conversation, and when it stops.

python examples/measure_a_prompt.py
python examples/measure_a_prompt.py --model Qwen/Qwen2.5-0.5B-Instruct --rounds 8
"""

import argparse

import holdfast
from holdfast import drift

# The default model can follow one instruction or a few facts; a larger one, rules of all kinds.
BOT = drift.Case(
    id="concierge",
    category="memory",
    system_prompt="Your profile. Your name is Noah.",
    probes=("Tell me your name.", "Another thing. What name do you have?"),
    measure={"name": "contains", "words": ["Noah"]},
    follows=("My name is Noah.",),
    breaks=("I would rather not say.",),
)
GUESTS = (
    drift.Persona("french", "Always reply in French."),
    drift.Persona("pirate", "Be sure to talk like a pirate."),
)


def main() -> None:
    arguments = read_arguments()
    suite = drift.Suite("concierge", (BOT,), ("Please talk about the city.",), personas=GUESTS)
    settings = drift.Settings(rounds=arguments.rounds, conversations=arguments.conversations)
    model = holdfast.load(arguments.model)
    run = drift.run(model, suite, arguments.out, settings)
    print(holdfast.report.table(run))
    print("Read every conversation in", holdfast.report.write([run.folder], "concierge.html"))


def read_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--model", default="default", help="a folder, or a name on the hub")
    parser.add_argument("--rounds", type=int, default=6)
    parser.add_argument("--conversations", type=int, default=24)
    parser.add_argument("--out", default="runs/concierge")
    return parser.parse_args()


if __name__ == "__main__":
    main()
