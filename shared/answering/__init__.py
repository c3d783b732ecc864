"""The agent that answers questions.

`runs` begins a run. `loop` shows the whole way of a question; `effects` performs one of its steps: `prepare`
plans and searches, `turn_step` lets the model look further or answer (`turn`, from a `turn_question`),
`run_end` commits the answer. `inline` runs the same loop in one process, `agent` for programs of your own.

Pure: clarification, loop, steps, turn_reader.
"""
