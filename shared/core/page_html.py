"""A page of a document, and its readable text, as whole HTML pages. Pure. No script; links are our own."""

from shared.core.evidence import CITED_ID
from shared.core.page_style import STYLE
from shared.core.reading_html import ElementsHtml, as_text
from shared.models.page_views import CitedPassage, PageView, ReadableView, ViewedPicture

TEXT_ID = "cited-text"
"""The anchor of the first marked place in the text, where the picture has marks, too."""

_SEEN_ABOVE = 0.12  # of a page: so much is seen above the passage when an address leads to it


def page_html(view: PageView) -> str:
    """One page: its picture with the cited passage marked, beside its text."""
    noun = "Page" if view.has_pages else "Part"
    place = f"{noun} {view.page_number} of {view.page_count}"
    path = f"/api/documents/{view.doc_id}/pages"
    before = f"{path}/{view.page_number - 1}" if view.page_number > 1 else None
    after = f"{path}/{view.page_number + 1}" if view.page_number < view.page_count else None
    links = [
        _link(before, f"Previous {noun.lower()}", "prev"),
        _link(after, f"Next {noun.lower()}", "next"),
        _link(view.readable_url, "Whole text"),
        *_sources(view),
    ]
    # An address leads to the passage in the picture, where there is one: it says more than its text.
    anchor = TEXT_ID if _has_boxes(view) else CITED_ID
    text = ElementsHtml(view.source_url, anchor=anchor).written(view.elements)
    if not text:
        text = f'<p class="none">No text was found on this {noun.lower()}.</p>'
    body = [
        _cited(view.cited, view),
        "" if view.picture is None else _sheet(view.picture, place, view.filename),
        _text(text, f"Text of {place.lower()}", view.language),
    ]
    return _page(view, place, links, body, columns="one" if view.picture is None else "two")


def readable_html(view: ReadableView) -> str:
    """A part of the whole text."""
    path = f"/api/documents/{view.doc_id}/readable"
    is_first = view.previous_cursor is None
    links = [
        _link(None if is_first else f"{path}?cursor={view.previous_cursor}", "Previous part", "prev"),
        _link(f"{path}?cursor={view.cursor}" if view.cursor else None, "Next part", "next"),
        *_sources(view),
    ]
    if is_first and view.cursor is None:
        links = links[2:]
    text = ElementsHtml(view.source_url, shows_pages=True).written(view.elements)
    if not text:
        text = '<p class="none">No text was found in this document.</p>'
    body = [_cited(view.cited, view), _text(text, "Text of the document", view.language)]
    return _page(view, "Readable view", links, body, columns="one")


def _page(view: PageView | ReadableView, place: str, links: list[str], body: list[str], columns: str) -> str:
    title = view.title or view.filename
    about = place if title == view.filename else f"{view.filename} · {place}"
    return f"""<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="referrer" content="no-referrer">
<title>{as_text(title)} · {as_text(place)}</title>
<style>{STYLE}</style>
</head>
<body>
<a class="skip" href="#text">Skip to the text</a>
<header>
<h1 dir="auto"{_lang(view.language)}>{as_text(title)}</h1>
<p class="about">{as_text(about)}</p>
<nav aria-label="Document">{" ".join(link for link in links if link)}</nav>
</header>
<main id="text" class="{columns}" tabindex="-1">
{chr(10).join(part for part in body if part)}
</main>
</body>
</html>
"""


def _link(address: str | None, words: str, relation: str = "") -> str:
    if address is None:
        return f'<span class="off">{words}</span>'
    rel = f' rel="{relation}"' if relation else ""
    return f'<a{rel} href="{as_text(address)}">{words}</a>'


def _sources(view: PageView | ReadableView) -> list[str]:
    links = [_link(view.content_url, "Open the file")]
    if view.source_url:
        links.append(_link(view.source_url, "Where it was taken from", "noreferrer noopener"))
    return links


def _cited(cited: CitedPassage | None, view: PageView | ReadableView) -> str:
    if cited is None:
        return ""
    said = '<span class="badge">verbatim in the document</span>' if cited.verified else "from a description"
    return (
        f'<aside class="cited" aria-label="Cited passage"><p><strong>Cited passage [{cited.n}]</strong> · '
        f"{said}</p>\n<blockquote>{as_text(cited.quote)}</blockquote>\n{_where(cited, view)}</aside>"
    )


def _where(cited: CitedPassage, view: PageView | ReadableView) -> str:
    """Where to look for it; empty when there is nothing to say."""
    if isinstance(view, PageView) and _has_boxes(view):
        in_text = any(element.marks for element in view.elements)
        second = f' · <a href="#{TEXT_ID}">in the text</a>' if in_text else ""
        return f'<p>Marked: <a href="#{CITED_ID}">in the picture</a>{second}</p>'
    if cited.is_marked:
        return f'<p>Marked: <a href="#{CITED_ID}">in the text</a></p>'
    shown = view.page_number if isinstance(view, PageView) and view.has_pages else None
    if cited.page_number is not None and shown is not None and cited.page_number != shown:
        address = f"/api/documents/{view.doc_id}/pages/{cited.page_number}?run={cited.run_id}&n={cited.n}"
        return f'<p>It stands on <a href="{as_text(address)}">page {cited.page_number}</a>.</p>'
    return "<p>It could not be marked here: the document may have changed since it was cited.</p>"


def _has_boxes(view: PageView) -> bool:
    return view.picture is not None and bool(view.picture.marks)


def _sheet(picture: ViewedPicture, place: str, filename: str) -> str:
    size = ""
    if picture.width_px and picture.height_px:
        size = f' width="{picture.width_px}" height="{picture.height_px}"'
    words = f"{place} of {filename} as a picture. Its text follows."
    boxes = "".join(
        f'<rect x="{area.left * 1000:.1f}" y="{area.top * 1000:.1f}" rx="3" '
        f'width="{(area.right - area.left) * 1000:.1f}" height="{(area.bottom - area.top) * 1000:.1f}"/>'
        for area in picture.marks
    )
    if boxes:
        top = max(0.0, min(area.top for area in picture.marks) - _SEEN_ABOVE)
        boxes = (
            f'<rect id="{CITED_ID}" class="anchor" x="0" y="{top * 1000:.1f}" width="1" height="1"/>{boxes}'
        )
    overlay = (
        f'<svg viewBox="0 0 1000 1000" preserveAspectRatio="none" aria-hidden="true">{boxes}</svg>'
        if boxes
        else ""
    )
    image = f'<img src="{as_text(picture.path)}"{size} alt="{as_text(words)}">'
    return f'<figure class="sheet">{image}{overlay}</figure>'


def _text(text: str, label: str, language: str | None) -> str:
    about = f'dir="auto" aria-label="{as_text(label)}"{_lang(language)}'
    return f'<section class="text" {about}>\n{text}\n</section>'


def _lang(language: str | None) -> str:
    return f' lang="{as_text(language)}"' if language else ""
