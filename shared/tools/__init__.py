"""The tools of every agent, one file each, over one registry.

`base` is what a tool is, `registry` binds one to a user, `loop` decides on calls and answers.

Pure: tool_calls.
"""
