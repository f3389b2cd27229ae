"""Hacker News into SQLite with dlt and an asynchronous resource of one's own, which yields whole pages of items."""

import asyncio
import time

import aiohttp
import dlt
import dlt_pipeline
from peer import BATCH, IN_FLIGHT, arguments, report


async def fetch_items(session: aiohttp.ClientSession, ids, fetched: asyncio.Queue) -> None:
    for item_id in ids:
        async with session.get(f"/v0/item/{item_id}.json") as response:
            response.raise_for_status()
            await fetched.put(await response.json())


@dlt.resource(**dlt_pipeline.HINTS)
async def hn_items(base_url: str, items: int):
    fetched: asyncio.Queue = asyncio.Queue(maxsize=2 * BATCH)
    ids = iter(range(1, items + 1))
    connector = aiohttp.TCPConnector(limit=IN_FLIGHT)
    async with aiohttp.ClientSession(base_url, connector=connector) as session, asyncio.TaskGroup() as group:
        for _ in range(IN_FLIGHT):
            group.create_task(fetch_items(session, ids, fetched))
        for first in range(0, items, BATCH):
            yield [await fetched.get() for _ in range(min(BATCH, items - first))]


def main() -> None:
    base_url, items, db = arguments()
    started = time.perf_counter()
    stored = dlt_pipeline.load(hn_items(base_url, items), db)
    report(stored, items, started)


if __name__ == "__main__":
    main()
