"""Defects that people make in such files, seeded one at a time: the rules have to find each of them."""

import re
import shutil
from pathlib import Path

import pytest

from scripts.infra_check.__main__ import faults
from tests.architecture.source_tree import ROOT
from tests.infra.defects import DEFECTS

NAMES_ITS_PLACE = re.compile(r"[\w-]+(?:\.\w+)+(?::\d+)?: \S")


@pytest.fixture
def project(tmp_path: Path) -> Path:
    shutil.copytree(ROOT / "infra", tmp_path / "infra", ignore=shutil.ignore_patterns("node_modules"))
    for name in ("azure.yaml", "host.json"):
        shutil.copyfile(ROOT / name, tmp_path / name)
    return tmp_path


def test_the_copy_has_no_fault(project: Path) -> None:
    assert faults(project) == []


@pytest.mark.parametrize("defect", DEFECTS)
def test_a_seeded_defect_is_found(defect: str, project: Path) -> None:
    name, old, new = DEFECTS[defect]
    path = project / name
    text = path.read_text(encoding="utf-8")
    assert old in text, "the defect has nothing to change: rewrite it"
    path.write_text(text.replace(old, new, 1), encoding="utf-8")
    found = faults(project)
    assert found != []
    assert [fault for fault in found if not NAMES_ITS_PLACE.match(fault)] == []
