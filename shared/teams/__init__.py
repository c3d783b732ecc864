"""The bot: receiving messages from Bot Service channels such as Teams, and replying to them.

`inbox` validates an activity, parsed by `activities`, `tokens` and `parsing`, and `turns` acknowledges it.
`steps` performs the reply: `dispatch` executes the message, `dropped_files` stores its files, and `replies`
sends the answer of a run. `outgoing` and `markdown` render messages, and `outbox` sends them through
`connector`. All fixed texts are in `messages`.

Pure: markdown, messages, parsing.
"""
