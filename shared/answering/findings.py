"""Converts a sub-agent's report to findings. A statement counts as proved only if its quotation is found.

The kind of a report's items (`shared.answering.subagent_models`) determines how they are converted, so
reports made of these kinds need no code of their own. A quotation counts if it occurs in a text passage, or
on the web page that it cites. Captions prove nothing, because a model wrote them.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from math import isnan
from typing import Any, get_args

from pydantic import BaseModel, TypeAdapter, ValidationError
from pydantic_core import from_json

from shared.answering.profiles import BackedClaim, Claim, Contrast, Proof, SectionSummary, WebClaim
from shared.answering.subagent_models import Finding, FoundProof
from shared.evidence.alignment import Alignment, align, normalise
from shared.evidence.block_text import BlockText
from shared.evidence.metadata_proof import prove_metadata
from shared.evidence.text import cut_at_word
from shared.retrieval.models import DocumentRecord, Hit
from shared.tools.models import WebHit


def read_partial(text: str) -> Mapping[str, Any] | None:
    """Parse a JSON object whose end may still be missing. Return None if `text` contains no object.

    An incomplete last value is dropped, so the innermost list or object may lack fields. Text before the
    object, such as the fence of a code block, is skipped.
    """
    start = text.find("{")
    if start < 0:
        return None
    try:
        value = from_json(text[start:], allow_partial=True)
    except ValueError:
        return None
    return value if isinstance(value, dict) else None


def is_whole(fields: Mapping[str, Any] | None, report: type[BaseModel]) -> bool:
    """Return whether the report contains all of its parts. The last part may still be incomplete."""
    return fields is not None and report.model_fields.keys() <= fields.keys()


# Maximum number of findings per report. Prompts ask for fewer, so this only stops a model that repeats
# itself.
MAX_FINDINGS = 40
MAX_TEXT_CHARS = 600
_MAX_UNCERTAINTY = 10
_MAX_LABEL_CHARS = 120
# Minimum number of documents that must prove a similarity or a conflict.
_TWO = 2
_UNPROVED = "(not proved)"


@dataclass
class Material:
    """The passages, web pages and records shown to a model, in which its quotations must occur. Results are
    cached.
    """

    hits: Sequence[Hit]
    pages: Sequence[WebHit] = ()
    records: Sequence[DocumentRecord] = ()
    _blocks: dict[str, BlockText] = field(default_factory=dict)
    _proved: dict[tuple[str, str], FoundProof | None] = field(default_factory=dict)

    def prove(self, doc_id: str, quote: str) -> FoundProof | None:
        """Return the proof for a quotation, or None if it isn't found. Document `doc_id` is searched first,
        then the others.
        """
        key = (doc_id, quote)
        if key not in self._proved:
            self._proved[key] = self._find(doc_id, quote)
        return self._proved[key]

    def prove_page(self, url: str, quote: str) -> FoundProof | None:
        """Return the proof for a quotation on the web page `url`, or None if the page doesn't contain it."""
        page = next((page for page in self.pages if page.url == url), None)
        alignment = self._align(quote, url, page.text) if page is not None else None
        if page is None or alignment is None:
            return None
        return FoundProof(quote=alignment.quote, url=page.url, title=page.title)

    def filename(self, doc_id: str) -> str:
        """Return the file name of a document, or its id if the model was shown no passage of it."""
        return next((hit.filename for hit in self.hits if hit.doc_id == doc_id), doc_id)

    def _find(self, doc_id: str, quote: str) -> FoundProof | None:
        texts = [hit for hit in self.hits if hit.block_type == "text"]
        for hit in sorted(texts, key=lambda hit: hit.doc_id != doc_id):
            if alignment := self._align(quote, hit.block_id, hit.content):
                words = alignment.quote
                return FoundProof(quote=words, doc_id=hit.doc_id, block_id=hit.block_id, title=hit.filename)
        for record in self.records:
            if record.doc_id == doc_id and (quotation := prove_metadata(quote, record)):
                return FoundProof(quote=quotation, doc_id=doc_id, title=record.filename)
        return None

    def _align(self, quote: str, key: str, text: str) -> Alignment | None:
        return align(quote, self._blocks.setdefault(key, BlockText(text)))


@dataclass(frozen=True)
class Proved:
    """Findings of a report whose quotations were checked.

    Attributes:
        dropped: number of quotations that were not found.
    """

    findings: tuple[Finding, ...] = ()
    uncertainty: tuple[str, ...] = ()
    dropped: int = 0


def proved_report(report: type[BaseModel], fields: Mapping[str, Any], material: Material) -> Proved:
    """Convert a complete or partial report to checked findings. Skip invalid items."""
    findings: list[Finding] = []
    uncertainty: list[str] = []
    dropped = 0
    for name, item in _items(report, fields):
        if isinstance(item, str):
            uncertainty.append(_shortened(item))
            continue
        finding, lost = _READERS[type(item)](name, item, material)
        dropped += lost
        if finding is not None and finding.text:
            findings.append(finding)
    return Proved(
        findings=without_repeats(findings),
        uncertainty=tuple(dict.fromkeys(text for text in uncertainty if text))[:_MAX_UNCERTAINTY],
        dropped=dropped,
    )


def without_repeats(findings: Sequence[Finding]) -> tuple[Finding, ...]:
    """Return the findings without repeated statements. Of equal statements, the one with the most proofs is
    kept, at the position of the first.
    """
    unique: dict[tuple[str, str], Finding] = {}
    for finding in findings:
        key = (finding.dimension.casefold(), normalise(finding.text).casefold())
        earlier = unique.get(key)
        if earlier is None or len(finding.proofs) > len(earlier.proofs):
            unique[key] = finding
    return tuple(unique.values())[:MAX_FINDINGS]


def _shortened(text: str, max_chars: int = MAX_TEXT_CHARS) -> str:
    """Return the text on one line, not sanitised, and truncated to about `max_chars` characters."""
    return cut_at_word(" ".join(text.split()), max_chars)


def _items(report: type[BaseModel], values_by_part: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """Yield each valid item of a report with the name of its part. Skip invalid and incomplete items."""
    for name, described in report.model_fields.items():
        values = values_by_part.get(name)
        kind = get_args(described.annotation)[0]
        for value in values if isinstance(values, list) else ():
            try:
                yield name, _adapter(kind).validate_python(value)
            except ValidationError:
                continue  # The item is incomplete because the report is still streaming, or it is invalid.


@cache
def _adapter(kind: Any) -> TypeAdapter[Any]:
    return TypeAdapter(kind)  # cached, because a streamed report is parsed several times per second


Read = tuple[Finding | None, int]
"""A finding, or none; and how many quotations were dropped."""


def _section(_: str, item: SectionSummary, material: Material) -> Read:
    heading = _shortened(item.heading, _MAX_LABEL_CHARS)
    return Finding(kind="section", text=_shortened(item.summary), dimension=heading), 0


def _claim(part: str, item: Claim, material: Material) -> Read:
    proofs, dropped = _proofs(item.proofs, material)
    if not proofs:
        return None, dropped
    is_shared = part == "similarities" and len({proof.doc_id for proof in proofs}) >= _TWO
    kind = "similarity" if is_shared else "claim"
    return Finding(kind=kind, text=_shortened(item.text), proofs=proofs), dropped


def _backed(_: str, item: BackedClaim, material: Material) -> Read:
    proofs, dropped = _proofs(item.proofs, material)
    # The confidence is zero if the claim is unproved or the model's value is NaN.
    confidence = min(max(item.confidence, 0.0), 1.0) if proofs and not isnan(item.confidence) else 0.0
    text = _shortened(item.text)
    return Finding(kind="claim", text=text, confidence=confidence, proofs=proofs), dropped


def _contrast(part: str, item: Contrast, material: Material) -> Read:
    proved = [(side, material.prove(side.doc_id, side.quote)) for side in item.sides if side.quote.strip()]
    proofs = tuple(proof for _, proof in proved if proof is not None)
    unproved = [side for side, proof in proved if proof is None]
    dropped = len(unproved)
    kind = _kind_of_contrast(part, len({proof.doc_id for proof in proofs}), len(item.sides))
    text = "; ".join(
        f"{material.filename(side.doc_id)}: {_shortened(side.statement)}"
        + (f" {_UNPROVED}" if side in unproved else "")
        for side in item.sides
    )
    dimension = _shortened(item.dimension, _MAX_LABEL_CHARS)
    return Finding(kind=kind, text=_shortened(text), dimension=dimension, proofs=proofs), dropped


def _kind_of_contrast(part: str, proved_documents: int, sides: int) -> Any:
    """Return the kind of a contrast: "conflict" if at least two documents prove it, "difference" if it has at
    least two sides, else "claim".
    """
    if part == "conflicts" and proved_documents >= _TWO:
        return "conflict"
    return "difference" if sides >= _TWO else "claim"


def _web(_: str, item: WebClaim, material: Material) -> Read:
    results = [material.prove_page(source.url, source.quote) for source in item.sources]
    proofs = tuple(proof for proof in results if proof is not None)
    dropped = len(results) - len(proofs)
    return (Finding(kind="web", text=_shortened(item.text), proofs=proofs) if proofs else None), dropped


def _proofs(quotations: Sequence[Proof], material: Material) -> tuple[tuple[FoundProof, ...], int]:
    results = [material.prove(proof.doc_id, proof.quote) for proof in quotations]
    proofs = dict.fromkeys(proof for proof in results if proof is not None)
    return tuple(proofs), sum(proof is None for proof in results)


_READERS: Mapping[type, Callable[[str, Any, Material], Read]] = {
    SectionSummary: _section,
    Claim: _claim,
    BackedClaim: _backed,
    Contrast: _contrast,
    WebClaim: _web,
}
