"""`python -m evals.fuzz --out report.json`: send thousands of requests generated from the API description.

Called by `make fuzz`. Starts a local stack on free ports, sends as two users, one of them an administrator,
and validates every response against the served description. Exit code 1 if the app failed or contradicted its
description, 2 if nothing could be sent.
"""

import argparse
import json
import os
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import httpx

from evals.evaluation.revision import revision
from evals.fuzz.generating import requests
from evals.fuzz.report import as_text, is_clean, report
from evals.fuzz.scenarios import Player
from evals.fuzz.sending import Sender
from evals.fuzz.things import Things, bring
from local.run_all.app_settings import ENDPOINT_NAMES
from local.run_all.stack import LocalStack
from local.run_all.stack_settings import FREE_PORTS, StackError, StackSettings
from local.run_all.tokens import mint_token
from samples.acl import ANNA, BEN

# Streams end after this time, in seconds. Otherwise, a stream that waits would block all other requests for
# three minutes.
STREAM_SECONDS = "1"
CALL_TIMEOUT_S = 120.0
# Number of requests per scenario. A scenario makes about six calls, some of which start expensive runs.
_CASES_PER_SCENARIO = 50


def main() -> int:
    """Run the evaluation as set on the command line, and return the exit code."""
    arguments = _arguments()
    began = time.monotonic()
    try:
        with tempfile.TemporaryDirectory() as folder, _stack(Path(folder)) as stack:
            results = fuzz(stack, arguments.cases, arguments.seed, arguments.scenarios)
    except (StackError, httpx.HTTPError, TimeoutError) as failed:
        print(failed, file=sys.stderr)
        return 2
    results |= {"seed": arguments.seed, "seconds": round(time.monotonic() - began), "commit": revision()}
    arguments.out.parent.mkdir(parents=True, exist_ok=True)
    arguments.out.write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")
    print(f"{as_text(results)}\n\n{results['seconds']} s. Written to {arguments.out}")
    return 0 if is_clean(results) else 1


def fuzz(stack: LocalStack, cases: int, seed_number: int, scenarios: int | None = None) -> dict[str, Any]:
    """Send `cases` generated requests to a running stack, then play scenarios of dependent calls, and return
    the report.
    """
    url, secret = f"{stack.base_url}/api", stack.secrets.token_secret
    tokens = {
        ANNA.user_id: mint_token(ANNA, secret, roles=("admin",)),
        BEN.user_id: mint_token(BEN, secret),
    }
    things = Things()
    for one in tokens.values():
        headers = {"Authorization": f"Bearer {one}"}
        with httpx.Client(base_url=url, headers=headers, timeout=CALL_TIMEOUT_S) as user:
            bring(user, things)
    document = httpx.get(f"{url}/openapi.json", timeout=CALL_TIMEOUT_S).json()
    cases_by_name = requests(document, cases, seed_number)
    sender = Sender(url, tokens, things, seed_number)
    seen = sender.send_all(cases_by_name)
    count = cases // _CASES_PER_SCENARIO if scenarios is None else scenarios
    # Issue tokens without the administrator role, so that neither user may see the other's resources.
    plain = {user.user_id: mint_token(user, secret) for user in (ANNA, BEN)}
    scenario_report = Player(document, url, things, seed_number).play(plain, count)
    return report(seen, sender.without_identity(cases_by_name, open_calls(document)), scenario_report)


def open_calls(document: dict[str, Any]) -> frozenset[str]:
    """Return the ids of the operations that require no authentication."""
    calls = [call for methods in document["paths"].values() for call in methods.values()]
    return frozenset(call["operationId"] for call in calls if call.get("security") == [])


def _stack(folder: Path) -> LocalStack:
    environment = {name: value for name, value in os.environ.items() if name not in ENDPOINT_NAMES}
    settings = StackSettings(FREE_PORTS, folder)
    return LocalStack(settings, environment=environment | {"STREAM_SECONDS": STREAM_SECONDS})


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m evals.fuzz", description=__doc__)
    parser.add_argument("--out", type=Path, required=True, help="JSON file to which the report is written.")
    parser.add_argument(
        "--cases", type=int, default=5000, help="Number of requests to send (default: %(default)s)."
    )
    parser.add_argument(
        "--scenarios",
        type=int,
        help="Number of scenarios, which are sequences of dependent calls (default: cases / 50).",
    )
    parser.add_argument(
        "--seed",
        type=int,
        default=1,
        help="Random seed (default: %(default)s).",
    )
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
