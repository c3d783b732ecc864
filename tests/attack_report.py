"""The report of `make attack`: results of the tests marked `attack(kind)`, as a table and as JSON.

The cases are tests in the folders of the features that they attack. This module only counts them.
"""

import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--attack-out", required=True, metavar="FILE", help="the report")


def pytest_configure(config: pytest.Config) -> None:
    config.pluginmanager.register(AttackReport(Path(config.getoption("--attack-out"))))


class AttackReport:
    """Counter of test cases by kind. Skipped cases are ignored; a case whose fixture fails counts as
    failed.
    """

    def __init__(self, out: Path) -> None:
        self._out = out
        self._cases: Counter[str] = Counter()
        self._failed: dict[str, str] = {}

    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        for item in items:
            for mark in item.iter_markers("attack"):
                item.user_properties.append(("attack", mark.args[0]))

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        kind = next((str(value) for name, value in report.user_properties if name == "attack"), "")
        if not kind:
            return
        if report.when == "call" and not report.skipped:
            self._cases[kind] += 1
        if report.failed:
            self._cases[kind] += report.when != "call" and report.nodeid not in self._failed
            self._failed[report.nodeid] = kind

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        for line in self._table():
            terminalreporter.write_line(line)

    def pytest_sessionfinish(self) -> None:
        report = {
            "cases": sum(self._cases.values()),
            "failed": sorted(self._failed),
            "classes": dict(sorted(self._cases.items())),
        }
        self._out.write_text(json.dumps(report, indent=2) + "\n", encoding="utf-8")

    def _table(self) -> Iterator[str]:
        failed = Counter(self._failed.values())
        yield f"{'class':<20} {'cases':>6} {'failed':>6}"
        for kind, count in sorted(self._cases.items()):
            yield f"{kind:<20} {count:>6} {failed[kind]:>6}"
