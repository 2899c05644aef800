"""IFEval's 25 instructions: our verdicts against those of lm-evaluation-harness's own checkers."""

import sys
import sysconfig
from pathlib import Path

import pytest

pytest.importorskip("lm_eval", reason="make integrations installs it")
langdetect = pytest.importorskip("langdetect", reason="make integrations installs it")

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))

import ifeval  # noqa: E402
import ifeval_replies  # noqa: E402

PUNKT = Path(sysconfig.get_paths()["purelib"], "llama_index/core/_static/nltk_cache")
REPLIES = 200
# Because of langdetect's draws, Punkt's trained model, and two quirks named in docs/suites.md.
MAY_DIFFER = {
    "language:response_language": 0.15,
    "length_constraints:number_sentences": 0.06,
    "length_constraints:nth_paragraph_first_word": 0.01,
    "detectable_format:number_bullet_lists": 0.01,
    "change_case:english_capital": 0.06,
    "change_case:english_lowercase": 0.06,
}


@pytest.fixture(scope="module")
def checkers():
    if not PUNKT.is_dir():
        pytest.skip(f"{PUNKT} is absent: nltk's Punkt, which `make integrations` installs")
    langdetect.DetectorFactory.seed = 0
    return ifeval.harness_checkers()


@pytest.fixture(scope="module")
def replies():
    return ifeval_replies.replies_of(REPLIES, 0, 80)


@pytest.mark.parametrize("id", ifeval.ARGUMENTS)
def test_verdicts_agree(id, checkers, replies):
    comparison = ifeval.compare(id, replies, checkers)
    assert comparison["compared"] == REPLIES
    assert 0 < comparison["followed"] < REPLIES
    least = REPLIES * (1 - MAY_DIFFER.get(id, 0.0))
    assert min(comparison["agreed"].values()) >= least, comparison["disagreements"]
