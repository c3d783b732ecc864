"""Threads of questions and answers, and the memory of earlier questions.

A question opens a turn in a thread (`turns`), and `window` selects the part of the conversation that the
question receives. Afterwards `remembering` summarises older turns and stores answers in `memory`.
"""
