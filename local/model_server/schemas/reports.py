"""DocReaderReport, ComparatorReport, EvidenceReport, WebReport: reports of sub-agents, within their limit."""

from collections.abc import Callable

from pydantic import JsonValue

from local.model_server.reports.assignment import Assignment, read_assignment
from local.model_server.reports.comparator import write_comparison
from local.model_server.reports.doc_reader import write_doc_report
from local.model_server.reports.evidence import write_evidence
from local.model_server.reports.fitting import fit_report
from local.model_server.reports.web import write_web_report
from local.model_server.schemas.task import SchemaTask

Writer = Callable[[Assignment], dict[str, JsonValue]]


def _handler(write: Writer) -> Callable[[SchemaTask], dict[str, JsonValue]]:
    def report(task: SchemaTask) -> dict[str, JsonValue]:
        assignment = read_assignment(task.messages, task.embedder)
        return fit_report(write(assignment), task.output_limit, task.embedder.count_tokens)

    return report


REPORT_HANDLERS: dict[str, Callable[[SchemaTask], dict[str, JsonValue]]] = {
    "DocReaderReport": _handler(write_doc_report),
    "ComparatorReport": _handler(write_comparison),
    "EvidenceReport": _handler(write_evidence),
    "WebReport": _handler(write_web_report),
}
