-- What a Looker instance holds, all types in one table. Rows are called <source>:<type>-<id>, so that they can be named
-- before they are stored. `content_hash` is over what has meaning in `body`; `exact` keeps the bytes of a body that has
-- something in it that a database cannot hold.

ALTER TABLE ingest_runs ADD COLUMN errors {int};
ALTER TABLE ingest_runs ADD COLUMN items_by_type {json};
ALTER TABLE ingest_runs ADD COLUMN calls {json};

CREATE TABLE looker_content (
    id {name} NOT NULL PRIMARY KEY,
    source {text},
    content_type {text},
    content_id {text},
    name {text},
    folder_id {text},
    owner_id {text},
    created_at {time},
    updated_at {time},
    deleted_at {time},
    body {json},
    content_hash {text},
    exact {bytes},
    first_seen_at {time} NOT NULL,
    last_fetched_at {time} NOT NULL,
    last_changed_at {time} NOT NULL,
    row_check {int} NOT NULL,
    etag {text}
) {strict} {mirror};

CREATE UNIQUE INDEX looker_content_by_object ON looker_content (source, content_type, content_id);
CREATE INDEX looker_content_by_folder ON looker_content (source, content_type, folder_id);

-- Rows as they were before they changed.
CREATE TABLE looker_versions (
    version {id},
    id {name} NOT NULL,
    seen_at {time} NOT NULL,
    body {json} NOT NULL
) {strict};

CREATE INDEX looker_versions_by_id ON looker_versions (id, seen_at);

CREATE VIEW looker_content_versions AS
SELECT
    old.version,
    now.source,
    now.content_type,
    now.content_id,
    old.body ->> 'name' AS name,
    old.body ->> 'folder_id' AS folder_id,
    old.body ->> 'owner_id' AS owner_id,
    old.body ->> 'content_hash' AS content_hash,
    old.body -> 'body' AS body,
    old.seen_at
FROM looker_versions AS old
JOIN looker_content AS now ON now.id = old.id;

-- Dashboards and looks with who owns them, where they are, when they last changed and how often they are scheduled.
CREATE VIEW looker_content_overview AS
WITH RECURSIVE paths (source, folder_id, folder_path, depth) AS (
    SELECT top.source, top.content_id, top.name, 1
    FROM looker_content AS top
    WHERE top.content_type = 'folders' AND NOT EXISTS (
        SELECT 1 FROM looker_content AS above
        WHERE above.source = top.source AND above.content_type = 'folders' AND above.content_id = top.folder_id
            AND above.content_id <> top.content_id
    )
    UNION ALL
    SELECT below.source, below.content_id, paths.folder_path || '/' || below.name, paths.depth + 1
    FROM paths
    JOIN looker_content AS below
        ON below.source = paths.source AND below.content_type = 'folders' AND below.folder_id = paths.folder_id
    WHERE paths.depth < 64 AND below.content_id <> paths.folder_id
),
schedules (source, content_type, content_id, schedule_count) AS (
    SELECT plan.source, plan.content_type, plan.content_id, count(*) FROM (
        SELECT
            source,
            CASE
                WHEN body ->> 'look_id' IS NOT NULL THEN 'looks'
                WHEN body ->> 'dashboard_id' IS NOT NULL THEN 'dashboards'
                ELSE 'lookml_dashboards'
            END AS content_type,
            CAST(COALESCE(body ->> 'look_id', body ->> 'dashboard_id', body ->> 'lookml_dashboard_id') AS {text})
                AS content_id
        FROM looker_content
        WHERE content_type = 'scheduled_plans' AND deleted_at IS NULL
    ) AS plan
    GROUP BY plan.source, plan.content_type, plan.content_id
)
SELECT
    content.source,
    content.content_type,
    content.content_id,
    content.name,
    content.owner_id,
    owner.name AS owner,
    content.folder_id,
    paths.folder_path,
    content.created_at,
    content.updated_at,
    content.last_changed_at,
    content.deleted_at,
    COALESCE(schedules.schedule_count, 0) AS schedule_count
FROM looker_content AS content
LEFT JOIN looker_content AS owner
    ON owner.source = content.source AND owner.content_type = 'users' AND owner.content_id = content.owner_id
LEFT JOIN paths ON paths.source = content.source AND paths.folder_id = content.folder_id
LEFT JOIN schedules
    ON schedules.source = content.source AND schedules.content_type = content.content_type
        AND schedules.content_id = content.content_id
WHERE content.content_type IN ('dashboards', 'lookml_dashboards', 'looks');

-- Which fields the elements of dashboards and the looks use, as columns or to filter by.
CREATE VIEW looker_fields_used AS
WITH asked (source, content_type, content_id, content_name, element_id, query) AS (
    SELECT
        content.source,
        content.content_type,
        content.content_id,
        content.name,
        CAST(NULL AS {text}),
        NULLIF(content.body -> 'query', 'null')
    FROM looker_content AS content
    WHERE content.content_type = 'looks' AND content.deleted_at IS NULL
    UNION ALL
    SELECT
        content.source,
        content.content_type,
        content.content_id,
        content.name,
        CAST(element.value ->> 'id' AS {text}),
        COALESCE(
            NULLIF(element.value -> 'query', 'null'),
            NULLIF(element.value -> 'result_maker' -> 'query', 'null'),
            NULLIF(element.value -> 'look' -> 'query', 'null')
        )
    FROM looker_content AS content, {each_element}
    WHERE content.content_type IN ('dashboards', 'lookml_dashboards') AND content.deleted_at IS NULL
)
SELECT
    asked.source,
    asked.content_type,
    asked.content_id,
    asked.content_name,
    asked.element_id,
    asked.query ->> 'model' AS model,
    asked.query ->> 'view' AS explore,
    CAST(field.value AS {text}) AS field,
    'field' AS used_as
FROM asked, {each_field}
UNION
SELECT
    asked.source,
    asked.content_type,
    asked.content_id,
    asked.content_name,
    asked.element_id,
    asked.query ->> 'model',
    asked.query ->> 'view',
    CAST(filter.key AS {text}),
    'filter'
FROM asked, {each_filter};
