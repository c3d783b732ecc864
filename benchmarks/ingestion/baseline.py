"""A baseline parser: pypdf with windows of 1,000 characters. Reads one path per line from stdin and prints
JSON lines.
"""

import json
import sys

from pypdf import PdfReader

WINDOW_CHARS = 1000


def main() -> None:
    for line in sys.stdin:
        pages = PdfReader(line.rstrip("\n")).pages
        windows = 0
        for page in pages:
            text = page.extract_text()
            windows += len([text[at : at + WINDOW_CHARS] for at in range(0, len(text), WINDOW_CHARS)])
        print(json.dumps({"pages": len(pages), "chunks": windows}), flush=True)


if __name__ == "__main__":
    main()
