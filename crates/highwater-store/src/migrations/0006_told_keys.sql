-- What the feed has told and is not stored yet, as a list in JSON: a process that is killed leaves it to the next. Text,
-- because a name may hold what a database's own JSON cannot.
CREATE TABLE ingest_told (
    source {text} NOT NULL,
    stream {text} NOT NULL,
    item_keys {text} NOT NULL,
    PRIMARY KEY (source, stream)
) {rowless} {busy};
