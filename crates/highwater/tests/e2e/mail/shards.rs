//! Mail in files beside the store: by year, by size and back, with kills on the way.

use std::time::Duration;

use super::{
    desk::{Desk, FAST},
    mirror::assert_mail,
};
use crate::support::{Database, Home, Sim, until};

const MESSAGES: u32 = 600;
const PLAN: &str = "[size]\nsize_kb = 24\n[latency]\nfixed_ms = 10";
const LIMITS: &str = "[sources.mail.limits]\nrate = 4000\nin_flight = 8\n";
const STORE: &str = "sqlite:highwater.db";

impl Desk {
    fn shards(&self, shards: &str) {
        self.configure(STORE, &format!("shards = \"{shards}\"\n{LIMITS}"));
    }

    /// The files of mail, in order.
    fn files(&self) -> Vec<String> {
        let folder = self.home.path("");
        let names = folder.read_dir().unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
        let mut names: Vec<_> =
            names.filter(|name| name.starts_with("highwater-mail-") && name.ends_with(".db")).collect();
        names.sort();
        names
    }

    /// Messages with bytes or texts in the store itself.
    fn at_home(&self) -> i64 {
        let count = "SELECT count(*) FROM mail_messages m LEFT JOIN mail_raw r ON r.message_id = m.id
            WHERE m.body_plain IS NOT NULL OR m.body_html IS NOT NULL OR r.raw IS NOT NULL";
        self.database().one(count)
    }

    fn is_whole(&self) -> u64 {
        let expected = assert_mail(&self.database(), &self.sim, &[]);
        self.home.run(&["verify", "mail"]).exits(0);
        self.home.run(&["verify", "--store"]).exits(0);
        expected.stored
    }
}

#[test]
fn shards_survive_kills_and_changes_of_the_setting() {
    let keys = format!("shards = \"year\"\n{LIMITS}");
    let desk = Desk::new(Sim::gmail_planned(MESSAGES, PLAN), &keys);
    for share in [1, 2] {
        let mut running = desk.start();
        let enough = u64::from(MESSAGES) * share / 4;
        until("messages", Duration::from_secs(60), || (desk.gets() >= enough || running.has_ended()).then_some(()));
        assert!(!running.has_ended(), "the kill came too late: {}", running.err());
        running.kill();
    }
    desk.sync().exits(0);
    let stored = desk.is_whole();
    assert_eq!(desk.at_home(), 0);
    let years = desk.files();
    assert!(years.len() > 3 && years.iter().all(|name| name.starts_with("highwater-mail-20")), "{years:?}");
    let fetched = desk.gets();

    desk.shards("1MB");
    let mut running = desk.start();
    let begun = || desk.files().iter().any(|name| name.contains("-0"));
    until("the move", Duration::from_secs(60), || (begun() || running.has_ended()).then_some(()));
    running.kill();
    desk.home.run(&["verify", "mail"]).exits(0);
    desk.sync().exits(0);
    assert_eq!((desk.is_whole(), desk.at_home()), (stored, 0));
    let numbers = desk.files();
    assert!(numbers.len() > 2 && numbers[0] == "highwater-mail-0001.db", "{numbers:?}");
    assert!(numbers.iter().all(|name| name.starts_with("highwater-mail-0")), "{numbers:?}");

    desk.shards("none");
    desk.sync().exits(0);
    assert_eq!((desk.is_whole(), desk.at_home().cast_unsigned()), (stored, stored));
    assert_eq!((desk.files().len(), desk.gets()), (0, fetched), "no file is left, and nothing was fetched again");
}

#[test]
fn damage_in_a_shard_is_found_and_repaired() {
    let desk = Desk::new(Sim::gmail(200, "none"), &format!("shards = \"year\"\n{FAST}"));
    desk.sync().exits(0);
    let shard = desk.home.path(&desk.files()[0]);
    let one = "message_id = (SELECT min(message_id) FROM mail_bodies WHERE body_plain IS NOT NULL)";
    for damage in [
        format!("UPDATE mail_bodies SET body_plain = 'other' WHERE {one}"),
        format!("UPDATE mail_raw SET raw = x'00' WHERE {one}"),
        format!("DELETE FROM mail_raw WHERE {one}"),
    ] {
        Database::meddle(&shard, &damage);
        let found = desk.home.run(&["verify", "mail", "--json"]).exits(3).json();
        assert_eq!(found["streams"][0]["differs"], 1, "{damage}: {found}");
        desk.home.run(&["sync", "mail", "--quiet", "--force"]).exits(0);
        desk.home.run(&["verify", "mail"]).exits(0);
        desk.sync().exits(0);
        assert_eq!(desk.at_home(), 0, "what was repaired is moved again");
    }
}

#[test]
fn a_store_whose_shard_is_missing_does_not_open() {
    let desk = Desk::new(Sim::gmail(100, "none"), &format!("shards = \"year\"\n{FAST}"));
    desk.sync().exits(0);
    let name = desk.files().remove(0);
    std::fs::rename(desk.home.path(&name), desk.home.path("elsewhere")).unwrap();
    for command in [&["sync", "mail"][..], &["verify", "mail"], &["verify", "--store"], &["status"]] {
        desk.home.run(command).exits(1).complains(&[&name, "is missing"]);
    }
    std::fs::rename(desk.home.path("elsewhere"), desk.home.path(&name)).unwrap();
    desk.home.run(&["verify", "mail"]).exits(0);
}

#[test]
fn a_mirror_in_shards_is_copied_whole() {
    let desk = Desk::new(Sim::gmail(200, "none"), &format!("shards = \"year\"\n{FAST}"));
    desk.sync().exits(0);
    desk.home.run(&["store", "copy", "--to", "sqlite:copy.db"]).exits(0);
    let raws = "SELECT count(*) FROM mail_raw r JOIN mail_messages m ON m.id = r.message_id";
    let copy = Database::open(&desk.home.path("copy.db"));
    assert_eq!(copy.one::<i64>(raws).cast_unsigned(), assert_mail(&copy, &desk.sim, &[]).stored);
    desk.home.run(&["verify", "mail", "--store", "sqlite:copy.db"]).exits(0);
}

#[test]
fn shards_are_for_sqlite() {
    let desk = Desk { home: Home::bare(), sim: Sim::gmail(10, "none") };
    desk.configure("postgres://nobody@127.0.0.1:1/none", &format!("shards = \"year\"\n{FAST}"));
    desk.home.run(&["status"]).exits(2).complains(&["shards is for SQLite"]);
    desk.shards("month");
    desk.home.run(&["status"]).exits(2).complains(&["sources.mail.shards: expected"]);
}
