//! LookML: models, their explores, and what belongs to a model by name.

use serde_json::{Value, json};

use super::{
    can,
    words::{sentence, subject},
};
use crate::looker::{instance::Instance, kind::LookerType};

/// The model of Looker's own figures, listed only on request.
pub(in crate::looker) const INTERNAL: &str = "system__activity";
/// What the names of models begin with that were made without LookML, listed only on request.
pub(in crate::looker) const SELF_SERVICE: &str = "self_service__";

impl Instance {
    pub(super) fn models(&mut self, models: u64) {
        (0..models).for_each(|_| drop(self.add_model()));
        self.add_named_model(INTERNAL, "System Activity", 5);
        self.add_named_model(&format!("{SELF_SERVICE}uploads"), "Uploads", 1);
        self.add_named_model("empty_model", "Empty", 0);
    }

    pub(super) fn add_model(&mut self) -> String {
        let number = self.number(LookerType::LookmlModels);
        let label = subject(&mut self.rng(LookerType::LookmlModels, number));
        self.add_named_model(&format!("model_{number}"), label, 2 + number % 3)
    }

    fn add_named_model(&mut self, name: &str, label: &str, explores: u64) -> String {
        let project = self.any(LookerType::Projects, &mut self.rng(LookerType::Projects, 1 << 40));
        let connection = self.any(LookerType::Connections, &mut self.rng(LookerType::Connections, 1 << 40));
        let mut listed = Vec::new();
        for nth in 0..explores {
            let explore = format!("{}_{nth}", ["orders", "users", "events"][nth as usize % 3]);
            let hidden = name == INTERNAL || nth == 2;
            listed.push(json!({
                "name": explore, "description": null, "label": explore.to_uppercase(), "hidden": hidden,
                "group_label": label,
            }));
            self.add_explore(name, &explore, project.as_deref(), connection.as_deref());
        }
        if self.plan.broken_explores {
            let body = json!({ "name": "does_not_compile", "description": null, "label": "Broken", "hidden": false });
            listed.push(body);
        }
        let body = json!({
            "can": can(explores), "allowed_db_connection_names": connection.iter().collect::<Vec<_>>(),
            "explores": listed, "has_content": explores > 0, "label": label, "name": name, "project_name": project,
            "unlimited_db_connections": false, "x_origin": "lookml",
        });
        self.add(LookerType::LookmlModels, name, &body, Vec::new())
    }

    fn add_explore(&mut self, model: &str, explore: &str, project: Option<&str>, connection: Option<&str>) {
        let number = self.number(LookerType::Explores);
        let mut rng = self.rng(LookerType::Explores, number);
        let fields = 4 + rng.below(8);
        let field = |nth: u64, category: &str| {
            json!({
                "name": format!("{explore}.field_{nth}"), "label": format!("Field {nth}"), "category": category,
                "type": if category == "measure" { "sum" } else { "string" }, "view": explore, "hidden": false,
                "measure": category == "measure", "sql": format!("${{TABLE}}.field_{nth}"), "times_used": 0, "tags": [],
            })
        };
        let dimensions: Vec<Value> = (0..fields).map(|nth| field(nth, "dimension")).collect();
        let measures: Vec<Value> = (fields..fields + 2).map(|nth| field(nth, "measure")).collect();
        let id = format!("{model}::{explore}");
        let body = json!({
            "id": id, "name": explore, "description": sentence(&mut rng, 6), "label": explore.to_uppercase(),
            "title": explore, "scopes": [explore], "can_total": true, "can_save": true, "connection_name": connection,
            "dialect_name": "bigquery_standard_sql", "files": [], "source_file": format!("{model}.model.lkml"),
            "project_name": project, "model_name": model, "view_name": explore, "hidden": false,
            "sql_table_name": format!("public.{explore}"), "sets": [], "tags": [], "errors": [], "joins": [],
            "fields": { "dimensions": dimensions, "measures": measures, "filters": [], "parameters": [] },
        });
        self.add(LookerType::Explores, id, &body, vec![(LookerType::LookmlModels, model.to_owned())]);
    }
}
