"""`holdfast drift` and `holdfast chat` against our own server, compared with the local model."""

import io

import pytest
from served import FRENCH, default_model
from synthetic_run import as_json

import holdfast
from holdfast import client, drift
from holdfast.cli import main
from holdfast.generation.sampling import Sampling
from holdfast.models.requests import Request

WIRE = 1e-4  # masses are sent with four digits
METHODS = ("none", "boost:factor=4", "repetition:probability=0.5+spotlight:target=0.2")


@pytest.fixture
def remote(url, monkeypatch):
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    return holdfast.connect(f"{url}/v1", timeout=60)


@pytest.mark.slow
def test_a_run_over_the_wire_gives_the_local_records(remote, tmp_path):
    settings = drift.Settings(rounds=2, conversations=3, sampling=Sampling(max_new_tokens=60))
    runs = [
        drift.run(m, "starter", tmp_path / name, settings, METHODS)
        for name, m in (("here", default_model()), ("there", remote))
    ]
    ours, wire = ({(r["method"], r["conversation"]): r for r in as_json(run)} for run in runs)
    assert ours.keys() == wire.keys() and len(ours) == 9
    masses, apart = [], {"mass": None, "prompt_tokens": None}  # the second only from endpoints
    for key, record in ours.items():
        for part in ("turns", "probes"):
            parts = [[row | apart for row in m[part]] for m in (record, wire[key])]
            assert parts[0] == parts[1], key
            rows = zip(record[part], wire[key][part], strict=True)
            masses += [(row["mass"], wired["mass"]) for row, wired in rows]
    pairs = [(local, far) for local, far in masses if local is not None]
    assert len(pairs) == 3 * 9 * 2 and sum(far is not None for _, far in masses) == len(pairs)
    assert max(abs(far - local) for local, far in pairs) < WIRE


def test_seeds_emphasis_and_the_prompts_position_reach_the_server(remote):
    short = Sampling(max_new_tokens=30)
    requests = [
        Request(FRENCH, "boost:factor=4", short, 2**62 + 7),
        Request(FRENCH, "boost:factor=9", short, emphasis=["the garden"]),
        Request(FRENCH, "spotlight:target=0.4", short, system_as="first-user"),
        Request(FRENCH, "guidance:scale=2", short),
        Request(FRENCH[1:], (), short),
    ]
    texts = [reply.text for reply in remote.generate_batch(requests)]
    assert texts == [reply.text for reply in default_model().generate_batch(requests)]
    pieces = []
    assert remote.stream(requests[0], pieces.append).text == texts[0] == "".join(pieces)


@pytest.mark.parametrize("spelling", ["holdfast", "vllm"])
def test_both_spellings_of_the_client_steer(url, spelling):
    import openai

    extra_body = client.steer("boost:factor=9", emphasis=["garden"], trace=True, server=spelling)
    options = {"messages": FRENCH, "seed": 3, "max_tokens": 20, "top_p": 0.9}
    chats = openai.OpenAI(base_url=f"{url}/v1", api_key="none").chat.completions
    reply = chats.create(model="default", **options, extra_body=extra_body)
    sampling = Sampling(max_new_tokens=20)
    local = default_model().generate(FRENCH, "boost:factor=9", sampling, 3, emphasis=["garden"])
    assert reply.choices[0].message.content == local.text
    assert reply.model_extra["holdfast"]["steering"] == "boost:factor=9"
    assert reply.choices[0].model_extra["holdfast"]["tokens"][0]["mass"] > 0


def test_a_chat_with_a_server_matches_the_local_chat(url, monkeypatch, capsys):
    lines = ["Do you like the garden?", "/method boost:factor=4", "And the sea?", "/mass"]
    outputs = []
    for name in ("default", f"{url}/v1"):
        monkeypatch.setattr("sys.stdin", io.StringIO("\n".join(lines)))
        options = ["--system", "Always reply in French.", "--max-new-tokens", "60"]
        options += ["--temperature", "1"]  # as the default model has without it
        assert main(["chat", "--model", name, *options]) == 0
        outputs.append(capsys.readouterr().out)
    assert (
        outputs[0].splitlines()[:3] == outputs[1].splitlines()[:3]
        and "Attention mass" in outputs[1]
    )


def test_a_message_is_continued_by_a_server_that_can(remote):
    messages = [*FRENCH, {"role": "assistant", "content": "Oui, "}]
    request = Request(messages, (), Sampling(0, 1.0, 9), continue_final_message=True)
    (reply,) = remote.generate_batch([request])
    assert reply.text == default_model().generate_batch([request])[0].text


@pytest.mark.parametrize("command", ["drift --suite starter", "check starter"])
def test_an_interrupted_command_at_an_endpoint_says_how_to_resume(
    url,
    command,
    tmp_path,
    monkeypatch,
    capsys,
):
    def interrupt(*arguments, **options):
        raise KeyboardInterrupt

    monkeypatch.setattr("holdfast.drift.run", interrupt)
    monkeypatch.setattr("holdfast.cli.measure.check.check", interrupt)
    out = str(tmp_path / "run")
    assert main([*command.split(), "--model", f"{url}/v1", "--out", out]) == 130
    assert out in capsys.readouterr().err
