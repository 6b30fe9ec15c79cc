"""The live driver: readers and publications over one log (logs/), driven by asyncio over a broker.

bus.py and subscription.py are what applications use; publisher.py appends, pump.py reads.
"""
