//! Damage done to mail behind the product's back: found whatever row it is, and mended.

use std::fs;

use serde_json::Value as Json;

use super::desk::{Desk, FAST};
use crate::support::{Database, Schema, Sim};

const PLAN: &str = "[size]\nsize_kb = 2\nattachments = 0.3\n";

const DAMAGES: &[&str] = &[
    "UPDATE mail_messages SET subject = 'another' WHERE id = (SELECT min(id) FROM mail_messages)",
    "UPDATE mail_messages SET label_ids = '[\"ANOTHER\"]' WHERE id = (SELECT max(id) FROM mail_messages)",
    "DELETE FROM mail_messages WHERE id = (SELECT min(id) FROM mail_messages)",
    "UPDATE mail_raw SET size_bytes = size_bytes + 1 WHERE message_id = (SELECT min(message_id) FROM mail_raw)",
    "DELETE FROM mail_raw WHERE message_id = (SELECT max(message_id) FROM mail_raw)",
    "UPDATE mail_attachments SET filename = 'another' WHERE id = (SELECT min(id) FROM mail_attachments)",
    "DELETE FROM mail_attachments WHERE id = (SELECT max(id) FROM mail_attachments)",
    "UPDATE mail_threads SET message_count = 7000 WHERE id = (SELECT min(id) FROM mail_threads)",
    "DELETE FROM mail_threads WHERE id = (SELECT max(id) FROM mail_threads)",
];

/// The stream's part of the certificate.
fn proof(desk: &Desk, code: i32) -> Json {
    let proof = desk.home.run(&["verify", "mail", "--json"]).exits(code).json();
    assert!(proof["verified_at"].as_i64().is_some_and(|at| at > 0), "{proof}");
    assert_eq!(proof["complete"], code == 0, "{proof}");
    proof["streams"][0].clone()
}

fn is_found_and_mended(desk: &Desk, meddle: impl Fn(&str)) -> Json {
    desk.sync().exits(0);
    let sound = proof(desk, 0);
    assert_eq!(sound["digest"].as_str().map(str::len), Some(64), "{sound}");
    for damage in DAMAGES {
        meddle(damage);
        let found = proof(desk, 3);
        let faults = found["differs"].as_u64().unwrap() + found["unexplained"].as_u64().unwrap();
        assert!(faults > 0, "{damage}: {found}");
        desk.home.run(&["sync", "mail", "--force", "--quiet"]).exits(0);
        assert_eq!(proof(desk, 0)["digest"], sound["digest"], "mended after {damage}");
    }
    sound
}

#[test]
fn whatever_is_changed_behind_its_back_is_found_and_mended() {
    let desk = Desk::new(Sim::gmail_planned(120, PLAN), FAST);
    let file = desk.home.path("highwater.db");
    is_found_and_mended(&desk, |sql| assert_eq!(Database::meddle(&file, sql), 1, "{sql}"));
    let blob: String = desk.database().one("SELECT min(storage_path) FROM mail_attachments");
    fs::write(desk.home.path("blobs").join(blob), "another").unwrap();
    assert_eq!(proof(&desk, 3)["unexplained"], 0);
    desk.home.run(&["sync", "mail", "--force", "--quiet"]).exits(0);
    proof(&desk, 0);
}

#[test]
fn it_is_on_postgres_too_and_equal_mirrors_have_equal_digests() {
    let schema = Schema::new();
    let desk = Desk::with_store(&schema.url(), Sim::gmail_planned(120, PLAN), FAST);
    let session = schema.session();
    let sound = is_found_and_mended(&desk, |sql| session.run(sql));
    let other = Desk::new(Sim::gmail_planned(120, PLAN), FAST);
    other.sync().exits(0);
    assert_eq!(proof(&other, 0)["digest"], sound["digest"]);
}
