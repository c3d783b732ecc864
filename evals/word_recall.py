"""Word recall: the share of the words in a reference text that an extracted text contains. Pure, and
independent of the app's code.
"""

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
    """Return the share (0 to 1) of the reference's words that `text` contains, counting repetitions.

    Words are runs of letters and digits in lower case, separated by anything else, including underscores.
    Markdown syntax, link targets, comments and HTML entities don't count. Order is ignored. The recall of an
    empty reference is 1.
    """
    reference_words = _words(_visible(reference_markdown))
    if not reference_words:
        return 1.0
    return (reference_words & _words(text)).total() / reference_words.total()


def _visible(markdown: str) -> str:
    text = _LINK.sub(r"\1", _IMAGE.sub(r"\1", _COMMENT.sub(" ", markdown)))
    return html.unescape(_ESCAPE.sub(r"\1", _CHECKBOX.sub(r"\1 ", text)))


def _words(text: str) -> Counter[str]:
    return Counter(_WORD.findall(text.replace("_", " ").lower()))
