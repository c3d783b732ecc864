"""The agent that answers questions.

`runs` begins a run; `effects` performs one step of the `loop`: planning, asking back, retrieval, writing;
`run_end` commits the answer. `inline` runs the same loop in one process.

Pure: clarification, loop, steps.
"""
