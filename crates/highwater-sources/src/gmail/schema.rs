//! The tables of mail.

use highwater_core::{
    Value, blob_path,
    schema::{
        Column,
        ColumnType::{Bool, Bytes, Int, Json, Text, Time},
        Derived,
        Role::{Content, Key, Mutable},
        SIDES_CHECK, SideCheck, SideSpec, SideTable, Table, column,
    },
};

use super::{message::sha256_of, packed::unpack, threads};

const MESSAGE_COLUMNS: &[Column] = &[
    column("id", Text, Key),
    column("org_id", Text, Content),
    column("mailbox_id", Text, Content),
    column("thread_id", Text, Content),
    column("provider_message_id", Text, Content),
    column("provider_thread_id", Text, Content),
    column("rfc_message_id", Text, Content),
    column("from_email", Text, Content),
    column("from_name", Text, Content),
    column("to_emails", Json, Content),
    column("cc_emails", Json, Content),
    column("bcc_emails", Json, Content),
    column("subject", Text, Content),
    column("snippet", Text, Mutable),
    column("body_plain", Text, Content),
    column("body_html", Text, Content),
    column("sent_at", Time, Content),
    column("internal_date", Int, Content),
    column("raw_headers", Json, Content),
    column("label_ids", Json, Mutable),
    column("has_attachments", Bool, Content),
    column("size_estimate", Int, Mutable),
    column("raw_sha256", Text, Content),
    column(SIDES_CHECK, Int, Content),
    column("parse_error", Text, Content),
    column(DELETED, Time, Mutable),
];

pub(super) const LABELS: &str = "label_ids";
pub(super) const DELETED: &str = "deleted_remotely_at";

static THREADS: Derived = Derived {
    name: "mail_threads",
    columns: &[
        column("id", Text, Key),
        column("org_id", Text, Content),
        column("mailbox_id", Text, Content),
        column("provider_thread_id", Text, Content),
        column("subject", Text, Content),
        column("snippet", Text, Content),
        column("participant_emails", Json, Content),
        column("message_count", Int, Content),
        column("has_attachments", Bool, Content),
        column("first_message_at", Time, Content),
        column("last_message_at", Time, Content),
        column("label_ids", Json, Content),
    ],
    group: "thread_id",
    reads: threads::READS,
    fold: threads::fold,
    note: threads::note,
};

pub(super) static RAW: SideTable = SideTable {
    name: "mail_raw",
    columns: &[
        column("message_id", Text, Key),
        column("raw", Bytes, Content),
        column("size_bytes", Int, Content),
        column("sha256", Text, Content),
    ],
};

pub static ATTACHMENTS: SideTable = SideTable {
    name: "mail_attachments",
    columns: &[
        column("id", Text, Key),
        column("org_id", Text, Content),
        column("mailbox_id", Text, Content),
        column("message_id", Text, Content),
        column("part_id", Text, Content),
        column("filename", Text, Content),
        column("mime_type", Text, Content),
        column("content_id", Text, Content),
        column("is_inline", Bool, Content),
        column("size_bytes", Int, Content),
        column("sha256", Text, Content),
        column("storage_path", Text, Content),
    ],
};

pub(super) const SIDES: &[SideSpec] = &[
    SideSpec { table: &RAW, is_required: true, check: check_raw },
    SideSpec { table: &ATTACHMENTS, is_required: false, check: check_attachment },
];

fn check_raw(row: &[Value]) -> SideCheck {
    let [Value::Text(owner), Value::Bytes(packed), Value::Int(size), Value::Text(sha256)] = row else {
        return unreadable(row);
    };
    let raw = usize::try_from(*size).ok().and_then(|size| unpack(packed, size).ok());
    let fault = match raw {
        Some(raw) if sha256_of(&raw) == sha256.as_str() => None,
        Some(_) => Some("its bytes are not those that were stored"),
        None => Some("its bytes cannot be unpacked"),
    };
    SideCheck { owner: owner.as_str().to_owned(), fault, blob: None }
}

fn check_attachment(row: &[Value]) -> SideCheck {
    let place = |name: &str| ATTACHMENTS.columns.iter().position(|column| column.name == name);
    let text = |name: &str| place(name).and_then(|place| row.get(place)).and_then(Value::as_text).map(str::to_owned);
    let (Some(owner), Some(sha256), Some(path)) = (text("message_id"), text("sha256"), text("storage_path")) else {
        return unreadable(row);
    };
    let fault = (path != blob_path(&sha256)).then_some("an attachment is said to be where it cannot be");
    SideCheck { owner, fault, blob: Some(sha256) }
}

fn unreadable(row: &[Value]) -> SideCheck {
    let owner = row.first().and_then(Value::as_text).unwrap_or_default().to_owned();
    SideCheck { owner, fault: Some("what belongs to it cannot be read"), blob: None }
}

/// The messages of all mailboxes.
pub static ALL_MESSAGES: Table = Table {
    name: "mail_messages",
    columns: MESSAGE_COLUMNS,
    edges: None,
    versions: None,
    time: None,
    scope: None,
    derived: Some(&THREADS),
};

/// The messages of one mailbox. A description lives as long as the program, and there are as many as mailboxes.
pub(super) fn messages(mailbox: &str) -> &'static Table {
    let Table { name, columns, edges, versions, time, derived, .. } = ALL_MESSAGES;
    let scope: Option<&'static str> = Some(String::leak(mailbox.to_owned()));
    Box::leak(Box::new(Table { name, columns, edges, versions, time, scope, derived }))
}
