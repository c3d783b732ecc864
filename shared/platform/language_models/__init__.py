"""Chat models and embedders over any endpoint of the OpenAI protocol.

`endpoint` connects, `chat_request` renders requests for the `features` of the endpoint, `prompted` emulates
missing ones in the prompt, `chat_model` and `embeddings` make the calls, and `traced` records them as spans.
"""
