"""Prints when schedules with L come, by croniter: CronJob has no L. The rows are those of main.go."""

import sys
from datetime import datetime, timezone
from zoneinfo import ZoneInfo

from croniter import croniter

COUNT = 10
FORMAT = "%Y-%m-%dT%H:%MZ"
# croniter has rules of its own for the hours in which clocks change: no schedule here names them.
BEGINNINGS = [
    ("Europe/Berlin", "2026-11-26T08:11Z"),
    ("America/New_York", "2027-02-28T20:17Z"),
    ("Asia/Kolkata", "2028-02-28T18:29Z"),
]


def row(expression, theirs, zone, after):
    begin = datetime.strptime(after, FORMAT).replace(tzinfo=timezone.utc).astimezone(ZoneInfo(zone))
    times = croniter(theirs, begin, max_years_between_matches=5)
    found = [times.get_next(datetime).astimezone(timezone.utc).strftime(FORMAT) for _ in range(COUNT)]
    return "\t".join([expression, zone, after, " ".join(found)])


for line in sys.stdin:
    # Where the two differ, how croniter writes it comes after `=`.
    expression, _, theirs = line.rstrip("\n").partition(" = ")
    for beginning in BEGINNINGS:
        print(row(expression, theirs or expression, *beginning))
