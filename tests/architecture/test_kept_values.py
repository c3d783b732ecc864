"""What this app kept, or sent across a durable boundary, is read as that of any version: older or newer."""

from tests.architecture.source_tree import ROOT

# Models of our own that are stored; other validations read what other services and processes say.
KEPT = tuple(path for path in ROOT.glob("shared/**/*.py") if ".from_kept" in path.read_text(encoding="utf-8"))


def test_kept_json_is_read_as_that_of_any_version() -> None:
    assert len(KEPT) > 15
    strict = [path.name for path in KEPT if "model_validate_json" in path.read_text(encoding="utf-8")]
    assert strict == []


def test_payloads_are_read_as_those_of_any_version() -> None:
    readers = [path.read_text(encoding="utf-8") for path in ROOT.glob("orchestrations/*.py")]
    assert sum(".from_payload(" in text for text in readers) > 6
    assert not any("model_validate" in text for text in readers)
