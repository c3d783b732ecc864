"""docs/internals/stores.md says of every store of the app what of a person lies there, and how it goes."""

import re

from shared.platform import names
from shared.platform.settings import setting_fields
from tests.architecture.source_tree import ROOT

PAGE = (ROOT / "docs/internals/stores.md").read_text(encoding="utf-8")
ERASED = {"yes", "on request", "by itself", "nothing"}


def rows(heading: str) -> list[list[str]]:
    """The cells of each row of the table below a heading."""
    (section,) = re.findall(rf"^## {heading}\n(.*?)(?=^## |\Z)", PAGE, re.MULTILINE | re.DOTALL)
    lines = [line for line in section.splitlines() if line.startswith("| `")]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]


def stores(heading: str) -> set[str]:
    return {row[0].strip("`") for row in rows(heading)}


def test_every_table_is_classified_and_no_other() -> None:
    tables = {value for name, value in vars(names).items() if name.endswith("_TABLE")}
    assert len(tables) >= 9
    assert stores("Tables") == tables


def test_every_container_is_classified_and_no_other() -> None:
    assert stores("Containers") == set(names.CONTAINERS)


def test_every_queue_is_classified_and_no_other() -> None:
    assert stores("Queues") == {*names.QUEUES, *names.POISON_QUEUES, names.BLOB_DELETED_QUEUE}


def test_every_index_is_classified_and_no_other() -> None:
    fields = setting_fields()
    indexes = {fields[name].default for name in fields if re.fullmatch(r"AZURE_SEARCH_\w+_INDEX", name)}
    assert len(indexes) == 3
    assert stores("Indexes") == indexes


def test_every_name_of_a_store_is_one_of_these_kinds() -> None:
    """A store of another kind needs a table of its own in the page, and a test here."""
    kinds = re.compile(r"[A-Z_]+_(TABLE|QUEUE)")
    plain = {name for name, value in vars(names).items() if isinstance(value, str) and name.isupper()}
    assert {name for name in plain if not kinds.fullmatch(name)} == {
        "DOCUMENTS",
        "FIGURES",
        "RUN_LOG",
        "WORK",
    }


def test_each_row_says_whether_and_how() -> None:
    for heading in ("Tables", "Containers", "Indexes", "Queues"):
        for row in rows(heading):
            assert len(row) == 4, row
            assert row[2] in ERASED, row
            assert all(row), row
