"""Packed layers compute what plain ones compute, and become plain when their weight is needed."""

import copy
import pickle

import pytest
import torch
from torch import nn

import holdfast
from holdfast.models.packed_layers import PackedLinear, is_as_packed, pack_layers
from holdfast.models.placement import multiplies_bfloat16

pytestmark = pytest.mark.skipif(
    not multiplies_bfloat16(), reason="this processor has no instructions for bfloat16 products"
)


class Tied(nn.Module):
    """An output layer that shares its weight with the embeddings, and a layer with a bias."""

    def __init__(self):
        super().__init__()
        self.embed, self.middle = nn.Embedding(500, 64), nn.Linear(64, 64)
        self.head = nn.Linear(64, 500, bias=False)
        self.head.weight = self.embed.weight

    def forward(self, tokens):
        return self.head(self.middle(self.embed(tokens)))


@pytest.fixture
def plain() -> Tied:
    torch.manual_seed(0)
    return Tied().to(torch.bfloat16).eval()


@pytest.fixture
def packed(plain) -> Tied:
    model = copy.deepcopy(plain)
    pack_layers(model)
    assert type(model.middle) is type(model.head) is PackedLinear
    return model


def rows(count: int) -> torch.Tensor:
    return torch.arange(count)[:, None]


@pytest.mark.parametrize("count", [1, 3, 16, 200])
@torch.inference_mode()
def test_products_are_those_of_float64_to_the_last_bits_of_bfloat16(plain, packed, count):
    exact = copy.deepcopy(plain).double()(rows(count))
    error = (packed(rows(count)) - exact).abs().max()
    assert error <= 1.5 * (plain(rows(count)) - exact).abs().max()
    assert type(packed.middle) is PackedLinear


def test_the_saved_state_is_that_of_the_plain_model(plain, packed):
    expected = plain.state_dict()
    state = packed.state_dict()
    assert state.keys() == expected.keys()
    assert all(torch.equal(state[name], expected[name]) for name in state)
    assert type(packed.middle) is type(packed.head) is PackedLinear


def edited(model):
    model.middle.weight.data += 1


def replaced(model):
    model.middle.weight = nn.Parameter(model.middle.weight + 1)


def embedding_edited(model):
    with torch.no_grad():
        model.embed.weight[:] += 1


def embedding_edited_unseen(model):
    model.embed.weight.data.mul_(2)


def state_loaded(model):
    state = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    state["middle.weight"] += 1
    model.load_state_dict(state)


@pytest.mark.parametrize(
    "change", [edited, replaced, embedding_edited, embedding_edited_unseen, state_loaded]
)
def test_an_edited_weight_counts(plain, packed, change):
    change(plain), change(packed)
    with torch.inference_mode():
        assert torch.equal(packed(rows(3)), plain(rows(3)))
    assert not (is_as_packed(packed.head) and is_as_packed(packed.middle))


def test_reading_a_weight_is_no_edit(plain, packed):
    assert torch.equal(packed.middle.weight, plain.middle.weight)
    assert type(packed.middle) is nn.Linear and is_as_packed(packed.middle)
    assert packed.head.weight is packed.embed.weight


def test_copies_and_moved_models_are_plain(plain, packed):
    for copied in (copy.deepcopy(packed), pickle.loads(pickle.dumps(packed)), packed.float()):
        assert type(copied.middle) is nn.Linear and copied.head.weight is copied.embed.weight
        assert torch.equal(copied.middle.weight.to(torch.bfloat16), plain.middle.weight)


def test_gradients_are_those_of_the_plain_model(plain, packed):
    for model in (plain, packed):
        model(rows(3)).float().sum().backward()
    assert torch.equal(packed.middle.weight.grad, plain.middle.weight.grad)
    assert torch.equal(packed.embed.weight.grad, plain.embed.weight.grad)


def test_only_models_in_bfloat16_are_loaded_with_packed_layers():
    kinds = {
        dtype: {type(part) for part in holdfast.load(dtype=dtype).hf_model.modules()}
        for dtype in ("bfloat16", "float32")
    }
    assert PackedLinear in kinds["bfloat16"] and nn.Linear not in kinds["bfloat16"]
    assert PackedLinear not in kinds["float32"]


def test_a_packed_model_is_saved_as_any_other(tmp_path):
    model = holdfast.load(dtype="bfloat16")
    model.hf_model.save_pretrained(tmp_path)
    model.tokenizer.save_pretrained(tmp_path)
    reloaded = holdfast.load(tmp_path, dtype="bfloat16")
    expected = model.hf_model.state_dict()
    state = reloaded.hf_model.state_dict()
    assert all(torch.equal(state[name], expected[name]) for name in expected)
