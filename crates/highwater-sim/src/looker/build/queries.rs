//! Queries and merged queries: made once, never changed, never deleted, known by slugs.

use serde_json::{Value, json};

use super::{
    can,
    words::{slug, subject},
};
use crate::{
    looker::{
        instance::{Instance, Tie},
        kind::LookerType,
    },
    rng::SplitMix64,
};

impl Instance {
    pub(super) fn add_query(&mut self) -> String {
        let number = self.number(LookerType::Queries);
        let mut rng = self.rng(LookerType::Queries, number);
        let id = format!("{}{number}", slug(&mut rng, 18));
        let explore = self.any(LookerType::Explores, &mut rng).unwrap_or_else(|| "model_1::orders_0".to_owned());
        let (model, view) = explore.split_once("::").unwrap_or(("model_1", "orders_0"));
        let fields: Vec<String> = (0..1 + rng.below(3)).map(|nth| format!("{view}.field_{nth}")).collect();
        let body = json!({
            "model": model, "view": view, "can": can(number), "id": id, "fields": fields, "pivots": null,
            "fill_fields": [], "filters": { format!("{view}.field_0"): format!("{} days", 7 + rng.below(80)) },
            "filter_expression": null, "sorts": [format!("{view}.field_0 desc")], "limit": "500", "column_limit": "50",
            "total": null, "row_total": null, "subtotals": null, "vis_config": { "type": chart(&mut rng) },
            "slug": id, "dynamic_fields": null, "client_id": &id[..id.len().min(22)], "query_timezone": "UTC",
            "share_url": format!("https://looker.example/x/{id}"), "has_table_calculations": false,
        });
        let ties = vec![(LookerType::Explores, explore.clone())];
        self.add(LookerType::Queries, id, &body, ties)
    }

    pub(super) fn add_merge_query(&mut self) -> String {
        let number = self.number(LookerType::MergeQueries);
        let mut rng = self.rng(LookerType::MergeQueries, number);
        let id = format!("{}{number}", slug(&mut rng, 18));
        let sources: Vec<String> = (0..2).map(|_| self.add_query()).collect();
        let listed: Vec<Value> = sources
            .iter()
            .enumerate()
            .map(|(nth, query)| {
                let fields = json!([{ "field_name": "orders.field_0", "source_field_name": "orders.field_0" }]);
                json!({
                    "merge_fields": if nth == 0 { json!([]) } else { fields }, "name": format!("q{nth}"),
                    "query_id": query, "query_slug": query,
                })
            })
            .collect();
        let body = json!({
            "can": can(number), "column_limit": "50", "dynamic_fields": "[]", "id": id, "pivots": [],
            "result_maker_id": (number * 3).to_string(), "sorts": [], "source_queries": listed, "total": false,
            "vis_config": { "type": chart(&mut rng), "title": subject(&mut rng) },
        });
        let ties: Vec<Tie> = sources.into_iter().map(|query| (LookerType::Queries, query)).collect();
        self.add(LookerType::MergeQueries, id, &body, ties)
    }

    /// As it is shown inside of what uses it.
    pub(super) fn query_inside(&self, id: &str) -> Value {
        self.find(LookerType::Queries, id).map_or(Value::Null, |query| Value::Object(query.template.object()))
    }
}

fn chart(rng: &mut SplitMix64) -> &'static str {
    super::words::pick(rng, &["looker_line", "looker_column", "table", "single_value", "looker_pie"])
}
