"""Serves one function app: `python -m local.host --port 17071 --data FOLDER [--app function_app]`."""

import argparse
import asyncio
import logging
import os
import sys
from pathlib import Path

from local.host.catalogue import index_functions, load_app
from local.host.errors import HostError
from local.host.functions_host import FunctionsHost
from local.host.serving import ADDRESS, PORT_SETTING, bind, serve
from local.host.settings import fill_environment, read_host_options

DEFAULT_PORT = 17071
EXIT_CANNOT_START = 2


def main() -> None:
    arguments = _arguments()
    _set_up_logging()
    try:
        ended_well = _run(arguments)
    except HostError as error:
        print(f"local.host: {error}", file=sys.stderr, flush=True)
        sys.exit(EXIT_CANNOT_START)
    sys.exit(0 if ended_well else 1)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m local.host", description=__doc__)
    parser.add_argument("--port", type=int, default=int(os.environ.get(PORT_SETTING, DEFAULT_PORT)))
    parser.add_argument("--data", type=Path, required=True, help="folder for what must survive a restart")
    parser.add_argument(
        "--app", default="function_app", help="module name in the current folder, or path of a .py"
    )
    return parser.parse_args()


def _set_up_logging() -> None:
    logging.basicConfig(
        level=logging.INFO, stream=sys.stderr, format="%(asctime)s %(levelname)s %(name)s: %(message)s"
    )
    for name in ("azure", "uvicorn", "httpx"):
        logging.getLogger(name).setLevel(logging.WARNING)


def _run(arguments: argparse.Namespace) -> bool:
    listener = bind(arguments.port)
    folder, module_name = _locate(arguments.app)
    fill_environment(folder, os.environ)
    # What `func start` sets, too.
    os.environ.setdefault("AZURE_FUNCTIONS_ENVIRONMENT", "Development")
    os.environ.setdefault("WEBSITE_HOSTNAME", f"localhost:{arguments.port}")
    options = read_host_options(folder)
    functions = index_functions(load_app(module_name, folder))
    base_url = f"http://{ADDRESS}:{arguments.port}"

    async def serve_app() -> tuple[bool, bool]:
        host = FunctionsHost(functions, options, arguments.data, base_url)
        ended_well = await serve(
            host,
            listener,
            lambda: print(f"host ready on {base_url} ({len(functions)} functions)", flush=True),
        )
        return ended_well, host.has_running_threads()

    ended_well, has_running_threads = asyncio.run(serve_app())
    if has_running_threads:
        # A synchronous function outlived the grace period; waiting for its thread could take for ever.
        logging.shutdown()
        sys.stdout.flush()
        os._exit(0 if ended_well else 1)
    return ended_well


def _locate(app: str) -> tuple[Path, str]:
    path = Path(app)
    if path.suffix == ".py":
        return path.resolve().parent, path.stem
    return Path.cwd(), app


if __name__ == "__main__":
    main()
