"""Sandbox of a parser worker. It has no network, no access to other processes, and only the files that it
needs. Linux only.

It has several layers because kernels and containers differ. docs/operate.md explains each layer.
"""

import os
import sys
from collections.abc import Sequence
from pathlib import Path

from shared.ingestion.landlock import restrict_files
from shared.ingestion.seccomp import refuse_system_calls
from shared.platform.process_memory import drop_capabilities, hide_memory

_APP = Path(__file__).parents[2]
_PACKAGE = Path(__file__).parents[1]
# Allow only shared libraries, fonts and time zones. The rest of /etc and all of /proc stay hidden.
_SYSTEM = (
    "/usr", "/bin", "/lib", "/lib32", "/lib64", "/etc/ld.so.cache", "/etc/fonts", "/etc/localtime",
    "/etc/mime.types", "/dev/urandom",
)  # fmt: skip


def enter_sandbox(folder: str, readable: Sequence[str]) -> None:
    """Confine this process irrevocably to the files it needs, without network or access to other processes.

    Args:
        folder: folder with the files of all jobs, which stays writable.
        readable: additional readable files and folders.
    """
    hide_memory()
    drop_capabilities()
    libraries = os.environ.get("LD_LIBRARY_PATH", "").split(os.pathsep)
    packages = [os.path.abspath(path) for path in sys.path]  # noqa: PTH100 - Path() would follow links
    environment = (sys.base_prefix, os.path.join(sys.prefix, "share"))  # noqa: PTH118 - package data
    # The app's folder may contain secrets and local settings, so only its package is readable.
    inside = [path for path in packages if path != str(_APP)]
    restrict_files(
        readable=(*_SYSTEM, *environment, str(_PACKAGE), *inside, *filter(None, libraries), *readable),
        listable=(str(_APP),),
        writable=(folder, "/dev/null"),
    )
    refuse_system_calls()
