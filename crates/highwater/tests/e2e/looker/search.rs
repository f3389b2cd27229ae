//! Content found by its name and by what people wrote into it.

use super::desk::{Desk, FAST};
use crate::support::{Sim, Tables};

#[test]
fn content_is_found_by_its_name_in_every_type() {
    let desk = Desk::new(Sim::looker(20, "none"), FAST);
    desk.sync().exits(0);
    for kind in ["dashboards", "looks", "folders", "users"] {
        let one = format!(
            "SELECT content_id, name FROM looker_content WHERE content_type = '{kind}' AND name IS NOT NULL LIMIT 1"
        );
        let row = desk.database().cells(&one).remove(0);
        let (id, name) = (row[0].as_str().unwrap(), row[1].as_str().unwrap());
        let query = format!("title:\"{}\"", name.replace('"', " "));
        let found = desk.home.run(&["search", &query, "--source", "bi", "--json", "--limit", "1000"]).exits(0).json();
        let hits = found["hits"].as_array().unwrap();
        let hit = hits.iter().find(|hit| hit["stream"] == kind && hit["key"] == id);
        assert_eq!(hit.map(|hit| &hit["title"]), Some(&row[1]), "{kind} {name:?}: {found}");
    }
}
