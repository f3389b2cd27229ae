//! Dashboards, LookML dashboards and looks.

use serde_json::{Value, json};

use super::{
    can, count,
    folders::{LOOKML, USERS},
    lately, time,
    words::{sentence, slug, title},
};
use crate::{
    looker::{
        instance::{Instance, Record},
        kind::LookerType,
        template::{Moving, Template},
    },
    rng::SplitMix64,
};

/// Whose something is, and where it lies.
struct Home {
    folder: String,
    owner: String,
    owner_name: Value,
    metadata: String,
}

impl Instance {
    pub(super) fn add_look(&mut self) -> String {
        let number = self.number(LookerType::Looks);
        let (id, mut rng) = (number.to_string(), self.rng(LookerType::Looks, number));
        let title = title(&mut rng, number);
        let home = self.home(LookerType::Looks, &id, &title, &mut rng);
        let (query, created) = (self.add_query(), self.past(&mut rng));
        let body = json!({
            "can": can(number), "content_metadata_id": home.metadata, "id": id, "title": title, "user_id": home.owner,
            "content_favorite_id": Moving::Maybe.at(number), "created_at": time(created), "deleted": false,
            "deleted_at": null, "deleter_id": null, "description": sentence(&mut rng, 8), "embed_url": null,
            "favorite_count": count(&mut rng, 20), "is_run_on_load": true, "last_accessed_at": lately(created),
            "last_updater_id": home.owner, "last_viewed_at": lately(created), "model": self.model_of(&query),
            "public": false, "public_slug": slug(&mut rng, 32), "query_id": query, "short_url": format!("/looks/{id}"),
            "folder": self.folder_inside(&home.folder), "folder_id": home.folder,
            "updated_at": time(created + rng.below(self.age(created)) as i64), "user_name": home.owner_name,
            "view_count": count(&mut rng, 900), "usage_count": count(&mut rng, 500), "is_owner_disabled": false,
            "query": self.query_inside(&query), "url": format!("/looks/{id}"), "x_pinned_by": [],
        });
        let ties = vec![
            (LookerType::Folders, home.folder),
            (LookerType::ContentMetadata, home.metadata),
            (LookerType::Users, home.owner),
            (LookerType::Queries, query),
        ];
        self.add(LookerType::Looks, id, &body, ties)
    }

    pub(super) fn add_dashboard(&mut self) -> String {
        let number = self.number(LookerType::Dashboards);
        let (id, mut rng) = (number.to_string(), self.rng(LookerType::Dashboards, number));
        let title = title(&mut rng, number);
        let home = self.home(LookerType::Dashboards, &id, &title, &mut rng);
        let mut ties = vec![
            (LookerType::Folders, home.folder.clone()),
            (LookerType::ContentMetadata, home.metadata.clone()),
            (LookerType::Users, home.owner.clone()),
        ];
        let mut body = self.dashboard(&id, number, &title, &home, &mut rng);
        self.fill(&mut body, number, &mut ties, &mut rng);
        self.pad(&mut body);
        self.add(LookerType::Dashboards, id, &body, ties)
    }

    /// Made by a file of LookML; they have no times and cannot be deleted here.
    pub(super) fn add_lookml_dashboard(&mut self) -> String {
        let number = self.number(LookerType::LookmlDashboards);
        let mut rng = self.rng(LookerType::LookmlDashboards, number);
        let model = self.any(LookerType::LookmlModels, &mut rng).unwrap_or_else(|| "model_1".to_owned());
        let id = format!("{model}::board_{number}");
        let body = json!({
            "can": can(number), "content_favorite_id": Moving::Maybe.at(number), "content_metadata_id": null,
            "description": sentence(&mut rng, 5), "hidden": false, "id": id, "model": { "id": model, "label": model },
            "query_timezone": null, "readonly": true, "refresh_interval": null, "refresh_interval_to_i": null,
            "folder": self.folder_inside(LOOKML), "title": title(&mut rng, number), "user_id": null, "slug": null,
            "preferred_viewer": "dashboards-next", "created_at": null, "updated_at": null, "deleted": false,
            "dashboard_elements": [], "dashboard_filters": [], "dashboard_layouts": [], "folder_id": LOOKML,
            "lookml_link_id": format!("/projects/{model}/files/board_{number}.dashboard.lookml"), "view_count": count(&mut rng, 90),
            "last_viewed_at": lately(self.plan.newest * 1_000), "url": format!("/dashboards/{id}"),
        });
        self.add(LookerType::LookmlDashboards, id, &body, vec![(LookerType::Folders, LOOKML.to_owned())])
    }

    fn dashboard(&self, id: &str, number: u64, title: &str, home: &Home, rng: &mut SplitMix64) -> Value {
        let created = self.past(rng);
        let mut body = json!({
            "can": can(number), "content_favorite_id": Moving::Maybe.at(number), "content_metadata_id": home.metadata,
            "description": sentence(rng, 9), "hidden": false, "id": id, "query_timezone": "UTC",
            "readonly": false, "refresh_interval": null, "refresh_interval_to_i": null,
            "folder": self.folder_inside(&home.folder), "title": title, "user_id": home.owner, "slug": slug(rng, 22),
            "preferred_viewer": "dashboards-next", "alert_sync_with_dashboard_filter_enabled": true,
            "background_color": null, "created_at": time(created), "crossfilter_enabled": rng.chance(1, 2),
            "deleted": false, "deleted_at": null, "deleter_id": null, "edit_uri": format!("/dashboards/{id}/edit"),
            "enable_viz_full_screen": true, "favorite_count": count(rng, 30), "filters_bar_collapsed": false,
            "filters_location_top": true, "last_accessed_at": lately(created), "last_viewed_at": lately(created),
            "updated_at": time(created + rng.below(self.age(created)) as i64), "last_updater_id": home.owner,
            "last_updater_name": home.owner_name, "user_name": home.owner_name, "load_configuration": "prefetch_cache_run",
        });
        let more = json!({
            "lookml_link_id": null, "show_filters_bar": true, "show_title": true, "folder_id": home.folder,
            "text_tile_text_color": null, "tile_background_color": null, "tile_text_color": null, "title_color": null,
            "view_count": count(rng, 5_000), "usage_count": count(rng, 2_000), "is_owner_disabled": false,
            "url": format!("/dashboards/{id}"), "layout_granularity": "coarse", "x_review_state": "unknown to clients",
            "appearance": { "page_side_margins": 20, "tile_shadow": rng.chance(1, 2), "key_color": "#1a73e8" },
        });
        if let (Value::Object(body), Value::Object(more)) = (&mut body, more) {
            body.extend(more);
        }
        body
    }

    /// Bodies are about as long as the plan says.
    fn pad(&self, body: &mut Value) {
        const WORDS: &str = "lorem ipsum ";
        let mut shown = Vec::new();
        Template::new(body.as_object().expect("a body is an object")).render(0, &mut shown);
        let missing = (self.plan.body_bytes as usize).saturating_sub(shown.len());
        body["x_notes"] = json!(WORDS.repeat(missing / WORDS.len()));
    }

    fn home(&mut self, kind: LookerType, id: &str, name: &str, rng: &mut SplitMix64) -> Home {
        let lies = |folder: &Record| folder.id != LOOKML && folder.id != USERS;
        let folder = self.pick(LookerType::Folders, rng, lies).map_or("1".to_owned(), |folder| folder.id.clone());
        let owner = self.any(LookerType::Users, rng).unwrap_or_else(|| super::ME.to_owned());
        let known = self.find(LookerType::Users, &owner).and_then(|user| user.template.get("display_name"));
        let owner_name = known.unwrap_or(Value::Null);
        let parent = self.metadata_of(LookerType::Folders, &folder);
        let metadata = self.add_metadata(kind, id, name, parent.as_deref());
        Home { folder, owner, owner_name, metadata }
    }

    /// Milliseconds from then to the newest.
    fn age(&self, since: i64) -> u64 {
        (self.plan.newest * 1_000 - since).max(1) as u64
    }

    fn model_of(&self, query: &str) -> Value {
        let model = self.find(LookerType::Queries, query).and_then(|query| query.template.get("model"));
        json!({ "id": model, "label": model })
    }
}
