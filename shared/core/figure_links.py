"""Where a figure lies, and how an answer shows it. Pure.

A picture is referred to by an address of our own API, never by a signed one: an answer is streamed, stored
and replayed byte for byte, and a signature ends after hours.
"""

import re

from shared.core.evidence import source_place
from shared.core.reader_text import readable
from shared.models.figures import AnswerFigure
from shared.models.search import Hit

_BLOB = re.compile(r"figures/(?P<doc_id>[A-Za-z0-9_-]{1,128})/(?P<name>[0-9a-f]{64}\.png)")
_PATH = re.compile(r"/api/documents/(?P<doc_id>[A-Za-z0-9_-]{1,128})/figures/(?P<name>[0-9a-f]{64}\.png)")
# Brackets and everything else that could end the text of a picture, begin markup, or hide what follows.
_SIGNS = re.compile(r"[\[\]<>`*_|\\!&#~]|[^\S ]|[\u00ad\u200b-\u200f\u202a-\u202e\u2060-\u206f\ufeff]")
_MAX_ALT_CHARS = 200


def figure_path(blob_path: str | None) -> str | None:
    """The address of a picture in our API, from the blob path that its block carries; None if it is none."""
    found = _BLOB.fullmatch(blob_path or "")
    return f"/api/documents/{found['doc_id']}/figures/{found['name']}" if found else None


def figure_blob_name(doc_id: str, name: str) -> str | None:
    """The blob's name in the container of figures; None where no figure can be called so."""
    return f"{doc_id}/{name}" if _BLOB.fullmatch(f"figures/{doc_id}/{name}") else None


def blob_name_of_path(path: str) -> str | None:
    """The blob's name in the container of figures, from an address that `figure_path` made."""
    found = _PATH.fullmatch(path)
    return f"{found['doc_id']}/{found['name']}" if found else None


def answer_figure(hit: Hit) -> AnswerFigure | None:
    """The figure of an image block; None for any other block."""
    path = figure_path(hit.image_url) if hit.block_type == "image" else None
    if path is None:
        return None
    return AnswerFigure(
        block_id=hit.block_id,
        doc_id=hit.doc_id,
        filename=hit.filename,
        page_number=hit.page_number,
        caption=hit.image_caption or "",
        path=path,
    )


def figure_markdown(figure: AnswerFigure) -> str:
    """`![caption](address) (Source: manual.pdf, S. 3)`."""
    return (
        f"![{alt_text(figure.caption)}]({figure.path}) ({source_place(figure.filename, figure.page_number)})"
    )


def alt_text(caption: str) -> str:
    """A caption on one line, cut at a word, without what Markdown or HTML would read as a sign.

    A vision model wrote it, and a picture may have told it what to write.
    """
    text = readable(" ".join(_SIGNS.sub(" ", caption).split()))
    if len(text) > _MAX_ALT_CHARS:
        text = text[:_MAX_ALT_CHARS].rpartition(" ")[0] + " …"
    return text or "Figure"
