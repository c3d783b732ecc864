"""The Bot Service channels, Teams among them.

`inbox` validates an activity, `turns` acknowledges it, `dispatch` decides what it asks for, `replying`
writes the answer, and `outbox` sends it.

Pure: markdown, messages, parsing.
"""
