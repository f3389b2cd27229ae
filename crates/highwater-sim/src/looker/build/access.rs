//! Content metadata and the grants of those that do not inherit.

use serde_json::json;

use super::can;
use crate::{
    looker::{instance::Instance, kind::LookerType},
    rng::Share,
};

impl Instance {
    /// The metadata of something new; `parent` is the metadata of its folder.
    pub(super) fn add_metadata(&mut self, kind: LookerType, id: &str, name: &str, parent: Option<&str>) -> String {
        let number = self.number(LookerType::ContentMetadata);
        let own = number.to_string();
        let hit = self.rng(LookerType::ContentMetadata, number).next_u64();
        let inherits = parent.is_some() && !Share::new(self.plan.own_access).unwrap_or(Share::NONE).hit(hit);
        let (content, of) = match kind {
            LookerType::Dashboards => ("dashboard", "dashboard_id"),
            LookerType::Looks => ("look", "look_id"),
            LookerType::Boards => ("homepage", "homepage_id"),
            _ => ("folder", "folder_id"),
        };
        let mut body = json!({
            "can": can(number), "id": own, "name": name, "parent_id": parent, "dashboard_id": null, "look_id": null,
            "folder_id": null, "homepage_id": null, "content_type": content, "inherits": inherits,
            "inheriting_id": if inherits { parent } else { None }, "slug": null,
        });
        body[of] = json!(id);
        let mut ties = vec![(kind, id.to_owned())];
        ties.extend(parent.map(|parent| (LookerType::ContentMetadata, parent.to_owned())));
        self.add(LookerType::ContentMetadata, own.clone(), &body, ties);
        if !inherits {
            (0..1 + hit % 3).for_each(|nth| drop(self.add_grant(&own, nth)));
        }
        own
    }

    pub(super) fn metadata_of(&self, kind: LookerType, id: &str) -> Option<String> {
        self.find(kind, id)?.tied(LookerType::ContentMetadata).next().map(str::to_owned)
    }

    /// To a group, or to a user if there are any.
    pub(in crate::looker) fn add_grant(&mut self, metadata: &str, nth: u64) -> String {
        let number = self.number(LookerType::ContentAccess);
        let mut rng = self.rng(LookerType::ContentAccess, number);
        let group = self.any(LookerType::Groups, &mut rng);
        let user = if nth > 0 { self.any(LookerType::Users, &mut rng) } else { None };
        let group = if user.is_some() { None } else { group };
        let body = json!({
            "can": can(number), "id": number.to_string(), "content_metadata_id": metadata,
            "permission_type": if rng.chance(1, 3) { "edit" } else { "view" }, "group_id": group, "user_id": user,
        });
        let ties = vec![(LookerType::ContentMetadata, metadata.to_owned())];
        self.add(LookerType::ContentAccess, number.to_string(), &body, ties)
    }
}
