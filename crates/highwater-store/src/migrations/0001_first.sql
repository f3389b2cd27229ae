-- Words in braces are spelled by the dialect. Times (*_at) are {time}; what an API gives as a number stays that number.
-- {name} is text in the order of its bytes. {busy} and {mirror} say how much room a table leaves for updates.

CREATE TABLE ingest_streams (
    source {text} NOT NULL,
    stream {text} NOT NULL,
    axis {text} NOT NULL,
    origin {int} NOT NULL,
    frontier {int} NOT NULL,
    target {int} NOT NULL,
    stored {int} NOT NULL DEFAULT 0,
    live_cursor {text},
    updated_at {time},
    PRIMARY KEY (source, stream)
) {rowless} {busy};

CREATE TABLE ingest_segments (
    segment_id {id},
    source {text} NOT NULL,
    stream {text} NOT NULL,
    purpose {text} NOT NULL CHECK (purpose IN ('catchup', 'rescan')),
    start_pos {int} NOT NULL,
    end_pos {int} NOT NULL CHECK (end_pos > start_pos),
    status {text} NOT NULL DEFAULT 'pending'
        CHECK (status IN ('pending', 'in_progress', 'retry_wait', 'sealed', 'dead_letter')),
    attempts {int} NOT NULL DEFAULT 0,
    scan_cursor {int},
    stored_count {int} NOT NULL DEFAULT 0,
    unresolved_count {int} NOT NULL DEFAULT 0,
    lease_owner {text},
    lease_epoch {int} NOT NULL DEFAULT 0,
    heartbeat_at {time},
    next_retry_at {time},
    started_at {time},
    sealed_at {time},
    last_error {text}
) {strict} {busy};

CREATE INDEX segments_by_start ON ingest_segments (source, stream, start_pos, segment_id);
CREATE UNIQUE INDEX segments_tile ON ingest_segments (source, stream, start_pos) WHERE purpose = 'catchup';
CREATE INDEX segments_unsealed ON ingest_segments (source, stream, start_pos)
    WHERE purpose = 'catchup' AND status <> 'sealed';
CREATE INDEX segments_pending ON ingest_segments (source, stream, start_pos, segment_id) WHERE status = 'pending';
CREATE INDEX segments_waiting ON ingest_segments (source, stream, next_retry_at, segment_id)
    WHERE status = 'retry_wait';
-- Without the heartbeat: it moves all the time, and those at work are few.
CREATE INDEX segments_leased ON ingest_segments (source, stream, segment_id) WHERE status = 'in_progress';

CREATE TABLE ingest_exceptions (
    source {text} NOT NULL,
    stream {text} NOT NULL,
    item_key {name} NOT NULL,
    -- The key as a number where it is one: a span of a dense axis finds its exceptions by it.
    item_number {int},
    segment_id {int} NOT NULL REFERENCES ingest_segments (segment_id),
    state {text} NOT NULL CHECK (state IN ('retry_wait', 'missing', 'excluded', 'dead_letter')),
    attempts {int} NOT NULL,
    absences {int} NOT NULL,
    first_absent_at {time},
    first_seen_at {time} NOT NULL,
    last_tried_at {time} NOT NULL,
    next_retry_at {time},
    reason {text} NOT NULL,
    last_error {text},
    PRIMARY KEY (source, stream, item_key)
) {rowless} {busy};

CREATE INDEX exceptions_by_segment ON ingest_exceptions (segment_id, state, next_retry_at);
CREATE INDEX exceptions_by_state ON ingest_exceptions (source, stream, state, item_key);
CREATE INDEX exceptions_by_number ON ingest_exceptions (source, stream, item_number) WHERE item_number IS NOT NULL;
CREATE INDEX exceptions_due ON ingest_exceptions (source, stream, (reason = 'unpublished'), next_retry_at)
    WHERE state = 'retry_wait';

CREATE TABLE ingest_runs (
    run_id {text} NOT NULL PRIMARY KEY,
    source {text} NOT NULL,
    command {text} NOT NULL,
    started_at {time} NOT NULL,
    ended_at {time},
    worker_count {int} NOT NULL,
    items {int} NOT NULL DEFAULT 0,
    throughput_items_per_second {real},
    requests {int} NOT NULL DEFAULT 0,
    outcome {text} NOT NULL CHECK (outcome IN ('running', 'complete', 'incomplete', 'failed', 'stopped'))
) {strict};

-- What all processes of one account must know.
CREATE TABLE ingest_accounts (
    source {text} NOT NULL PRIMARY KEY,
    rate {real},
    ceiling {real},
    cuts {int} NOT NULL DEFAULT 0,
    cut_at {time},
    gate_until {time},
    gate_reason {text},
    updated_at {time}
) {strict};

-- Processes at work, alive as long as they beat.
CREATE TABLE ingest_workers (
    worker_id {text} NOT NULL PRIMARY KEY,
    source {text} NOT NULL,
    host {text} NOT NULL,
    pid {int} NOT NULL,
    started_at {time} NOT NULL,
    beat_at {time} NOT NULL,
    share {real} NOT NULL,
    demand {real} NOT NULL,
    rate {real}
) {strict};

CREATE TABLE ledger (
    seq {int} NOT NULL,
    at {time} NOT NULL,
    event_type {text} NOT NULL,
    source {text} NOT NULL,
    entity_type {text} NOT NULL,
    entity_id {text} NOT NULL,
    payload {json} NOT NULL,
    actor {text} NOT NULL,
    prev_hash {text} NOT NULL,
    hash {text} NOT NULL,
    PRIMARY KEY (source, seq)
) {rowless};

CREATE TABLE hn_items (
    id {key},
    type {text},
    by {text},
    time {int},
    title {text},
    url {text},
    text {text},
    score {int},
    descendants {int},
    parent {int},
    poll {int},
    parts {ints},
    dead {bool},
    deleted {bool},
    extra {json},
    first_seen_at {time} NOT NULL,
    last_fetched_at {time} NOT NULL,
    last_changed_at {time} NOT NULL,
    row_check {int} NOT NULL
) {strict} {mirror};

CREATE INDEX hn_items_by_time ON hn_items (time);

CREATE TABLE hn_kids (
    item {int} NOT NULL,
    kid {int} NOT NULL,
    display_order {int} NOT NULL,
    PRIMARY KEY (item, kid)
) {rowless};

CREATE TABLE hn_item_versions (
    version {id},
    id {int} NOT NULL,
    seen_at {time} NOT NULL,
    body {json} NOT NULL
) {strict};

CREATE INDEX hn_item_versions_by_id ON hn_item_versions (id, seen_at);

CREATE TABLE hn_users (
    id {name} NOT NULL PRIMARY KEY,
    created {int},
    karma {int},
    about {text},
    submitted {ints},
    extra {json},
    first_seen_at {time} NOT NULL,
    last_fetched_at {time} NOT NULL,
    last_changed_at {time} NOT NULL,
    row_check {int} NOT NULL
) {strict} {mirror};

-- The remote drops the title, the link and the text of what dies, or puts a marker in the text's place.
CREATE VIEW hn_items_last_content AS
SELECT
    item.id,
    item.type,
    item.by,
    item.time,
    item.dead,
    item.deleted,
    CASE WHEN item.title IS NOT NULL THEN item.title ELSE (
        SELECT old.body ->> 'title' FROM hn_item_versions AS old
        WHERE old.id = item.id AND old.body ->> 'title' IS NOT NULL
        ORDER BY old.seen_at DESC, old.version DESC LIMIT 1
    ) END AS title,
    CASE WHEN item.url IS NOT NULL THEN item.url ELSE (
        SELECT old.body ->> 'url' FROM hn_item_versions AS old
        WHERE old.id = item.id AND old.body ->> 'url' IS NOT NULL
        ORDER BY old.seen_at DESC, old.version DESC LIMIT 1
    ) END AS url,
    CASE WHEN item.text NOT IN ('[dead]', '[flagged]', '[delayed]') THEN item.text ELSE COALESCE((
        SELECT old.body ->> 'text' FROM hn_item_versions AS old
        WHERE old.id = item.id AND old.body ->> 'text' NOT IN ('[dead]', '[flagged]', '[delayed]')
        ORDER BY old.seen_at DESC, old.version DESC LIMIT 1
    ), item.text) END AS text
FROM hn_items AS item;
