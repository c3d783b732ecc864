"""External programs called by the kit. Calls are printed, and a dry run only prints them."""

import re
import shlex
import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Protocol

_HOOK = "infra/hooks/postdeploy.sh"  # azure.yaml has azd call it
_SHOWN_OF_FAILURE = 1500  # characters from the end of a failed program's output
# A line of a script that calls one of Azure's programs, with its continuation lines.
_CALLS_AZURE = re.compile(r"^[^#\n]*\b(?:az|azd) [a-z].*$", re.MULTILINE)


class CommandFailedError(RuntimeError):
    """A program failed; the message contains the end of its output."""


class Shell(Protocol):
    """Runs programs."""

    def run(self, *command: str, example: str = "", timeout_s: float = 600.0) -> str:
        """Run a program and return its stripped standard output.

        Args:
            example: output of a dry run.

        Raises:
            CommandFailedError: the program failed, is missing or timed out.
        """
        ...


class RealShell:
    """Runs programs in the repository's root, after printing each call."""

    def __init__(self, folder: Path, show: Callable[[str], None]) -> None:
        self._folder = folder
        self._show = show

    def run(self, *command: str, example: str = "", timeout_s: float = 600.0) -> str:
        """See `Shell`."""
        del example
        self._show(f"  $ {shown(command)}")
        try:
            done = subprocess.run(
                command, cwd=self._folder, capture_output=True, text=True, timeout=timeout_s, check=False
            )
        except FileNotFoundError:
            raise CommandFailedError(f"{command[0]} is not installed.") from None
        except subprocess.TimeoutExpired:
            raise CommandFailedError(f"{shown(command)} took over {timeout_s:.0f} s.") from None
        if done.returncode != 0:
            text = (done.stdout + done.stderr).strip()[-_SHOWN_OF_FAILURE:]
            raise CommandFailedError(f"{shown(command)} failed ({done.returncode}): {text}")
        return done.stdout.strip()


class DryShell:
    """Prints calls and returns the example output."""

    def __init__(self, folder: Path, show: Callable[[str], None]) -> None:
        self._folder = folder
        self._show = show
        self.commands: list[str] = []

    def run(self, *command: str, example: str = "", timeout_s: float = 600.0) -> str:
        """See `Shell`. Also prints the Azure commands inside the repository's own scripts."""
        del timeout_s
        self.commands.append(shown(command))
        self._show(f"  $ {shown(command)}")
        scripts = [part for part in command if part.startswith("infra/") and part.endswith(".sh")]
        if command[:2] == ("azd", "up"):
            scripts.append(_HOOK)
        for script in scripts:
            self._show(f"    {script}:")
            for line in azure_calls(self._folder / script):
                self._show(f"      {line}")
        return example


def shown(command: Sequence[str]) -> str:
    """Return a command as it would be typed in a shell."""
    return shlex.join(command)


def azure_calls(script: Path) -> list[str]:
    """Return the lines of a shell script that call az or azd, including their continuation lines."""
    text = script.read_text(encoding="utf-8").replace("\\\n", " ")
    return [" ".join(line.split()) for line in _CALLS_AZURE.findall(text) if "echo " not in line]
