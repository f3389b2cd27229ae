//! What can happen to an object: it is edited, goes to the trash, or goes for good with all that depends on it.

use serde_json::{Map, Value, json};

use super::{
    build::ME,
    instance::{Instance, State},
    kind::{Bin, LookerType},
    template::iso,
};

impl Instance {
    /// Another title, name or whatever a type has, and the time of it; with `set`, those members instead.
    pub(super) fn edit(&mut self, kind: LookerType, id: &str, set: Option<&Map<String, Value>>, at: i64) {
        let nth = self.number_of_edits();
        self.change(kind, id, |body| {
            match set {
                Some(set) => set.iter().for_each(|(name, value)| drop(body.insert(name.clone(), value.clone()))),
                None => edit_one(kind, body, nth),
            }
            touch(body, at);
        });
        if kind == LookerType::ContentMetadata {
            self.settle_access(id);
        }
    }

    /// Into the trash where the type has one, and else for good.
    pub(super) fn trash(&mut self, kind: LookerType, id: &str, at: i64) {
        if kind.bin() == Bin::None {
            return self.purge(kind, id);
        }
        self.change(kind, id, |body| {
            body.insert("deleted_at".to_owned(), json!(iso(at)));
            if kind.bin() == Bin::Trash {
                body.insert("deleted".to_owned(), json!(true));
                body.insert("deleter_id".to_owned(), json!(ME));
            }
        });
        if let Some(record) = self.find_mut(kind, id) {
            record.state = State::Trashed;
        }
    }

    /// Out of the trash.
    pub(super) fn restore(&mut self, kind: LookerType, id: &str) {
        self.change(kind, id, |body| {
            body.insert("deleted_at".to_owned(), Value::Null);
            if kind.bin() == Bin::Trash {
                body.insert("deleted".to_owned(), json!(false));
                body.insert("deleter_id".to_owned(), Value::Null);
            }
        });
        if let Some(record) = self.find_mut(kind, id) {
            record.state = State::Present;
        }
    }

    pub(super) fn purge(&mut self, kind: LookerType, id: &str) {
        let Some(record) = self.find_mut(kind, id) else { return };
        record.state = State::Purged;
        let metadata: Vec<String> = record.tied(LookerType::ContentMetadata).map(str::to_owned).collect();
        match kind {
            LookerType::Dashboards | LookerType::Looks | LookerType::Boards => {
                metadata.iter().for_each(|metadata| self.purge(LookerType::ContentMetadata, metadata));
            }
            LookerType::Folders => self.empty_folder(id, &metadata),
            LookerType::ContentMetadata => self.purge_tied(LookerType::ContentAccess, kind, id),
            LookerType::LookmlModels => self.purge_tied(LookerType::Explores, kind, id),
            LookerType::Groups => self.dissolve(kind, "group_ids", id),
            LookerType::Roles => self.dissolve(kind, "role_ids", id),
            _ => {}
        }
    }

    /// What lies in a folder goes with it.
    fn empty_folder(&mut self, id: &str, metadata: &[String]) {
        for kind in [LookerType::Dashboards, LookerType::Looks, LookerType::Folders] {
            self.purge_tied(kind, LookerType::Folders, id);
        }
        metadata.iter().for_each(|metadata| self.purge(LookerType::ContentMetadata, metadata));
    }

    fn purge_tied(&mut self, kind: LookerType, other: LookerType, id: &str) {
        for tied in self.ids_tied(kind, other, id) {
            self.purge(kind, &tied);
        }
    }

    fn ids_tied(&self, kind: LookerType, other: LookerType, id: &str) -> Vec<String> {
        self.existing(kind).filter(|record| record.is_tied(other, id)).map(|record| record.id.clone()).collect()
    }

    /// Nobody is in it or has it any more.
    fn dissolve(&mut self, kind: LookerType, listed: &str, gone: &str) {
        for holders in [LookerType::Users, LookerType::Groups] {
            for holder in self.ids_tied(holders, kind, gone) {
                if let Some(record) = self.find_mut(holders, &holder) {
                    record.ties.retain(|(tied, id)| *tied != kind || id != gone);
                }
                self.change(holders, &holder, |body| {
                    if let Some(held) = body.get_mut(listed).and_then(Value::as_array_mut) {
                        held.retain(|id| id != gone);
                    }
                });
            }
        }
    }

    /// Grants are of those that do not inherit.
    fn settle_access(&mut self, metadata: &str) {
        let inherits = self.find(LookerType::ContentMetadata, metadata).and_then(|one| one.template.get("inherits"));
        if inherits == Some(Value::Bool(true)) {
            self.purge_tied(LookerType::ContentAccess, LookerType::ContentMetadata, metadata);
        } else if self.ids_tied(LookerType::ContentAccess, LookerType::ContentMetadata, metadata).is_empty() {
            self.add_grant(metadata, 0);
        }
    }
}

fn edit_one(kind: LookerType, body: &mut Map<String, Value>, nth: u64) {
    let Some(member) = kind.edited() else { return };
    let before = body.get(member).cloned().unwrap_or(Value::Null);
    let after = match (kind, &before) {
        (LookerType::ContentMetadata, before) => {
            let inherits = before != true && body.get("parent_id").is_some_and(Value::is_string);
            let from = if inherits { body["parent_id"].clone() } else { Value::Null };
            body.insert("inheriting_id".to_owned(), from);
            body.insert("x_edit".to_owned(), json!(nth));
            json!(inherits)
        }
        (LookerType::ContentAccess, before) => json!(if before == "view" { "edit" } else { "view" }),
        (_, Value::String(text)) => {
            let bare = text.split(" ~").next().unwrap_or("");
            json!(format!("{bare} ~{nth}"))
        }
        _ => json!(format!("~{nth}")),
    };
    body.insert(member.to_owned(), after);
}

/// `updated_at` always grows, however fast edits follow each other.
fn touch(body: &mut Map<String, Value>, at: i64) {
    let Some(Value::String(before)) = body.get("updated_at") else { return };
    let before = before.parse::<jiff::Timestamp>().map_or(0, |time| time.as_millisecond());
    body.insert("updated_at".to_owned(), json!(iso(at.max(before + 1))));
}
