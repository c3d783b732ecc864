"""Tests for plain text files in common encodings."""

import codecs
import tracemalloc

import pytest

from shared.ingestion.parsers.text import page_ranges
from shared.platform.errors import BadDocumentError
from tests.unit.ingestion.conftest import Parse

GERMAN = "Größe: 5 µm – geprüft"


@pytest.mark.parametrize(
    "content",
    [
        GERMAN.encode(),
        codecs.BOM_UTF8 + GERMAN.encode(),
        GERMAN.encode("utf-16"),
        codecs.BOM_UTF16_BE + GERMAN.encode("utf-16-be"),
        GERMAN.encode("utf-32"),
        GERMAN.encode("cp1252"),
    ],
    ids=["utf-8", "utf-8 mark", "utf-16", "utf-16 be", "utf-32", "cp1252"],
)
def test_the_encoding_is_found_out(parse: Parse, content: bytes) -> None:
    assert [element.text for element in parse(content, ".txt").elements] == [GERMAN]


RUSSIAN = "Договор вступает в силу с момента подписания. Все споры решаются путём переговоров."
GREEK = "Η σύμβαση υπογράφηκε στην Αθήνα. Κάθε τροποποίηση απαιτεί έγγραφο τύπο."
POLISH = (
    "Umowa została zawarta w Łodzi dnia pierwszego września. Sprzedający zobowiązuje się dostarczyć towar, "
    "a kupujący zapłacić cenę w terminie trzydziestu dni. Wszelkie zmiany wymagają formy pisemnej."
)
JAPANESE = "売主は商品を引き渡し、買主は三十日以内に代金を支払うものとする。"
CHINESE = "卖方应交付货物，买方应在三十天内支付价款。任何变更均须采用书面形式。"


@pytest.mark.parametrize(
    ("text", "encoding"),
    [
        (RUSSIAN, "cp1251"),
        (RUSSIAN, "koi8_r"),
        (RUSSIAN, "cp866"),
        (GREEK, "cp1253"),
        (POLISH, "cp1250"),
        (JAPANESE, "cp932"),
        (CHINESE, "gb18030"),
        (
            "Le contrôle des équipements est effectué chaque année à l'accueil, où la clé est prêtée.",
            "cp1252",
        ),
        ("¿Dónde está la oficina del señor Núñez? La revisión de los equipos se efectúa cada año.", "cp1252"),
        ("RÉSUMÉ: ÄÖÜ; ÀÉÈ; ÆØÅ; ÔÔÔ", "cp1252"),
        ("12,5 °C; 3 µm; 5 m² · ½ – “x”\n" * 9, "cp1252"),
    ],
)
def test_an_encoding_from_before_unicode_is_told_by_its_letters(
    parse: Parse, text: str, encoding: str
) -> None:
    elements = parse(text.encode(encoding), ".txt").elements
    assert "\n".join(element.text for element in elements) == text.rstrip()


def test_binary_content_is_refused(parse: Parse) -> None:
    with pytest.raises(BadDocumentError, match="not a text file"):
        parse(bytes(range(256)) * 4, ".txt")


def test_blank_lines_separate_paragraphs_and_lines_stay(parse: Parse) -> None:
    document = parse(b"one\r\ntwo\r\n \r\n\r\nthree\r\n", ".txt")
    assert [element.text for element in document.elements] == ["one\ntwo", "three"]


def test_pages_are_named_as_ranges() -> None:
    assert page_ranges([5, 1, 2, 3, 9, 8]) == ["1-3", "5", "8-9"]


def test_a_text_of_short_lines_needs_little_memory(parse: Parse) -> None:
    text = "a b\n" * 1_000_000
    tracemalloc.start()
    (paragraph,) = parse(text, ".txt").elements
    _, peak_bytes = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert paragraph.text == text.strip()
    assert peak_bytes < 8 * len(text)
