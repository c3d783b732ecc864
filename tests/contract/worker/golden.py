"""The golden file: every function of the app with its trigger and bindings, as last reviewed."""

import json
import re
from pathlib import Path

from tests.contract.worker.app_bindings import AppBindings

GOLDEN_FILE = Path(__file__).with_name("golden_bindings.json")


def read_golden() -> AppBindings:
    golden: AppBindings = json.loads(GOLDEN_FILE.read_text(encoding="utf-8"))
    return golden


def api_routes() -> set[tuple[str, str, str]]:
    """Method, route below `/api` and name of every HTTP function; not the web page's, nor `wrong_address`."""
    return {
        (method, binding["route"].removeprefix("api/"), name)
        for name, function in read_golden().items()
        for binding in function["bindings"]
        if binding["type"] == "httpTrigger" and re.match(r"api/(?!\{\*)", binding["route"])
        for method in binding["methods"]
    }


def write_golden(bindings: AppBindings) -> None:
    text = json.dumps(bindings, indent=2, ensure_ascii=False, sort_keys=True)
    GOLDEN_FILE.write_text(text + "\n", encoding="utf-8")
