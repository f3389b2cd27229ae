-- Messages are called by their mailbox and Gmail's own id, <mailbox>-<id>, so that they can be named before they are stored.

ALTER TABLE ingest_streams ADD COLUMN reconciled_at {time};
ALTER TABLE ingest_streams ADD COLUMN expected {int};

CREATE TABLE mail_messages (
    id {name} NOT NULL PRIMARY KEY,
    org_id {text},
    mailbox_id {text},
    thread_id {name},
    provider_message_id {text},
    provider_thread_id {text},
    rfc_message_id {text},
    from_email {text},
    from_name {text},
    to_emails {json},
    cc_emails {json},
    bcc_emails {json},
    subject {text},
    snippet {text},
    body_plain {text},
    body_html {text},
    sent_at {time},
    internal_date {int},
    raw_headers {json},
    label_ids {json},
    has_attachments {bool},
    size_estimate {int},
    raw_sha256 {text},
    sides_check {int},
    parse_error {text},
    deleted_remotely_at {time},
    archived_at {time},
    first_seen_at {time} NOT NULL,
    last_fetched_at {time} NOT NULL,
    last_changed_at {time} NOT NULL,
    row_check {int} NOT NULL,
    etag {text}
) {strict} {mirror};

CREATE INDEX mail_messages_by_thread ON mail_messages (thread_id);
CREATE INDEX mail_messages_by_date ON mail_messages (mailbox_id, internal_date);
CREATE UNIQUE INDEX mail_messages_by_provider ON mail_messages (mailbox_id, provider_message_id);

CREATE TABLE mail_threads (
    id {name} NOT NULL PRIMARY KEY,
    org_id {text},
    mailbox_id {text},
    provider_thread_id {text},
    subject {text},
    snippet {text},
    participant_emails {json},
    message_count {int},
    has_attachments {bool},
    first_message_at {time},
    last_message_at {time},
    label_ids {json}
) {strict} {mirror};

CREATE INDEX mail_threads_by_last ON mail_threads (mailbox_id, last_message_at);
CREATE UNIQUE INDEX mail_threads_by_provider ON mail_threads (mailbox_id, provider_thread_id);

-- The bytes of a message as Gmail gave them, compressed. Apart from the messages, which are read far more often.
CREATE TABLE mail_raw (
    message_id {name} NOT NULL PRIMARY KEY,
    raw {bytes} NOT NULL,
    size_bytes {int} NOT NULL,
    sha256 {text} NOT NULL
) {strict};

CREATE TABLE mail_attachments (
    id {name} NOT NULL PRIMARY KEY,
    org_id {text},
    mailbox_id {text} NOT NULL,
    message_id {name} NOT NULL,
    part_id {text} NOT NULL,
    filename {text},
    mime_type {text} NOT NULL,
    content_id {text},
    is_inline {bool} NOT NULL,
    size_bytes {int} NOT NULL,
    sha256 {text} NOT NULL,
    storage_path {text} NOT NULL
) {strict};

CREATE UNIQUE INDEX mail_attachments_by_part ON mail_attachments (message_id, part_id);
CREATE INDEX mail_attachments_by_content ON mail_attachments (sha256);
