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
            LookerType::Groups => self.dissolve(id),
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

    /// Nobody is a member any more.
    fn dissolve(&mut self, group: &str) {
        for kind in [LookerType::Users, LookerType::Groups] {
            for member in self.ids_tied(kind, LookerType::Groups, group) {
                if let Some(record) = self.find_mut(kind, &member) {
                    record.ties.retain(|(tied, id)| *tied != LookerType::Groups || id != group);
                }
                self.change(kind, &member, |body| {
                    if let Some(groups) = body.get_mut("group_ids").and_then(Value::as_array_mut) {
                        groups.retain(|id| id != group);
                    }
                });
            }
        }
    }
}

fn edit_one(kind: LookerType, body: &mut Map<String, Value>, nth: u64) {
    let Some(member) = kind.edited() else { return };
    let before = body.get(member).cloned().unwrap_or(Value::Null);
    let after = match (kind, &before) {
        (LookerType::ContentMetadata, before) => json!(before != true),
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
