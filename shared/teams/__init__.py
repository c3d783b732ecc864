"""The Bot Service channels, Teams among them.

`inbox` checks an activity and reads it with `activities`, `tokens` and `parsing`; `turns` acknowledges it.
`steps` performs the reply: `dispatch` does what a message asks, `dropped_files` stores its files, `replies`
writes a run's answer. `outgoing` and `markdown` make messages of it, and `outbox` sends them through
`connector`. All fixed texts are in `messages`.

Pure: markdown, messages, parsing.
"""
