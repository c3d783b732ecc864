"""Agents: the default agent, agents from files, and sub-agents.

`runs` starts a run. `script` defines the order of a run's steps, sub-agents included; `effects` performs one
step, by the rule of `attempts`: `prepare` plans and searches, `turn_step` lets the model search again or
answer (`turn`, `turn_question`), and `run_end` commits the answer. `statements` splits a turn's answer into
statements, `proofs` proves them, `draft` renders them, and `answer_writer` streams them. `policy` decides by
rules over a `situation` whether sub-agents work on a question, and `profiles` lists their profiles. `inline`
runs the same script in one process, and `agent` exposes it as a Python API.

A summary of documents is a run as well: `summary_runs` starts and shows it, `summary_script` defines the
order of its steps, `summary_document` reads one document and `summary_merge` merges all, with the calls of
`summary_model`, the rules of `summary_findings` and `summary_result`, and the limits of `summary_budget`.

`run_facts` records how a run and its sub-agents ended.

Pure: budget, clarification, findings, policy, policy_models, profiles, script, share_models, situation,
statements, steps, sub_agent, subagent_models, summary_budget, summary_models, summary_script.
"""
