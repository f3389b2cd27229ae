//! Tables that several sources share, as a source of mail would describe them: messages of two mailboxes, what is
//! stored beside a message, and threads computed from messages.

use highwater_core::{
    Body, Edit, Key, Note, Record, SideRow, Timestamp, Value, list,
    schema::{
        Column,
        ColumnType::{Bool, Bytes, Int, Json, Text, Time},
        Derived,
        Role::{Content, Key as Name, Mutable},
        SideTable, Table, column,
    },
    texts,
};
use serde_json::json;

use crate::suite::scene::at;

const MESSAGE_COLUMNS: &[Column] = &[
    column("id", Text, Name),
    column("mailbox_id", Text, Content),
    column("thread_id", Text, Content),
    column("provider_message_id", Text, Content),
    column("subject", Text, Content),
    column("sent_at", Time, Content),
    column("raw_headers", Json, Content),
    column("label_ids", Json, Mutable),
    column("has_attachments", Bool, Content),
    column("size_estimate", Int, Mutable),
    column("deleted_remotely_at", Time, Mutable),
    column("internal_date", Int, Content),
    column("body_plain", Text, Content),
    column("body_html", Text, Content),
];

static THREADS: Derived = Derived {
    name: "mail_threads",
    columns: &[
        column("id", Text, Name),
        column("mailbox_id", Text, Content),
        column("message_count", Int, Content),
        column("first_message_at", Time, Content),
        column("last_message_at", Time, Content),
        column("label_ids", Json, Content),
    ],
    group: "thread_id",
    reads: &["thread_id", "mailbox_id", "sent_at", "label_ids"],
    fold,
    note,
};

/// Two mailboxes, the name of one the beginning of the other's.
pub static ANN: Table = messages(Some("m1"));
pub static ZOE: Table = messages(Some("m10"));
/// The messages of both.
pub static ALL_MAIL: Table = messages(None);

pub static RAW: SideTable = SideTable {
    name: "mail_raw",
    columns: &[
        column("message_id", Text, Name),
        column("raw", Bytes, Content),
        column("size_bytes", Int, Content),
        column("sha256", Text, Content),
    ],
};

pub static ATTACHMENTS: SideTable = SideTable {
    name: "mail_attachments",
    columns: &[
        column("id", Text, Name),
        column("mailbox_id", Text, Content),
        column("message_id", Text, Content),
        column("part_id", Text, Content),
        column("filename", Text, Content),
        column("mime_type", Text, Content),
        column("is_inline", Bool, Content),
        column("size_bytes", Int, Content),
        column("sha256", Text, Content),
        column("storage_path", Text, Content),
    ],
};

const fn messages(mailbox: Option<&'static str>) -> Table {
    Table {
        name: "mail_messages",
        columns: MESSAGE_COLUMNS,
        edges: None,
        versions: None,
        time: None,
        scope: mailbox,
        derived: Some(&THREADS),
    }
}

/// A message of a thread, with its bytes, and a line for the ledger.
pub fn message(mailbox: &'static Table, key: &str, thread: &str, labels: &[&str]) -> Record {
    let (key, scope) = (Key::from(key), mailbox.scope.unwrap_or_default());
    let row = mailbox.row_key(&key).to_string();
    let values = vec![
        Value::text(row.clone()),
        Value::Text(scope.into()),
        Value::text(format!("{scope}-{thread}")),
        Value::text(key.to_string()),
        Value::text(format!("of {key}")),
        Value::Time(sent(&key)),
        Value::Json(r#"[["Subject","=?utf-8?q?=C3=A9?="],["X","\u0001"]]"#.into()),
        label_list(labels),
        Value::Bool(true),
        Value::Null,
        Value::Null,
        Value::Int(sent(&key).as_millis()),
        Value::text(format!("plain text of {key}")),
        if key.number().is_some() { Value::text(format!("<p>{key}</p>")) } else { Value::Null },
    ];
    let note = Note {
        event_type: "MESSAGE_STORED",
        entity_type: "message",
        entity_id: row.clone(),
        payload: json!({ "thread": thread }),
    };
    let body = Body { values, edges: Vec::new() };
    let record = Record { notes: vec![note], ..Record::new(key, mailbox, body) };
    with_bytes(record, row.as_bytes())
}

/// The record with these bytes in place of those beside it, and one attachment.
pub fn with_bytes(record: Record, bytes: &[u8]) -> Record {
    let row = record.row_key().to_string();
    let size = Value::Int(bytes.len() as i64);
    let raw = vec![Value::text(row.clone()), Value::Bytes(bytes.to_vec()), size.clone(), Value::text("00ff")];
    let attachment = vec![
        Value::text(format!("{row}-1")),
        Value::Text(record.table.scope.unwrap_or_default().into()),
        Value::text(row),
        Value::Text("1".into()),
        Value::Null,
        Value::Text("image/png".into()),
        Value::Bool(false),
        size,
        Value::Text("00ff".into()),
        Value::Text("sha256/00/ff".into()),
    ];
    let sides = vec![SideRow { table: &RAW, values: raw }, SideRow { table: &ATTACHMENTS, values: attachment }];
    Record { sides, ..record }
}

/// A message bears the time that its key says, if that is a number.
fn sent(key: &Key) -> Timestamp {
    at(key.number().unwrap_or_default())
}

pub fn label_list(labels: &[&str]) -> Value {
    list(labels.iter().map(|label| (*label).to_owned()))
}

pub fn label(label: &str) -> Edit {
    Edit::Add { column: "label_ids", members: vec![label.to_owned()] }
}

fn fold(rows: &[Vec<Value>]) -> Vec<Value> {
    let times = || rows.iter().filter_map(|row| if let Value::Time(at) = row[2] { Some(at) } else { None });
    let time = |at: Option<Timestamp>| at.map_or(Value::Null, Value::Time);
    let labels = list(rows.iter().flat_map(|row| texts(&row[3])));
    let count = Value::Int(rows.len() as i64);
    vec![rows[0][0].clone(), rows[0][1].clone(), count, time(times().min()), time(times().max()), labels]
}

fn note(row: &[Value]) -> Note {
    let id = row[0].as_text().expect("a thread has a name");
    Note { event_type: "THREAD_SEEN", entity_type: "thread", entity_id: id.into(), payload: json!({ "id": id }) }
}
