"""Tests for the printed answers of `make run`."""

import pytest

from local.run_all.api_client import StreamEvent
from local.run_all.demo import StreamPrinter


def test_pages_in_a_printed_answer_have_english_labels(capsys: pytest.CaptureFixture[str]) -> None:
    printer = StreamPrinter()
    for number, text in enumerate(("It runs at 15 bar.", " (Source: manual.pdf, S. 4)[1]"), start=1):
        printer(StreamEvent(number, "token", {"text": text}, ""))
    printer.finish()
    assert capsys.readouterr().out == "It runs at 15 bar. (Source: manual.pdf, p. 4)[1]\n"
