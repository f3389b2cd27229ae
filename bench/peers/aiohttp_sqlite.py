"""Hacker News into SQLite with aiohttp and sqlite3: keep-alive connections, a bounded queue, batched upserts."""

import asyncio
import json
import sqlite3
import time
from pathlib import Path

import aiohttp
from peer import BATCH, COLUMNS, IN_FLIGHT, arguments, report

UPSERT = (
    f"INSERT INTO items ({', '.join(COLUMNS)}) VALUES ({', '.join('?' * len(COLUMNS))}) "
    f"ON CONFLICT (id) DO UPDATE SET {', '.join(f'{name} = excluded.{name}' for name in COLUMNS[1:])}"
)


def open_store(path: str) -> sqlite3.Connection:
    store = sqlite3.connect(path, check_same_thread=False)
    store.execute("PRAGMA journal_mode = WAL")
    store.execute("PRAGMA synchronous = FULL")
    store.executescript(Path(__file__).with_name("schema.sql").read_text())
    return store


def row(item: dict) -> tuple:
    return tuple(json.dumps(value) if isinstance(value, list) else value for value in map(item.get, COLUMNS))


async def fetch_items(session: aiohttp.ClientSession, ids, fetched: asyncio.Queue) -> None:
    for item_id in ids:
        async with session.get(f"/v0/item/{item_id}.json") as response:
            response.raise_for_status()
            item = await response.json()
        if item is not None:
            await fetched.put(row(item))


def write_batch(store: sqlite3.Connection, batch: list) -> None:
    with store:
        store.executemany(UPSERT, batch)


async def write_items(store: sqlite3.Connection, fetched: asyncio.Queue) -> None:
    batch = []
    while (entry := await fetched.get()) is not None:
        batch.append(entry)
        if len(batch) == BATCH:
            # In a thread, so that requests go on while SQLite waits for the disk.
            await asyncio.to_thread(write_batch, store, batch)
            batch = []
    write_batch(store, batch)


async def mirror(base_url: str, items: int, store: sqlite3.Connection) -> None:
    fetched: asyncio.Queue = asyncio.Queue(maxsize=2 * BATCH)
    writer = asyncio.create_task(write_items(store, fetched))
    ids = iter(range(1, items + 1))
    connector = aiohttp.TCPConnector(limit=IN_FLIGHT)
    async with aiohttp.ClientSession(base_url, connector=connector) as session, asyncio.TaskGroup() as group:
        for _ in range(IN_FLIGHT):
            group.create_task(fetch_items(session, ids, fetched))
    await fetched.put(None)
    await writer


def main() -> None:
    base_url, items, path = arguments()
    started = time.perf_counter()
    store = open_store(path)
    asyncio.run(mirror(base_url, items, store))
    stored = store.execute("SELECT count(*) FROM items").fetchone()[0]
    store.close()
    report(stored, items, started)


main()
