"""What a model sees of a tool's result."""

import json

import pytest

from shared.tools.tool_calls import observation

BLOCKS = [{"block_id": f"b{number}", "content": "word " * 60} for number in range(20)]


def test_a_short_result_is_shown_whole() -> None:
    assert json.loads(observation({"success": True, "count": 1}, 500)) == {"success": True, "count": 1}


@pytest.mark.parametrize("most", [200, 500, 1000, 5000])
@pytest.mark.parametrize(
    "result",
    [
        {"success": True, "results": BLOCKS, "result_count": 20},
        {"success": True, "document": {"summary_standard": 'a "quoted" line\n' * 2000}},
        {"success": True, "results": [{"content": "\\" * 9000}] * 3, "hints": ["x" * 3000] * 3},
        {"success": True, **{f"field_{number}": "v" * 300 for number in range(100)}},
    ],
)
def test_a_long_result_keeps_to_the_limit_and_stays_json(result: dict[str, object], most: int) -> None:
    shown = observation(result, most)
    assert len(shown) <= most
    assert json.loads(shown)["success"] is True


def test_the_last_items_of_a_list_are_left_out_first_and_it_says_so() -> None:
    shown = json.loads(observation({"success": True, "results": BLOCKS, "result_count": 20}, 2000))
    kept = len(shown["results"])
    assert shown["results"] == BLOCKS[:kept]
    assert 1 < kept < 20
    assert shown["left_out"] == {"results": 20 - kept}
    assert shown["result_count"] == 20


def test_a_long_text_alone_is_cut_visibly() -> None:
    shown = json.loads(observation({"success": True, "document": {"summary": "s" * 9000}}, 2000))
    assert shown["document"]["summary"].endswith("…")


def test_half_a_character_does_not_stop_the_conversation() -> None:
    assert observation({"success": True, "text": "\ud83d"}, 500).encode()
