"""Rule-based descriptions of SQL queries in English and German, so that users can check a calculation. Pure.

Expressions that can't be described are shown as SQL, so a description never omits anything.
"""

from collections import Counter
from collections.abc import Callable, Mapping
from typing import Literal

from sqlglot import exp

from shared.tables.models import Dialect

Language = Literal["en", "de"]
_Both = tuple[str, str]  # in English and in German; {} stands for the operand

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
_OPERATORS: Mapping[type[exp.Expr], _Both] = {
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
_SET_OPERATIONS: Mapping[type[exp.Expr], _Both] = {
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
    """Describe a query in one sentence.

    Args:
        titles: titles of the tables by SQL name.
    """
    by_name = {name.casefold(): title for name, title in titles.items()}
    sentence = _Describer(by_name, dialect, language).sentence(_with_titles(tree, by_name))
    return f"{sentence[:1].upper()}{sentence[1:]}."


def _with_titles(tree: exp.Query, titles: Mapping[str, str]) -> exp.Query:
    """Return a copy of the query in which columns name the title of their table, if there are several tables.

    Tables keep their SQL names if a name or title occurs more than once.
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


class _Describer:
    """Describes a query in one language. Methods return "" for parts that should be shown as SQL."""

    def __init__(self, titles: Mapping[str, str], dialect: Dialect, language: Language) -> None:
        self._titles = titles
        self._dialect = dialect
        self._is_german = language == "de"

    def sentence(self, tree: exp.Query) -> str:
        parts = [
            f"{self._choose('where {} is', 'dabei ist {}').format(clause.alias)}: {self._query(clause.this)}"
            for clause in tree.find_all(exp.CTE)
            if isinstance(clause.this, exp.Query)
        ]
        return "; ".join([self._query(tree), *parts])

    def _choose(self, english: str, german: str) -> str:
        return german if self._is_german else english

    def _query(self, tree: exp.Expr) -> str:
        if isinstance(tree, exp.SetOperation):
            word = self._choose(*_SET_OPERATIONS[type(tree)])
            sides = f"{self._query(tree.this)}, {word} {self._query(tree.expression)}"
            return " ".join(filter(None, (sides, *self._order_and_limit(tree))))
        if isinstance(tree, exp.Subquery):
            return self._query(tree.this)
        if not isinstance(tree, exp.Select):
            return self._sql(tree)
        columns = self._list(tree.expressions)
        each = self._choose("each different ", "ohne Wiederholungen: ")
        parts = [f"{each if tree.args.get('distinct') else ''}{columns}"]
        if tree.args.get("from_"):
            parts.append(f"{self._choose('from', 'aus')} {self._place(tree.args['from_'].this)}")
        parts += [self._join(join) for join in tree.args.get("joins") or ()]
        for name, words in _CLAUSES:
            if clause := tree.args.get(name):
                text = self._list(clause.expressions) if name == "group" else self._text(clause.this)
                parts.append(f"{self._choose(*words)} {text}")
        return " ".join([*parts, *self._order_and_limit(tree)])

    def _order_and_limit(self, tree: exp.Expr) -> list[str]:
        ending = []
        if order := tree.args.get("order"):
            falling = self._choose(", highest first", ", größte zuerst")
            keys = (
                f"{self._text(one.this)}{falling * bool(one.args.get('desc'))}" for one in order.expressions
            )
            ending.append(f"{self._choose('sorted by', 'sortiert nach')} {', '.join(keys)}")
        if (limit := tree.args.get("limit")) is not None and limit.expression.name != "1001":
            ending.append(self._choose("(the first {})", "(die ersten {})").format(limit.expression.name))
        return ending

    def _place(self, source: exp.Expr) -> str:
        if isinstance(source, exp.Table):
            title = self._titles.get(source.name.casefold())
            return self._choose("“{}”", "„{}“").format(title) if title else source.name
        return f"({self._query(source)})"

    def _join(self, join: exp.Expr) -> str:
        words = ("joined also if there is none to", "verknüpft, auch wo nichts passt, mit")
        side = self._choose(*(words if join.args.get("side") else ("joined to", "verknüpft mit")))
        on = join.args.get("on")
        using = ", ".join(one.name for one in join.args.get("using") or ())
        condition = f" {self._choose('with', 'über')} {self._text(on)}" if on is not None else ""
        same = f" {self._choose('with the same', 'über dasselbe')} {using}" if using else ""
        return f"{side} {self._place(join.this)}{condition or same}"

    def _list(self, nodes: list[exp.Expr]) -> str:
        return ", ".join(self._text(node) for node in nodes)

    def _text(self, node: exp.Expr) -> str:
        """Describe an expression, or render it as SQL if there are no words for it."""
        if counted := self._count_where(node):
            return counted
        if type(node) in _AGGREGATES:
            return f"{self._choose(*_AGGREGATES[type(node)])} {self._text(node.this)}"
        if type(node) in _OPERATORS:
            word = self._choose(*_OPERATORS[type(node)])
            return f"{self._text(node.this)} {word} {self._text(node.expression)}"
        say = _DESCRIPTIONS.get(type(node))
        return (say(self, node) if say else "") or self._sql(node)

    def _is_empty(self, node: exp.Expr) -> str:
        is_null = isinstance(node.expression, exp.Null)
        return f"{self._text(node.this)} {self._choose('is empty', 'ist leer')}" if is_null else ""

    def _in(self, node: exp.Expr) -> str:
        values = self._list(node.expressions)
        return (
            f"{self._text(node.this)} {self._choose('is one of', 'ist eines von')} {values}" if values else ""
        )

    def _not(self, node: exp.Expr) -> str:
        if isinstance(node.this, exp.Is) and isinstance(node.this.expression, exp.Null):
            return f"{self._text(node.this.this)} {self._choose('is not empty', 'ist nicht leer')}"
        return f"{self._choose('not', 'nicht')} {self._text(node.this)}"

    def _case(self, node: exp.Expr) -> str:
        """Describe a CASE with a single WHEN, as used in pivot queries."""
        (first, *more) = node.args["ifs"]
        if more or node.this:
            return ""
        text = f"{self._text(first.args['true'])}{self._choose(' where', ', falls')} {self._text(first.this)}"
        default = node.args.get("default")
        return f"({text}{self._choose(', else', ', sonst')} {self._text(default)})" if default else text

    def _count_where(self, node: exp.Expr) -> str:
        """Describe SUM over a CASE that yields 1 or 0 as a number of rows."""
        case = node.this if isinstance(node, exp.Sum) else None
        if not isinstance(case, exp.Case) or case.this or len(case.args["ifs"]) > 1:
            return ""
        chosen, default = case.args["ifs"][0], case.args.get("default")
        if chosen.args["true"] != exp.Literal.number(1) or default not in (None, exp.Literal.number(0)):
            return ""
        words = self._choose("the number of rows where", "die Anzahl der Zeilen mit der Bedingung:")
        return f"{words} {self._text(chosen.this)}"

    def _window(self, node: exp.Expr) -> str:
        """Describe an aggregate over a window without order, such as a total. Running totals and ranks are
        shown as SQL.
        """
        if node.args.get("order") or node.args.get("spec"):
            return ""
        groups = self._list(node.args.get("partition_by") or [])
        each = self._choose("for each {}", "je {}").format(groups)
        return f"{self._text(node.this)} {each if groups else self._choose('in all', 'insgesamt')}"

    def _subquery(self, node: exp.Expr) -> str:
        return f"({self._query(node)})"

    def _part_of_date(self, node: exp.Expr) -> str:
        is_extract = isinstance(node, exp.Extract)
        words = _PARTS_OF_DATES.get(node.name.upper() if is_extract else node.args["format"].name)
        date = node.expression if is_extract else node.this
        date = date.this if isinstance(date, exp.TsOrDsToTimestamp) else date
        return self._choose(*words).format(self._text(date)) if words else ""

    def _count(self, node: exp.Expr) -> str:
        if isinstance(node.this, exp.Distinct):
            words = self._choose("the number of different", "die Anzahl verschiedener")
            return f"{words} {self._list(node.this.expressions)}"
        if isinstance(node.this, exp.Star | exp.Literal):
            return self._choose("the number of rows", "die Anzahl der Zeilen")
        return f"{self._choose('the number of', 'die Anzahl von')} {self._text(node.this)}"

    def _between(self, node: exp.Expr) -> str:
        low, high = self._text(node.args["low"]), self._text(node.args["high"])
        return self._choose("{} is from {} to {}", "{} ist von {} bis {}").format(
            self._text(node.this), low, high
        )

    def _column(self, node: exp.Expr) -> str:
        return self._choose(" of ", " von ").join(filter(None, (node.name, node.text("table"))))

    def _nullif(self, node: exp.Expr) -> str:
        words = self._choose("{} (unless it is {})", "{} (außer bei {})")
        return words.format(self._text(node.this), self._text(node.expression))

    def _from_template(self, node: exp.Expr) -> str:
        words = self._choose(*_TEMPLATES[type(node)])
        return words.format(self._text(node.this) if isinstance(node.this, exp.Expr) else "")

    def _sql(self, node: exp.Expr) -> str:
        return str(node.sql(dialect=self._dialect, comments=False))


_TEMPLATES: Mapping[type[exp.Expr], _Both] = {
    exp.Alias: ("{}", "{}"),
    exp.Paren: ("({})", "({})"),
    exp.Star: ("all columns", "alle Spalten"),
    exp.Round: ("{} (rounded)", "{} (gerundet)"),
    exp.Lower: ("{} in lower case", "{} in Kleinbuchstaben"),
}
_DESCRIPTIONS: Mapping[type[exp.Expr], Callable[[_Describer, exp.Expr], str]] = {
    **dict.fromkeys(_TEMPLATES, _Describer._from_template),
    exp.Count: _Describer._count,
    exp.In: _Describer._in,
    exp.Between: _Describer._between,
    exp.Is: _Describer._is_empty,
    exp.Column: _Describer._column,
    exp.Not: _Describer._not,
    exp.Case: _Describer._case,
    exp.TimeToStr: _Describer._part_of_date,
    exp.Extract: _Describer._part_of_date,
    exp.Nullif: _Describer._nullif,
    exp.Window: _Describer._window,
    exp.Subquery: _Describer._subquery,
}
