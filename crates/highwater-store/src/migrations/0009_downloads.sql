-- What runs have downloaded, by the hour, where a day has a budget. By run, so that what is noted twice counts once.
CREATE TABLE ingest_downloads (
    source {text} NOT NULL,
    hour {time} NOT NULL,
    run_id {text} NOT NULL,
    bytes {int} NOT NULL,
    PRIMARY KEY (source, hour, run_id)
) {rowless} {busy};
