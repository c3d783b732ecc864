"""The baseline parser: pypdf, with chunks of 1,000 characters. It reads one path per line from standard
input, and prints JSON lines.
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
