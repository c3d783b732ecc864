"""The tools that agents can call, with their connections, limits and registry. Tools over the same data share
a file.

`base` defines a tool, `registry` binds one to a user, `execution` runs calls and renders their results.

Pure: tool_calls.
"""
