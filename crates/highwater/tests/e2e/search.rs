//! Words found in Hacker News, and what is said of queries and sources that make no sense.

use std::{
    fs,
    io::{Seek, SeekFrom, Write},
};

use crate::support::{Home, Sim, Tables};

#[test]
fn items_are_found_by_title_text_address_and_author() {
    let sim = Sim::start(1_500, "none");
    let home = Home::new(&sim.url(), "rate = \"unlimited\"");
    home.run(&["sync", "hn", "--quiet"]).exits(0);
    let found = |query: &str| home.run(&["search", query, "--json", "--limit", "1000"]).exits(0).json();
    let story =
        "SELECT id, title, by, url FROM hn_items WHERE title LIKE '% %' AND url IS NOT NULL AND by IS NOT NULL LIMIT 1";
    let story = home.database().cells(story).remove(0);
    let [id, title, by, url] = [0, 1, 2, 3].map(|place| story[place].to_string().trim_matches('"').to_owned());
    for query in [format!("title:\"{title}\""), format!("{title} by:{by}"), format!("{url} {by}")] {
        let found = found(&query);
        let hit = found["hits"].as_array().unwrap().iter().find(|hit| hit["key"] == id.as_str());
        let hit = hit.unwrap_or_else(|| panic!("{query} did not find {id}"));
        assert_eq!(
            (&hit["source"], &hit["title"], &hit["author"]),
            (&"hn".into(), &title.as_str().into(), &by.as_str().into())
        );
    }
    let by_author: i64 = home.database().one(&format!("SELECT count(*) FROM hn_items WHERE by = '{by}'"));
    assert!(found(&format!("by:{by}"))["total"].as_i64().unwrap() >= by_author);
    let text = home.run(&["search", &format!("title:\"{title}\""), "--limit", "1"]).exits(0);
    assert!(text.out.starts_with("hn/items ") && text.out.contains(&title), "{}", text.out);
}

#[test]
fn what_cannot_be_searched_is_refused_with_the_reason() {
    let sim = Sim::start(50, "none");
    let home = Home::new(&sim.url(), "rate = \"unlimited\"");
    home.run(&["search", "word"]).exits(2).complains(&["no such file", "hint"]);
    assert!(!home.path("highwater-search.db").exists(), "what was refused leaves nothing behind");
    home.run(&["sync", "hn", "--quiet"]).exits(0);
    home.run(&["search"]).exits(2).complains(&["QUERY"]);
    for query in ["", "  ", "\"\"", "*"] {
        home.run(&["search", query]).exits(2).complains(&["no word to look for", "hint"]);
    }
    home.run(&["search", "--", "-word"]).exits(2).complains(&["not wanted"]);
    home.run(&["search", "--", "-word nosuchwordanywhere"]).exits(0).complains(&["nothing found"]);
    fs::remove_file(home.path("highwater-search.db")).unwrap();
    home.run(&["search", &"a".repeat(2_000)]).exits(2).complains(&["longer than"]);
    home.run(&["search", "word", "--source", "hm"]).exits(2).complains(&["hm", "hn"]);
    home.run(&["search", "word", "--limit", "0"]).exits(2);
    home.run(&["search", "word", "--as-is"]).exits(2).complains(&["no search index yet", "hint"]);
    let nothing = home.run(&["search", "nosuchwordanywhere", "--source", "hn"]).exits(0);
    assert_eq!((nothing.out.as_str(), nothing.err.as_str()), ("", "nothing found\n"));
    let nothing = home.run(&["search", "nosuchwordanywhere", "--json", "--as-is"]).exits(0);
    assert_eq!((&nothing.json()["hits"], nothing.err.as_str()), (&serde_json::json!([]), ""));
    for hostile in ["\"", "NEAR(a", "a'b", "a & b | !c <-> d", "title:*", "a:b*c", "-- a", "%"] {
        let done = home.run(&["search", "--", hostile]);
        assert!(matches!(done.status.code(), Some(0 | 2)), "{hostile}: {}", done.err);
    }
}

#[test]
fn a_damaged_mirror_is_told_of_and_leaves_the_index_alone() {
    let sim = Sim::start(300, "none");
    let home = Home::new(&sim.url(), "rate = \"unlimited\"");
    home.run(&["sync", "hn", "--quiet"]).exits(0);
    home.run(&["search", "nosuchwordanywhere", "--quiet"]).exits(0);
    let page: i64 = home
        .database()
        .one("SELECT (max(pageno) - 1) * (SELECT page_size FROM pragma_page_size) FROM dbstat WHERE name = 'hn_items'");
    let mut file = fs::OpenOptions::new().write(true).open(home.path("highwater.db")).unwrap();
    file.seek(SeekFrom::Start(page.cast_unsigned())).unwrap();
    file.write_all(&[0xff; 4_096]).unwrap();
    home.run(&["search", "nosuchwordanywhere"]).exits(1).complains(&["malformed", "verify --store"]);
    let found = home.run(&["search", "nosuchwordanywhere", "--as-is", "--json"]).exits(0).json();
    assert_eq!(found["indexed"]["documents"], 300);
}
