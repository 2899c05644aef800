"""Inference mode, for files whose tests compute no gradients."""

import pytest
import torch


@pytest.fixture
def inference():
    with torch.inference_mode():
        yield
