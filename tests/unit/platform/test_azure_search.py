"""Tests for splitting index rows into batches."""

from shared.platform.azure_search import MAX_BATCH_BYTES, MAX_BATCH_ROWS, batches


def test_no_batch_exceeds_the_number_of_rows() -> None:
    rows = [{"id": str(n)} for n in range(2 * MAX_BATCH_ROWS + 1)]
    sizes = [len(batch) for batch in batches(rows)]
    assert sizes == [MAX_BATCH_ROWS, MAX_BATCH_ROWS, 1]


def test_no_batch_exceeds_the_bytes_except_for_a_row_too_large_by_itself() -> None:
    large, small = {"text": "x" * (MAX_BATCH_BYTES + 1)}, {"text": "x" * (MAX_BATCH_BYTES // 2 - 100)}
    assert list(batches([small, small, small, large, small])) == [[small, small], [small], [large], [small]]


def test_bytes_are_counted_as_they_are_sent() -> None:
    umlauts = {"text": "ä" * (MAX_BATCH_BYTES // 8)}  # six bytes each when escaped
    assert len(list(batches([umlauts, umlauts]))) == 2
