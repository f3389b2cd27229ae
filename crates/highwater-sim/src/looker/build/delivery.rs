//! What sends content away: scheduled plans and alerts.

use serde_json::{Value, json};

use super::{
    ME, can, lately, time,
    words::{pick, subject},
};
use crate::{
    looker::{
        instance::{Instance, Tie},
        kind::LookerType,
    },
    rng::SplitMix64,
};

impl Instance {
    /// Every tenth belongs to the caller.
    fn owner(&self, number: u64, rng: &mut SplitMix64) -> String {
        let other = self.any(LookerType::Users, rng).unwrap_or_else(|| ME.to_owned());
        if number % 10 == 1 { ME.to_owned() } else { other }
    }

    pub(super) fn add_plan(&mut self) -> String {
        let number = self.number(LookerType::ScheduledPlans);
        let (id, mut rng) = (number.to_string(), self.rng(LookerType::ScheduledPlans, number));
        let (owner, created) = (self.owner(number, &mut rng), self.past(&mut rng));
        let look = if rng.chance(1, 3) { self.any(LookerType::Looks, &mut rng) } else { None };
        let dashboard = if look.is_none() { self.any(LookerType::Dashboards, &mut rng) } else { None };
        let destination = json!({
            "id": (number * 2).to_string(), "scheduled_plan_id": id, "format": pick(&mut rng, &["csv", "wysiwyg_pdf", "xlsx"]),
            "apply_formatting": true, "apply_vis": true, "address": format!("team{number}@example.com"),
            "looker_recipient": false, "type": "email", "parameters": null, "message": null,
        });
        let body = json!({
            "name": format!("{} every morning {number}", subject(&mut rng)), "user_id": owner, "run_as_recipient": false,
            "enabled": rng.chance(9, 10), "look_id": look, "dashboard_id": dashboard, "lookml_dashboard_id": null,
            "filters_string": null, "require_results": false, "require_no_results": false, "require_change": false,
            "send_all_results": false, "crontab": format!("{} 5 * * *", number % 60), "datagroup": null,
            "timezone": "UTC", "query_id": null, "scheduled_plan_destination": [destination], "run_once": false,
            "include_links": true, "id": id, "created_at": time(created), "updated_at": time(created),
            "title": null, "next_run_at": lately(self.plan.newest * 1_000), "last_run_at": lately(created),
            "user": self.public(&owner), "can": can(number), "x_delivery_pool": "standard",
        });
        let mut ties: Vec<Tie> = vec![(LookerType::Users, owner)];
        ties.extend(look.map(|look| (LookerType::Looks, look)));
        ties.extend(dashboard.map(|dashboard| (LookerType::Dashboards, dashboard)));
        self.add(LookerType::ScheduledPlans, id, &body, ties)
    }

    pub(super) fn add_alert(&mut self) -> String {
        let number = self.number(LookerType::Alerts);
        let (id, mut rng) = (number.to_string(), self.rng(LookerType::Alerts, number));
        let owner = self.owner(number, &mut rng);
        let dashboard = self.any(LookerType::Dashboards, &mut rng);
        let element = dashboard.as_ref().map(|dashboard| format!("{dashboard}0"));
        let body = json!({
            "comparison_type": pick(&mut rng, &["GREATER_THAN", "LESS_THAN", "EQUAL_TO"]), "cron": "0 5 * * *",
            "destinations": [{ "destination_type": "EMAIL", "email_address": format!("team{number}@example.com") }],
            "field": { "title": "Field 0", "name": "orders_0.field_0", "filter": [] }, "owner_id": owner,
            "threshold": rng.below(1_000) as f64, "applied_dashboard_filters": [], "custom_title": format!("Alert {number}"),
            "dashboard_element_id": element, "description": null, "followed": rng.chance(1, 4), "followable": true,
            "id": id, "is_disabled": rng.chance(1, 9), "disabled_reason": null, "is_public": false,
            "investigative_content_type": "dashboard", "investigative_content_id": dashboard,
            "investigative_content_title": null, "lookml_dashboard_id": null, "owner_display_name": self.name_of(&owner),
        });
        self.add(LookerType::Alerts, id, &body, vec![(LookerType::Users, owner)])
    }

    fn name_of(&self, user: &str) -> Value {
        self.find(LookerType::Users, user).and_then(|user| user.template.get("display_name")).unwrap_or(Value::Null)
    }

    fn public(&self, user: &str) -> Value {
        json!({ "id": user, "display_name": self.name_of(user), "url": format!("https://looker.example/api/4.0/users/{user}") })
    }
}
