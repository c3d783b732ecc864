"""The samples are what the demo and the other tests take them for."""

from pathlib import Path

import pypdfium2
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


def test_the_manual_has_bookmarks_pictures_and_vector_drawings(folder: Path) -> None:
    manual = pypdfium2.PdfDocument(folder / "heron-400-manual.pdf")
    kinds = [{found.type for found in page.get_objects()} for page in manual]
    assert len(manual) >= 10
    assert len(list(manual.get_toc())) >= 20
    assert sum(pypdfium2.raw.FPDF_PAGEOBJ_IMAGE in page for page in kinds) == 3
    assert sum(pypdfium2.raw.FPDF_PAGEOBJ_PATH in page for page in kinds) >= 7
    manual.close()


@pytest.mark.parametrize(
    ("name", "page", "sentence"),
    [
        ("heron-400-manual.pdf", 4, "The maximum operating pressure of the Heron 400 is 6.5 bar."),
        ("heron-400-installation-guide.pdf", 3, "Six anchor bolts M16 hold the base frame."),
        ("leave-policy.pdf", 1, "18 weeks of paid parental leave"),
        ("annual-report-2023.pdf", 2, "Revenue in 2023 was 48.2 million euros."),
        ("annual-report-2024.pdf", 2, "Revenue in 2024 was 53.7 million euros."),
        ("wartungsplan-kestrel-120.pdf", 1, "Das Getriebe fasst 0,35 Liter Öl der Sorte CLP 220."),
        ("onboarding-guide.md", None, "New passwords must have at least 14 characters."),
    ],
)
def test_facts_stand_on_the_pages_that_the_questions_name(
    folder: Path, name: str, page: int | None, sentence: str
) -> None:
    assert SampleTexts(folder).says(name, page, sentence)


def test_giveaways_stand_in_their_own_document_only(folder: Path) -> None:
    texts = SampleTexts(folder)
    for owner, words in GIVEAWAYS.items():
        for word in words:
            assert [name for name in ACCESS if texts.says(name, None, word)] == [owner], word


def test_the_demo_asks_each_type_of_question_and_one_without_an_answer() -> None:
    assert {question.query_type for question in DEMO_QUESTIONS} == {
        "LISTING", "CONTENT_SEARCH", "DOCUMENT_SUMMARY", "METADATA_SEARCH", "COMPARISON",
    }  # fmt: skip
    assert any(question.expectation(user).abstains for question in DEMO_QUESTIONS for user in (ANNA, BEN))


def test_nobody_is_expected_to_see_what_is_not_theirs() -> None:
    for question in (FIRST_QUESTION, *DEMO_QUESTIONS):
        for user in (ANNA, BEN):
            assert set(question.expectation(user).cites) <= readable_by(user)
