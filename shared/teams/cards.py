"""Adaptive Cards under a message in Teams: pictures, tables, buttons. Pure; knows only our models.

What comes from documents stands in texts of the card alone, where it can be no link. A button gives back its
value and no words (no `messageBack`): the Agents Playground 0.2.28 sends nothing for one that would speak.

Source: Adaptive Cards 1.5; Microsoft Teams, "Card actions", "Cards reference".
"""

from typing import Any

from shared.teams.inbox import OWN_KEY
from shared.teams.models import BotReply, ChosenOption, ShownButton, ShownFigure, ShownTable

Wire = dict[str, Any]

MAX_TABLE_ROWS = 40  # longer ones are read in the text; unmeasured
MAX_TABLE_COLUMNS = 7  # a phone shows some 4 (unmeasured)
_MAX_TITLE_CHARS = 120
_MAX_CELL_CHARS = 400
# What would be a link, or a date in the reader's own writing: {{DATE(...)}}.
_PARTED = (("](", "] ("), ("://", ": //"), ("{{", "{ {"))
_OPEN_PAGE = {"de": "Seite öffnen", "en": "Open page"}


def card_of(reply: BotReply, language: str) -> Wire | None:
    """The card of a message, as an attachment; None when there is nothing to show in one."""
    body = [
        *(_figure(figure, language) for figure in reply.figures),
        *(_table(table) for table in reply.tables if _is_drawn(table)),
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


def button_title(button: ShownButton) -> str:
    """What stands on a button: the option's number, which can be typed instead, and its name."""
    number = f"{button.value.number}. " if isinstance(button.value, ChosenOption) else ""
    return _cut(number + " ".join(button.title.split()), _MAX_TITLE_CHARS)


def _is_drawn(table: ShownTable) -> bool:
    return len(table.rows) <= MAX_TABLE_ROWS and len(table.header) <= MAX_TABLE_COLUMNS


def _figure(figure: ShownFigure, language: str) -> Wire:
    picture: Wire = {
        "type": "Image",
        "url": figure.image_url,
        "altText": _cut(figure.alt or figure.caption, _MAX_CELL_CHARS),
        "size": "Stretch",
        "msteams": {"allowExpand": True},
    }
    caption = _text(figure.caption) | {"isSubtle": True, "size": "Small"}
    items = [picture, caption]
    if figure.page_url:
        action = {"type": "Action.OpenUrl", "title": _OPEN_PAGE[language], "url": figure.page_url}
        items.append({"type": "ActionSet", "actions": [action]})
    return {"type": "Container", "separator": True, "items": items}


def _table(table: ShownTable) -> Wire:
    rows = [_row(table.header, is_header=True), *(_row(row) for row in table.rows)]
    return {
        "type": "Table",
        "columns": [{"width": 1} for _ in table.header],
        "firstRowAsHeaders": True,
        "showGridLines": True,
        "gridStyle": "default",
        "rows": rows,
    }


def _row(cells: tuple[str, ...], *, is_header: bool = False) -> Wire:
    weight: Wire = {"weight": "Bolder"} if is_header else {}
    return {
        "type": "TableRow",
        "cells": [{"type": "TableCell", "items": [_text(cell) | weight]} for cell in cells],
    }


def _button(button: ShownButton) -> Wire:
    """One below the other: side by side, their names would be cut, and more than six hidden."""
    title = button_title(button)
    value = {OWN_KEY: button.value.model_dump(mode="json")}
    return {"type": "ActionSet", "actions": [{"type": "Action.Submit", "title": title, "data": value}]}


def _text(text: str) -> Wire:
    shown = _cut(" ".join(text.split()), _MAX_CELL_CHARS)
    for sign, parted in _PARTED:
        shown = shown.replace(sign, parted)
    return {"type": "TextBlock", "text": shown or " ", "wrap": True}


def _cut(text: str, most_chars: int) -> str:
    return text if len(text) <= most_chars else text[: most_chars - 1].rstrip() + "…"
