"""Tests for the texts and cards of messages before they are sent."""

import json
from typing import Any

import pytest

from shared.teams.models import (
    BotConversation,
    BotReply,
    ButtonCommand,
    ShownButton,
    ShownCitation,
    ShownFigure,
    ShownTable,
)
from shared.teams.outgoing import (
    MAX_CARD_BYTES,
    MAX_TABLE_COLUMNS,
    MAX_TABLE_ROWS,
    card_of,
    in_words,
    messages_of,
    split,
    without_markdown,
)

_TEAMS = BotConversation(
    channel="msteams", service_url="https://smba.trafficmanager.net/", conversation_id="a", bot_id="b"
)


def _table(rows: int, columns: int, cell: str = "x") -> ShownTable:
    return ShownTable(header=("h",) * columns, rows=((cell,) * columns,) * rows)


def _cards(reply: BotReply) -> list[dict[str, Any]]:
    return [
        card["content"] for message in messages_of(_TEAMS, reply) for card in message.get("attachments", ())
    ]


def test_a_text_is_cut_between_paragraphs_else_lines_else_words() -> None:
    assert split("a" * 30 + "\n\n" + "b" * 30, 50) == ["a" * 30, "b" * 30]
    assert split("a" * 30 + "\n" + "b c " * 6, 50) == ["a" * 30, ("b c " * 6).strip()]
    assert split("word " * 20, 50) == ["word word word word word word word word"] * 2 + ["word " * 3 + "word"]
    assert split("x" * 100, 50) == ["x" * 42, "x" * 42, "x" * 16]
    assert split("", 50) == [""]


def test_code_that_is_cut_is_code_in_each_part() -> None:
    parts = split("```python\n" + "print(1)\n" * 20 + "```\nend", 60)
    assert all(part.count("```") == 2 for part in parts)
    assert all(len(part) <= 60 for part in parts)
    assert sum(part.count("print(1)") for part in parts) == 20
    assert parts[-1].endswith("```\nend")


def test_no_part_is_lost_or_too_long() -> None:
    text = "\n".join(f"{'word ' * (n % 13)}{n}" for n in range(400))
    parts = split(text, 300)
    assert " ".join(" ".join(parts).split()) == " ".join(text.split())
    assert all(len(part) <= 300 for part in parts)


@pytest.mark.parametrize(
    ("markdown", "expected"),
    [
        ("**a** and *b*, 2 * 3 * 4", "a and b, 2 * 3 * 4"),
        (r"pump\_[1\].pdf \*x\*", "pump_[1].pdf *x*"),
        ("&lt;b> &amp; c", "<b> & c"),
    ],
)
def test_signs_of_markdown_are_left_out_where_nobody_reads_them(markdown: str, expected: str) -> None:
    assert without_markdown(markdown) == expected


def test_words_of_documents_are_no_markdown_and_link_nowhere() -> None:
    cited = ShownCitation(
        n=1,
        name="[a](http://evil.example).pdf",
        abstract="<at>all</at> *b*\n# c",
        url="https://app.example/1",
    )
    text = in_words(BotReply(text="x [1]", citations=(cited,)), "de")
    assert text == (
        "x [1]\n\n**Quellen**\n- [1] \\[a\\](http: //evil.example).pdf: "
        "“&lt;at&gt;all&lt;/at&gt; \\*b\\* # c” https://app.example/1"
    )


def test_commands_and_the_label_are_words_too() -> None:
    button = ShownButton(title="Sources", value=ButtonCommand(command="/sources"))
    reply = BotReply(text="x", buttons=(button,), is_generated=True)
    assert in_words(reply, "de") == "x\n\n`/sources`\n\n*Von KI erzeugt.*"


def test_a_message_without_anything_beside_has_no_card() -> None:
    assert card_of(BotReply(text="x"), "en") is None


def test_a_cell_is_no_link() -> None:
    (card,) = _cards(BotReply(text="x", tables=(_table(1, 1, "[a](https://evil.example)"),)))
    assert "](" not in json.dumps(card)
    assert "://evil" not in json.dumps(card)


def test_a_cell_is_no_date_that_a_client_would_write_anew() -> None:
    (card,) = _cards(BotReply(text="x", tables=(_table(1, 1, "{{DATE(2020-01-01T00:00:00Z)}}"),)))
    assert "{{" not in json.dumps(card["body"])


def test_a_picture_is_described_for_those_who_do_not_see_it() -> None:
    figure = ShownFigure(
        caption="p. 4", alt="The valve", image_url="https://store.example/a.png", page_url=""
    )
    (card,) = _cards(BotReply(text="x", figures=(figure,)))
    picture, caption = card["body"][0]["items"]
    assert (picture["altText"], caption["text"]) == ("The valve", "p. 4")


@pytest.mark.parametrize("table", [_table(MAX_TABLE_ROWS + 1, 2), _table(2, MAX_TABLE_COLUMNS + 1)])
def test_a_table_that_no_client_can_show_is_read_in_the_text_alone(table: ShownTable) -> None:
    assert _cards(BotReply(text="x", tables=(table,))) == []


def test_a_card_that_teams_would_refuse_loses_its_tables() -> None:
    figure = ShownFigure(caption="c", image_url="https://store.example/a.png", page_url="")
    tables = (_table(MAX_TABLE_ROWS, MAX_TABLE_COLUMNS, "word " * 60),)
    (card,) = _cards(BotReply(text="x", figures=(figure,), tables=tables))
    assert [part["type"] for part in card["body"]] == ["Container"]
    assert len(json.dumps(card)) < MAX_CARD_BYTES
    assert [item["type"] for item in card["body"][0]["items"]] == ["Image", "TextBlock"]  # no page to open


def test_a_card_beside_a_long_text_is_a_message_of_its_own() -> None:
    reply = BotReply(text="ä " * 3500, tables=(_table(30, 4, "word " * 5),), can_be_rated=True)
    text, card = messages_of(_TEAMS, reply)
    assert "attachments" not in text
    assert card["text"] == ""
    assert "channelData" in card
    assert "channelData" not in text


def test_words_of_ours_are_in_the_language_of_the_reader() -> None:
    figure = ShownFigure(
        caption="c", image_url="https://store.example/a.png", page_url="https://app.example/"
    )
    german = _TEAMS.model_copy(update={"locale": "de-AT"})
    (message,) = messages_of(german, BotReply(text="x", figures=(figure,)))
    assert "Seite öffnen" in json.dumps(message, ensure_ascii=False)
