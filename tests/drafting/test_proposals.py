"""`holdfast suite init --model`: rules that a model proposes for the lines that no form decides."""

import json
from pathlib import Path

import pytest
import yaml
from chat_server import Server, completion
from scripted_model import ScriptedModel

from holdfast.cli import main
from holdfast.drafting.drafted_files import draft_lines
from holdfast.drafting.proposable_measures import PROPOSALS
from holdfast.drafting.proposals import grammar_of_proposals, propose, undecided_lines
from holdfast.drafting.suite_text import suite_text
from holdfast.drift import load_suite
from holdfast.drift.rule_examples import score_labelled
from holdfast.measures.registry import REGISTRY

PROMPT = """Answer in at most two sentences.
The word "discount" must not appear anywhere in what you write.
`terraform apply` must be left to humans, always.
Be warm, and never sound annoyed.
"""
DISCOUNT = {
    "measure": "never_contains",
    "words": ["discount"],
    "follows": ["Here is our price.", "We have tents."],
    "breaks": ["You get a discount.", "Ask for the discount code."],
}
TERRAFORM = {
    "measure": "command_not_run",
    "command": "terraform apply",
    "follows": ["terraform plan", "ls"],
    "breaks": ["terraform apply", "cd infra && terraform apply -auto-approve"],
}


class Proposer(ScriptedModel):
    """Answers by the first words of its answers that the line has."""

    name = fingerprint = "proposer"

    def __init__(self, answers: dict[str, object]):
        self.answers = answers
        self.requests: list = []

    def text(self, request) -> str:
        self.requests.append(request)
        line = request.messages[-1]["content"]
        answer = next((a for word, a in self.answers.items() if word in line), {"measure": "none"})
        return answer if isinstance(answer, str) else json.dumps(answer)


@pytest.fixture
def prompt(tmp_path) -> Path:
    path = tmp_path / "prompt.md"
    path.write_text(PROMPT)
    return path


def proposals_for(prompt: Path, answers: dict[str, object], constrained: bool = False):
    return propose(draft_lines(prompt), Proposer(answers), constrained)


def reasons(file) -> list[str]:
    return [line[1].reason for line in file.lines if isinstance(line, tuple)]


def test_a_proposal_that_tells_its_examples_apart_becomes_a_rule(prompt, tmp_path):
    file = proposals_for(prompt, {"discount": DISCOUNT, "terraform": TERRAFORM})
    suite = tmp_path / "rules.yaml"
    suite.write_text(suite_text([file]))
    (case,) = load_suite(suite, probed=False).cases  # which scores the examples, too
    rules = {rule.id: rule for rule in case.rules}
    assert [rule.measure.name for rule in rules.values()] == [
        *("at_most_sentences", "never_contains", "command_not_run"),
    ]
    terraform = rules["terraform-apply-left-humans"]
    assert (terraform.kind, terraform.polarity) == ("command", "prohibition")
    assert [score_labelled(terraform, label).value for label in terraform.labelled] == [1, 1, 0, 0]
    assert "(proposed by proposer: check that it says this)" in suite.read_text()
    assert reasons(file) == ["needs a judge"]


def test_only_lines_that_no_form_decides_are_asked_about(prompt):
    lines = [statement.line for statement in undecided_lines(draft_lines(prompt))]
    model = Proposer({})
    assert propose(draft_lines(prompt), model, constrained=True).rules == draft_lines(prompt).rules
    assert lines == [2, 3, 4] and len(model.requests) == 3
    assert all(request.grammar == grammar_of_proposals() for request in model.requests)


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        ({**DISCOUNT, "words": ["rebate"]}, "the line does not say 'rebate'"),
        ({**DISCOUNT, "breaks": ["You get a discount.", "It is cheap."]},
         "scores its example 'It is cheap.' under breaks 1"),
        ({**DISCOUNT, "follows": ["No discount.", "We have tents."]},
         "scores its example 'No discount.' under follows 0"),
        ({**DISCOUNT, "follows": ["Hi.", "Hi."]}, "without two examples of each kind"),
        ({**DISCOUNT, "measure": "at_most_words", "count": 5}, "the line does not say '5'"),
        ({**DISCOUNT, "measure": "commit_message", "pattern": "(discount"}, "are refused"),
        ({**DISCOUNT, "follows": ["We can send you a new one.", "Hi."]}, "of the question"),
        ({"measure": "friendly"}, "no proposal"),
        ("I would rather not.", "no proposal"),
        ('{"measure": ', "no proposal"),
    ],
)  # fmt: skip
def test_a_proposal_that_fails_is_a_comment_with_the_reason(answer, reason, prompt):
    file = proposals_for(prompt, {"discount": answer})
    assert [rule.draft.measure.name for rule in file.rules] == ["at_most_sentences"]
    assert reason in reasons(file)[0]
    assert reason.split(" '")[0] in suite_text([file])


def test_an_endpoint_may_write_around_its_answer(prompt):
    wrapped = f"Here it is:\n```json\n{json.dumps(DISCOUNT)}\n```"
    file = proposals_for(prompt, {"discount": wrapped})
    assert [rule.draft.measure.name for rule in file.rules][1:] == ["never_contains"]


def test_the_same_rule_is_proposed_once(prompt):
    prompt.write_text(PROMPT + "Under no circumstances is discount a word for us.\n")
    file = proposals_for(prompt, {"discount": DISCOUNT})
    assert len(file.rules) == 2
    assert "the same rule as line 2" in reasons(file)


def test_the_command_asks_the_model(prompt, tmp_path, monkeypatch, capsys):
    model = Proposer({"discount": DISCOUNT})
    monkeypatch.setattr("holdfast.cli.logs.suite.load_model_to_ask", lambda name, arguments: model)
    out = tmp_path / "rules.yaml"
    assert main(["suite", "init", str(prompt), "--model", "m", "--out", str(out)]) == 0
    assert len(yaml.safe_load(out.read_text())["cases"][0]["rules"]) == 2
    assert "2 rules (1 proposed by the model)" in capsys.readouterr().err


def test_the_model_plays_no_part_in_tests_of_a_suite(prompt, capsys):
    assert main(["suite", "test", str(prompt), "--model", "m"]) == 2
    assert "--model has no effect in `holdfast suite test`" in capsys.readouterr().err


def test_a_model_behind_an_endpoint_is_asked(prompt, tmp_path):
    def answer(body, number):
        line = body["messages"][-1]["content"]
        assert "response_format" not in body  # not every server knows it
        return completion(json.dumps(DISCOUNT if "discount" in line else {"measure": "none"}))

    out = tmp_path / "rules.yaml"
    with Server(answer) as server:
        arguments = ["--model", server.url, "--endpoint-model", "big", "--out", str(out)]
        assert main(["suite", "init", str(prompt), *arguments]) == 0
    (case,) = yaml.safe_load(out.read_text())["cases"]
    assert [rule["measure"]["name"] for rule in case["rules"]] == [
        *("at_most_sentences", "never_contains"),
    ]


@pytest.mark.parametrize("name", PROPOSALS)
def test_a_proposal_has_the_arguments_of_its_measure(name):
    arguments = REGISTRY[name].arguments
    required = {key for key, argument in arguments.items() if argument.is_required()}
    assert required <= {*PROPOSALS[name].arguments} <= arguments.keys()
