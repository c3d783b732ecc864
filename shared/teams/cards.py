"""Adaptive Cards under a message in Teams: figures, tables, buttons. Pure.

Text from documents stands only in text blocks of the card, where it cannot become a link. A button returns
its value and no words (no `messageBack`): the Agents Playground 0.2.28 sends nothing for one with words.

Source: Adaptive Cards 1.5; Microsoft Teams, "Card actions", "Cards reference".
"""

from typing import Any

from shared.teams.markdown import cut
from shared.teams.messages import OPEN_PAGE
from shared.teams.models import (
    OWN_KEY,
    BotReply,
    ChosenOption,
    Language,
    ShownButton,
    ShownFigure,
    ShownTable,
)

Wire = dict[str, Any]

MAX_TABLE_ROWS = 40  # longer ones are read in the text; unmeasured
MAX_TABLE_COLUMNS = 7  # a phone shows about 4 (unmeasured)
_MAX_TITLE_CHARS = 120
_MAX_CELL_CHARS = 400
# These would become a link, or a date in the reader's own format: {{DATE(...)}}.
_SEPARATED = (("](", "] ("), ("://", ": //"), ("{{", "{ {"))


def card_of(reply: BotReply, language: Language) -> Wire | None:
    """The card of a message, as an attachment; None if the message needs none."""
    body = [
        *(_figure(figure, language) for figure in reply.figures),
        *(
            _table(table)
            for table in reply.tables
            if len(table.rows) <= MAX_TABLE_ROWS and len(table.header) <= MAX_TABLE_COLUMNS
        ),
        *(_button(button) for button in reply.buttons),
    ]
    if not body:
        return None
    content: Wire = {
        "type": "AdaptiveCard",
        "$schema": "http://adaptivecards.io/schemas/adaptive-card.json",
        "version": "1.5",
        "body": body,
    }
    if reply.tables or reply.figures:
        content["msteams"] = {"width": "Full"}
    return {"contentType": "application/vnd.microsoft.card.adaptive", "content": content}


def _figure(figure: ShownFigure, language: Language) -> Wire:
    picture: Wire = {
        "type": "Image",
        "url": figure.image_url,
        "altText": cut(figure.alt or figure.caption, _MAX_CELL_CHARS),
        "size": "Stretch",
        "msteams": {"allowExpand": True},
    }
    items = [picture, _text(figure.caption) | {"isSubtle": True, "size": "Small"}]
    if figure.page_url:
        action = {"type": "Action.OpenUrl", "title": OPEN_PAGE[language], "url": figure.page_url}
        items.append({"type": "ActionSet", "actions": [action]})
    return {"type": "Container", "separator": True, "items": items}


def _table(table: ShownTable) -> Wire:
    return {
        "type": "Table",
        "columns": [{"width": 1} for _ in table.header],
        "firstRowAsHeaders": True,
        "showGridLines": True,
        "gridStyle": "default",
        "rows": [_row(table.header, is_header=True), *(_row(row) for row in table.rows)],
    }


def _row(cells: tuple[str, ...], *, is_header: bool = False) -> Wire:
    weight: Wire = {"weight": "Bolder"} if is_header else {}
    return {
        "type": "TableRow",
        "cells": [{"type": "TableCell", "items": [_text(cell) | weight]} for cell in cells],
    }


def _button(button: ShownButton) -> Wire:
    """One per row: side by side, titles would be cut, and more than six buttons hidden.

    The title begins with the option's number, which can be typed instead.
    """
    number = f"{button.value.number}. " if isinstance(button.value, ChosenOption) else ""
    title = cut(number + " ".join(button.title.split()), _MAX_TITLE_CHARS)
    value = {OWN_KEY: button.value.model_dump(mode="json")}
    return {"type": "ActionSet", "actions": [{"type": "Action.Submit", "title": title, "data": value}]}


def _text(text: str) -> Wire:
    shown = cut(" ".join(text.split()), _MAX_CELL_CHARS)
    for sign, separated in _SEPARATED:
        shown = shown.replace(sign, separated)
    return {"type": "TextBlock", "text": shown or " ", "wrap": True}
