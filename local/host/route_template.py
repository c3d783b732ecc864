"""Route templates of HTTP triggers: `runs/{run_id}/events`, `{*rest}`, `{n:int}`, `{id?}`. Pure.

As the real host (ASP.NET routing) matches them: letters of literals in either case, the most specific route
first.
"""

import re
from dataclasses import dataclass
from urllib.parse import unquote

from local.host.errors import AppError

CONSTRAINTS = {
    "int": r"-?\d+",
    "long": r"-?\d+",
    "guid": r"[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}",
    "alpha": r"[A-Za-z]+",
    "bool": r"(?i:true|false)",
}
PARAMETER = re.compile(r"^\{(\*?)(\w+)(?::(\w+))?(\??)\}$")
LITERAL, PARAMETER_RANK, CATCH_ALL = 0, 1, 2


@dataclass(frozen=True)
class RouteTemplate:
    """A compiled template. Sorting by `rank` puts the more specific one first."""

    text: str
    pattern: re.Pattern[str]
    rank: tuple[int, ...]

    def match(self, path: str) -> dict[str, str] | None:
        """The route parameters of a path (raw, without a leading slash), or None.

        Values are percent-decoded; an absent optional parameter is absent from the result.
        """
        matched = self.pattern.fullmatch(path)
        if matched is None:
            return None
        return {name: unquote(value) for name, value in matched.groupdict().items() if value is not None}


def compile_route(template: str) -> RouteTemplate:
    """Compile a route template.

    Raises:
        AppError: a segment or a constraint that this host does not know.
    """
    pattern, rank = "", []
    for index, segment in enumerate(template.strip("/").split("/")):
        segment_pattern, segment_rank, optional = _compile_segment(segment, template)
        slash = "/" if index else ""
        pattern += f"(?:{slash}{segment_pattern})?" if optional else slash + segment_pattern
        rank.append(segment_rank)
    return RouteTemplate(template, re.compile(pattern), tuple(rank))


def _compile_segment(segment: str, template: str) -> tuple[str, int, bool]:
    if "{" not in segment:
        return f"(?i:{re.escape(segment)})", LITERAL, False
    matched = PARAMETER.match(segment)
    if matched is None:
        raise AppError(f"route {template!r}: this host does not know the segment {segment!r}")
    star, name, constraint, optional = matched.groups()
    if star:
        return f"(?P<{name}>.*)", CATCH_ALL, True
    if constraint is not None and constraint not in CONSTRAINTS:
        raise AppError(f"route {template!r}: this host knows the constraints {', '.join(CONSTRAINTS)}")
    return f"(?P<{name}>{CONSTRAINTS.get(constraint or '', '[^/]+')})", PARAMETER_RANK, bool(optional)
