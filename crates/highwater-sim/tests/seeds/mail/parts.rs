//! The bytes of every message, and the attachments in them.

use std::collections::BTreeSet;

use aws_lc_rs::digest::{SHA256, digest};
use highwater_sources::gmail::{read_mail, unpack};
use highwater_store::{BlobName, Blobs};
use rusqlite::Connection;

use super::stage::Stage;

pub(super) fn check(db: &Connection, stage: &Stage) {
    let sql = "SELECT m.id, m.raw_sha256, m.has_attachments, r.raw, r.size_bytes, r.sha256
        FROM mail_messages m LEFT JOIN mail_raw r ON r.message_id = m.id";
    let mut statement = db.prepare(sql).unwrap();
    let mut rows = statement.query([]).unwrap();
    let mut attachments = BTreeSet::new();
    while let Some(row) = rows.next().unwrap() {
        let (id, said): (String, String) = (row.get(0).unwrap(), row.get(1).unwrap());
        let packed: Vec<u8> = row.get(3).unwrap_or_else(|error| panic!("{id} has no bytes: {error}"));
        let raw = unpack(&packed, row.get::<_, i64>(4).unwrap() as usize).unwrap();
        assert_eq!((hex(&raw), row.get(5).unwrap()), (said.clone(), said), "{id}");
        let mail = read_mail(&raw);
        assert_eq!(row.get::<_, bool>(2).unwrap(), !mail.attachments.is_empty(), "{id}");
        attachments.extend(mail.attachments.iter().map(|attachment| {
            let sha256 = hex(&attachment.content);
            (format!("{id}-{}", attachment.part_id), id.clone(), sha256, attachment.content.len())
        }));
    }
    assert_eq!(stored(db, &stage.blobs), attachments);
    let raws: i64 = db.query_row("SELECT count(*) FROM mail_raw", [], |row| row.get(0)).unwrap();
    let messages: i64 = db.query_row("SELECT count(*) FROM mail_messages", [], |row| row.get(0)).unwrap();
    assert_eq!(raws, messages);
}

/// Attachments as the rows have them: id, message, hash and size, each with its content in place.
fn stored(db: &Connection, blobs: &Blobs) -> BTreeSet<(String, String, String, usize)> {
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let sql = "SELECT id, message_id, sha256, size_bytes, storage_path FROM mail_attachments";
    let mut statement = db.prepare(sql).unwrap();
    let rows = statement.query_map([], |row| {
        let (sha256, size, path): (String, i64, String) = (row.get(2)?, row.get(3)?, row.get(4)?);
        let name: BlobName = path.parse().unwrap();
        let content = runtime.block_on(blobs.read(&name)).unwrap().unwrap_or_else(|| panic!("{path} is not there"));
        assert_eq!((name.sha256(), content.len()), (sha256.as_str(), size as usize));
        Ok((row.get(0)?, row.get(1)?, sha256, size as usize))
    });
    rows.unwrap().map(Result::unwrap).collect()
}

fn hex(bytes: &[u8]) -> String {
    digest(&SHA256, bytes).as_ref().iter().map(|byte| format!("{byte:02x}")).collect()
}
