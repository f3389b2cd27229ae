//! What administrators set up: connections, projects, datagroups, themes and user attributes.

use serde_json::json;

use super::{
    can, time,
    words::{pick, subject},
};
use crate::looker::{instance::Instance, kind::LookerType, template::Moving};

impl Instance {
    pub(super) fn settings(&mut self, each: u64) {
        for _ in 0..each {
            self.add_connection();
            self.add_project();
            self.add_datagroup();
            self.add_theme();
            self.add_user_attribute();
        }
    }

    pub(super) fn add_connection(&mut self) -> String {
        let number = self.number(LookerType::Connections);
        let mut rng = self.rng(LookerType::Connections, number);
        let name = format!("{}_{number}", pick(&mut rng, &["warehouse", "thelook", "finance-eu"]));
        let body = json!({
            "can": can(number), "name": name, "dialect": { "name": "bigquery_standard_sql", "label": "Google BigQuery" },
            "snippets": [], "pdts_enabled": rng.chance(1, 2), "host": format!("db{number}.example.com"), "port": "443",
            "username": "looker", "password": null, "uses_oauth": false, "database": format!("db_{number}"),
            "db_timezone": "UTC", "query_timezone": "UTC", "schema": "public", "max_connections": 30, "ssl": true,
            "verify_ssl": true, "dialect_name": "bigquery_standard_sql", "created_at": time(self.past(&mut rng)),
            "user_id": "1", "example": number == 1, "managed": false,
        });
        self.add(LookerType::Connections, name, &body, Vec::new())
    }

    pub(super) fn add_project(&mut self) -> String {
        let number = self.number(LookerType::Projects);
        let id = format!("project_{number}");
        let body = json!({
            "can": can(number), "id": id, "name": id, "uses_git": true, "is_example": number == 1,
            "git_remote_url": format!("git@git.example.com:bi/{id}.git"), "git_production_branch_name": "main",
            "git_service_name": "github", "pull_request_mode": "recommended", "validation_required": true,
            "git_release_mgmt_enabled": false, "allow_warnings": true, "dependency_status": "lock_optional",
        });
        self.add(LookerType::Projects, id.clone(), &body, Vec::new())
    }

    /// Their times are numbers.
    pub(super) fn add_datagroup(&mut self) -> String {
        let number = self.number(LookerType::Datagroups);
        let mut rng = self.rng(LookerType::Datagroups, number);
        let seconds = (self.past(&mut rng) / 1_000).max(0) as u64;
        let body = json!({
            "can": can(number), "created_at": seconds, "id": number.to_string(), "model_name": "model_1",
            "name": format!("{}_datagroup_{number}", subject(&mut rng).to_lowercase()), "stale_before": null,
            "trigger_check_at": Moving::Epoch.at(seconds), "trigger_error": null, "trigger_value": "2026-01-01",
            "triggered_at": Moving::Epoch.at(seconds),
        });
        self.add(LookerType::Datagroups, number.to_string(), &body, Vec::new())
    }

    pub(super) fn add_theme(&mut self) -> String {
        let number = self.number(LookerType::Themes);
        let mut rng = self.rng(LookerType::Themes, number);
        let name = if number == 1 { "Looker".to_owned() } else { format!("{}_{number}", subject(&mut rng)) };
        let settings = json!({
            "background_color": "#f6f8fa", "base_font_size": "12px", "font_family": "Roboto", "show_filters_bar": true,
            "tile_background_color": pick(&mut rng, &["#ffffff", "#eeeeee"]), "tile_shadow": rng.chance(1, 2),
        });
        let body = json!({
            "can": can(number), "begin_at": (number > 1).then(|| time(self.past(&mut rng))), "end_at": null,
            "id": number.to_string(), "name": name, "settings": settings,
        });
        self.add(LookerType::Themes, number.to_string(), &body, Vec::new())
    }

    pub(super) fn add_user_attribute(&mut self) -> String {
        let number = self.number(LookerType::UserAttributes);
        let mut rng = self.rng(LookerType::UserAttributes, number);
        let name = format!("{}_{number}", subject(&mut rng).to_lowercase());
        let hidden = rng.chance(1, 4);
        let body = json!({
            "name": name, "label": format!("Attribute {number}"), "type": pick(&mut rng, &["string", "number", "yesno"]),
            "can": can(number), "id": number.to_string(), "default_value": (!hidden).then_some("all"),
            "is_system": number == 1, "is_permanent": number == 1, "value_is_hidden": hidden, "user_can_view": true,
            "user_can_edit": false, "hidden_value_domain_whitelist": if hidden { "https://*.example.com" } else { "" },
        });
        self.add(LookerType::UserAttributes, number.to_string(), &body, Vec::new())
    }
}
