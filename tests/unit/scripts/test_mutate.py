"""Tests for the report of `make mutate`: passing and excused mutants."""

import pytest

from scripts.mutate import (
    MAX_EXCUSED,
    ROOT,
    Excuse,
    Mutant,
    Report,
    read_excuses,
    read_groups,
    report_of,
    summary,
)


def mutants(killed: int, *survivors: str) -> list[Mutant]:
    killed_mutant = Mutant(module="a.py", function="f", before="", after="", status="killed")
    return [killed_mutant] * killed + [
        Mutant(module="a.py", function="f", before="x < y", after=after, status="survived")
        for after in survivors
    ]


def excuse(after: str, module: str = "a.py") -> Excuse:
    return Excuse(module=module, function="f", before="x < y", after=after, reason="makes no difference")


def report(changes: list[Mutant], *excuses: Excuse) -> Report:
    return report_of(changes, excuses, 1.0)


def test_all_killed_passes() -> None:
    outcome = report(mutants(10))
    assert (outcome.passed, outcome.score, outcome.mutants) == (True, 1.0, 10)


def test_a_survivor_fails_and_is_shown_with_its_change() -> None:
    outcome = report(mutants(99, "x <= y"))
    assert (outcome.passed, outcome.score) == (False, 0.99)
    assert "a.py f\n  - x < y\n  + x <= y" in summary(outcome)


def test_an_excused_survivor_passes_and_leaves_the_score() -> None:
    outcome = report(mutants(9, "x <= y"), excuse("x <= y"))
    assert (outcome.passed, outcome.score, outcome.modules["a.py"].excused) == (True, 1.0, 1)


def test_an_excuse_is_for_one_survivor() -> None:
    assert not report(mutants(99, "x <= y", "x <= y"), excuse("x <= y")).passed


def test_an_excuse_of_a_killed_mutant_fails() -> None:
    outcome = report(mutants(10), excuse("x <= y"))
    assert (outcome.passed, outcome.unused_excuses) == (False, (excuse("x <= y"),))


def test_excuses_of_modules_that_did_not_run_are_ignored() -> None:
    assert report(mutants(10), excuse("x <= y", module="b.py")).passed


def test_more_than_ten_excuses_fail() -> None:
    names = [str(number) for number in range(MAX_EXCUSED + 1)]
    assert report(mutants(99, *names[:-1]), *map(excuse, names[:-1])).passed
    assert not report(mutants(99, *names), *map(excuse, names)).passed


def test_nothing_that_ran_is_no_success() -> None:
    assert not report([]).passed


@pytest.mark.parametrize("name", read_groups())
def test_modules_and_tests_of_each_group_exist(name: str) -> None:
    group = read_groups()[name]
    assert all((ROOT / module).is_file() for module in group.modules)
    assert all(any(ROOT.glob(pattern)) for pattern in group.tests)


def test_excuses_are_few_and_belong_to_modules_that_are_changed() -> None:
    modules = {module for group in read_groups().values() for module in group.modules}
    assert {excuse.module for excuse in read_excuses()} <= modules
    assert len(read_excuses()) <= MAX_EXCUSED
