"""Reads jdbc-uris as PostgreSQL's JDBC driver does: a JSON list of {jdbcUri} on standard input, what was read of each on
standard output. The arguments are the JVM's library and the driver."""

import json
import sys

import jpype

library, driver = sys.argv[1:]
jpype.startJVM(library, classpath=[driver], convertStrings=True)
names = {"user": "user", "password": "password", "database": "PGDBNAME", "host": "PGHOST", "port": "PGPORT"}
parse = jpype.JClass("org.postgresql.Driver").parseURL


def read(uri):
    parts = parse(uri, None)
    texts = {ours: parts.getProperty(theirs) for ours, theirs in names.items()}
    # One for each host.
    (port,) = set(texts["port"].split(","))
    return texts | {"port": int(port)}


json.dump([read(case["jdbcUri"]) for case in json.load(sys.stdin)], sys.stdout)
