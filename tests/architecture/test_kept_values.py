"""What this app kept, or sent across a durable boundary, is read as that of any version: older or newer."""

from pathlib import Path

from tests.architecture.source_tree import ROOT

KEPT = (
    *ROOT.glob("shared/clients/*_store.py"),
    *ROOT.glob("shared/agents/**/*.py"),
    *(ROOT / "shared/ingestion" / name for name in ("work_files.py", "page_files.py", "extracted.py")),
)


def lines_with(call: str, paths: tuple[Path, ...]) -> list[str]:
    return [str(path.relative_to(ROOT)) for path in paths if call in path.read_text(encoding="utf-8")]


def test_kept_json_is_read_as_that_of_any_version() -> None:
    assert len(lines_with(".from_kept", KEPT)) > 20
    assert lines_with("model_validate_json", KEPT) == []


def test_payloads_are_read_as_those_of_any_version() -> None:
    orchestrations = tuple(ROOT.glob("orchestrations/*.py"))
    assert len(lines_with(".from_payload(", orchestrations)) > 8
    assert lines_with("model_validate", orchestrations) == []
