"""`python -m evals.quotes --data quotations.jsonl --out report.json`: count which quotations the app accepts.

Labelled quotations are lines of `{"variant", "block", "quote", "faithful"}`. Near misses are derived from the
data sets in the parent folder; missing sets are reported and skipped. Exit code 1 if a faithful quotation is
rejected or any other is accepted.
"""

import argparse
import json
import sys
from collections import Counter
from pathlib import Path

from evals.quotes.blocks import SETS, SourceBlock, blocks_of
from evals.quotes.near_misses import NearMiss, near_misses
from shared.evidence.alignment import align
from shared.evidence.block_text import BlockText

PER_KIND = 40


def main() -> int:
    """Run the evaluation as set on the command line, and return the exit code."""
    parser = argparse.ArgumentParser(prog="python -m evals.quotes", description=__doc__)
    parser.add_argument("--data", type=Path, required=True, help="JSON lines with labelled quotations.")
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument(
        "--seed", type=int, default=1, help="Random seed of the alterations (default: %(default)s)."
    )
    arguments = parser.parse_args()
    lines = [json.loads(line) for line in arguments.data.read_text(encoding="utf-8").splitlines() if line]
    passed = {label: [line for line in lines if line["faithful"] is label] for label in (True, False)}
    accepted = {
        label: [line for line in lines_of_label if _holds(line)] for label, lines_of_label in passed.items()
    }
    misses = near_misses(_blocks(arguments.data.resolve().parents[1]), PER_KIND, arguments.seed)
    wrong = [miss for miss in misses if align(miss.quote, BlockText(miss.block))]
    report = {
        "faithful": len(passed[True]),
        "faithful_passed": len(accepted[True]),
        "unfaithful": len(passed[False]),
        "unfaithful_passed": len(accepted[False]),
        "near_misses": len(misses),
        "near_misses_passed": len(wrong),
        "kinds": dict(Counter(miss.kind for miss in misses)),
    }
    arguments.out.write_text(json.dumps(report, indent=1) + "\n", encoding="utf-8")
    print(json.dumps(report, indent=1))
    for miss in wrong:
        print(f"passed: {_line(miss)}", file=sys.stderr)
    for line in (line for line in passed[True] if line not in accepted[True]):
        print(f"failed: {line['variant']}: {line['quote']}", file=sys.stderr)
    return int(bool(wrong or accepted[False] or len(accepted[True]) < len(passed[True])))


def _blocks(folder: Path) -> list[SourceBlock]:
    blocks: list[SourceBlock] = []
    for name in SETS:
        try:
            blocks += blocks_of(folder / name)
        except FileNotFoundError as missing:
            print(f"skipped: {missing}", file=sys.stderr)
    return blocks


def _holds(line: dict[str, str]) -> bool:
    return align(line["quote"], BlockText(line["block"])) is not None


def _line(miss: NearMiss) -> str:
    return f"{miss.kind}: {miss.quote!r}\n  in {miss.block!r}"


if __name__ == "__main__":
    sys.exit(main())
