//! Compares a store with the truth of the simulator, field by field, by a reading of the JSON that owes nothing to the
//! product. Texts that a database cannot hold are left to the product's own tests.

use std::collections::{BTreeMap, HashMap};

use serde::Deserialize;
use serde_json::{Value as Json, value::RawValue};

use super::Sim;

/// Any store, asked in SQL that all of them understand.
pub(crate) trait Tables {
    fn cells(&self, sql: &str) -> Vec<Vec<Json>>;

    fn number(&self, sql: &str) -> i64 {
        self.cells(sql)[0][0].as_i64().unwrap_or_else(|| panic!("{sql} gives no number"))
    }
}

/// The frontier, after a check that every id before it is accounted for.
pub(super) fn checked_frontier(store: &impl Tables) -> i64 {
    let frontier = store.number("SELECT coalesce(max(frontier), 0) FROM ingest_streams WHERE stream = 'items'");
    let origin = store.number("SELECT coalesce(max(origin), 0) FROM ingest_streams WHERE stream = 'items'");
    let accounted = store.number(&format!(
        "SELECT count(*) FROM (
            SELECT id FROM hn_items WHERE id >= {origin} AND id < {frontier}
            UNION
            SELECT item_number FROM ingest_exceptions
            WHERE state IN ('missing', 'excluded') AND item_number >= {origin} AND item_number < {frontier}
        ) AS accounted",
    ));
    assert_eq!(accounted, frontier - origin, "the frontier stands at {frontier} and ids before it are missing");
    frontier
}

#[derive(Deserialize)]
struct Line<'a> {
    id: i64,
    state: String,
    #[serde(borrow)]
    body: Option<&'a RawValue>,
}

/// What the truth counts, and so the store must.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Expected {
    pub(crate) stored: u64,
    pub(crate) missing: u64,
    pub(crate) unreachable: Vec<i64>,
}

const FIELDS: [&str; 9] = ["id", "type", "by", "time", "title", "url", "text", "score", "parent"];

/// Asserts that the store has what the simulator has from `first` to `last`, and nothing else.
#[track_caller]
pub(crate) fn assert_mirrors(store: &impl Tables, sim: &Sim, first: i64, last: i64) -> Expected {
    let mirror = Mirror::read(store);
    let mut expected = Expected::default();
    let mut wrong = Vec::new();
    let mut from = first;
    while from <= last {
        let page = sim.truth(from, last);
        for line in page.lines() {
            let line: Line<'_> = serde_json::from_str(line).unwrap();
            assert_eq!(line.id, from, "the truth has a gap");
            wrong.extend(mirror.compare(&line, &mut expected).err());
            from += 1;
        }
    }
    assert_eq!(wrong, [""; 0], "{} of {} ids differ", wrong.len(), last - first + 1);
    assert_eq!(mirror.items.len() as u64, expected.stored, "there are rows nobody asked for");
    expected
}

struct Mirror {
    items: HashMap<i64, BTreeMap<&'static str, Json>>,
    kids: HashMap<i64, Vec<i64>>,
    exceptions: HashMap<i64, String>,
}

impl Mirror {
    fn read(store: &impl Tables) -> Mirror {
        let mut mirror = Mirror { items: HashMap::new(), kids: HashMap::new(), exceptions: HashMap::new() };
        for row in store.cells(&format!("SELECT {} FROM hn_items", FIELDS.join(", "))) {
            mirror.items.insert(row[0].as_i64().unwrap(), FIELDS.into_iter().zip(row).collect());
        }
        for row in store.cells("SELECT item, kid FROM hn_kids ORDER BY item, display_order") {
            mirror.kids.entry(row[0].as_i64().unwrap()).or_default().push(row[1].as_i64().unwrap());
        }
        for row in store.cells("SELECT item_number, state FROM ingest_exceptions WHERE stream = 'items'") {
            mirror.exceptions.insert(row[0].as_i64().unwrap(), row[1].as_str().unwrap().to_owned());
        }
        mirror
    }

    fn compare(&self, line: &Line<'_>, expected: &mut Expected) -> Result<(), String> {
        let id = line.id;
        let state = self.exceptions.get(&id).map(String::as_str);
        let wanted_state = match line.state.as_str() {
            "body" => {
                expected.stored += 1;
                None
            }
            "missing" => {
                expected.missing += 1;
                Some("missing")
            }
            _ => {
                expected.unreachable.push(id);
                Some("dead_letter")
            }
        };
        if state != wanted_state || self.items.contains_key(&id) != wanted_state.is_none() {
            return Err(format!("{id} is {}, its exception is {state:?}", line.state));
        }
        line.body.map_or(Ok(()), |body| self.compare_body(id, body.get()))
    }

    fn compare_body(&self, id: i64, body: &str) -> Result<(), String> {
        // Half an emoji is JSON, but no text.
        let Ok(Json::Object(body)) = serde_json::from_str(body) else { return Ok(()) };
        for name in FIELDS {
            let (wanted, found) = (body.get(name).unwrap_or(&Json::Null), &self.items[&id][name]);
            let holds_nul = wanted.as_str().is_some_and(|text| text.contains('\0'));
            if !holds_nul && found != wanted {
                return Err(format!("{id}.{name} is {found}, not {wanted}"));
            }
        }
        let kids = self.kids.get(&id).map_or(&[][..], Vec::as_slice);
        if kids == kids_of(body.get("kids")) { Ok(()) } else { Err(format!("the kids of {id} are {kids:?}")) }
    }
}

/// A list, or a list with holes as Firebase writes it.
fn kids_of(kids: Option<&Json>) -> Vec<i64> {
    match kids {
        Some(Json::Array(kids)) => kids.iter().map(|kid| kid.as_i64().unwrap()).collect(),
        Some(Json::Object(kids)) => {
            let placed = kids.iter().map(|(place, kid)| (place.parse::<u32>().unwrap(), kid.as_i64().unwrap()));
            placed.collect::<BTreeMap<_, _>>().into_values().collect()
        }
        _ => Vec::new(),
    }
}
