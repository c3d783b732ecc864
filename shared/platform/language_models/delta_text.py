"""delta_text."""

_HIGH_SURROGATES = ("\ud800", "\udbff")  # first and last
_REPLACEMENT = "\ufffd"


class DeltaText:
    """Joins a character that was split over two deltas; a half that nothing follows becomes U+FFFD.

    A model writes tokens and not characters, and JSON can say half a surrogate pair ("\\ud83d"): as a string
    of ours it could be neither stored nor sent.
    """

    def __init__(self) -> None:
        self._half = ""

    def feed(self, delta: str) -> str:
        """The text up to here that is whole."""
        text = self._half + delta
        first, last = _HIGH_SURROGATES
        self._half = text[-1:] if first <= text[-1:] <= last else ""
        return _whole(text.removesuffix(self._half))

    def finish(self) -> str:
        """What stands for the half that is left."""
        return _REPLACEMENT if self._half else ""


def whole_text(text: str) -> str:
    """A text that came as one, without halves of characters."""
    halves = DeltaText()
    return halves.feed(text) + halves.finish()


def _whole(text: str) -> str:
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
