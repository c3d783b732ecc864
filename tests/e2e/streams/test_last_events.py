"""The last event of a run is sent once its answer can be read, and not before."""

import json
import re

import pytest

from local.run_all.stack import LocalStack
from samples.questions import DEMO_QUESTIONS, FIRST_QUESTION
from tests.e2e.streams.wire import call, events_path, frames_of, pieces, start

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(300)]


def test_at_the_moment_of_complete_the_answer_can_be_read(stack: LocalStack) -> None:
    for question in (FIRST_QUESTION, *DEMO_QUESTIONS):
        run_id = start(stack, question.text)
        received = b""
        for piece in pieces(stack, events_path(run_id)):
            received += piece
            if b"event: complete\n" in received and received.endswith(b"\n\n"):
                status, run = call(stack, "GET", f"/api/runs/{run_id}")
                break
        complete_event = json.loads(frames_of(received)[-1].split(b"\ndata: ")[1])
        assert (status, run["status"]) == (200, "completed")
        # The run shows figures by signed URLs, which open without authentication.
        texts = [re.sub(r"(?<=\]\()[^)]+", "figure", one["answer"]["text"]) for one in (run, complete_event)]
        assert texts[0] == texts[1]
