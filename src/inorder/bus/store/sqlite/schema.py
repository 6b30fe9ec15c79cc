"""The tables of the file.

| table    | a row is                                                                           |
|----------|------------------------------------------------------------------------------------|
| about    | a fact about the file: its format, its name                                        |
| topics   | a topic and the guarantee under which it is published; fixed by its first use      |
| log      | a diffused message: `count` events of one topic, the first of them at `offset`     |
| mail     | a message on its way to one machine                                                |
| records  | something a machine must not forget (effect.Persist)                               |
| owners   | who runs a machine; `token` grows with every owner and fences the ones before      |
| receipts | a batch that was appended under a key, so that it is not appended again            |

`offset` counts the events of a topic from 0, without holes; `id` is the order in which rows were
committed, over all topics. `crc` is the CRC-32 of the blob beside it.
"""

from __future__ import annotations

FORMAT = 1

TABLES = """
CREATE TABLE about (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE topics (topic TEXT PRIMARY KEY, guarantee TEXT NOT NULL, next INTEGER NOT NULL)
  WITHOUT ROWID;
CREATE TABLE log (
  id INTEGER PRIMARY KEY, topic TEXT NOT NULL, offset INTEGER NOT NULL, count INTEGER NOT NULL,
  at REAL NOT NULL, message BLOB NOT NULL, crc INTEGER NOT NULL
);
CREATE UNIQUE INDEX log_by_offset ON log (topic, offset);
CREATE TABLE mail (
  id INTEGER PRIMARY KEY AUTOINCREMENT, target TEXT NOT NULL, source TEXT NOT NULL,
  message BLOB NOT NULL, crc INTEGER NOT NULL
);
CREATE INDEX mail_by_target ON mail (target, id);
CREATE TABLE records (
  id INTEGER PRIMARY KEY AUTOINCREMENT, node TEXT NOT NULL, record BLOB NOT NULL,
  crc INTEGER NOT NULL
);
CREATE INDEX records_by_node ON records (node, id);
CREATE TABLE owners (
  node TEXT PRIMARY KEY, token INTEGER NOT NULL, process INTEGER NOT NULL,
  holder TEXT NOT NULL, renewed_at REAL NOT NULL
) WITHOUT ROWID;
CREATE TABLE receipts (key TEXT PRIMARY KEY, rows INTEGER NOT NULL, at REAL NOT NULL)
  WITHOUT ROWID;
"""
