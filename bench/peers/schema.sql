CREATE TABLE IF NOT EXISTS items (
    id INTEGER PRIMARY KEY,
    type TEXT,
    by TEXT,
    time INTEGER,
    title TEXT,
    url TEXT,
    text TEXT,
    score INTEGER,
    descendants INTEGER,
    parent INTEGER,
    poll INTEGER,
    kids TEXT,
    parts TEXT,
    dead INTEGER,
    deleted INTEGER
);
CREATE INDEX IF NOT EXISTS items_by_time ON items (time);
