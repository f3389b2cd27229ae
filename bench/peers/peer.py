"""What the Python peers share: the arguments, the columns and the one line each prints."""

import json
import sys
import time
from typing import NamedTuple

COLUMNS = (
    "id", "type", "by", "time", "title", "url", "text", "score", "descendants",
    "parent", "poll", "kids", "parts", "dead", "deleted",
)  # fmt: skip
IN_FLIGHT = 64
BATCH = 1_000


class Arguments(NamedTuple):
    base_url: str
    items: int
    db: str


def arguments() -> Arguments:
    if len(sys.argv) != 4:
        sys.exit(f"usage: {sys.argv[0]} BASE_URL ITEMS DB")
    return Arguments(sys.argv[1].rstrip("/"), int(sys.argv[2]), sys.argv[3])


def report(items: int, wanted: int, started: float) -> None:
    seconds = time.perf_counter() - started
    if items != wanted:
        sys.exit(f"{items} items stored, {wanted} wanted")
    rate = items / seconds
    line = {"items": items, "seconds": seconds, "items_per_second": rate, "peak_rss_mb": peak_rss_mb()}
    print(json.dumps(line))


def peak_rss_mb() -> float:
    # ru_maxrss would do on a fresh process, but it keeps what the parent had at fork.
    with open("/proc/self/status") as status:
        kilobytes = next(line for line in status if line.startswith("VmHWM:")).split()[1]
    return int(kilobytes) / 1024
