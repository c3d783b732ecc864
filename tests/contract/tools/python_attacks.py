"""Programs that try to escape the sandbox of the tool `python`, to exhaust it, or to harm the reader of its
output.

The file `{canary}` outside the sandbox and the variable `GROUNDWORK_CANARY` of the environment contain the
same secret.
"""

_OBJECTS = ("()", "''", "print", "(lambda: 0)", "__import__('json')", "ValueError('x')", "int", "{}.items()")
_ATTRIBUTES = (
    *("__class__", "__bases__", "__base__", "__mro__", "__subclasses__()", "__globals__", "__builtins__"),
    *("__code__", "__closure__", "__dict__", "__init__.__globals__", "__reduce__()", "__getattribute__"),
    *("__self__", "__func__", "__loader__", "__spec__", "__traceback__.tb_frame", "gi_frame", "f_back"),
)
_SAFE_OBJECTS = tuple(thing for thing in _OBJECTS if "__import__" not in thing)
_FAR = ("__subclasses__()", "__globals__", "__builtins__", "__code__", "__closure__", "__init__.__globals__")

REFLECTION = (
    *(f"{thing}.{attribute}" for thing in _SAFE_OBJECTS for attribute in _ATTRIBUTES if attribute in _FAR),
    *(f"getattr({thing}, '{name}')" for thing in _SAFE_OBJECTS for name in ("__globals__", "__code__")),
    "().__class__.__bases__[0].__subclasses__()",
    "''.__class__.__mro__[1].__subclasses__()[132].__init__.__globals__['system']('id')",
    "[c for c in ().__class__.__base__.__subclasses__() if c.__name__ == 'Popen'][0]('id')",
    "'{0.__class__.__init__.__globals__}'.format(print)",
    "f'{print.__globals__}'",
    "__builtins__['open']('{canary}').read()",
    "__builtins__.__import__('os').system('id')",
    "__import__('os').system('id')",
    "__loader__.load_module('os')",
    "globals()['__builtins__']",
    "vars()",
    "locals()['__builtins__']",
    "compile('1', 'a', 'eval')",
    'eval(\'__import__("os").system("id")\')',
    "exec('import subprocess')",
    "breakpoint()",
    "help()",
    "input()",
    "memoryview(b'x').obj.__class__.__subclasses__()",
    "type('X', (object,), {{}})().__class__.__base__.__subclasses__()",
    "(lambda: 0).__code__.replace(co_code=b'x')",
    "try:\n    1 / 0\nexcept Exception as e:\n    f = e.__traceback__.tb_frame.f_back.f_globals\nf",
    "class A:\n    def __del__(self):\n        open('{canary}')\nA().__class__.__subclasses__()",
)
"""Each must fail."""

MODULES = tuple(
    f"import {name}"
    for name in (
        *("socket", "subprocess", "ctypes", "multiprocessing", "threading", "signal", "resource", "fcntl"),
        *("shutil", "tempfile", "glob", "importlib", "imp", "runpy", "pty", "code", "codeop", "inspect"),
        *("gc", "marshal", "pickle", "shelve", "sqlite3", "dbm", "mmap", "select", "selectors", "ssl"),
        *("http.client", "urllib.request", "ftplib", "smtplib", "telnetlib", "xmlrpc.client", "webbrowser"),
        *(
            "builtins",
            "pydantic_monty",
            "shared.wiring",
            "azure.identity",
            "numpy",
            "requests",
            "site",
            "pdb",
        ),
    )
)
"""None is there."""

OUTSIDE = (
    "open('{canary}').read()",
    "open('{canary}', 'a').write('x')",
    "open('/etc/passwd').read()",
    "open('/proc/self/environ').read()",
    "open('../../../../etc/passwd').read()",
    "open(0).read()",
    "open('/dev/tcp/127.0.0.1/80')",
    "import pathlib\npathlib.Path('{canary}').read_text()",
    "import pathlib\npathlib.Path('{canary}').write_text('x')",
    "import pathlib\npathlib.Path('{canary}').unlink()",
    "import pathlib\nlist(pathlib.Path('/').iterdir())",
    "import pathlib\npathlib.Path('/tmp/groundwork-escaped').mkdir()",
    "import os\nos.listdir('/')",
    "import os\nos.environ['GROUNDWORK_CANARY']",
    "import os\nos.getenv('GROUNDWORK_CANARY') + ''",
    "import os\nos.system('id')",
    "import os\nos.popen('id').read()",
    "import os\nos.kill(os.getppid(), 9)",
    "import os\nos.fork()",
    "import os\nos.execv('/bin/sh', ['sh'])",
    "import os\nos.remove('{canary}')",
    "import os\nos.chdir('/proc/1')\nopen('environ').read()",
    "import os\nos.urandom(8)",
    "import sys\nsys.modules['os']",
    "import sys\nsys.path.append('/tmp')",
    "import sys\nsys._getframe(1)",
    "import sys\nsys.exit(3)",
    "import sys\nsys.settrace(print)",
    "import asyncio\nawait asyncio.create_subprocess_shell('id')",
    "import asyncio\nawait asyncio.open_connection('127.0.0.1', 80)",
)
"""Each must fail."""

EXHAUSTION = (
    "while True:\n    pass",
    "x = 0\nwhile True:\n    x += 1\n    print(x)",
    "import re\nre.match('(a|aa)+$', 'a' * 5000 + 'b')\nwhile True: pass",
    "[0] * 10**9",
    "'x' * 10**9",
    "b'x' * 10**9",
    "'x' * 60_000_000",
    "list(range(10**9))",
    "{i: str(i) for i in range(10**7)}",
    "a = []\nwhile True:\n    a.append('x' * 1000)",
    "a = 'x'\nwhile True:\n    a += a",
    "a = [1]\nwhile True:\n    a = a + a",
    "2 ** 10**9",
    "10 ** 10 ** 10",
    "1 << 10**10",
    "'%1000000000d' % 3",
    "f'{{3:1000000000}}'",
    "'x'.ljust(10**10)",
    "','.join(['x' * 10**6] * 10**6)",
    "'a'.replace('a', 'b' * 10**9)",
    "sorted(range(10**8))",
    "def f():\n    f()\nf()",
    "def f(n):\n    return [f(n + 1)]\nf(0)",
    "f = lambda g: g(g)\nf(f)",
    "x = []\nfor i in range(10**6):\n    x = [x]\nrepr(x)",
    "import json\nx = []\nfor i in range(10**5):\n    x = [x]\njson.dumps(x)",
    "import json\njson.loads('[' * 10**6)",
    "int('9' * 10**6)",
    "str(10 ** 10**5)",
    "print('x' * 10**8)",
    "raise ValueError('x' * 50_000_000)",
    "(" * 5000 + ")" * 5000,
    "-" * 15000 + "1",
    "not " * 4000 + "1",
    "x = " + "+".join(["1"] * 9000) + "\nwhile True: pass",
)
"""Each must end as a failure: out of time, of memory, or refused."""

RESULTS = (
    "a = [0] * 1000\nb = [a] * 1000\nc = [b] * 1000\n[c] * 1000",
    "a = []\nfor i in range(10**5):\n    a = [a]\na",
    "x = 'a' * 10**6\n[x] * 10**6",
    "10 ** 10**6",
    "'x' * 20_001",
    "list(range(20_001))",
    "print",
    "class A:\n    pass\nA()",
    "b'bytes'",
    "{{(1, 2): 3}}",
    "{{print: 3}}",
    "...",
    "ValueError('x')",
)
"""Each is refused: nothing of it reaches a prompt."""
