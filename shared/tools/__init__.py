"""The tools of every agent, over one registry. Tools over the same thing share a file.

`base` is what a tool is, `registry` binds one to a user, `execution` carries out calls and renders their
results.

Pure: tool_calls.
"""
