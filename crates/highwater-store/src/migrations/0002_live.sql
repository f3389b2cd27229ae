-- What a mirror that stays current keeps account of.

-- The remote's mark of the body in the row.
ALTER TABLE hn_items ADD COLUMN etag {text};
ALTER TABLE hn_users ADD COLUMN etag {text};

ALTER TABLE ingest_segments ADD COLUMN rescan_id {int};
-- Rows brought, also those that were the same, and how many of them differed from what was stored.
ALTER TABLE ingest_segments ADD COLUMN seen_count {int} NOT NULL DEFAULT 0;
ALTER TABLE ingest_segments ADD COLUMN changed_count {int} NOT NULL DEFAULT 0;
-- Rows of a segment at work that its stream does not count yet: commits of many segments need not queue for the
-- stream's row. None once it is put down.
ALTER TABLE ingest_segments ADD COLUMN uncounted {int} NOT NULL DEFAULT 0;

CREATE INDEX segments_of_rescans ON ingest_segments (rescan_id, status) WHERE rescan_id IS NOT NULL;
CREATE INDEX segments_again ON ingest_segments (source, stream, start_pos, segment_id)
    WHERE status = 'pending' AND purpose = 'rescan';

-- Passes over what is stored already.
CREATE TABLE ingest_rescans (
    rescan_id {id},
    source {text} NOT NULL,
    stream {text} NOT NULL,
    reason {text} NOT NULL CHECK (reason IN ('scheduled', 'blind', 'history', 'key')),
    start_pos {int} NOT NULL,
    end_pos {int} NOT NULL CHECK (end_pos >= start_pos),
    segment_size {int} NOT NULL,
    -- Segments are laid up to here; those that are too many for one transaction are laid by several.
    laid_pos {int} NOT NULL,
    began_at {time} NOT NULL,
    sealed_at {time},
    items {int} NOT NULL DEFAULT 0,
    changed {int} NOT NULL DEFAULT 0
) {strict};

CREATE INDEX rescans_begun ON ingest_rescans (source, stream, began_at);
CREATE INDEX rescans_unsealed ON ingest_rescans (source, stream, rescan_id) WHERE sealed_at IS NULL;
CREATE INDEX rescans_sealed ON ingest_rescans (source, stream, sealed_at) WHERE sealed_at IS NOT NULL;

-- Intervals in which nobody listened.
CREATE TABLE ingest_blind_windows (
    window_id {id},
    source {text} NOT NULL,
    stream {text} NOT NULL,
    opened_at {time} NOT NULL,
    reason {text} NOT NULL,
    ended_at {time},
    head {int},
    rescan_id {int},
    -- When the profiles that it may have missed had been looked at again.
    names_at {time},
    closed_at {time}
) {strict};

CREATE UNIQUE INDEX blind_windows_open ON ingest_blind_windows (source, stream) WHERE ended_at IS NULL;
CREATE INDEX blind_windows_unclosed ON ingest_blind_windows (source, stream, window_id) WHERE closed_at IS NULL;

-- What one process does for all of a source, for as long as it beats.
CREATE TABLE ingest_roles (
    source {text} NOT NULL,
    role {text} NOT NULL,
    owner {text} NOT NULL,
    beat_at {time} NOT NULL,
    PRIMARY KEY (source, role)
) {rowless} {busy};

-- The axis of a stream whose keys are names: in the order in which they were found.
CREATE TABLE ingest_names (
    source {text} NOT NULL,
    stream {text} NOT NULL,
    seq {int} NOT NULL,
    name {name} NOT NULL,
    PRIMARY KEY (source, stream, seq)
) {rowless};

CREATE UNIQUE INDEX names_by_name ON ingest_names (source, stream, name);

-- How old objects were when they were found changed, by class.
CREATE TABLE ingest_ages (
    source {text} NOT NULL,
    stream {text} NOT NULL,
    class {int} NOT NULL,
    changed {int} NOT NULL,
    PRIMARY KEY (source, stream, class)
) {rowless} {busy};

CREATE TABLE ingest_alerts (
    alert_id {id},
    source {text} NOT NULL,
    condition {text} NOT NULL,
    severity {text} NOT NULL,
    message {text} NOT NULL,
    raised_at {time} NOT NULL,
    resolved_at {time}
) {strict};

CREATE UNIQUE INDEX alerts_open ON ingest_alerts (source, condition) WHERE resolved_at IS NULL;

-- How a story rose: one row for each state of an item that was seen, with the time since when.
CREATE VIEW hn_story_history AS
SELECT
    old.id,
    old.seen_at,
    CAST(old.body ->> 'score' AS {int}) AS score,
    CAST(old.body ->> 'descendants' AS {int}) AS descendants,
    old.body ->> 'title' AS title
FROM hn_item_versions AS old
UNION ALL
SELECT item.id, item.last_changed_at, item.score, item.descendants, item.title FROM hn_items AS item;
