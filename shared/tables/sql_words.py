"""Rule-based description of a query in words, so that users can see the calculation. Pure.

Parts without a description are shown as SQL, so the description is always complete.
"""

from collections import Counter
from collections.abc import Callable, Mapping
from typing import Literal

from sqlglot import exp

from shared.tables.models import Dialect

Language = Literal["en", "de"]
_Both = tuple[str, str]  # English, German; {} is the operand

_AGGREGATES: Mapping[type[exp.Expr], _Both] = {
    exp.Sum: ("the sum of", "die Summe von"),
    exp.Avg: ("the average of", "der Durchschnitt von"),
    exp.Min: ("the smallest", "der kleinste Wert von"),
    exp.Max: ("the largest", "der größte Wert von"),
}
_PARTS_OF_DATES: Mapping[str, _Both] = {
    "%Y": ("the year of {}", "das Jahr von {}"),
    "%Y-%m": ("the year and month of {}", "Jahr und Monat von {}"),
    "YEAR": ("the year of {}", "das Jahr von {}"),
    "MONTH": ("the month of {}", "der Monat von {}"),
}
_COMPARED: Mapping[type[exp.Expr], _Both] = {
    exp.EQ: ("is", "ist"),
    exp.NEQ: ("is not", "ist nicht"),
    exp.GT: ("is more than", "ist mehr als"),
    exp.GTE: ("is at least", "ist mindestens"),
    exp.LT: ("is less than", "ist weniger als"),
    exp.LTE: ("is at most", "ist höchstens"),
    exp.Like: ("is like", "ist wie"),
    exp.ILike: ("is like", "ist wie"),
    exp.Add: ("+", "+"),
    exp.Sub: ("-", "-"),
    exp.Mul: ("×", "×"),
    exp.Div: ("÷", "÷"),
    exp.And: ("and", "und"),
    exp.Or: ("or", "oder"),
}
_OF_TWO: Mapping[type[exp.Expr], _Both] = {
    exp.Union: ("and also", "und außerdem"),
    exp.Except: ("but not", "aber nicht"),
    exp.Intersect: ("that are also in", "die auch vorkommen in"),
}
_CLAUSES: tuple[tuple[str, _Both], ...] = (
    ("where", ("where", "mit der Bedingung:")),
    ("group", ("for each", "je")),
    ("having", ("if", "nur bei:")),
)


def in_words(
    tree: exp.Query, titles: Mapping[str, str], dialect: Dialect = "sqlite", language: Language = "en"
) -> str:
    """Describe the query in one sentence.

    Args:
        titles: table titles by SQL name.
    """
    by_name = {name.casefold(): title for name, title in titles.items()}
    sentence = _Teller(by_name, dialect, language).sentence(_with_titles(tree, by_name))
    return f"{sentence[:1].upper()}{sentence[1:]}."


def _with_titles(tree: exp.Query, titles: Mapping[str, str]) -> exp.Query:
    """Copy the tree and add the table's title to columns if there are several sources.

    Ambiguous names, and tables with two names, keep their SQL names.
    """
    copied = tree.copy()
    sources = {
        (source.alias_or_name, titles.get(source.name.casefold()) if isinstance(source, exp.Table) else None)
        for source in copied.find_all(exp.Table, exp.Subquery)
    }
    by_name, by_title = (Counter(source[part] for source in sources) for part in (0, 1))
    unambiguous = {name: title for name, title in sources if by_name[name] == 1 and by_title[title] == 1}
    for column in copied.find_all(exp.Column):
        if len(sources) == 1:
            column.set("table", None)
        elif title := unambiguous.get(column.table):
            column.set("table", exp.to_identifier(title, quoted=True))
    return copied


class _Teller:
    """Describes the parts of a query in one language."""

    def __init__(self, titles: Mapping[str, str], dialect: Dialect, language: Language) -> None:
        self._titles = titles
        self._dialect = dialect
        self._is_german = language == "de"

    def sentence(self, tree: exp.Query) -> str:
        parts = [
            f"{self._one('where {} is', 'dabei ist {}').format(clause.alias)}: {self._query(clause.this)}"
            for clause in tree.find_all(exp.CTE)
            if isinstance(clause.this, exp.Query)
        ]
        return "; ".join([self._query(tree), *parts])

    def _one(self, english: str, german: str) -> str:
        return german if self._is_german else english

    def _query(self, tree: exp.Expr) -> str:
        if isinstance(tree, exp.SetOperation):
            word = self._one(*_OF_TWO[type(tree)])
            sides = f"{self._query(tree.this)}, {word} {self._query(tree.expression)}"
            return " ".join(filter(None, (sides, *self._ending(tree))))
        if isinstance(tree, exp.Subquery):
            return self._query(tree.this)
        if not isinstance(tree, exp.Select):
            return self._sql(tree)
        columns = self._list(tree.expressions)
        each = self._one("each different ", "ohne Wiederholungen: ")
        parts = [f"{each if tree.args.get('distinct') else ''}{columns}"]
        if tree.args.get("from_"):
            parts.append(f"{self._one('from', 'aus')} {self._place(tree.args['from_'].this)}")
        parts += [self._join(join) for join in tree.args.get("joins") or ()]
        for name, words in _CLAUSES:
            if clause := tree.args.get(name):
                text = self._list(clause.expressions) if name == "group" else self._text(clause.this)
                parts.append(f"{self._one(*words)} {text}")
        return " ".join([*parts, *self._ending(tree)])

    def _ending(self, tree: exp.Expr) -> list[str]:
        ending = []
        if order := tree.args.get("order"):
            falling = self._one(", highest first", ", größte zuerst")
            keys = (
                f"{self._text(one.this)}{falling * bool(one.args.get('desc'))}" for one in order.expressions
            )
            ending.append(f"{self._one('sorted by', 'sortiert nach')} {', '.join(keys)}")
        if (limit := tree.args.get("limit")) is not None and limit.expression.name != "1001":
            ending.append(self._one("(the first {})", "(die ersten {})").format(limit.expression.name))
        return ending

    def _place(self, source: exp.Expr) -> str:
        if isinstance(source, exp.Table):
            title = self._titles.get(source.name.casefold())
            return self._one("“{}”", "„{}“").format(title) if title else source.name
        return f"({self._query(source)})"

    def _join(self, join: exp.Expr) -> str:
        words = ("joined also if there is none to", "verknüpft, auch wo nichts passt, mit")
        side = self._one(*(words if join.args.get("side") else ("joined to", "verknüpft mit")))
        on = join.args.get("on")
        using = ", ".join(one.name for one in join.args.get("using") or ())
        condition = f" {self._one('with', 'über')} {self._text(on)}" if on is not None else ""
        same = f" {self._one('with the same', 'über dasselbe')} {using}" if using else ""
        return f"{side} {self._place(join.this)}{condition or same}"

    def _list(self, nodes: list[exp.Expr]) -> str:
        return ", ".join(self._text(node) for node in nodes)

    def _text(self, node: exp.Expr) -> str:
        """Describe a part, or render it as SQL."""
        if counted := self._counted_where(node):
            return counted
        if type(node) in _AGGREGATES:
            return f"{self._one(*_AGGREGATES[type(node)])} {self._text(node.this)}"
        if type(node) in _COMPARED:
            word = self._one(*_COMPARED[type(node)])
            return f"{self._text(node.this)} {word} {self._text(node.expression)}"
        say = _SAYING.get(type(node))
        return (say(self, node) if say else "") or self._sql(node)

    def _is_empty(self, node: exp.Expr) -> str:
        is_null = isinstance(node.expression, exp.Null)
        return f"{self._text(node.this)} {self._one('is empty', 'ist leer')}" if is_null else ""

    def _one_of(self, node: exp.Expr) -> str:
        values = self._list(node.expressions)
        return f"{self._text(node.this)} {self._one('is one of', 'ist eines von')} {values}" if values else ""

    def _negated(self, node: exp.Expr) -> str:
        if isinstance(node.this, exp.Is) and isinstance(node.this.expression, exp.Null):
            return f"{self._text(node.this.this)} {self._one('is not empty', 'ist nicht leer')}"
        return f"{self._one('not', 'nicht')} {self._text(node.this)}"

    def _chosen(self, node: exp.Expr) -> str:
        """Describe a CASE with one WHEN, as used for pivots."""
        (first, *more) = node.args["ifs"]
        if more or node.this:
            return ""
        text = f"{self._text(first.args['true'])}{self._one(' where', ', falls')} {self._text(first.this)}"
        default = node.args.get("default")
        return f"({text}{self._one(', else', ', sonst')} {self._text(default)})" if default else text

    def _counted_where(self, node: exp.Expr) -> str:
        """Describe SUM of a CASE that is 1 or 0."""
        case = node.this if isinstance(node, exp.Sum) else None
        if not isinstance(case, exp.Case) or case.this or len(case.args["ifs"]) > 1:
            return ""
        chosen, default = case.args["ifs"][0], case.args.get("default")
        if chosen.args["true"] != exp.Literal.number(1) or default not in (None, exp.Literal.number(0)):
            return ""
        words = self._one("the number of rows where", "die Anzahl der Zeilen mit der Bedingung:")
        return f"{words} {self._text(chosen.this)}"

    def _over_rows(self, node: exp.Expr) -> str:
        """Describe an aggregate next to its rows, such as a total. Running aggregates and ranks stay SQL."""
        if node.args.get("order") or node.args.get("spec"):
            return ""
        groups = self._list(node.args.get("partition_by") or [])
        each = self._one("for each {}", "je {}").format(groups)
        return f"{self._text(node.this)} {each if groups else self._one('in all', 'insgesamt')}"

    def _inner(self, node: exp.Expr) -> str:
        return f"({self._query(node)})"

    def _part_of_date(self, node: exp.Expr) -> str:
        is_extract = isinstance(node, exp.Extract)
        words = _PARTS_OF_DATES.get(node.name.upper() if is_extract else node.args["format"].name)
        date = node.expression if is_extract else node.this
        date = date.this if isinstance(date, exp.TsOrDsToTimestamp) else date
        return self._one(*words).format(self._text(date)) if words else ""

    def _counted(self, node: exp.Expr) -> str:
        if isinstance(node.this, exp.Distinct):
            words = self._one("the number of different", "die Anzahl verschiedener")
            return f"{words} {self._list(node.this.expressions)}"
        if isinstance(node.this, exp.Star | exp.Literal):
            return self._one("the number of rows", "die Anzahl der Zeilen")
        return f"{self._one('the number of', 'die Anzahl von')} {self._text(node.this)}"

    def _between(self, node: exp.Expr) -> str:
        low, high = self._text(node.args["low"]), self._text(node.args["high"])
        return self._one("{} is from {} to {}", "{} ist von {} bis {}").format(
            self._text(node.this), low, high
        )

    def _column(self, node: exp.Expr) -> str:
        return self._one(" of ", " von ").join(filter(None, (node.name, node.text("table"))))

    def _unless(self, node: exp.Expr) -> str:
        words = self._one("{} (unless it is {})", "{} (außer bei {})")
        return words.format(self._text(node.this), self._text(node.expression))

    def _worded(self, node: exp.Expr) -> str:
        words = self._one(*_WORDED[type(node)])
        return words.format(self._text(node.this) if isinstance(node.this, exp.Expr) else "")

    def _sql(self, node: exp.Expr) -> str:
        return str(node.sql(dialect=self._dialect, comments=False))


_WORDED: Mapping[type[exp.Expr], _Both] = {
    exp.Alias: ("{}", "{}"),
    exp.Paren: ("({})", "({})"),
    exp.Star: ("all columns", "alle Spalten"),
    exp.Round: ("{} (rounded)", "{} (gerundet)"),
    exp.Lower: ("{} in lower case", "{} in Kleinbuchstaben"),
}
_SAYING: Mapping[type[exp.Expr], Callable[[_Teller, exp.Expr], str]] = {
    **dict.fromkeys(_WORDED, _Teller._worded),
    exp.Count: _Teller._counted,
    exp.In: _Teller._one_of,
    exp.Between: _Teller._between,
    exp.Is: _Teller._is_empty,
    exp.Column: _Teller._column,
    exp.Not: _Teller._negated,
    exp.Case: _Teller._chosen,
    exp.TimeToStr: _Teller._part_of_date,
    exp.Extract: _Teller._part_of_date,
    exp.Nullif: _Teller._unless,
    exp.Window: _Teller._over_rows,
    exp.Subquery: _Teller._inner,
}
