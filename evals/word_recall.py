"""Word recall: how much of a reference text an extraction holds. Pure; knows Markdown, not the project."""

import html
import re
from collections import Counter

_COMMENT = re.compile(r"<!--.*?-->", re.DOTALL)
_IMAGE = re.compile(r"!\[([^\]]*)\]\((?:[^()]|\([^()]*\))*\)")
_LINK = re.compile(r"\[((?:[^\[\]]|\[[^\]]*\])*)\]\((?:[^()]|\([^()]*\))*\)")
_CHECKBOX = re.compile(r"^(\s*[-*+]) \[[ xX]\] ", re.MULTILINE)
_ESCAPE = re.compile(r"\\([\\`*_{}\[\]()#+.!|<>~$-])")
_WORD = re.compile(r"\w+")


def word_recall(reference_markdown: str, text: str) -> float:
    """Share of the reference's words that are in `text`, each as often as it occurs there; 0 to 1.

    Words are runs of letters and digits in lower case; an underscore parts them. Markdown's signs, link
    targets, comments and HTML entities are no words. Order does not count. A reference without words is
    held by any text.
    """
    wanted = _words(_visible(reference_markdown))
    if not wanted:
        return 1.0
    return (wanted & _words(text)).total() / wanted.total()


def _visible(markdown: str) -> str:
    text = _LINK.sub(r"\1", _IMAGE.sub(r"\1", _COMMENT.sub(" ", markdown)))
    return html.unescape(_ESCAPE.sub(r"\1", _CHECKBOX.sub(r"\1 ", text)))


def _words(text: str) -> Counter[str]:
    return Counter(_WORD.findall(text.replace("_", " ").lower()))
