"""The agent that answers questions.

`runs` begins a run. `script` shows the course of a run, sub-agents included; `effects` performs one step:
`prepare` plans and searches, `turn_step` lets the model search again or answer (`turn`, `turn_question`), and
`run_end` commits the answer. `inline` runs the same script in one process, and `agent` offers it to programs
of your own.

Pure: clarification, script, steps, sub_agent, turn_reader.
"""
