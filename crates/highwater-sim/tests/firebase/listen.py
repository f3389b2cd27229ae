"""Listens to nodes of a Firebase database with Google's own client, and prints each node's value after each event.

Usage: listen.py HOST:PORT NODE...    (one JSON object a line: node, event, value)
"""

import json
import os
import sys
import threading

host, nodes = sys.argv[1], sys.argv[2:]
os.environ["FIREBASE_DATABASE_EMULATOR_HOST"] = host

import firebase_admin  # noqa: E402  (reads the environment)
from firebase_admin import db  # noqa: E402

printing = threading.Lock()


def put(tree, path, value):
    """The value of a node after `value` was written below it; `None` is nothing."""
    if not path:
        return value
    key, rest = path[0], path[1:]
    children = dict(enumerate(tree)) if isinstance(tree, list) else dict(tree or {})
    key = int(key) if all(isinstance(known, int) for known in children) and key.isdigit() else key
    child = put(children.get(key), rest, value)
    if child is None:
        children.pop(key, None)
    else:
        children[key] = child
    if children and sorted(map(str, children)) == sorted(map(str, range(len(children)))):
        return [children[at] for at in range(len(children))]
    return children or None


def listen(node):
    tree = None

    def on_event(event):
        nonlocal tree
        path = [step for step in event.path.split("/") if step]
        if event.event_type == "patch":
            for key, value in event.data.items():
                tree = put(tree, path + [key], value)
        else:
            tree = put(tree, path, event.data)
        with printing:
            print(json.dumps({"node": node, "event": event.event_type, "value": tree}), flush=True)

    return db.reference(node).listen(on_event)


firebase_admin.initialize_app(options={"databaseURL": f"http://{host}?ns=hacker-news"})

# What is asked for once, and again with the tag of the answer.
value, tag = db.reference("/v0/item/7").get(etag=True)
changed, _, _ = db.reference("/v0/item/7").get_if_changed(tag)
print(json.dumps({"node": "/v0/item/7", "event": "get", "value": value, "changed_since": changed}), flush=True)

listeners = [listen(node) for node in nodes]
sys.stdin.read()
# Closing a listener waits for its next event, which may be half a minute away.
os._exit(0)
