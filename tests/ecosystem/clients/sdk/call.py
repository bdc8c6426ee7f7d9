"""Calls one method of a public SDK: {baseUrl, key, method, args, kwargs} on standard input; on standard output what it returned,
how it was refused, or which other machine it would have connected to: none is. Without a method it lists all that there are."""

import ipaddress
import json
import sys

from neon_api import NeonAPI
from neon_api.exceptions import NeonAPIError
from pydantic_core import to_jsonable_python


class Outside(Exception):
    """Of a class that nobody on the way takes for a failure to connect."""


def loopback_only(event, args):
    if event == "socket.connect":
        host = args[1][0]
    elif event == "socket.getaddrinfo":
        host = args[0]
    else:
        return
    if not ipaddress.ip_address(host).is_loopback:
        raise Outside(host)


def call(case):
    client = NeonAPI(case["key"], base_url=case["baseUrl"])
    try:
        returned = getattr(client, case["method"])(*case["args"], **case["kwargs"])
    except NeonAPIError as refusal:
        return {"refused": json.loads(str(refusal))}
    except Outside as outside:
        return {"outside": str(outside)}
    return {"returned": to_jsonable_python(returned)}


sys.addaudithook(loopback_only)
case = json.load(sys.stdin)
methods = [name for name in dir(NeonAPI) if not name.startswith("_") and callable(getattr(NeonAPI, name))]
json.dump(call(case) if case else methods, sys.stdout)
