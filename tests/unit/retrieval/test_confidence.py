"""The semantic ranker's scale beside the fused one."""

import pytest

from shared.retrieval.fusion import reranked_share


@pytest.mark.parametrize(("score", "share"), [(4.0, 1.0), (2.0, 0.5), (0.0, 0.0), (4.2, 1.0), (-0.1, 0.0)])
def test_the_rankers_scale_is_a_quarter_of_itself(score: float, share: float) -> None:
    assert reranked_share(score) == share
