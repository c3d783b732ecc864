"""Tests that the sample files have the content on which the demo and other tests rely."""

from pathlib import Path

import pytest

from local.run_all.proof import SampleTexts
from samples.acl import ACCESS, ANNA, BEN, readable_by
from samples.generate import generate
from samples.questions import DEMO_QUESTIONS, FIRST_QUESTION, GIVEAWAYS


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("samples")
    generate(folder)
    return folder


def test_every_run_writes_the_same_bytes(folder: Path, tmp_path: Path) -> None:
    for path in generate(tmp_path):
        assert path.read_bytes() == (folder / path.name).read_bytes(), path.name


def test_every_sample_has_rights_and_every_right_has_a_sample(folder: Path) -> None:
    assert {path.name for path in folder.iterdir()} == set(ACCESS)
    assert len(ACCESS) >= 9


def test_the_two_users_read_different_documents_and_together_all() -> None:
    annas, bens = readable_by(ANNA), readable_by(BEN)
    assert annas - bens
    assert bens - annas
    assert annas | bens == set(ACCESS)


def test_giveaways_stand_in_their_own_document_only(folder: Path) -> None:
    texts = SampleTexts(folder)
    for owner, words in GIVEAWAYS.items():
        for word in words:
            assert [name for name in ACCESS if texts.says(name, None, word)] == [owner], word


def test_nobody_is_expected_to_see_what_is_not_theirs() -> None:
    for question in (FIRST_QUESTION, *DEMO_QUESTIONS):
        for user in (ANNA, BEN):
            assert set(question.expectation(user).cites) <= readable_by(user)
