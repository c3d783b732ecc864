"""A local stack whose app reaches its servers through recording proxies."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from benchmarks.answer.tap import Taps
from local.run_all.demo import ProgressBar, bring_samples
from local.run_all.stack import LocalStack
from local.run_all.stack_settings import FREE_PORTS, StackSettings


@contextmanager
def proxied_stack(folder: Path, taps: Taps) -> Iterator[LocalStack]:
    """Start a stack whose app reaches its services through recording proxies. The Functions host itself still
    calls storage directly.
    """
    with LocalStack(StackSettings(FREE_PORTS, folder)) as stack:
        bring_samples(stack, ProgressBar())
        ports = {name: getattr(stack.ports, name) for name in ("search", "model", "blob", "queue", "table")}
        with taps.serving(ports) as opened:
            stack.kill_host()
            names = ("DocumentsStorage", "AZURE_SEARCH_ENDPOINT", "OPENAI_BASE_URL")
            changes = {name: stack.app_settings[name] for name in names}
            for service, port in opened.items():
                changes = {
                    name: value.replace(f":{ports[service]}", f":{port}") for name, value in changes.items()
                }
            stack.start_host(changes)
            yield stack
