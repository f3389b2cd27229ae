-- Accounts at mail providers, and what opens them.

CREATE TABLE mailboxes (
    id {text} NOT NULL PRIMARY KEY,
    org_id {text} NOT NULL,
    provider_email {text} NOT NULL,
    source {text} NOT NULL,
    status {text} NOT NULL CHECK (status IN ('connected', 'syncing', 'error')),
    -- An unsigned number of 64 bits, which no column type of all databases holds.
    last_history_id {text},
    last_synced_at {time},
    sync_error_message {text},
    -- Sealed; the key is not in the database.
    credentials {text},
    -- Until then one process gets a new access token, and the others wait for it.
    refreshing_until {time},
    created_at {time} NOT NULL,
    updated_at {time} NOT NULL
) {rowless} {busy};

CREATE UNIQUE INDEX mailboxes_by_address ON mailboxes (org_id, provider_email);
