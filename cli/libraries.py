"""`libraries`: synchronised SharePoint libraries, for administrators."""

from typing import Any

from cli.commands import Call, app
from cli.errors import DONE, NOT_ALL_WELL
from cli.terminal import moment


@app.add("libraries")
def show_libraries(call: Call) -> int:
    """Show synchronised SharePoint libraries (administrators)."""
    response = call.api.call("GET", "/sharepoint")
    libraries: list[dict[str, Any]] = response["libraries"]
    if call.terminal.as_json:
        call.terminal.json(response)
    else:
        call.terminal.rows(
            libraries,
            ("Library", "Status", "Last success", "Documents", "Hidden", "Skipped"),
            lambda one: (
                one["name"],
                one["error"] or one["status"],
                moment(one["succeeded_at"]) if one["succeeded_at"] else "",
                str(one["counts"]["files"]),
                str(one["counts"]["hidden"]),
                ", ".join(f"{count} {reason}" for reason, count in one["counts"]["skipped"].items()),
            ),
            nothing="No library is synchronised: SHAREPOINT_LIBRARIES is empty.",
        )
        for library in libraries:
            for example in library["counts"]["examples"]:
                call.terminal.note(f"{library['name']}: {example['name']}: {example['reason']}")
    failed = any(library["status"] in ("failed", "closed") for library in libraries)
    return NOT_ALL_WELL if failed else DONE
