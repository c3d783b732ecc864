"""Tests for lazy imports, which load a module completely and disable garbage collection meanwhile."""

import gc
import sys
from pathlib import Path

import pytest

from shared.platform.loading import load, load_module


@pytest.fixture
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """Return the name of a module that records whether garbage collection is enabled during its import."""
    (tmp_path / "outer_module.py").write_text(
        "import gc\n"
        "from shared.platform.loading import load_module\n"
        "load_module('inner_module')\n"
        "was_collecting = gc.isenabled()\n"
    )
    (tmp_path / "inner_module.py").write_text("")
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delitem(sys.modules, "outer_module", raising=False)
    return "outer_module"


def test_the_garbage_collector_rests_during_an_import(module: str) -> None:
    assert load(module, "was_collecting") is False
    assert gc.isenabled()


def test_the_garbage_collector_runs_again_after_a_failed_import() -> None:
    with pytest.raises(ModuleNotFoundError):
        load_module("no_module_has_this_name")
    assert gc.isenabled()
