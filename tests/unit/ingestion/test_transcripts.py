"""Tests for transcripts, whose cues are joined to paragraphs with a start time in seconds."""

import pytest

from shared.documents.models import ParsedDocument
from shared.platform.errors import BadDocumentError
from tests.unit.ingestion.conftest import Parse


def cues_of(document: ParsedDocument) -> list[tuple[float | None, str]]:
    return [(element.start_seconds, element.text) for element in document.elements]


def test_cues_become_paragraphs_with_speakers_on_lines_of_their_own(parse: Parse) -> None:
    document = parse(
        """WEBVTT - meeting

NOTE made by hand
--> not a cue

STYLE
::cue { color: red }

intro
00:01.500 --> 00:03.000 align:start
<v Ada Byron>Good <i>morning</i>,

00:03.000 --> 00:05.000
<v Ada Byron>everyone &amp; all.

01:00:05.000 --> 01:00:07.250
<v.loud Bob>Hello.
""",
        ".vtt",
    )
    assert cues_of(document) == [(1.5, "Ada Byron: Good morning, everyone & all."), (3605.0, "Bob: Hello.")]
    assert document.warnings == ()


def test_subrip_is_read(parse: Parse) -> None:
    document = parse(
        "1\n00:00:01,000 --> 00:00:02,5\n{\\an8}First\nline.\n\n"
        "2\n00:00:02,500 --> 00:00:04,000\nBob: Next.\n",
        ".srt",
    )
    assert cues_of(document) == [(1.0, "First line.\nBob: Next.")]


def test_rolling_captions_are_said_once(parse: Parse) -> None:
    cues = "WEBVTT\n\n00:01.000 --> 00:02.000\none two\n\n00:02.000 --> 00:03.000\none two\nthree four\n"
    assert cues_of(parse(cues + "\n00:03.000 --> 00:04.000\nthree four\n", ".vtt")) == [
        (1.0, "one two three four")
    ]


def test_paragraphs_end_at_sentences_and_pauses(parse: Parse) -> None:
    def cue(second: int, text: str) -> str:
        time = f"00:{second // 60:02d}:{second % 60:02d}"
        return f"{time}.000 --> {time}.900\n{text}\n\n"

    sentence = "The pump moves water from the basin up to the tank and stops."
    steady = "".join(cue(second, sentence) for second in range(30))
    document = parse(f"WEBVTT\n\n{steady}{cue(100, 'Later.')}", ".vtt")
    assert all(500 <= len(element.text) < 620 for element in document.elements[:3])
    assert document.elements[1].start_seconds == 9.0
    assert cues_of(document)[-1] == (100.0, "Later.")


def test_malformed_cues_are_named_and_the_others_read(parse: Parse) -> None:
    document = parse(
        "WEBVTT\n\n00:xx --> 00:02.000\nlost\n\n00:05.000 --> 00:04.000\nbackwards\n\n"
        "00:06.000 --> 00:07.000\nkept\n",
        ".vtt",
    )
    assert cues_of(document) == [(6.0, "kept")]
    assert document.warnings == ("2 malformed cues were left out (lines 3, 6).",)


def test_a_transcript_without_a_readable_cue_is_refused(parse: Parse) -> None:
    with pytest.raises(BadDocumentError, match="first malformed cue is on line 1") as refused:
        parse("just words\nand more\n", ".vtt")
    assert "00:01:02.000 --> 00:01:04.000" in refused.value.hints[0]
