"""Runs mutmut on the modules named in the pyproject.toml of the current folder. Started by `scripts.mutate`.

Only the operators that change decisions are used. mutmut's others (texts, arguments, assigned values) make
mutants that fail at their first call or reword a message, which says little about the tests.
"""

import json
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import cast

from mutmut.__main__ import _run
from mutmut.mutation import mutators
from mutmut.mutation.data import SourceFileMutationData
from mutmut.mutation.diff_apply import get_diff_for_mutant
from mutmut.utils.file_utils import walk_mutatable_files
from mutmut.utils.format_utils import orig_function_and_class_names_from_key

OPERATORS = frozenset({
    mutators.operator_number, mutators.operator_name, mutators.operator_augmented_assignment,
    mutators.operator_remove_unary_ops, mutators.operator_symmetric_string_methods_swap,
    mutators.operator_unsymmetrical_string_methods_swap, mutators.operator_keywords,
    mutators.operator_swap_op, mutators.operator_match, mutators.operator_if_exp,
})  # fmt: skip
# Exit codes of pytest: a test failed, the tests can't be collected, pytest itself failed.
_KILLED = frozenset({1, 2, 3})
# Exit codes of mutants that took too long: from mutmut itself, or from the signals SIGXCPU and SIGKILL.
_TIMED_OUT = frozenset({36, 24, 152, 255, -24, -9})


def mutants() -> Iterator[dict[str, str]]:
    """Yield every mutant with its module, function, status and changed lines."""
    for path in walk_mutatable_files():
        data = SourceFileMutationData(path=path)
        data.load()
        for name, exit_code in data.exit_code_by_key.items():
            status = _status(exit_code)
            diff = get_diff_for_mutant(name, path=path).splitlines()[2:] if status == "survived" else []
            function, owner = orig_function_and_class_names_from_key(name)
            yield {
                "module": path.as_posix(),
                "function": f"{owner}.{function}" if owner else function,
                "status": status,
                "before": _lines(diff, "-"),
                "after": _lines(diff, "+"),
            }


def _status(exit_code: int | None) -> str:
    if exit_code in _KILLED:
        return "killed"
    return "timed out" if exit_code in _TIMED_OUT else "survived"


def _lines(diff: list[str], sign: str) -> str:
    return " ".join(line[1:].strip() for line in diff if line.startswith(sign))


if __name__ == "__main__":
    # The list is changed in place, because the processes that create the mutants are forked and inherit it.
    operators = cast(list[tuple[type, object]], mutators.mutation_operators)
    operators[:] = [pair for pair in operators if pair[1] in OPERATORS]
    _run((), len(os.sched_getaffinity(0)))
    Path(sys.argv[1]).write_text(json.dumps(list(mutants())), encoding="utf-8")
