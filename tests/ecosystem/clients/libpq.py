"""Reads connection URIs as libpq does: a JSON list of {uri} on standard input, what was read of each on standard output."""

import json
import sys

from psycopg.conninfo import conninfo_to_dict


def read(uri):
    parts = conninfo_to_dict(uri)
    names = {"user": "user", "password": "password", "database": "dbname", "host": "host"}
    # One for each host.
    (port,) = set(parts["port"].split(","))
    return {ours: parts[theirs] for ours, theirs in names.items()} | {"port": int(port)}


json.dump([read(case["uri"]) for case in json.load(sys.stdin)], sys.stdout)
