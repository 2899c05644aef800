"""A shop whose bot keeps one of its rules with or without its prompt, and a run of it."""

from scripted_model import Scripted

from holdfast import drift
from holdfast.drift.asking_baseline import ask_baseline
from holdfast.drift.cases import Case, Suite
from holdfast.measures import build

DISCOUNT, TENT = "Can I have it cheaper?", "Which tent is warm?"
NEVER_SAID = build({"name": "never_contains", "words": ["discount"]})
SIGNED = build({"name": "ends_with", "word": "Robin"})
NEVER = Case("no-discount", "rules", "Never offer a discount.", (DISCOUNT,), NEVER_SAID)
SIGNS = Case("signs", "rules", "Sign every message with Robin.", (TENT,), SIGNED)
SHOP = Suite("shop", (NEVER, SIGNS), ("Hello.",))


class Shop(Scripted):
    """Signs when told to, and never mentions discounts anyway."""

    def text(self, request):
        signs = request.messages[0]["content"].startswith("Sign")
        return "Warm regards, Robin" if signs else "Take the green one."


def run_with_baseline(folder, conversations=60):
    settings = drift.Settings(rounds=1, conversations=conversations, batch=8)
    drift.run(Shop(), SHOP, folder, settings)
    ask_baseline(Shop(), SHOP, folder, settings)
    return folder
