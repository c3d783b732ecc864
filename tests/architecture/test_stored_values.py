"""Values that the app stored, or sent across a durable boundary, are parsed leniently: unknown fields are
ignored.

The version before an upgrade can therefore read data of the newer version (docs/operate.md, "Upgrade").
"""

import re

from tests.architecture.source_tree import ROOT

# Calls that parse the app's own stored models; other validations parse data from services and processes.
READS = re.compile(r"\.from_stored\(|\b(?:find|keep|read)_model\(")
READERS = tuple(
    path for path in ROOT.glob("shared/**/*.py") if READS.search(path.read_text(encoding="utf-8"))
)


def test_stored_json_is_read_leniently() -> None:
    assert len(READERS) > 15
    strict = [path.name for path in READERS if "model_validate_json" in path.read_text(encoding="utf-8")]
    assert strict == []


def test_payloads_are_read_leniently() -> None:
    readers = [path.read_text(encoding="utf-8") for path in ROOT.glob("orchestrations/*.py")]
    assert sum(".from_payload(" in text for text in readers) > 6
    assert not any("model_validate" in text for text in readers)
