//! The tree of folders: the roots, a folder for each user, and the shared ones.

use serde_json::{Value, json};

use super::{can, count, time, words::subject};
use crate::looker::{instance::Instance, kind::LookerType};

/// Of shared folders, of those of users, and of what LookML makes.
pub(super) const SHARED: &str = "1";
pub(super) const USERS: &str = "2";
pub(in crate::looker) const LOOKML: &str = "lookml";

/// Where a folder lies, and what it is.
struct Place<'a> {
    id: String,
    name: String,
    parent: Option<&'a str>,
    creator: Option<String>,
    personal: bool,
}

impl Instance {
    pub(super) fn root_folders(&mut self) {
        for (id, name) in [(SHARED, "Shared"), (USERS, "Users"), (LOOKML, "LookML Dashboards")] {
            if id != LOOKML {
                self.number(LookerType::Folders);
            }
            let place =
                Place { id: id.to_owned(), name: name.to_owned(), parent: None, creator: None, personal: false };
            self.add_place(&place);
        }
    }

    pub(super) fn folders(&mut self, shared: u64) {
        (0..shared).for_each(|_| drop(self.add_folder()));
    }

    /// A shared one, in any other of those.
    pub(super) fn add_folder(&mut self) -> String {
        let number = self.number(LookerType::Folders);
        let mut rng = self.rng(LookerType::Folders, number);
        let shared = self.pick(LookerType::Folders, &mut rng, |folder| {
            folder.id != LOOKML && !folder.is_tied(LookerType::Folders, USERS) && folder.id != USERS
        });
        let parent = shared.map_or(SHARED.to_owned(), |folder| folder.id.clone());
        let creator = self.any(LookerType::Users, &mut rng);
        let name = format!("{} {number}", subject(&mut rng));
        self.add_place(&Place { id: number.to_string(), name, parent: Some(&parent), creator, personal: false })
    }

    pub(super) fn add_personal_folder(&mut self, owner: &str, user: u64) -> String {
        let id = self.number(LookerType::Folders).to_string();
        let (name, creator) = (owner.to_owned(), Some(user.to_string()));
        self.add_place(&Place { id, name, parent: Some(USERS), creator, personal: true })
    }

    fn add_place(&mut self, place: &Place<'_>) -> String {
        let number = self.all(LookerType::Folders).len() as u64;
        let mut rng = self.rng(LookerType::Folders, number | 1 << 40);
        let parent_metadata = place.parent.and_then(|parent| self.metadata_of(LookerType::Folders, parent));
        let metadata = self.add_metadata(LookerType::Folders, &place.id, &place.name, parent_metadata.as_deref());
        let body = json!({
            "name": place.name, "parent_id": place.parent, "id": place.id, "content_metadata_id": metadata,
            "created_at": time(self.past(&mut rng)), "creator_id": place.creator, "child_count": count(&mut rng, 9),
            "external_id": null, "is_embed": false, "is_embed_shared_root": false, "is_embed_users_root": false,
            "is_personal": place.personal, "is_personal_descendant": place.personal,
            "is_shared_root": place.id == SHARED, "is_users_root": place.id == USERS, "can": can(number),
            "x_retention_days": 30 * (1 + rng.below(12)),
        });
        let mut ties = vec![(LookerType::ContentMetadata, metadata)];
        ties.extend(place.parent.map(|parent| (LookerType::Folders, parent.to_owned())));
        self.add(LookerType::Folders, place.id.clone(), &body, ties)
    }

    /// As it is shown inside of what lies in it.
    pub(super) fn folder_inside(&self, id: &str) -> Value {
        const SHOWN: [&str; 6] = ["id", "name", "parent_id", "content_metadata_id", "is_personal", "creator_id"];
        let Some(folder) = self.find(LookerType::Folders, id) else { return Value::Null };
        folder.template.object().into_iter().filter(|(name, _)| SHOWN.contains(&name.as_str())).collect()
    }
}
