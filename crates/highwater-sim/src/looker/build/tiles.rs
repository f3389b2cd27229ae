//! What a dashboard consists of: elements, filters and layouts.

use serde_json::{Value, json};

use super::{
    can, count,
    words::{sentence, subject},
};
use crate::{
    looker::{
        instance::{Instance, Tie},
        kind::LookerType,
    },
    rng::SplitMix64,
};

/// This dashboard shows a merged query, so that even a small instance has one.
const MERGING: u64 = 2;

impl Instance {
    /// An element or two, a filter on some, and a layout.
    pub(super) fn fill(&mut self, body: &mut Value, number: u64, ties: &mut Vec<Tie>, rng: &mut SplitMix64) {
        let elements: Vec<Value> = (0..1 + u64::from(rng.chance(1, 4) || number == MERGING))
            .map(|nth| self.element(number, number * 10 + nth, nth, ties, rng))
            .collect();
        let filters = if rng.chance(1, 3) { vec![filter(number, rng)] } else { Vec::new() };
        body["dashboard_layouts"] = json!([layout(number, &elements)]);
        body["dashboard_elements"] = json!(elements);
        body["dashboard_filters"] = json!(filters);
    }

    fn element(&mut self, dashboard: u64, number: u64, nth: u64, ties: &mut Vec<Tie>, rng: &mut SplitMix64) -> Value {
        let mut element = json!({
            "can": can(number), "dashboard_id": dashboard.to_string(), "id": number.to_string(), "look_id": null,
            "merge_result_id": null, "query": null, "query_id": null, "result_maker": null, "result_maker_id": null,
            "title": format!("{} {nth}", subject(rng)), "title_hidden": false, "alert_count": count(rng, 4),
            "type": "vis", "note_text": null, "body_text": null,
        });
        let drawn = if dashboard == MERGING { 1 } else { rng.below(4) };
        match if nth == 0 { 0 } else { drawn } {
            0 => self.shows_query(&mut element, number, ties),
            1 => self.shows_merge(&mut element, number, ties),
            2 => self.shows_look(&mut element, number, ties, rng),
            _ => {
                element["type"] = json!("text");
                element["body_text"] = json!(sentence(rng, 12));
            }
        }
        element
    }

    fn shows_query(&mut self, element: &mut Value, number: u64, ties: &mut Vec<Tie>) {
        let query = self.add_query();
        element["result_maker"] = json!({
            "id": number.to_string(), "query_id": query, "merge_result_id": null, "total": false,
            "filterables": [{ "model": "model_1", "view": "orders_0", "name": null, "listen": [] }],
        });
        element["result_maker_id"] = json!(number.to_string());
        element["query"] = self.query_inside(&query);
        element["query_id"] = json!(query);
        ties.push((LookerType::Queries, query));
    }

    fn shows_merge(&mut self, element: &mut Value, number: u64, ties: &mut Vec<Tie>) {
        let merge = self.add_merge_query();
        element["result_maker"] = json!({
            "id": number.to_string(), "query_id": null, "merge_result_id": merge, "total": false, "filterables": [],
        });
        element["merge_result_id"] = json!(merge);
        ties.push((LookerType::MergeQueries, merge));
    }

    fn shows_look(&mut self, element: &mut Value, number: u64, ties: &mut Vec<Tie>, rng: &mut SplitMix64) {
        let Some(look) = self.pick(LookerType::Looks, rng, |_| true) else {
            return self.shows_query(element, number, ties);
        };
        element["look_id"] = json!(look.id);
        ties.push((LookerType::Looks, look.id.clone()));
    }
}

fn filter(dashboard: u64, rng: &mut SplitMix64) -> Value {
    let name = subject(rng);
    json!({
        "can": can(dashboard), "id": (dashboard * 3).to_string(), "dashboard_id": dashboard.to_string(), "name": name,
        "title": name, "type": "field_filter", "default_value": "7 days", "model": "model_1", "explore": "orders_0",
        "dimension": "orders_0.field_0", "row": 0, "listens_to_filters": [], "allow_multiple_values": true,
        "required": false, "ui_config": { "type": "relative_timeframes", "display": "inline" },
    })
}

fn layout(dashboard: u64, elements: &[Value]) -> Value {
    let component = |(nth, element): (usize, &Value)| {
        json!({
            "id": format!("{dashboard}{nth}"), "dashboard_layout_id": dashboard.to_string(),
            "dashboard_element_id": element["id"], "row": nth * 6, "column": 0, "width": 12, "height": 6,
            "deleted": false, "element_title": element["title"],
        })
    };
    let components: Vec<Value> = elements.iter().enumerate().map(component).collect();
    json!({
        "id": dashboard.to_string(), "dashboard_id": dashboard.to_string(), "type": "newspaper", "active": true,
        "column_width": 16, "width": 1200, "deleted": false, "dashboard_layout_components": components,
    })
}
