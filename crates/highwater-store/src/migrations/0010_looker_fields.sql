-- As before, but what is no field is none: elements that are no objects, lists with other things in them than texts.
{replace_view} looker_fields_used AS
WITH asked (source, content_type, content_id, content_name, element_id, query) AS (
    SELECT
        content.source,
        content.content_type,
        content.content_id,
        content.name,
        CAST(NULL AS {text}),
        content.body -> 'query'
    FROM looker_content AS content
    WHERE content.content_type = 'looks' AND content.deleted_at IS NULL
    UNION ALL
    SELECT
        content.source,
        content.content_type,
        content.content_id,
        content.name,
        CAST({element} ->> 'id' AS {text}),
        COALESCE(
            NULLIF({element} -> 'query', 'null'),
            NULLIF({element} -> 'result_maker' -> 'query', 'null'),
            NULLIF({element} -> 'look' -> 'query', 'null')
        )
    FROM looker_content AS content
    JOIN {elements}
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
FROM asked
JOIN {fields}
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
FROM asked
JOIN {filters};
