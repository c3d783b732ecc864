"""`python -m tests.contract.worker.update_golden`: rewrites the golden file from the app as it is now."""

import sys

from tests.contract.worker.app_bindings import ROOT, read_app_bindings
from tests.contract.worker.golden import GOLDEN_FILE, write_golden


def main() -> None:
    bindings = read_app_bindings(ROOT)
    write_golden(bindings)
    sys.stdout.write(f"{GOLDEN_FILE.relative_to(ROOT)}: {len(bindings)} functions\n")


if __name__ == "__main__":
    main()
