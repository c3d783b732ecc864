"""Chat models and embedders over any endpoint of the OpenAI protocol.

`endpoint` connects, `chat_request` renders requests for the `features` the endpoint has, `prompted` replaces
missing ones by words, `chat_model` and `embeddings` make the calls, `traced` records them as spans.
"""
