"""Figures through the orchestration: stored, captioned once, indexed, replaced and removed."""

from pathlib import Path

import pytest

from shared.documents.figure_store import captions, picture_blob
from shared.ingestion.audit import audit
from shared.platform.errors import ConfigurationError, DependencyError, RateLimitError
from shared.platform.language_models.models import CallLimits
from shared.platform.names import DOCUMENTS, WORK
from shared.platform.search import IndexRow, SearchRequest, VectorQuery
from shared.wiring import Services
from tests.contract.ingestion import driving
from tests.contract.ingestion.driving import (
    blocks_of,
    documents_of,
    ingest,
    state_of,
    step_results,
    version_files,
)
from tests.contract.ingestion.models import CountingEmbedder, CountingVisionModel
from tests.unit.ingestion.figure_files import TEXT, FigureMaker

pytestmark = pytest.mark.contract


@pytest.fixture
def name() -> str:
    return driving.unique(".pdf")


def report(folder: Path, *seeds: int) -> bytes:
    """Return a PDF with a chart on its first page, and a page for each picture."""
    maker = FigureMaker()
    maker.page()
    maker.heading("Pumps")
    maker.paragraph(TEXT)
    maker.chart(caption="Figure 1: Pressure of each pump")
    for seed in seeds:
        maker.page()
        maker.heading(f"Pump {seed}")
        maker.paragraph(TEXT)
        maker.photo(seed=seed)
    return maker.write(folder / "report.pdf").read_bytes()


async def drop(services: Services, name: str, content: bytes) -> None:
    await driving.drop(services, name, content, {"owner_id": "u1", "acl": "engineering"})


async def images_of(services: Services, name: str) -> list[IndexRow]:
    rows = [row for row in await blocks_of(services, name) if row["block_type"] == "image"]
    return sorted(rows, key=lambda row: row["page_number"])


async def stored(services: Services, name: str) -> list[str]:
    return await version_files(services, name, "figures/")


async def test_figures_become_image_blocks_with_picture_caption_and_vector(
    services: Services, name: str, tmp_path: Path, vision_model: CountingVisionModel
) -> None:
    await drop(services, name, report(tmp_path, 4))
    assert (await ingest(services, name)).outcome == "ready"
    chart, photo = await images_of(services, name)
    assert chart["image_caption"].startswith("Figure 1: Pressure of each pump\nA drawing known as ")
    assert (chart["page_number"], chart["heading_path"], chart.get("content")) == (1, "Pumps", None)
    assert (photo["page_number"], photo["heading_path"]) == (2, "Pump 4")
    assert photo["access_control_list"] == ["engineering", "u1"]
    path = picture_blob((await state_of(services, name)).folder, chart["image_url"].rpartition("/")[2])
    assert (await services.blobs.read(WORK, path)).startswith(b"\x89PNG")
    properties = await services.blobs.properties(WORK, path)
    assert properties is not None
    assert properties.content_type == "image/png"

    assert len(vision_model.prompts) == 2
    first = vision_model.prompts[0]
    assert (first.picture_url or "").startswith("data:image/png;base64,iVBOR")
    assert "<label>Figure 1: Pressure of each pump</label>" in "".join(p.user for p in vision_model.prompts)
    assert "trained person" in first.user

    state = await state_of(services, name)
    phases = [(phase.status, phase.model_calls) for phase in state.phases]
    assert ("captioning", 2) in phases
    assert [status for status, _ in phases] == [
        "queued", "parsing", "captioning", "embedding", "indexing", "ready"
    ]  # fmt: skip
    assert await step_results(services, name) == []


async def test_a_figure_is_found_by_the_vector_of_its_caption(
    services: Services, name: str, tmp_path: Path, embedder: CountingEmbedder
) -> None:
    await drop(services, name, report(tmp_path))
    await ingest(services, name)
    (chart,) = await images_of(services, name)
    embedded_text = f"Pumps\n{chart['image_caption']}"
    assert embedded_text in embedder.texts
    (vector,) = await embedder.embed([embedded_text], CallLimits(timeout_s=60))
    request = SearchRequest(
        vectors=(VectorQuery(vector=vector, field="image_caption_vector", k=1),),
        filter="block_type eq 'image'",
        top=1,
    )
    (nearest,) = (await services.content_index.search(request)).rows
    assert nearest["block_id"] == chart["block_id"]


async def test_unchanged_figures_cost_no_call_no_vector_and_no_write(
    services: Services,
    name: str,
    tmp_path: Path,
    vision_model: CountingVisionModel,
    embedder: CountingEmbedder,
) -> None:
    await drop(services, name, report(tmp_path, 4))
    await ingest(services, name)
    before = await captions(services.blobs, (await state_of(services, name)).folder)
    vision_model.prompts.clear()
    embedder.texts.clear()
    # The bytes differ, but the pages are the same.
    content = report(tmp_path, 4) + b"\n% other bytes, the same pages\n"
    await drop(services, name, content)
    result = await ingest(services, name, "two")
    assert (result.outcome, result.new_count, result.gone_count) == ("ready", 0, 0)
    assert vision_model.prompts == []
    assert embedder.texts == []
    after = await captions(services.blobs, (await state_of(services, name)).folder)
    assert after == before
    assert len(after) == 2


async def test_of_a_changed_document_only_new_figures_are_captioned_and_old_ones_go(
    services: Services,
    name: str,
    tmp_path: Path,
    vision_model: CountingVisionModel,
    embedder: CountingEmbedder,
) -> None:
    await drop(services, name, report(tmp_path, 4, 5))
    await ingest(services, name)
    chart, old, unchanged = await images_of(services, name)
    vision_model.prompts.clear()
    embedder.texts.clear()
    await drop(services, name, report(tmp_path, 5, 6))
    assert (await ingest(services, name, "two")).outcome == "ready"
    assert len(vision_model.prompts) == 1
    assert len([text for text in embedder.texts if "A drawing known as" in text]) == 1
    after = await images_of(services, name)
    assert [row["page_number"] for row in after] == [1, 2, 3]
    assert after[0] == {**chart, "version": 2}
    changed = {name: after[1][name] for name in ("content_hash", "ordinal")}
    moved = {**unchanged, **changed, "page_number": 2, "version": 2}
    assert after[1] == moved
    assert old["block_id"] not in {row["block_id"] for row in after}
    assert sorted(await stored(services, name)) == sorted(
        row["image_url"].rpartition("/")[2] for row in after
    )


async def test_a_removed_document_takes_its_figures_along(
    services: Services, name: str, tmp_path: Path
) -> None:
    await drop(services, name, report(tmp_path, 4))
    await ingest(services, name)
    assert len(await stored(services, name)) == 2
    await services.blobs.delete(DOCUMENTS, name)
    assert (await ingest(services, name, "two")).outcome == "removed"
    assert await stored(services, name) == []
    assert await blocks_of(services, name) == []
    assert await documents_of(services, name) == []


async def test_a_busy_model_is_asked_again_for_what_is_missing_only(
    services: Services, name: str, tmp_path: Path, vision_model: CountingVisionModel
) -> None:
    await drop(services, name, report(tmp_path, 4, 5, 6))
    vision_model.failures = [RateLimitError("Too many requests.", retry_after_s=3)] * 2
    assert (await ingest(services, name)).outcome == "ready"
    assert len(vision_model.prompts) == 6  # two rejected and four answered requests
    assert (await state_of(services, name)).warnings == ()
    assert len(await images_of(services, name)) == 4


@pytest.mark.parametrize(
    "failures",
    [[ConfigurationError("This model does not accept pictures.")] * 2, [DependencyError("Down.")] * 40],
    ids=["no vision", "out of reach"],
)
async def test_without_the_model_figures_are_described_by_rule_and_tried_again_with_the_next_version(
    services: Services,
    name: str,
    tmp_path: Path,
    vision_model: CountingVisionModel,
    failures: list[DependencyError],
) -> None:
    await drop(services, name, report(tmp_path, 4))
    vision_model.failures = list(failures)
    assert (await ingest(services, name)).outcome == "ready"
    chart, photo = await images_of(services, name)
    assert chart["image_caption"] == "Figure 1: Pressure of each pump"
    assert "trained person" in photo["image_caption"]
    assert "come from the text around them" in " ".join((await state_of(services, name)).warnings)

    vision_model.failures = []
    await drop(services, name, report(tmp_path, 4) + b"\n% other bytes, the same pages\n")
    await ingest(services, name, "two")
    assert all("A drawing known as" in row["image_caption"] for row in await images_of(services, name))
    assert (await state_of(services, name)).warnings == ()


async def test_after_every_change_the_audit_agrees(services: Services, name: str, tmp_path: Path) -> None:
    for number, seeds in enumerate([(4, 5), (5,), (), (6, 7)]):
        await drop(services, name, report(tmp_path, *seeds))
        await ingest(services, name, f"i{number}")
        differences = [one for one in (await audit(services)).differences if name in one.place]
        assert differences == []


async def test_no_figures_when_none_are_wanted(
    services: Services, name: str, tmp_path: Path, vision_model: CountingVisionModel
) -> None:
    object.__setattr__(services, "settings", services.settings.changed(max_figures=0))
    await drop(services, name, report(tmp_path, 4))
    await ingest(services, name)
    assert await images_of(services, name) == []
    assert vision_model.prompts == []
