"""A query in words, by rule from its tree, so that people can see what was calculated. Pure.

What has no words here is shown as SQL: nothing is left out.
"""

from collections import Counter
from collections.abc import Callable, Mapping

from sqlglot import exp

_AGGREGATES: Mapping[type[exp.Expr], str] = {
    exp.Sum: "the sum of",
    exp.Avg: "the average of",
    exp.Min: "the smallest",
    exp.Max: "the largest",
}
_PARTS_OF_DATES = {"%Y": "year", "%Y-%m": "year and month"}
_COMPARED: Mapping[type[exp.Expr], str] = {
    exp.EQ: "is",
    exp.NEQ: "is not",
    exp.GT: "is more than",
    exp.GTE: "is at least",
    exp.LT: "is less than",
    exp.LTE: "is at most",
    exp.Like: "is like",
    exp.Add: "+",
    exp.Sub: "-",
    exp.Mul: "×",
    exp.Div: "÷",
    exp.And: "and",
    exp.Or: "or",
}


def in_words(tree: exp.Query, titles: Mapping[str, str]) -> str:
    """One sentence about what the query does.

    Args:
        titles: of the tables, by their names in SQL.
    """
    known = {name.casefold(): title for name, title in titles.items()}
    tree = _with_titles(tree, known)
    said = _query(tree, known)
    given = [
        f"where {clause.alias} is: {_query(clause.this, known)}"
        for clause in tree.find_all(exp.CTE)
        if isinstance(clause.this, exp.Query)
    ]
    sentence = "; ".join([said, *given])
    return f"{sentence[:1].upper()}{sentence[1:]}."


def _with_titles(tree: exp.Query, titles: Mapping[str, str]) -> exp.Query:
    """A copy whose columns name the title of their table if there are several sources.

    A name that stands for two sources, or a table that has two names, keeps its name in SQL.
    """
    copied = tree.copy()
    sources = {
        (source.alias_or_name, titles.get(source.name.casefold()) if isinstance(source, exp.Table) else None)
        for source in copied.find_all(exp.Table, exp.Subquery)
    }
    by_name, by_title = (Counter(source[part] for source in sources) for part in (0, 1))
    shown = {name: title for name, title in sources if by_name[name] == 1 and by_title[title] == 1}
    for column in copied.find_all(exp.Column):
        if len(sources) == 1:
            column.set("table", None)
        elif title := shown.get(column.table):
            column.set("table", exp.to_identifier(title, quoted=True))
    return copied


def _query(tree: exp.Expr, titles: Mapping[str, str]) -> str:
    if isinstance(tree, exp.SetOperation):
        word = {exp.Union: "and also", exp.Except: "but not", exp.Intersect: "that are also in"}[type(tree)]
        sides = f"{_query(tree.this, titles)}, {word} {_query(tree.expression, titles)}"
        return " ".join(filter(None, (sides, *_ending(tree))))
    if isinstance(tree, exp.Subquery):
        return _query(tree.this, titles)
    if not isinstance(tree, exp.Select):
        return _sql(tree)
    shown = ", ".join(_said(one) for one in tree.expressions)
    parts = [f"{'each different ' if tree.args.get('distinct') else ''}{shown}"]
    if tree.args.get("from_"):
        parts.append(f"from {_place(tree.args['from_'].this, titles)}")
    parts += [_join(join, titles) for join in tree.args.get("joins") or ()]
    clauses: tuple[tuple[str, str, Callable[[exp.Expr], str]], ...] = (
        ("where", "where", lambda one: _said(one.this)),
        ("group", "for each", lambda one: ", ".join(_said(name) for name in one.expressions)),
        ("having", "if", lambda one: _said(one.this)),
    )
    parts += [f"{word} {say(tree.args[name])}" for name, word, say in clauses if tree.args.get(name)]
    return " ".join([*parts, *_ending(tree)])


def _ending(tree: exp.Expr) -> list[str]:
    ending = []
    if order := tree.args.get("order"):
        keys = (
            f"{_said(one.this)}{', highest first' * bool(one.args.get('desc'))}" for one in order.expressions
        )
        ending.append(f"sorted by {', '.join(keys)}")
    if (limit := tree.args.get("limit")) is not None and limit.expression.name != "1001":
        ending.append(f"(the first {limit.expression.name})")
    return ending


def _place(source: exp.Expr, titles: Mapping[str, str]) -> str:
    if isinstance(source, exp.Table):
        title = titles.get(source.name.casefold())
        return f"“{title}”" if title else source.name
    return f"({_query(source, titles)})"


def _join(join: exp.Expr, titles: Mapping[str, str]) -> str:
    side = "also if there is none " if join.args.get("side") else ""
    on = join.args.get("on")
    using = ", ".join(one.name for one in join.args.get("using") or ())
    condition = f" with {_said(on)}" if on is not None else f" with the same {using}" if using else ""
    return f"joined {side}to {_place(join.this, titles)}{condition}"


def _said(node: exp.Expr) -> str:
    """A part in words; as SQL where there are none."""
    if type(node) in _AGGREGATES:
        return f"{_AGGREGATES[type(node)]} {_said(node.this)}"
    if type(node) in _COMPARED:
        return f"{_said(node.this)} {_COMPARED[type(node)]} {_said(node.expression)}"
    say = _SAYING.get(type(node))
    return (say(node) if say else "") or _sql(node)


def _is_empty(node: exp.Expr) -> str:
    return f"{_said(node.this)} is empty" if isinstance(node.expression, exp.Null) else ""


def _one_of(node: exp.Expr) -> str:
    values = ", ".join(_said(one) for one in node.expressions)
    return f"{_said(node.this)} is one of {values}" if values else ""


def _negated(node: exp.Expr) -> str:
    if isinstance(node.this, exp.Is) and isinstance(node.this.expression, exp.Null):
        return f"{_said(node.this.this)} is not empty"
    return f"not {_said(node.this)}"


def _chosen(node: exp.Expr) -> str:
    """CASE with one WHEN and no ELSE, as pivots have it."""
    (first, *more) = node.args["ifs"]
    if more or node.this or node.args.get("default"):
        return ""
    return f"{_said(first.args['true'])} where {_said(first.this)}"


def _part_of_date(node: exp.Expr) -> str:
    part = _PARTS_OF_DATES.get(node.args["format"].name)
    date = node.this.this if isinstance(node.this, exp.TsOrDsToTimestamp) else node.this
    return f"the {part} of {_said(date)}" if part else ""


def _counted(node: exp.Expr) -> str:
    if isinstance(node.this, exp.Distinct):
        return f"the number of different {', '.join(_said(one) for one in node.this.expressions)}"
    is_rows = isinstance(node.this, exp.Star | exp.Literal)
    return "the number of rows" if is_rows else f"the number of {_said(node.this)}"


def _sql(node: exp.Expr) -> str:
    return str(node.sql(dialect="sqlite", comments=False))


_SAYING: Mapping[type[exp.Expr], Callable[[exp.Expr], str]] = {
    exp.Alias: lambda node: _said(node.this),
    exp.Paren: lambda node: f"({_said(node.this)})",
    exp.Count: _counted,
    exp.In: _one_of,
    exp.Between: lambda node: (
        f"{_said(node.this)} is from {_said(node.args['low'])} to {_said(node.args['high'])}"
    ),
    exp.Is: _is_empty,
    exp.Star: lambda _: "all columns",
    exp.Column: lambda node: " of ".join(filter(None, (node.name, node.text("table")))),
    exp.Not: _negated,
    exp.Case: _chosen,
    exp.TimeToStr: _part_of_date,
    exp.Round: lambda node: f"{_said(node.this)} (rounded)",
    exp.Lower: lambda node: f"{_said(node.this)} in lower case",
    exp.Nullif: lambda node: f"{_said(node.this)} (unless it is {_said(node.expression)})",
}
