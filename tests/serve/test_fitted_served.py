"""Methods that learn from a model, on a real server: requests name only a file's content."""

import pytest
from fitted_files import METHODS, write_for
from served import served
from tiny import chat, model

import holdfast
from holdfast import client, methods
from holdfast.cli.main_parser import read_command
from holdfast.errors import HoldfastError
from holdfast.generation.sampling import Sampling
from holdfast.models.requests import Request
from holdfast.serve.limits import RequestLimits

TALK = chat("always talk about cheese", "the old town")
GREEDY = Sampling(0.0, 1.0, 6)


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("served")
    return {name: write_for(model(), folder / f"{name}.safetensors", name) for name in METHODS}


@pytest.fixture(scope="module")
def url():
    with served(model(), RequestLimits(200, 60.0)) as server:
        yield server.url


def test_a_server_edits_as_the_local_model_does(url, files, monkeypatch):
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    remote = holdfast.connect(f"{url}/v1", timeout=60)
    for name, file in files.items():
        method = methods.all_methods.BY_NAME[name](file)
        request = Request(TALK, [method], GREEDY)
        expected = model().generate_batch([request])[0].text
        assert remote.generate_batch([request])[0].text == expected, name
    bare = Request(chat("", "the old town"), [methods.Vector(files["vector"], 3.0)], GREEDY)
    assert remote.generate_batch([bare])[0].text == model().generate_batch([bare])[0].text


def test_requests_carry_a_digest_and_no_path(url, files):
    fields = client.steer(f"seka:file={files['seka'].path},gain=2")
    assert fields == {"steering": f"seka:file={files['seka'].digest},gain=2"}
    import openai

    asking = openai.OpenAI(base_url=f"{url}/v1", api_key="none", max_retries=0)

    def ask(steering):
        fields = {"messages": list(TALK), "max_tokens": 2, "extra_body": {"steering": steering}}
        return asking.chat.completions.create(model="default", **fields)

    assert ask(fields["steering"]).choices
    for steering, message in (
        (f"seka:file={files['seka'].path}", "a spec string from elsewhere may not do"),
        ("seka:file=0123456789abcdef", "a server knows only the files that"),
        (f"seka:file={files['prism'].digest}", "was fitted for prism, not for seka"),
    ):
        with pytest.raises(openai.BadRequestError, match=message):
            ask(steering)


def test_serve_reads_the_files_of_its_operator(files, monkeypatch, capsys):
    from holdfast.cli.serve import serve

    monkeypatch.setattr("holdfast.methods.fitted._FILES_READ", {})
    monkeypatch.setattr(serve, "load_in_process", lambda arguments, **options: model())
    path = str(files["vector"].path)
    service = serve._service(read_command(["serve", "--fitted", path])[1])
    assert list(service.fitted) == [f"vector:file={files['vector'].digest}"]
    assert f"vector:file={files['vector'].digest}" in capsys.readouterr().out
    spelled = f"vector:file={files['vector'].digest},factor=2"
    assert methods.spec_of(methods.parse(spelled, files=False)) == spelled
    with pytest.raises(HoldfastError) as excinfo:
        serve._service(read_command(["serve", "--fitted", __file__])[1])
    assert (excinfo.value.option, excinfo.value.value) == ("file", __file__)
