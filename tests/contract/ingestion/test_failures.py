"""Bad files, failing services and instances that die: the remaining state, and the next attempt."""

from pathlib import Path

import pytest

from shared.documents.presentation import view_of_state
from shared.ingestion.acceptance import accept
from shared.ingestion.large_files import plan
from shared.ingestion.models import Closed, CloseRequest, Fenced, IngestFailure, IngestReply, IngestStep
from shared.ingestion.parser_process import parsers
from shared.ingestion.rights import note_event
from shared.ingestion.steps import close, remove
from shared.ingestion.steps import perform as perform_step
from shared.ingestion.task import IngestTask
from shared.platform.errors import DependencyError, ModelFixableError, RateLimitError
from shared.platform.names import DOCUMENTS
from shared.wiring import Services
from tests.contract.ingestion import driving
from tests.contract.ingestion.driving import (
    STEPS,
    Act,
    after,
    blocks_of,
    documents_of,
    ingest,
    perform,
    state_of,
    unique,
    version_files,
)
from tests.contract.ingestion.models import CountingChatModel, CountingEmbedder
from tests.unit.ingestion.pdf_files import PdfMaker

pytestmark = pytest.mark.contract


async def drop(services: Services, name: str, content: bytes = b"The pump moves water.") -> None:
    await driving.drop(services, name, content, {"owner_id": "u1"})


def encrypted_pdf(folder: Path) -> bytes:
    maker = PdfMaker().page().paragraph("Secret.")
    maker.pdf.set_encryption(owner_password="owner", user_password="user")
    return maker.write(folder / "encrypted.pdf").read_bytes()


async def test_each_bad_file_fails_with_reason_and_hint_and_blocks_no_other(
    services: Services, tmp_path: Path
) -> None:
    cases = {
        unique(".pdf"): (b"", "empty", "empty"),
        unique(".pdf "[:4]): (b"%PDF-1.7\n1 0 obj", "damaged", "damaged"),
        unique(".xyz"): (b"words", "cannot be read", "unsupported"),
        unique("-encrypted.pdf"): (encrypted_pdf(tmp_path), "encrypted", "encrypted"),
        unique(".md"): (b"%PDF-1.7 a pdf", "content is a PDF", "wrong_suffix"),
        unique('-it\'s "ünïcode" #1?.pdf'): (b"PK\x03\x04", "ZIP", "wrong_suffix"),
    }
    for name, (content, reason, failure) in cases.items():
        await drop(services, name, content)
        assert (await ingest(services, name)).outcome == "failed"
        state = await state_of(services, name)
        assert (state.status, state.is_open) == ("failed", False)
        assert reason in (state.reason or "")
        assert view_of_state(state).failure == failure
        assert state.hint
        assert await documents_of(services, name) == []
    good = unique(".txt")
    await drop(services, good)
    assert (await ingest(services, good)).outcome == "ready"


async def test_bytes_that_failed_three_times_go_to_no_parser_until_they_change(services: Services) -> None:
    name = unique(".txt")
    long = (
        b"A sentence that takes its time. " * 60_000
    )  # for a short text, a running worker answers before the timer fires
    patient = services.settings
    hasty = patient.changed(parse_timeout_s=1e-6, ocr_timeout_s=0)
    object.__setattr__(services, "settings", hasty)
    for occasion in ("one", "two", "three"):
        await drop(services, name, long)  # each upload is a new version with the same bytes
        assert "took longer" in ((await ingest(services, name, occasion)).reason or "")
    object.__setattr__(services, "settings", patient)
    started = parsers(2048).files.started
    await drop(services, name, long)
    assert "took longer" in ((await ingest(services, name, "four")).reason or "")
    state = await state_of(services, name)
    assert "same file failed three times" in (state.hint or "")
    assert state.failure == "too_large"
    assert parsers(2048).files.started == started
    assert (await ingest(services, name, "five")).outcome == "current"
    await drop(services, name, b"It was changed.")
    assert (await ingest(services, name, "six")).outcome == "ready"
    state = await state_of(services, name)
    assert (state.failed_tries, state.failure) == (0, None)


async def test_too_large_a_file_is_refused_unread(services: Services) -> None:
    name = unique(".txt")
    await drop(services, name)
    small = services.settings.changed(max_document_bytes=5)
    object.__setattr__(services, "settings", small)
    assert "the limit is 5" in ((await ingest(services, name)).reason or "")


async def test_an_embedding_service_that_is_busy_is_asked_again(
    services: Services, embedder: CountingEmbedder
) -> None:
    name = unique(".txt")
    await drop(services, name)
    embedder.failures = [RateLimitError("Too many requests.", retry_after_s=3), DependencyError("Down.")]
    assert (await ingest(services, name)).outcome == "ready"
    assert len(embedder.texts) == 1


async def test_an_answer_that_does_not_validate_is_repaired_once(
    services: Services, chat_model: CountingChatModel
) -> None:
    name = unique(".txt")
    await drop(services, name)
    chat_model.failures = [ModelFixableError("title is missing")]
    await ingest(services, name)
    assert len(chat_model.prompts) == 2
    assert "title is missing" in chat_model.prompts[1].user
    assert (await documents_of(services, name))[0]["title"] == "Pump manual"


@pytest.mark.parametrize(
    "failures",
    [[ModelFixableError("bad"), ModelFixableError("bad again")], [DependencyError("Down.")] * 12],
    ids=["never valid", "out of reach"],
)
async def test_without_the_model_the_rule_describes_the_document(
    services: Services, chat_model: CountingChatModel, failures: list[DependencyError]
) -> None:
    name = unique(".txt")
    await drop(services, name)
    chat_model.failures = list(failures)
    assert (await ingest(services, name)).outcome == "ready"
    (document,) = await documents_of(services, name)
    assert document["title"] == name.rpartition("/")[2].removesuffix(".txt")
    assert document["summary_brief"] == "The pump moves water."
    assert "come from simple rules" in " ".join((await state_of(services, name)).warnings)


@pytest.mark.parametrize("done", STEPS)
async def test_a_step_that_runs_twice_changes_nothing(services: Services, done: Act) -> None:
    name = unique(".txt")
    await drop(services, name)
    step = IngestStep(blob_name=name, fence="one", end=10)
    for current in STEPS:
        for _ in range(2 if current == done else 1):
            reply = await perform(current, step, services)
            assert not isinstance(reply, IngestFailure), current
            step = after(step, reply)
    assert len(await blocks_of(services, name)) == 1
    assert (await state_of(services, name)).version == 1


async def test_a_step_that_outlived_its_execution_changes_nothing(services: Services) -> None:
    name = unique(".txt")
    await drop(services, name)
    await ingest(services, name, "first")
    await drop(services, name, b"A new version.")
    dead = IngestStep(blob_name=name, fence="dead")
    await IngestTask(dead, services).acquire()
    assert (await ingest(services, name, "successor")).outcome == "ready"
    before = await state_of(services, name)
    assert isinstance(await perform(plan, dead, services), Fenced)
    assert isinstance(await perform_close(dead, services), Fenced), (
        "its end is not the end of the execution at work"
    )
    assert await state_of(services, name) == before
    assert [block["content"] for block in await blocks_of(services, name)] == ["A new version."]


async def perform_close(step: IngestStep, services: Services) -> IngestReply:
    request = CloseRequest(step=step, status="failed", reason="Late.")
    return await perform_step(close, IngestTask(step, services), request)


async def test_an_ingestion_whose_look_failed_is_closed_and_one_that_looked_follows_events(
    services: Services,
) -> None:
    name = unique(".txt")
    await drop(services, name)
    step = IngestStep(blob_name=name, fence="one")
    task = IngestTask(step, services)
    await task.acquire()
    assert await note_event(f"{name}.acl.json", services) == "noted"
    assert await perform_close(task.step, services) == Closed(again=True)
    assert await perform_close(step, services) == Closed(again=False)


async def test_what_a_dead_instance_wrote_goes_when_the_next_version_is_found(services: Services) -> None:
    name = unique(".txt")
    await drop(services, name)
    await ingest(services, name)
    await drop(services, name, b"Never to be found.")
    step = IngestStep(blob_name=name, fence="dead", end=10)
    for current in STEPS[:-1]:
        step = after(step, await perform(current, step, services))
    await drop(services, name, b"A new version.")
    assert (await ingest(services, name, "successor")).outcome == "ready"
    assert [block["content"] for block in await blocks_of(services, name)] == ["A new version."]
    assert (await state_of(services, name)).version == 3, "the dead one's number is not used again"
    assert (await version_files(services, name)).count("manifest.json") == 1


async def test_a_note_is_followed_even_if_the_last_step_runs_twice(services: Services) -> None:
    name = unique(".txt")
    await drop(services, name)
    step = IngestStep(blob_name=name, fence="one")
    step = after(step, await perform(accept, step, services))
    assert await note_event(f"{name}.acl.json", services) == "noted"
    request = CloseRequest(step=step, status="failed")
    for _ in range(2):
        assert await close(IngestTask(step, services), request) == Closed(again=True)


async def test_a_document_dropped_again_while_it_was_removed_is_not_forgotten(services: Services) -> None:
    name = unique(".txt")
    await drop(services, name)
    await ingest(services, name)
    await services.blobs.delete(DOCUMENTS, name)
    step = IngestStep(blob_name=name, fence="remover")
    step = after(step, await perform(accept, step, services))
    await drop(services, name, b"Back again.")
    assert await note_event(name, services) == "noted"
    for _ in range(2):
        assert await perform(remove, step, services) == Closed(again=True)
    assert (await ingest(services, name, "remover")).outcome == "ready"
    assert [block["content"] for block in await blocks_of(services, name)] == ["Back again."]
