"""Endpoints that steer: what is requested, what their answers report, and what is refused."""

import json

import pytest
from chat_server import CHAT, KEY, as_steered, completion, refusal, steering
from holdfast_vllm.wire import offered_methods
from short_drift import ONE_QUESTION

import holdfast
from holdfast import drift, methods
from holdfast.cli import main
from holdfast.errors import ModelError, RecordsError, UsageError
from holdfast.generation.sampling import Sampling
from holdfast.methods import Ability
from holdfast.models.capabilities import ENDPOINT_ABILITIES
from holdfast.models.requests import Request

NOT_APPLIED = {"steering": "boost:factor=2", "applied": False, "why": "no span"}

CHATS = (CHAT, CHAT[1:])


@pytest.fixture
def serve(serve):
    """serve(answer, info, **options) -> (model, server)."""
    return lambda answer=as_steered, info=None, **args: serve(answer, info or steering(), **args)


def fields_of(server, *names):
    """The fields `names` of the last request."""
    return {name: server.bodies[-1].get(name) for name in names}


def test_a_server_is_asked_once_what_it_offers(serve):
    model, server = serve()
    model.check(methods.parse("boost:factor=2"))
    model.generate(CHAT, "boost:factor=2")
    assert server.asked_for_steering == 1 and len(server.bodies) == 1
    assert model.capabilities >= {Ability.LOG_ODDS, Ability.SECOND_STREAM, Ability.PIECES}
    assert model.fingerprint == "tiny Holdfast abc"


def test_a_request_carries_methods_emphasis_trace_and_its_whole_seed(serve):
    model, server = serve()
    fields = ("steering", "emphasis", "trace", "seed", "messages", "system_as")
    seed = 2**63 + 5
    asked = Request(CHAT, "boost:factor=2", seed=seed, trace=True, emphasis=["Hello"])
    (reply,) = model.generate_batch([asked])
    asked = ("boost:factor=2", [[1, 0, 5]], True, seed, list(CHAT), None)
    assert fields_of(server, *fields) == dict(zip(fields, asked, strict=True))
    assert reply.token_masses == (0.25, 0.75) and reply.trace is None
    model.generate_batch([Request(CHAT, system_as="first-user")])
    defaults = {"steering": "none", "emphasis": None, "trace": None, "system_as": "first-user"}
    assert fields_of(server, *defaults) == defaults
    assert server.bodies[-1]["messages"] == list(CHAT)


def test_messages_are_edited_locally_and_repeated_text_is_emphasised_too(serve):
    model, server = serve()
    model.generate(CHAT, "repetition:probability=1+boost:factor=2", emphasis=["Rhyme"])
    body = server.bodies[-1]
    assert body["messages"][1]["content"] == "Rhyme.\n\nHello."
    assert (body["steering"], body["emphasis"]) == ("boost:factor=2", [[0, 0, 5], [1, 0, 5]])


def test_without_a_system_prompt_or_emphasis_a_method_is_refused_as_locally(serve):
    model, server = serve()
    plain = CHAT[1:]
    with pytest.raises(UsageError, match=r"^boost:factor=2"):
        model.generate_batch([Request(plain, "boost:factor=2", trace=True)])
    model.generate_batch([Request(plain, "boost:factor=2", emphasis=["Hello"])])
    assert fields_of(server, "steering") == {"steering": "boost:factor=2"}


def test_attenuate_needs_no_system_prompt_and_is_not_traced_as_locally(serve):
    model, server = serve()
    model.generate_batch([Request(chat, "attenuate:factor=0.1", trace=True) for chat in CHATS])
    sent_fields = [(body["steering"], body.get("trace")) for body in server.bodies]
    assert sent_fields == [("attenuate:factor=0.1", None)] * 2


def test_a_streamed_reply_reports_its_pieces_and_masses(serve):
    model, server = serve()
    pieces = []
    reply = model.stream(Request(CHAT, "boost:factor=2", trace=True), pieces.append)
    assert pieces == ["Oui, ", "bien."] and reply.text == "Oui, bien."
    assert reply.token_masses == (0.25, 0.75) and reply.stop_reason == "stop"
    assert fields_of(server, "stream", "steering") == {"stream": True, "steering": "boost:factor=2"}


def vllm(**fields):
    """The steering that vLLM with our plug-in reports."""
    info = {"spelling": "vllm", "methods": offered_methods(), "fingerprint": "abc", **fields}
    return lambda number: (200, {}, json.dumps(info))


def answered_by_vllm(body, number):
    """A reply, or its mass, which is requested separately."""
    masses = {"id": "chatcmpl-1", "mass": [0.5, 0.25], "layers": [0.375]}
    return (200, {}, json.dumps(masses)) if body is None else completion("Oui, bien.")


def test_vllm_gets_requests_in_its_own_format(serve):
    model, server = serve(answered_by_vllm, vllm())
    assert model.fingerprint == "tiny Holdfast vllm abc"
    request = Request(CHAT, "boost:factor=2", seed=2**63 + 5, trace=True, emphasis=["Hello"])
    (reply,) = model.generate_batch([request])
    assert reply.token_masses == (0.5, 0.25)
    assert server.paths[-1].endswith("/steering/mass/chatcmpl-1")
    body = server.bodies[0]
    arguments = {"holdfast": "boost:factor=2", "holdfast_text": "Hello", "holdfast_trace": 1}
    assert body["vllm_xargs"] == {**arguments, "holdfast_seed": str(2**63 + 5)}
    assert body["seed"] == 5 and body["messages"] == list(CHAT)
    # a model's generation_config.json may set these, which a draw by seed does not support
    assert (body["top_k"], body["min_p"], body["repetition_penalty"]) == (0, 0.0, 1.0)
    assert model.stream(request, lambda piece: None).masses == (0.5, 0.25)
    model.generate_batch([Request(CHAT, "boost:factor=2", system_as="first-user")])
    assert server.bodies[-1]["vllm_xargs"]["holdfast_text"] == "Rhyme."
    assert [message["role"] for message in server.bodies[-1]["messages"]] == ["user"]
    with pytest.raises(UsageError, match=r"vLLM .* one text"):
        model.generate(CHAT, "boost:factor=2", emphasis=["Hello", "Rhyme"])


def test_a_mass_that_vllm_does_not_report_is_an_error(serve):
    def answer(body, number):
        return (200, {}, "{}") if body is None else completion()

    model, _ = serve(answer, vllm())
    with pytest.raises(ModelError, match=r"mass .*chatcmpl-1"):
        model.generate_batch([Request(CHAT, "boost:factor=2", trace=True)])


@pytest.mark.parametrize(
    ("info", "why"),
    [
        ({"methods": [], "refusal": "it has sinks"}, r"it cannot steer now \(it has sinks\)"),
        ({"spelling": "smoke"}, "this version does not know its wire format 'smoke'"),
    ],
)
def test_a_steering_server_that_cannot_be_used_is_refused_with_the_reason(serve, info, why):
    model, _ = serve(lambda body, number: completion(), vllm(**info))
    assert model.generate(CHAT).text == "Arr."
    with pytest.raises(ModelError, match=why):
        model.generate(CHAT, "boost:factor=2")


def test_needs_of_methods_that_are_no_list_of_names_are_ignored(serve):
    offered = [{"name": "a", "needs": [["log_odds"]]}, {"name": "b", "needs": 3}]
    odd = json.dumps({"methods": offered})
    model, _ = serve(lambda body, number: completion(), lambda number: (200, {}, odd))
    assert model.capabilities == ENDPOINT_ABILITIES


NO_STEERING = [(404, "Not Found"), (405, ""), (200, "<html>"), (200, "[" * 100_000)]


@pytest.mark.parametrize(("status", "text"), [*NO_STEERING, (200, '{"methods": "all"}')])
def test_a_server_without_steering_is_an_ordinary_endpoint(serve, status, text):
    model, server = serve(lambda body, number: completion(), lambda number: (status, {}, text))
    assert model.fingerprint == f"{server.url} tiny"
    assert model.generate(CHAT, seed=2**31 + 1).text == "Arr."
    fields = "model messages temperature top_p max_tokens seed"
    assert set(server.bodies[0]) == set(fields.split())
    assert server.bodies[0]["seed"] == 1
    with pytest.raises(ModelError, match=r"needs attention.*supports only messages"):
        model.generate(CHAT, "boost:factor=2")


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        (refusal(401, f"bad {KEY}"), r"\(401: bad \*\*\*\)"),
        (refusal(503, "starting"), r"\(503: starting\)"),
    ],
)
def test_a_server_that_fails_to_describe_its_steering_is_reported(serve, answer, why):
    model, _ = serve(lambda body, number: completion(), lambda number: answer)
    with pytest.raises(ModelError, match=why):
        model.generate(CHAT, "boost:factor=2")


def test_a_server_that_was_busy_when_connecting_is_asked_again(serve):
    def answer(number):
        return refusal(503, "starting") if number == 1 else steering()(number)

    model, _ = serve(as_steered, answer)
    model.reach()
    assert model.generate(CHAT, "boost:factor=2").text == "Oui, bien."
    assert "Holdfast abc" in model.fingerprint


def test_a_method_that_the_server_does_not_know_is_refused_before_anything_is_sent(serve):
    offered = [method for method in methods.schema() if method["name"] == "boost"]
    model, server = serve(info=steering(offered=offered))
    with pytest.raises(ModelError, match=r"^spotlight .*\(boost\)"):
        model.generate(CHAT, "spotlight:target=0.3")
    with pytest.raises(ModelError, match=r"^guidance:scale=2"):
        model.generate(CHAT, "guidance:scale=2")
    assert server.bodies == []


@pytest.mark.parametrize(
    ("info", "method", "words"),
    [
        (NOT_APPLIED, "boost:factor=2", r"'boost:factor=2' and applied 'none' \(no span\)"),
        ({"steering": "boost:factor=4", "applied": True}, "none", "applied 'boost:factor=4'"),
        (None, "boost:factor=2", r"asked for 'boost:factor=2'.*says nothing of its steering"),
    ],
)
@pytest.mark.parametrize("way", ["whole", "streamed"])
def test_a_reply_steered_differently_from_the_request_is_an_error(serve, info, method, words, way):
    def answer(body, number):
        status, headers, text = completion()
        return status, headers, json.dumps({**json.loads(text), "holdfast": info})

    model, _ = serve(answer)
    with pytest.raises(ModelError, match=words):
        if way == "whole":
            model.generate(CHAT, method)
        else:
            model.stream(Request(CHAT, method), print)


def test_unexpected_steering_by_an_ordinary_endpoint_is_noticed(serve):
    """When the model was connected, another server, or none, was at the address."""
    model, _ = serve(as_steered, lambda number: refusal(404, "Not Found"))
    with pytest.raises(ModelError, match=r"boost:factor=9.*connect again"):
        model.generate(CHAT)


def test_a_method_that_the_server_refuses_stops_a_run_at_once(serve, tmp_path):
    error = {"message": "no head 99.0", "type": "invalid_request_error", "param": "steering"}
    model, _ = serve(lambda body, number: (400, {}, json.dumps({"error": error})))
    with pytest.raises(ModelError, match=r"400: no head 99\.0"):
        measure(model, tmp_path / "run", ["boost:factor=2,heads=99.0"])
    assert not (tmp_path / "run" / "records.jsonl").read_bytes()


def measure(model, folder, setting=("none",)):
    sampling = Sampling(max_new_tokens=9)
    settings = drift.Settings(rounds=2, conversations=2, sampling=sampling)
    return drift.run(model, ONE_QUESTION, folder, settings, setting)


def test_a_run_records_the_mass_that_the_server_reports(serve, tmp_path):
    model, server = serve()
    run = measure(model, tmp_path / "run", ("none", "boost:factor=2"))
    assert {record.method for record in run.records} == {"none", "boost:factor=2"}
    for record in run.records:
        masses = {turn.speaker: turn.mass for turn in record.turns}
        assert masses == {"user": None, "agent": 0.5}
        assert {probe.mass for probe in record.probes} == {0.5}
    bodies = [body for body in server.bodies if body["steering"] != "none"]
    assert bodies and all(body["messages"][0]["role"] == "system" for body in bodies)
    assert {body["trace"] for body in bodies} == {True}


def test_a_server_with_another_default_gives_the_same_run(serve, tmp_path):
    """The method is named in every request, so the default never applies."""
    model, server = serve()
    measure(model, tmp_path / "run")
    later, other_server = serve(info=steering(default="boost:factor=9"))
    run = measure(later, tmp_path / "other")
    assert all(body["steering"] == "none" for body in server.bodies + other_server.bodies)
    assert len(run.records) == 2


def test_another_model_at_the_same_address_is_another_run(serve, tmp_path):
    fingerprints = iter(("abc", "abc", "def"))
    _, server = serve(info=lambda number: steering(next(fingerprints))(number))
    reconnected = holdfast.connect(server.url, "tiny")
    measure(reconnected, tmp_path / "run")
    other_model = holdfast.connect(server.url, "tiny")
    with pytest.raises(RecordsError, match=r"Holdfast abc.*Holdfast def"):
        measure(other_model, tmp_path / "run")


def test_the_command_line_steers_a_server(serve, tmp_path, capsys):
    _, server = serve(info=steering(default="boost:factor=9"))
    command = ["drift", "--model", server.url, "--conversations", "1", "--rounds", "2"]
    command += ["--method", "boost:factor=4", "--out", str(tmp_path / "run")]
    assert main(command) == 0
    captured = capsys.readouterr()
    assert "boost:factor=4" in captured.out and "--method boost:factor=9" in captured.err
    command = ["generate", "--model", server.url, "--user", "Hi.", "--system", "Rhyme."]
    assert main(command) == 0
    assert capsys.readouterr().out == "Oui, bien.\n"
    assert main([*command, "--method", "spotlight:target=0.2"]) == 0
    assert fields_of(server, "steering") == {"steering": "spotlight:target=0.2"}
