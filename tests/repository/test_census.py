"""The table of steerable models stays true: its coverage, and a sample of it examined again."""

import json
import sys
import time
import warnings

import pytest
import transformers
from paths import ROOT
from transformers.models.auto.modeling_auto import MODEL_FOR_CAUSAL_LM_MAPPING_NAMES

BENCHMARKS = ROOT / "benchmarks"
sys.path.insert(0, str(BENCHMARKS))
TABLE = json.loads((BENCHMARKS / "results" / "census.json").read_text())
# Includes grouped and single key-value heads, sliding windows, soft caps, sinks, narrow values,
# sparse attention, linear hybrids, and attention outside transformers' interface.
SAMPLE = (
    "llama qwen3 gpt2 gpt_neox gpt_bigcode phi3 gemma2 gemma3_text gpt_oss granite_swa "
    "deepseek_v3 deepseek_v32 qwen3_next jamba llama4_text gptj codegen bart bloom mamba "
    "deepseek_v4 bigbird_pegasus glm_moe_dsa granitemoehybrid cpmant recurrent_gemma xlstm"
).split()


def outcomes_of(row):
    """The results for a type in a block and in the engine."""
    return row["outcome"], row.get("engine"), row.get("engine_alone")


def test_every_class_has_a_row_and_nine_in_ten_that_reach_the_interface_are_exact():
    measured_with = TABLE["measured_on"]["versions"]["transformers"]
    if measured_with != transformers.__version__:
        pytest.skip(f"the table is of transformers {measured_with}; run benchmarks/census.py again")
    assert {row["type"] for row in TABLE["rows"]} == set(MODEL_FOR_CAUSAL_LM_MAPPING_NAMES)
    assert not [row["type"] for row in TABLE["rows"] if row["outcome"] == "wrong"]
    assert not [row["type"] for row in TABLE["rows"] if row.get("engine") == "wrong"]
    without = [row for row in TABLE["rows"] if row["outcome"] in ("refused", "not built")]
    assert all(row["because"] for row in without)
    reaching = [row for row in TABLE["rows"] if row.get("reaches")]
    exact = [row for row in reaching if row["outcome"] == "exact"]
    assert len(exact) >= 0.9 * len(reaching) and len(reaching) > 100
    assert next(row for row in TABLE["rows"] if row["type"] == "gptj")["outcome"] == "exact"


@pytest.mark.slow
def test_a_sample_of_the_table_is_reproduced(capsys):
    from census import examine

    expected = {row["type"]: outcomes_of(row) for row in TABLE["rows"]}
    verbosity = transformers.utils.logging.get_verbosity()
    transformers.utils.logging.set_verbosity(50)
    started = time.perf_counter()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            rows = {kind: outcomes_of(examine(kind)) for kind in SAMPLE if kind in expected}
    finally:
        transformers.utils.logging.set_verbosity(verbosity)
    seconds = time.perf_counter() - started
    with capsys.disabled():
        print(f"\n{len(rows)} of {len(expected)} model types examined in {seconds:.0f} s", end="")
    assert rows == {kind: expected[kind] for kind in rows}
