"""A log in a SQLite file: durable, without a server, for the processes of one host.

A row is a block of events (block.py), behind verbs that are turns (file.py) under a lock, with a
witness beside the file (witness.py); an asyncio face with two threads (broker.py).
"""
