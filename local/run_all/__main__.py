"""`python -m local.run_all`: run the whole stack on this machine. Used by `make run` and `make demo`."""

import argparse
import os
import signal
import sys
import time
from types import FrameType

from local.run_all.api_client import ApiClient
from local.run_all.app_settings import SETTINGS_FILE, raised_limits
from local.run_all.demo import ProgressBar, StreamPrinter, bring_samples, print_citations, run_demo
from local.run_all.stack import DOCUMENTS_CONTAINER, LocalStack
from local.run_all.stack_settings import StackError, read_stack_settings
from local.run_all.tokens import FILE_NAME as SECRETS_FILE
from local.run_all.tokens import TOKENS_FILE
from samples.acl import ANNA, SAMPLE_USERS
from samples.questions import FIRST_QUESTION


def main() -> int:
    """Run the command and return its exit code."""
    arguments = _arguments()
    # SIGTERM is treated like Ctrl-C, so that the same `finally` blocks stop the stack.
    signal.signal(signal.SIGTERM, _interrupt)
    try:
        return run_demo() if arguments.demo else run(once=arguments.once)
    except StackError as error:
        print(f"\n{error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("\nStopped.")
        return 0


def run(*, once: bool) -> int:
    """Start the stack, ingest the samples, ask a question, and serve until interrupted. With `once`, stop
    after the question.
    """
    started = time.monotonic()
    settings = read_stack_settings(os.environ)
    print(f"Starting the local stack; its data and logs are in {settings.data}")
    with LocalStack(settings) as stack:
        print(f"Servers up after {time.monotonic() - started:.1f} s. Ingesting the samples:")
        bring_samples(stack, ProgressBar())
        print(f"Ready after {time.monotonic() - started:.1f} s. Model: {stack.model.description}\n")
        _ask_first_question(stack)
        if once:
            print("\nDone. Without --once it serves until Ctrl-C.")
            return 0
        _print_addresses(stack)
        _print_limits()
        print("\nServing until Ctrl-C.", flush=True)
        stack.watch()
    return 0


def _ask_first_question(stack: LocalStack) -> None:
    print(f"{ANNA.name} asks: {FIRST_QUESTION.text}\n")
    printer = StreamPrinter()
    reply = ApiClient(stack.base_url, stack.token(ANNA)).ask(FIRST_QUESTION.text, printer)
    printer.finish()
    if reply.error is not None:
        raise StackError(f"The sample question failed: {reply.error.get('message')}")
    print_citations(reply)


def _print_addresses(stack: LocalStack) -> None:
    """Print the addresses and the files with keys and tokens, which only their owner can read."""
    users = ", ".join(f"{user.user_id} ({user.department})" for user in SAMPLE_USERS)
    print(f"""
  Open  {stack.base_url}/  in a browser, and sign in as one of {len(SAMPLE_USERS)} sample users.

Sample users  {users}, admin
Command line  .venv/bin/python -m cli login --dev-user anna
API           {stack.base_url}/api
Documents     upload them in the web page, or write files into the container `{DOCUMENTS_CONTAINER}`:
              connection string in {stack.data / SETTINGS_FILE}
Tokens, keys  {stack.data / TOKENS_FILE}, {stack.data / SECRETS_FILE}""")


def _print_limits() -> None:
    if raised := raised_limits(os.environ):
        print(f"""Limits        raised for one person; set these variables to try those of Azure:
              {", ".join(raised)}""")


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m local.run_all", description=__doc__)
    parser.add_argument(
        "--demo",
        action="store_true",
        help="ask all demo questions as each sample user, check every answer, and stop",
    )
    parser.add_argument("--once", action="store_true", help="stop after the sample question")
    return parser.parse_args()


def _interrupt(number: int, frame: FrameType | None) -> None:
    raise KeyboardInterrupt


if __name__ == "__main__":
    sys.exit(main())
