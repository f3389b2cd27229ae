"""Hacker News into SQLite with dlt's REST source: a resource of ids, and one request for each of them."""

import time

import dlt
import dlt_pipeline
from dlt.sources.rest_api import rest_api_source
from peer import BATCH, arguments, report


@dlt.resource(name="ids", selected=False)
def item_ids(items: int):
    # Pages small enough that the parallel requests of the source overlap.
    for first in range(1, items + 1, BATCH // 20):
        yield [{"id": item_id} for item_id in range(first, min(first + BATCH // 20, items + 1))]


def source(base_url: str, items: int):
    item = {
        **dlt_pipeline.HINTS,
        "parallelized": True,
        "endpoint": {"path": "v0/item/{resources.ids.id}.json", "paginator": "single_page"},
    }
    return rest_api_source({"client": {"base_url": base_url}, "resources": [item_ids(items), item]})


def main() -> None:
    base_url, items, db = arguments()
    started = time.perf_counter()
    stored = dlt_pipeline.load(source(base_url, items), db)
    report(stored, items, started)


if __name__ == "__main__":
    main()
