"""Sequences of uploads, replacements, deletions and restorations of documents, determined by a seed.

While a document is replaced, the index must contain its complete old or new version at any time.
"""

import asyncio
import io
import random
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import PurePosixPath

from fpdf import FPDF
from PIL import Image

from shared.documents.ids import document_id
from shared.platform.names import DOCUMENTS
from shared.platform.odata import quote
from shared.platform.search import SearchRequest
from shared.wiring import Services
from tests.e2e.stack_services import blocks_of, drop_file, until_current, until_gone

SECTIONS = 4
_DELETE = 0
# Successive versions; 0 means that the document is deleted. The last state shows whether a change was lost.
_LIVES = ((1,), (1, 2), (1, 2, 3), (1, _DELETE), (1, 2, _DELETE), (1, _DELETE, 2))
_WORDS = ("pump", "valve", "seal", "motor", "filter", "bearing", "gasket", "flange", "nozzle", "rotor")


@dataclass(frozen=True)
class Life:
    """A document's name and its successive contents. None means that the document is deleted."""

    name: str
    contents: tuple["Version | None", ...]


@dataclass(frozen=True)
class Version:
    """The bytes of a file, and the sentences that searches must find after its ingestion."""

    content: bytes
    sentences: tuple[str, ...]


@dataclass
class Lives:
    """All documents of a run, and the guarantees that must hold at any time."""

    lives: Sequence[Life]
    promised: dict[str, set[Version]] = field(default_factory=dict)
    working: int = 0

    async def live(self, services: Services, at_once: int) -> None:
        """Perform the changes of every document, for `at_once` documents concurrently."""
        slots = asyncio.Semaphore(at_once)

        async def one(life: Life) -> None:
            async with slots:
                self.working += 1
                await self._live_one(services, life)
                self.working -= 1

        async with asyncio.TaskGroup() as group:
            for life in self.lives:
                group.create_task(one(life))

    async def _live_one(self, services: Services, life: Life) -> None:
        for version in life.contents:
            if version is None:
                self.promised.pop(life.name, None)
                await services.blobs.delete(DOCUMENTS, life.name)
                await until_gone(services, life.name)
                continue
            if life.name in self.promised:
                self.promised[life.name] = {*self.promised[life.name], version}
            await drop_file(services, life.name, version.content)
            state = await until_current(services, life.name, version.content)
            assert state.status == "ready", state
            self.promised[life.name] = {version}

    async def watch(self, services: Services) -> None:
        """Search the index repeatedly until cancelled, and fail as soon as a guarantee is violated."""
        while True:
            for name, before in list(self.promised.items()):
                indexed_text = " ".join(
                    " ".join(str(row["content"]) for row in await blocks_of(services, name)).split()
                )
                listed = await _is_listed(services, name)
                after = self.promised.get(name)
                if after is None:
                    continue  # the deletion of the document started during the search
                whole = any(all(text in indexed_text for text in one.sentences) for one in before | after)
                assert whole, f"{name} was not whole in the index: {indexed_text!r}"
                assert listed, f"{name} was not in the list"
            await asyncio.sleep(0.05)


async def _is_listed(services: Services, name: str) -> bool:
    request = SearchRequest(filter=f"doc_id eq {quote(document_id(name))}", top=1)
    return bool((await services.documents_index.search(request)).rows)


def make_lives(count: int, seed: int) -> list[Life]:
    """Return the lives of `count` documents, determined by the seed. Every fourth document is a PDF with a
    picture.
    """
    chance = random.Random(seed)
    lives = []
    for number in range(count):
        name = f"lives/document-{number}{'.pdf' if number % 4 == 3 else '.md'}"
        versions = _LIVES[number % len(_LIVES)]
        contents = {version: _version(name, version, chance) for version in sorted(set(versions) - {_DELETE})}
        lives.append(Life(name, tuple(contents.get(version) for version in versions)))
    return lives


def _version(name: str, version: int, chance: random.Random) -> Version:
    """Return a version that keeps half of the sections, so that their blocks must be kept as well."""
    number = PurePosixPath(name).stem.rpartition("-")[2]
    sentences = []
    for section in range(SECTIONS):
        edition = version if section % 2 else 1
        words = " ".join(chance.choices(_WORDS, k=8)) if section % 2 else _WORDS[section]
        sentences.append(f"Item {number} section {section} edition {edition} speaks of the {words}.")
    content = _pdf(number, sentences, chance) if name.endswith(".pdf") else _markdown(number, sentences)
    return Version(content, tuple(sentences))


def _markdown(number: str, sentences: Sequence[str]) -> bytes:
    sections = [f"# Part {place}\n\n{sentence}\n" for place, sentence in enumerate(sentences)]
    return f"# Document {number}\n\n{''.join(sections)}".encode()


def _pdf(number: str, sentences: Sequence[str], chance: random.Random) -> bytes:
    pdf = FPDF()
    for place, sentence in enumerate(sentences):
        pdf.add_page()
        pdf.set_font("Helvetica", "B", 18)
        pdf.cell(0, 12, f"Part {place} of {number}", new_x="LMARGIN", new_y="NEXT")
        pdf.set_font("Helvetica", "", 10)
        pdf.multi_cell(0, 6, sentence, new_x="LMARGIN", new_y="NEXT")
        if place == 1:
            picture = Image.frombytes("RGB", (40, 30), chance.randbytes(3600)).resize((400, 300))
            buffer = io.BytesIO()
            picture.save(buffer, "PNG")
            pdf.image(buffer, w=100)
            pdf.cell(0, 8, f"Figure 1: The {number} as built")
    return bytes(pdf.output())
