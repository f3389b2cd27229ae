//! Boards with their sections and items.

use serde_json::{Value, json};

use super::{
    can, count, time,
    words::{sentence, title},
};
use crate::{
    looker::{instance::Instance, kind::LookerType},
    rng::SplitMix64,
};

impl Instance {
    pub(super) fn add_board(&mut self) -> String {
        let number = self.number(LookerType::Boards);
        let (id, mut rng) = (number.to_string(), self.rng(LookerType::Boards, number));
        let title = title(&mut rng, number);
        let metadata = self.add_metadata(LookerType::Boards, &id, &title, None);
        let (created, owner) = (self.past(&mut rng), self.any(LookerType::Users, &mut rng));
        let sections: Vec<Value> = (0..1 + rng.below(2)).map(|nth| self.section(number, nth, &mut rng)).collect();
        let order: Vec<&Value> = sections.iter().map(|section| &section["id"]).collect();
        let body = json!({
            "can": can(number), "content_metadata_id": metadata, "created_at": time(created), "deleted_at": null,
            "description": sentence(&mut rng, 7), "board_sections": sections, "id": id, "section_order": order,
            "title": title, "updated_at": time(created), "user_id": owner, "primary_homepage": number == 1,
        });
        let mut ties = vec![(LookerType::ContentMetadata, metadata)];
        ties.extend(owner.map(|owner| (LookerType::Users, owner)));
        self.add(LookerType::Boards, id, &body, ties)
    }

    fn section(&self, board: u64, nth: u64, rng: &mut SplitMix64) -> Value {
        let id = format!("{board}{nth}");
        let items: Vec<Value> = (0..1 + rng.below(3)).map(|item| self.item(&id, item, rng)).collect();
        let order: Vec<&Value> = items.iter().map(|item| &item["id"]).collect();
        json!({
            "can": can(board), "created_at": time(self.past(rng)), "deleted_at": null, "description": null,
            "board_id": board.to_string(), "id": id, "item_order": order, "visible_item_order": order,
            "title": format!("Section {nth}"), "board_items": items,
        })
    }

    fn item(&self, section: &str, nth: u64, rng: &mut SplitMix64) -> Value {
        let dashboard = self.any(LookerType::Dashboards, rng);
        let look = if dashboard.is_none() { self.any(LookerType::Looks, rng) } else { None };
        json!({
            "board_section_id": section, "id": format!("{section}{nth}"), "dashboard_id": dashboard, "look_id": look,
            "lookml_dashboard_id": null, "custom_title": null, "custom_url": null, "order": nth,
            "favorite_count": count(rng, 9), "view_count": count(rng, 99), "use_custom_title": false,
        })
    }
}
