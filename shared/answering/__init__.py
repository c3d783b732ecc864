"""Answers questions by agents: the default agent, agents defined in files, and sub-agents.

`runs` starts a run. `script` defines the order of a run's steps, sub-agents included; `effects` performs one
step, by the rule of `attempts`: `prepare` plans and gathers evidence (`named_documents`, `question_search`),
`turn_step` takes a turn of the main agent, `subagent_step` one of a sub-agent, and `run_end` commits the
answer. All turns are taken by `agent_turn`, and their calls made by `calls`; `answer_turn` writes an answer
(`turn_question` is its input, and `script_calls` are its calls that the script performs), `report_turn` a
report of findings. `profiles` describes every agent as data. `statements` splits a turn's answer into
statements, `answer_writer` proves and streams them, and `draft` renders them. `delegation` lets the `policy`
decide by rules over a `situation` whether sub-agents work on a question. `inline` runs the same script in one
process, and `agent` exposes it as a Python API.

`budget` counts the tokens and the money of a step or a sub-agent. `metering` applies it to model calls, and
`subagent_budget` divides it between the parts of a sub-agent's work.

A summary of documents is a run as well: `summary_runs` starts and shows it, `summary_script` defines the
order of its steps, `summary_document` reads one document and `summary_merge` merges all, with the calls of
`summary_model`, the rules of `summary_findings` and `summary_result`, and the limits of `summary_limits`.

`run_facts` records how a run and its sub-agents ended.

Pure: budget, clarification, control_state, document_references, findings, policy, policy_models, profiles,
script, share_models, situation, statements, steps, sub_agent, subagent_budget, subagent_models,
summary_limits, summary_models, summary_script.
"""
