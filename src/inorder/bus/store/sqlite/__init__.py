"""The file behind the embedded broker: topic logs, mailboxes, machines' records, and who owns what.

One SQLite file (schema.py), opened by any number of processes of one host (file.py). The live bus
writes it, the Spark source reads it.
"""
