"""Recorded histories replay with the current generators, so running instances survive a deployment."""

from collections import Counter
from pathlib import Path

import pytest

from orchestrations.ingest_document import ingest_document
from orchestrations.reply_in_channel import reply_in_channel
from orchestrations.run_agent import answer_question, document_summary, read_document, run_sub_agent
from tests.replay.recording import recorded_orchestrator, replay_recording

HISTORIES = sorted((Path(__file__).parent.parent / "histories").glob("*.json"))
ORCHESTRATORS = {
    generator.__name__: generator
    for generator in (
        answer_question,
        document_summary,
        ingest_document,
        read_document,
        reply_in_channel,
        run_sub_agent,
    )
}


@pytest.mark.parametrize("path", HISTORIES, ids=lambda path: path.stem)
def test_running_instances_survive_a_deployment(path: Path) -> None:
    replay_recording(path, ORCHESTRATORS[recorded_orchestrator(path)])


def test_every_orchestration_has_histories() -> None:
    recorded = Counter(recorded_orchestrator(path) for path in HISTORIES)
    assert set(recorded) == set(ORCHESTRATORS)
    assert recorded["answer_question"] >= 4
