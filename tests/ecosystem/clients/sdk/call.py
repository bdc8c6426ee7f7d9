"""Calls one method of a public SDK: {baseUrl, key, method, args, kwargs} on standard input; on standard output what it returned,
or how it was refused. Without a method it lists all that there are. No connection leaves this machine."""

import ipaddress
import json
import sys

from neon_api import NeonAPI
from neon_api.exceptions import NeonAPIError
from pydantic_core import to_jsonable_python


def loopback_only(event, args):
    if event == "socket.connect":
        host = args[1][0]
    elif event == "socket.getaddrinfo":
        host = args[0]
    else:
        return
    if not ipaddress.ip_address(host).is_loopback:
        raise PermissionError(f"{host} is not this machine")


def call(case):
    client = NeonAPI(case["key"], base_url=case["baseUrl"])
    try:
        returned = getattr(client, case["method"])(*case["args"], **case["kwargs"])
    except NeonAPIError as refusal:
        return {"refused": json.loads(str(refusal))}
    return {"returned": to_jsonable_python(returned)}


sys.addaudithook(loopback_only)
case = json.load(sys.stdin)
methods = [name for name in dir(NeonAPI) if not name.startswith("_") and callable(getattr(NeonAPI, name))]
json.dump(call(case) if case else methods, sys.stdout)
