"""Predictors of lost probes, from the record of decodable.py."""

from __future__ import annotations

from tabled.reading import difference, markdown, read, score

PREDICTORS = {  # the predictors of the record, in words
    "mass": "mass on the prompt where the reply begins",
    "mass of the turn before": "mass on the prompt in the agent's last turn",
    "mass of every head": "mass of every head there (fitted)",
    "outcome": "residual stream there, outcome (fitted)",
    "prompt": "residual stream there, prompt in force (fitted)",
    "round": "the round alone",
    "category and round": "the category's rate, and the round (fitted)",
    "score before": "the score of the probe a round before",
}


def decodable_summary() -> str:
    """How much better the residual stream predicts a lost probe than the score before it does."""
    record = read("decodable")
    advantages = []
    for name, model in record["models"].items():
        outcome = model["unseen"]["family"]["predictors"]["outcome"]
        advantages.append(f"{difference(outcome['less']['score before'])} (`{name}`)")
    return (
        "The AUC of the residual stream, fitted to predict the outcome, minus that of the score"
        f" before: {' and '.join(advantages)} ({record['conversations']} conversations of 8 rounds"
        f" on each of {len(record['seeds'])} seeds; [every predictor](RESULTS/decodable.md))."
    )


def decodable_page() -> str:
    """A page with every predictor, one table per model."""
    record = read("decodable")
    method = (
        f"`python benchmarks/decodable.py`: {record['conversations']} conversations of 8 rounds on"
        f" each of {len(record['seeds'])} seeds, the probes from round 2 on; 95% bootstrap"
        " intervals over families of prompts. What is fitted is tested on other families. *Same"
        " kind*: over pairs of a kept and a lost probe of one category and round."
    )
    tables = [_model_table(name, model) for name, model in record["models"].items()]
    return "\n\n".join(["# Can a lost probe be predicted?", method, *tables]) + "\n"


def _model_table(name: str, model: dict) -> str:
    """The predictors on one model, tested on unseen families of prompts, and what is different on
    unseen conversations or categories.
    """
    unseen = model["unseen"]
    predictors = unseen["family"]["predictors"]
    rows = [["predictor of a lost probe", "AUC", "less that of mass", "AUC, same kind"]]
    for predictor, words in PREDICTORS.items():
        result = predictors[predictor]
        less = difference(result["less"]["mass"]) if predictor != "mass" else ""
        same_kind = score(result["auc_same_category_and_round"])
        rows.append([words, score(result["auc"]), less, same_kind])
    less = predictors["outcome"]["less"]
    aucs = {unit: score(unseen[unit]["predictors"]["outcome"]["auc"]) for unit in unseen}
    family = _decoded_percent(unseen["family"]["decoded"])
    category = _decoded_percent(unseen["category"]["decoded"])
    return "\n".join(
        [
            f"`{name}`: {model['lost']} of {model['probes']} probes lost,"
            f" {model['units']['family']} families in {model['units']['category']} categories.",
            "",
            *markdown(rows),
            "",
            "The AUC of the residual stream's outcome, less that of the category's rate and the"
            f" round: {difference(less['category and round'])}; less that of the score before:"
            f" {difference(less['score before'])}. Fitted on other conversations of the same"
            f" prompts, it is {aucs['conversation']}; on other categories, {aucs['category']}.",
            "",
            f"The prompt in force is the nearest one in {family['kept']}% of the kept probes and"
            f" {family['lost']}% of the lost ones (by chance: {family['chance']}%); fitted on other"
            f" categories, in {category['kept']}% and {category['lost']}% (by chance:"
            f" {category['chance']}%).",
        ]
    )


def _decoded_percent(decoded: dict) -> dict[str, int]:
    """How often the prompt is decoded from kept and lost probes, and by chance, in percent."""
    shares = {
        "kept": decoded["kept"]["mean"],
        "lost": decoded["lost"]["mean"],
        "chance": decoded["chance"],
    }
    return {name: round(100 * share) for name, share in shares.items()}
