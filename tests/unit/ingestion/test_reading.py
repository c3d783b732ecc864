"""Which files wait for which: a short text for no scan."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from shared.ingestion import reading
from shared.ingestion.parse_file import ParseJob
from shared.ingestion.parser_process import NoWorkerFreeError, ParserPool, text_pool
from shared.ingestion.reading import read_file
from tests.fakes.services import fake_services


@pytest.fixture(autouse=True)
def workers_end() -> Iterator[None]:
    yield
    text_pool().close()


def job(folder: Path, filename: str, content: bytes) -> ParseJob:
    source = folder / "source"
    source.write_bytes(content)
    return ParseJob(source=source, target=folder / "target", filename=filename, max_tokens=100)


async def test_a_short_text_waits_for_no_other_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Busy(ParserPool):
        async def run(self, *_: object) -> None:
            raise NoWorkerFreeError("Other files are being read.")

    busy = Busy()
    monkeypatch.setattr(reading, "parser_pool", lambda: busy)
    services = fake_services()
    short = job(tmp_path, "note.md", b"# Pumps\n\nA sentence.")
    assert (await read_file(short, services, last_attempt=False)).first_heading == "Pumps"
    for filename, content in (("long.md", b"A sentence. " * 9000), ("scan.pdf", b"%PDF-1.7")):
        with pytest.raises(NoWorkerFreeError):
            await read_file(job(tmp_path, filename, content), services, last_attempt=False)
