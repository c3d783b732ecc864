"""Windows: which documents one look at all of them can hold at once, by their ids. Pure.

Ids are digests in hex, so each half of a window has half of its documents, whatever they are called. A
window is narrowed by the lowest bits of a counter: over 2^n counts in a row each window of n bits comes
exactly once, and lies within the one of fewer bits at the same count.
"""

from dataclasses import dataclass

from shared.core.odata import all_of, quote

_DIGITS = 6
_BITS = 4 * _DIGITS


@dataclass(frozen=True)
class IdWindow:
    """Documents whose ids, as numbers, begin with these bits.

    Attributes:
        bits: how many; 0 = all documents, whatever their ids look like.
        value: of these bits.
    """

    bits: int = 0
    value: int = 0

    @property
    def low(self) -> str:
        """The first id; empty = there is none before."""
        return f"{self.value << (_BITS - self.bits):0{_DIGITS}x}" if self.value else ""

    @property
    def high(self) -> str | None:
        """The first id beyond; None = there is none."""
        beyond = self.value + 1
        return None if beyond == 1 << self.bits else f"{beyond << (_BITS - self.bits):0{_DIGITS}x}"

    @property
    def prefix(self) -> str:
        """What all ids of the window begin with."""
        digits = self.bits // 4
        return f"{self.value >> (self.bits - 4 * digits):0{digits}x}" if digits else ""

    @property
    def share(self) -> float:
        """Of all documents."""
        return 1 / (1 << self.bits)

    def holds(self, doc_id: str) -> bool:
        """Whether a document belongs to it."""
        return self.low <= doc_id and (self.high is None or doc_id < self.high)

    def condition(self, name: str) -> str | None:
        """The same of a field or column, in OData; None = no condition."""
        above = f"{name} ge {quote(self.low)}" if self.low else None
        below = f"{name} lt {quote(self.high)}" if self.high is not None else None
        return all_of(above, below)

    def narrowed(self, count: int, bits: int | None = None) -> "IdWindow":
        """Its half that is due at this count, or the part of it that has `bits`; never a wider one."""
        window = self
        while window.bits < min(self.bits + 1 if bits is None else bits, _BITS):
            window = IdWindow(window.bits + 1, 2 * window.value + (count >> window.bits & 1))
        return window


EVERYTHING = IdWindow()
