"""What the two dlt peers share: a SQLite destination with a primary key, and settings that suit many small items."""

import os
import sqlite3
import tempfile

import dlt

# Many small items: large buffers, and files of a size that lets the two normalize workers share the work.
SETTINGS = {
    "RUNTIME__DLTHUB_TELEMETRY": "false",
    "RUNTIME__LOG_LEVEL": "ERROR",
    "EXTRACT__WORKERS": "20",
    "NORMALIZE__WORKERS": "2",
    "DATA_WRITER__BUFFER_MAX_ITEMS": "10000",
    "DATA_WRITER__FILE_MAX_ITEMS": "10000",
}
# Given, not inferred: the columns exist even if no item has them, and lists stay JSON instead of child tables.
COLUMN_TYPES = {
    "id": "bigint", "type": "text", "by": "text", "time": "bigint", "title": "text", "url": "text",
    "text": "text", "score": "bigint", "descendants": "bigint", "parent": "bigint", "poll": "bigint",
    "kids": "json", "parts": "json", "dead": "bool", "deleted": "bool",
}  # fmt: skip
# Plain appends: a merge goes through a second table and is slower.
HINTS = {
    "name": "items",
    "primary_key": "id",
    "write_disposition": "append",
    "max_table_nesting": 0,
    "columns": {name: {"data_type": kind} for name, kind in COLUMN_TYPES.items()},
}


def load(source, db: str) -> int:
    """Runs the pipeline and returns the number of rows."""
    os.environ.update(SETTINGS)
    with tempfile.TemporaryDirectory(dir=os.path.dirname(os.path.abspath(db))) as workdir:
        pipeline = dlt.pipeline(
            "hn_peer",
            pipelines_dir=workdir,
            dataset_name="main",
            destination=dlt.destinations.sqlalchemy(f"sqlite:///{db}", create_primary_keys=True),
        )
        pipeline.run(source).raise_on_failed_jobs()
    with sqlite3.connect(db) as store:
        return store.execute("SELECT count(*) FROM items").fetchone()[0]
