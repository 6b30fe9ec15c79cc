"""The live runtime: the machines of the protocol rooms, driven by asyncio over a real broker.

bus.py is what applications use; host.py drives machines; brokers/ move and keep what they say.
"""
