"""Names of models that are no files: endpoints, names of the hub, and misspelt names."""

import pytest

import holdfast
from holdfast.errors import ModelError, NoSuchModel
from holdfast.models.checkpoint import find_source
from holdfast.models.model_names import guess_endpoint


@pytest.mark.parametrize(
    ("name", "call"),
    [
        ("https://api.example.com/v1", "use holdfast.connect('https://api.example.com/v1')"),
        ("api.example.com/v1", "did you mean holdfast.connect('https://api.example.com/v1')?"),
        ("localhost:8000/v1", "did you mean holdfast.connect('http://localhost:8000/v1')?"),
        ("gpt-4o", "did you mean holdfast.connect('https://api.openai.com/v1', 'gpt-4o')?"),
    ],
)
def test_the_name_of_an_endpoint_leads_to_connect(name, call):
    with pytest.raises(NoSuchModel) as excinfo:
        holdfast.load(name)
    assert call in str(excinfo.value)


@pytest.mark.parametrize("name", ["gpt2", "Qwen/Qwen2.5-0.5B-Instruct", "vllm:gpt-4o", "o/v1x"])
def test_a_name_of_the_hub_is_no_endpoint(name):
    assert guess_endpoint(name) is None


@pytest.mark.parametrize(("name", "suggestion"), [("smolm2", "smollm2"), ("defualt", "default")])
def test_a_misspelt_name_suggests_the_nearest(name, suggestion):
    with pytest.raises(ModelError, match=f"no model '{name}'; did you mean '{suggestion}'"):
        find_source(name)
