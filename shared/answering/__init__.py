"""The agent that answers questions.

`runs` begins a run; `effects` performs one step of the `loop`: planning, asking back, retrieval, writing;
`closing` commits the answer. `inline` runs the same loop in one process.

Pure: clarification, loop_state, steps.
"""
