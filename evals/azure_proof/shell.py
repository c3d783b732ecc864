"""Runs external programs, and prints each call. A dry run only prints them."""

import re
import shlex
import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Protocol

# azd calls this script after a deployment, as configured in azure.yaml.
_HOOK = "infra/hooks/postdeploy.sh"
# Number of characters shown from the end of the output if a program fails.
_SHOWN_OF_FAILURE = 1500
# Matches a line of a shell script that calls az or azd.
_CALLS_AZURE = re.compile(r"^[^#\n]*\b(?:az|azd) [a-z].*$", re.MULTILINE)


class CommandFailedError(RuntimeError):
    """Error raised if a program failed. The message contains the end of its output."""


class Shell(Protocol):
    """An executor of external programs."""

    def run(self, *command: str, example: str = "", timeout_s: float = 600.0) -> str:
        """Run a program and return its standard output without surrounding whitespace.

        Args:
            example: output of a dry run.

        Raises:
            CommandFailedError: the program failed, is missing or timed out.
        """
        ...


class RealShell:
    """Executor that prints each call and runs the program in the root of the repository."""

    def __init__(self, folder: Path, show: Callable[[str], None]) -> None:
        self._folder = folder
        self._show = show

    def run(self, *command: str, example: str = "", timeout_s: float = 600.0) -> str:
        """Print the command, run it, and return its output. See `Shell.run`."""
        del example
        self._show(f"  $ {shell_text(command)}")
        try:
            done = subprocess.run(
                command, cwd=self._folder, capture_output=True, text=True, timeout=timeout_s, check=False
            )
        except FileNotFoundError:
            raise CommandFailedError(f"{command[0]} is not installed.") from None
        except subprocess.TimeoutExpired:
            raise CommandFailedError(f"{shell_text(command)} took longer than {timeout_s:.0f} s.") from None
        if done.returncode != 0:
            text = (done.stdout + done.stderr).strip()[-_SHOWN_OF_FAILURE:]
            raise CommandFailedError(f"{shell_text(command)} failed ({done.returncode}): {text}")
        return done.stdout.strip()


class DryShell:
    """Executor for dry runs, which prints each call and returns its example output."""

    def __init__(self, folder: Path, show: Callable[[str], None]) -> None:
        self._folder = folder
        self._show = show
        self.commands: list[str] = []

    def run(self, *command: str, example: str = "", timeout_s: float = 600.0) -> str:
        """Print the command and return `example`. For a script of this repository, also print its Azure
        commands.
        """
        del timeout_s
        self.commands.append(shell_text(command))
        self._show(f"  $ {shell_text(command)}")
        scripts = [part for part in command if part.startswith("infra/") and part.endswith(".sh")]
        if command[:2] == ("azd", "up"):
            scripts.append(_HOOK)
        for script in scripts:
            self._show(f"    {script}:")
            for line in azure_calls(self._folder / script):
                self._show(f"      {line}")
        return example


def shell_text(command: Sequence[str]) -> str:
    """Return a command line with the arguments quoted for a shell."""
    return shlex.join(command)


def azure_calls(script: Path) -> list[str]:
    """Return the lines of a shell script that call az or azd, including continuation lines."""
    text = script.read_text(encoding="utf-8").replace("\\\n", " ")
    return [" ".join(line.split()) for line in _CALLS_AZURE.findall(text) if "echo " not in line]
