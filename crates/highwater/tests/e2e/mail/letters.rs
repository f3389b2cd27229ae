//! Messages that cannot be had: named, counted, and put back to work.

use std::collections::BTreeSet;

use super::{
    desk::{Desk, FAST},
    mirror::assert_mail,
};
use crate::support::Sim;

const PLAN: &str = r#"
[[script]]
share = 0.01
then = "raw-missing"
[[script]]
share = 0.01
then = "raw-undecodable"
[[script]]
share = 0.01
then = "500"
"#;

fn listed(desk: &Desk) -> BTreeSet<String> {
    let list = desk.home.run(&["dead-letters", "list", "mail", "--json"]).exits(0).json();
    let key = |letter: &serde_json::Value| letter["key"].as_str().unwrap().to_owned();
    list["dead_letters"].as_array().unwrap().iter().map(key).collect()
}

#[test]
fn dead_letters_are_listed_and_stored_once_they_can_be_had() {
    let keys = format!("{FAST}attempts = 3\n");
    let mut desk = Desk::new(Sim::gmail_planned(500, PLAN), &keys);
    desk.sync().exits(3);
    let unreachable = assert_mail(&desk.database(), &desk.sim, &[]).unreachable;
    assert!(unreachable.len() > 3, "{unreachable:?}");
    assert_eq!(listed(&desk), unreachable.iter().cloned().collect());
    let before = desk.gets();
    desk.sync().exits(3);
    assert_eq!(desk.gets(), before, "what was given up is left alone");

    desk.sim = Sim::gmail(500, "none");
    desk.configure("sqlite:highwater.db", &keys);
    desk.home.run(&["dead-letters", "replay", "mail"]).exits(0);
    desk.sync().exits(0);
    assert_eq!((listed(&desk).len(), desk.gets()), (0, unreachable.len() as u64), "only these are fetched");
    assert_mail(&desk.database(), &desk.sim, &[]);
}
