"""`python -m evals.ingest_report --data FOLDER --out report.json`: ingest every file of a folder and report
the results.

Exit code 1 if a file crashed or timed out; a file refused with a reason is not an error.
"""

import argparse
import sys
import time
from pathlib import Path

from evals.ingest_report.corpus import CorpusFile, find_files
from evals.ingest_report.ingesting import Ingesting
from evals.ingest_report.observing import observer
from evals.ingest_report.report import FileReport, Report, summarize
from evals.ingest_report.running_app import RunningApp, running_app
from local.run_all.stack_settings import StackError

AT_ONCE = 8
TIMEOUT_S = 900.0


def main() -> int:
    """Ingest the files, write the report, and return the exit code."""
    arguments = _arguments()
    try:
        files = find_files(arguments.data)
        with running_app() as app:
            report = make_report(app, files, arguments)
    except (StackError, ValueError) as failed:
        print(failed, file=sys.stderr)
        return 2
    arguments.out.write_text(report.model_dump_json(indent=1) + "\n", encoding="utf-8")
    print(f"\n{report.summary.model_dump_json(indent=1)}\nWritten to {arguments.out}")
    return 1 if report.summary.crashed or report.summary.timed_out else 0


def make_report(app: RunningApp, files: list[CorpusFile], arguments: argparse.Namespace) -> Report:
    """Ingest all files and return the report. Remove the documents afterwards, unless --keep is given."""
    began = time.monotonic()
    run = Ingesting(app, f"ingest-report-{time.time_ns()}", arguments.at_once, arguments.timeout)
    reports: dict[str, FileReport] = {}
    try:
        with observer(app) as watching:
            for ended in run.run(files):
                entry = watching.report(ended)
                reports[entry.file] = entry
                print(_line(len(reports), len(files), entry), flush=True)
    finally:
        if not arguments.keep:
            run.remove()
    return summarize([reports[name] for name in sorted(reports)], time.monotonic() - began)


def _line(done: int, total: int, entry: FileReport) -> str:
    recall = "" if entry.word_recall is None else f", recall {entry.word_recall:.3f}"
    remark = entry.reason or "; ".join(entry.warnings)
    counts = f"{entry.blocks} blocks{recall}, {entry.seconds:.1f} s"
    return f"{done:>4}/{total} {entry.status:<18} {entry.file}: {counts}{f' - {remark}' if remark else ''}"


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m evals.ingest_report", description=__doc__)
    parser.add_argument(
        "--data", type=Path, required=True, help="Folder with the files to ingest. They may have any type."
    )
    parser.add_argument("--out", type=Path, required=True, help="JSON file to which the report is written.")
    parser.add_argument(
        "--at-once",
        type=int,
        default=AT_ONCE,
        help="Number of files that are ingested at the same time (default: %(default)s).",
    )
    parser.add_argument(
        "--timeout",
        type=float,
        default=TIMEOUT_S,
        help="Timeout for each file, in seconds (default: %(default)s).",
    )
    parser.add_argument("--keep", action="store_true", help="Keep the documents in the app after the report.")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
