"""Parses, checks and stores a sub-agent's report while it is streamed.

A report that is interrupted for any reason therefore leaves the findings that were complete by then.
"""

import asyncio
from collections.abc import Mapping
from contextlib import aclosing
from typing import Any, Literal

from shared.answering.budget import LEAST_CHARS_PER_TOKEN, BudgetSpentError, max_tokens_of
from shared.answering.findings import Material, is_whole, proved_report, read_partial, without_repeats
from shared.answering.passages import by_document, fitting, fitting_pages, in_turns
from shared.answering.subagent_budget import report_limits, report_passage_tokens
from shared.answering.subagent_context import SubagentContext
from shared.platform.errors import CallTimeoutError, GroundworkError, ModelFixableError, OutputCutError
from shared.platform.language_models.models import CallLimits, ModelUsage, Prompt
from shared.retrieval.models import DocumentRecord, Hit
from shared.tools.models import WebHit

# Interval between parses of the report. Parsing takes about a millisecond.
_READ_EVERY_S = 0.2
# Interval between writes of the findings. The stream waits about 10 ms for each.
_KEEP_EVERY_S = 0.5
# Maximum number of documents listed in the prompt. Each description takes about 100 tokens.
_MOST_LISTED = 20
# Share of the evidence space that web pages may fill. It is high, because profiles with web access exist to
# read them.
_PAGES_SHARE = 0.6

Ending = Literal["done", "partial"]


async def write_report(context: SubagentContext) -> Ending:
    """Have the model write the report from the evidence. Return `done`, or `partial` if a limit interrupted
    it.

    Raises:
        DependencyError: the model failed. Findings that were complete by then are stored.
        ModelFixableError: the model's output is not a valid report.
    """
    if not context.state.hits and not context.state.pages:
        context.add_warnings("NOTHING_FOUND")
        return "done"
    report = _Report(context)
    try:
        limits = report_limits(context.budget, report.prompt_tokens, context.remaining_s)
    except BudgetSpentError as spent:
        context.add_warnings(spent.limit)
        return "partial"
    is_paid = True
    try:
        await report.stream(limits)
    except GroundworkError as failed:
        report.finish()
        is_paid = bool(report.chars) or isinstance(failed, CallTimeoutError | ModelFixableError)
        return _ending_after(context, failed)
    finally:
        if is_paid:
            context.add_usage(report.usage)
    new_findings = report.finish()
    if is_whole(report.parsed, context.profile.report):
        if not context.state.findings:
            context.add_warnings("NOTHING_FOUND")
        return "done"
    context.add_warnings("REPORT_UNREADABLE")
    if new_findings:
        return "partial"
    raise ModelFixableError("A sub-agent's report cannot be read.")


class _Report:
    """One report in progress: its prompt, the received text and the findings in it.

    Attributes:
        chars: number of characters received.
        parsed: the JSON object parsed from them; None = no object was found.
    """

    def __init__(self, context: SubagentContext) -> None:
        self._context = context
        schema = str(context.profile.report.model_json_schema())
        listed = _listed_records(context)
        bare = max_tokens_of([context.system, context.message(listed=listed, then="report"), schema])
        hits, pages = _fitting_evidence(context, report_passage_tokens(context.budget, bare))
        user = context.message(hits, pages, listed, then="report")
        self._prompt = Prompt(name="sub_agent", system=context.system, user=user)
        self.prompt_tokens = max_tokens_of([context.system, user, schema])
        self._material = Material(hits, pages, listed)
        self._findings = context.state.findings  # findings of an earlier attempt, which are kept
        self._uncertainty = context.state.uncertainty
        self._text: list[str] = []
        self._usage: ModelUsage | None = None
        self._dropped = 0
        self._clock = asyncio.get_running_loop().time
        self._read_at = self._kept_at = self._clock()
        self._kept_count = len(self._findings)
        self.chars = 0
        self.parsed: Mapping[str, Any] | None = None

    @property
    def usage(self) -> ModelUsage:
        """Token usage as reported by the endpoint, or an estimate if it reported none."""
        output_tokens = -(-self.chars // LEAST_CHARS_PER_TOKEN)
        return self._usage or ModelUsage(input_tokens=self.prompt_tokens, output_tokens=output_tokens)

    async def stream(self, limits: CallLimits) -> None:
        """Stream the report. At intervals, parse it and store new findings.

        Raises:
            OutputCutError: the model exceeded its output limit.
        """
        model, report = self._context.services.chat_model, self._context.profile.report
        async with aclosing(model.stream_output(self._prompt, report, limits)) as pieces:
            async for piece in pieces:
                if isinstance(piece, ModelUsage):
                    self._usage = piece
                    continue
                self._text.append(piece)
                self.chars += len(piece)
                await self._parse_if_due()

    def finish(self) -> int:
        """Parse the complete text. Return the number of findings that this report added to those of earlier
        attempts.
        """
        self._parse()
        if self._dropped:
            self._context.add_warnings("PROOF_MISSING")
        return len(self._context.state.findings) - len(self._findings)

    async def _parse_if_due(self) -> None:
        """Parse the text received so far, and store new findings. Each happens at most once per interval."""
        now = self._clock()
        if now - self._read_at < _READ_EVERY_S:
            return
        self._read_at = now
        self._parse()
        count = len(self._context.state.findings)
        if count > self._kept_count and now - self._kept_at >= _KEEP_EVERY_S:
            self._kept_at, self._kept_count = now, count
            await self._context.store_findings(self.usage)

    def _parse(self) -> None:
        report = read_partial("".join(self._text))
        if report is None:
            return
        self.parsed = report
        proved = proved_report(self._context.profile.report, report, self._material)
        self._dropped = proved.dropped
        self._context.update_state(
            findings=without_repeats((*self._findings, *proved.findings)),
            uncertainty=tuple(dict.fromkeys((*self._uncertainty, *proved.uncertainty))),
        )


def _fitting_evidence(context: SubagentContext, room: int) -> tuple[list[Hit], list[WebHit]]:
    """Return the passages and web pages that fit into `room` tokens. The first passages of every document
    have priority.
    """
    pages = list(context.state.pages)
    shown_pages = fitting_pages(pages, int(room * _PAGES_SHARE)) if pages else []
    room -= max_tokens_of(page.text + page.title + page.url for page in shown_pages)
    hits = list(context.state.hits)
    chosen = fitting(in_turns(by_document(hits)), room) if hits and room > 0 else []
    chosen_by_id = {hit.block_id: hit for hit in chosen}
    return [chosen_by_id[hit.block_id] for hit in hits if hit.block_id in chosen_by_id], shown_pages


def _listed_records(context: SubagentContext) -> list[DocumentRecord]:
    """Return the records of the documents that tools have listed, up to a maximum number."""
    records = context.records
    return [records[doc_id] for doc_id in context.state.listed if doc_id in records][:_MOST_LISTED]


def _ending_after(context: SubagentContext, error: GroundworkError) -> Ending:
    """Return `partial` and add a warning if a limit interrupted the report. Otherwise raise the error."""
    if isinstance(error, OutputCutError):
        context.add_warnings("TOKENS_SPENT")
        return "partial"
    if isinstance(error, CallTimeoutError):
        context.add_warnings("TIME_OUT")
        return "partial"
    raise error
