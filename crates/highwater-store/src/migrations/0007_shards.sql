-- The large parts of mail can lie in files beside the store. Only a store that is a file has rows here.

CREATE TABLE mail_shards (
    shard {int} NOT NULL PRIMARY KEY,
    -- In the folder of the store.
    file {text} NOT NULL
) {strict};

-- Messages whose bytes and texts lie in a shard. Those in 0 lie in the store itself, until they are moved again.
CREATE TABLE mail_places (
    message_id {name} NOT NULL PRIMARY KEY,
    shard {int} NOT NULL
) {rowless};

CREATE INDEX mail_places_by_shard ON mail_places (shard, message_id);

-- The setting by which all mail lies; no row while it is being moved.
CREATE TABLE mail_layout (
    shards {text} NOT NULL PRIMARY KEY
) {rowless};
