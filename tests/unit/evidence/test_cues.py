"""Tests for finding the time at which words of a recording are spoken."""

from pathlib import Path

from shared.evidence.citations import CitationBook
from shared.evidence.cues import cues_of_part, cues_text, seconds_at
from shared.ingestion.chunking import chunk_elements
from shared.ingestion.parsers.transcripts import parse_transcript
from shared.platform.tokens import estimate_tokens
from shared.retrieval.models import Hit

TEXT = "Welcome to all. Today we start the pump. Then we stop it."
CUES = cues_text([(0, 1.0), (3, 4.25), (8, 9.0)])


def test_a_word_is_said_in_the_last_cue_that_begins_before_it() -> None:
    assert cues_text([(0, 1.0), (3, 4.25), (8, 9.0)]) == CUES == "0:1 3:4.2 8:9"
    assert [seconds_at(CUES, TEXT, TEXT.index(word)) for word in ("Welcome", "start", "Then", "it.")] == [
        1.0,
        4.2,
        9.0,
        9.0,
    ]
    assert seconds_at(CUES, TEXT, TEXT.index("all.") + 2) == 1.0
    assert seconds_at(CUES, TEXT, TEXT.index("Today") + 2) == 4.2
    assert seconds_at("", TEXT, 0) is None


def test_a_part_begins_in_the_cue_that_says_its_first_word() -> None:
    words = TEXT.split()
    assert cues_of_part(CUES, words, words[5:10]) == ("0:4.2 3:9", 5)
    assert cues_of_part(CUES, words, words[5:8]) == ("0:4.2", 5)
    assert cues_of_part("3:4.2", words, words[:6]) == ("3:4.2", 0)
    assert cues_of_part(CUES, words, ["other", "words"]) == ("", 0)


def test_a_transcript_is_cited_at_the_cue_of_the_quotation(tmp_path: Path) -> None:
    spoken = [f"Sentence number {n} of the talk says what is done in step {n} of all." for n in range(40)]
    cues = [f"00:{n:02}:00.000 --> 00:{n:02}:05.000\n{sentence}\n" for n, sentence in enumerate(spoken)]
    source = tmp_path / "talk.vtt"
    source.write_text("WEBVTT\n\n" + "\n".join(cues), encoding="utf-8")
    chunks = chunk_elements(parse_transcript(source).elements, 60, estimate_tokens)
    hits = tuple(
        Hit(block_id=str(n), doc_id="talk", filename="talk.vtt", content=chunk.text, cues=chunk.cues)
        for n, chunk in enumerate(chunks)
    )
    hits = tuple(hit.model_copy(update={"start_seconds": 0.0}) for hit in hits)
    for n, sentence in enumerate(spoken):
        proof = CitationBook(hits, run_id="r").prove("talk", sentence)
        assert proof is not None
        assert proof[0].start_seconds == 60.0 * n
        assert proof[0].url.startswith(f"/api/documents/talk/readable?run=r&n=1&t={60 * n}#")
