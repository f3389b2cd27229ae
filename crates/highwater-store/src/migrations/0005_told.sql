-- When people were last told of an alert: they are told once an hour, whichever process does.
ALTER TABLE ingest_alerts ADD COLUMN told_at {time};
UPDATE ingest_alerts SET told_at = raised_at;
