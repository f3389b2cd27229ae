//! `updates` and the lists of stories, worked out from the world on each request.

use super::{
    item::Flavour,
    json::{self, Json},
    route::List,
    tree::Kind,
    world::{Listing, World},
};

/// As many as the documented sample has.
const UPDATED_ITEMS: u64 = 29;
const UPDATED_PROFILES: u64 = 32;
/// Changes concern what is recent.
const UPDATED_WITHIN: u64 = 2_000;
/// How far back a list looks: enough for 200 jobs.
const SCAN_MAX: usize = 150_000;

impl List {
    const fn len_max(self) -> usize {
        match self {
            List::Top | List::New => 500,
            List::Best | List::Ask | List::Show | List::Job => 200,
        }
    }

    const fn takes(self, listing: Listing) -> bool {
        match self {
            List::Top => matches!(listing.kind, Kind::Story | Kind::Job | Kind::Poll),
            List::New | List::Best => matches!(listing.kind, Kind::Story),
            List::Ask => matches!((listing.kind, listing.flavour), (Kind::Story, Flavour::Ask)),
            List::Show => matches!((listing.kind, listing.flavour), (Kind::Story, Flavour::Show)),
            List::Job => matches!(listing.kind, Kind::Job),
        }
    }
}

pub(super) fn stories(world: &World, list: List, max: u64) -> Vec<u8> {
    let wanted = |id: &u64| world.listing(*id).is_some_and(|listing| list.takes(listing));
    let ids = (*world.ids().start()..=max).rev().take(SCAN_MAX).filter(wanted).take(list.len_max());
    let mut out = Vec::with_capacity(9 * list.len_max());
    json::array(&mut out, ids);
    out
}

pub(super) fn updates(world: &World, max: u64) -> Vec<u8> {
    let within = UPDATED_WITHIN.min(max - max.min(*world.ids().start()) + 1);
    let recent = |draw| world.recent(max, within, draw);
    let mut items: Vec<u64> = (0..UPDATED_ITEMS).map(recent).collect();
    items.sort_unstable();
    items.dedup();
    let profiles = (UPDATED_ITEMS..UPDATED_ITEMS + UPDATED_PROFILES).filter_map(|draw| world.author(recent(draw)));
    let mut profiles: Vec<String> = profiles.collect();
    profiles.sort_unstable();
    profiles.dedup();
    let mut json = Json::with_capacity(1_024);
    json.list("items", items.into_iter().rev());
    json.raw("profiles", serde_json::json!(profiles).to_string().as_bytes());
    json.finish()
}
