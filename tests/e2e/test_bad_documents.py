"""Every kind of bad input through the running stack: its ingestion ends, and the reason is shown."""

import random
from pathlib import Path

import pytest
from azure.storage.blob import BlobServiceClient, ContentSettings

from benchmarks.ingestion.line_process import start_parser
from local.run_all.stack import LocalStack
from samples.acl import ANNA
from shared.documents.state import DocumentState
from shared.ingestion.models import ParsedFile
from shared.ingestion.parser_worker import ParseJob, WorkerReply
from shared.ingestion.parsers.text import MAX_TEXT_BYTES
from shared.platform.names import DOCUMENTS
from shared.wiring import Services
from tests.e2e.bad_files import BAD_FILES
from tests.e2e.stack_client import wait_until_ended
from tests.e2e.stack_services import blocks_of, drop_file, until_current

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(300), pytest.mark.attack("bombs")]

MOST_MEMORY_MB = 384
TEXT_MB = 500


def messages_of(state: DocumentState) -> str:
    return " ".join((state.reason or "", *state.warnings)).strip()


async def test_every_bad_file_ends_and_says_why(services: Services) -> None:
    contents = {file.name: file.make() for file in BAD_FILES}
    for name, content in contents.items():
        await drop_file(services, f"bad/{name}", content)
    for file in BAD_FILES:
        state = await until_current(services, f"bad/{file.name}", contents[file.name])
        assert (file.name, state.status) == (file.name, file.ends_as), messages_of(state)
        assert file.says in messages_of(state) if file.says else messages_of(state) == "", (
            file.name,
            messages_of(state),
        )
        assert bool(state.hint) == (file.ends_as == "failed"), file.name
        assert bool(await blocks_of(services, f"bad/{file.name}")) == (file.ends_as == "ready"), file.name


async def test_of_five_thousand_pages_the_right_one_is_named(services: Services) -> None:
    (block,) = await blocks_of(services, "bad/thousands.pdf")
    assert (block["content"], block["page_number"]) == ("Here it is.", 1500)


async def test_a_sidecar_that_is_no_json_closes_the_document(services: Services) -> None:
    name, content = "bad/closed.md", b"For whom?"
    await services.blobs.write(DOCUMENTS, f"{name}.acl.json", b"anna, ben")
    await drop_file(services, name, content, acl="*")
    state = await until_current(services, name, content)
    assert "The sidecar is not valid JSON." in messages_of(state)
    assert [row["access_control_list"] for row in await blocks_of(services, name)] == [[]]


async def test_what_metadata_say_of_the_type_is_not_believed(stack: LocalStack, services: Services) -> None:
    name, content = "bad/lies.md", b"# Honest\n\nThis is Markdown.\n"
    with BlobServiceClient.from_connection_string(stack.storage_connection_string) as service:
        service.get_blob_client(DOCUMENTS, name).upload_blob(
            content,
            content_settings=ContentSettings(content_type="application/pdf", content_encoding="gzip"),
            metadata={"acl": ANNA.user_id, "type": "image/png", "filename": "lies.exe"},
        )
    state = await until_current(services, name, content)
    assert state.status == "ready", messages_of(state)
    assert wait_until_ended(stack, "lies.md")["status"] == "ready"


def write_text(path: Path, size_bytes: int) -> None:
    """Write distinct sentences with blank lines between paragraphs."""
    chance = random.Random(5)
    written_bytes = 0
    with path.open("w", encoding="ascii") as file:
        while written_bytes < size_bytes:
            words = [f"w{chance.randrange(10_000)}" for _ in range(120)]
            part = ("The " + " ".join(words) + ".\n\n") * 200
            written_bytes += file.write(part[: size_bytes - written_bytes])


@pytest.mark.parametrize(
    "size_bytes",
    [
        pytest.param(TEXT_MB * 1_000_000, id="500 MB", marks=pytest.mark.nightly),
        pytest.param(MAX_TEXT_BYTES, id="the most"),
    ],
)
def test_memory_stays_bounded_however_long_a_text_is(tmp_path: Path, size_bytes: int) -> None:
    source = tmp_path / "long.txt"
    write_text(source, size_bytes)
    job = ParseJob(
        source=source, target=tmp_path / "out", filename=source.name, max_tokens=230, max_blocks=100_000
    )
    with start_parser(tmp_path, 384 << 20) as worker:
        answer, _ = worker.ask(job.model_dump_json())
        peak_mb = worker.peak_mb()
    reply = WorkerReply.model_validate_json(answer)
    assert peak_mb is None or peak_mb < MOST_MEMORY_MB
    if size_bytes > MAX_TEXT_BYTES:
        assert reply.reason == "The file contains 500 MB of text; the limit is 20 MB."
        assert reply.hint
    else:
        assert reply.ok, reply.reason
        parsed = ParsedFile.model_validate_json(job.target.read_bytes())
        assert len(parsed.chunks) > 10_000
