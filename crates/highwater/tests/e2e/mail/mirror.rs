//! Compares a mailbox in a store with the truth of the simulator, by SQL that every store understands.

use std::collections::BTreeMap;

use serde_json::Value as Json;

use crate::support::{Sim, Tables};

const ROWS: &str = "SELECT provider_message_id, provider_thread_id, CAST(label_ids AS TEXT), internal_date, raw_sha256,
    size_estimate, CASE WHEN deleted_remotely_at IS NULL THEN 0 ELSE 1 END FROM mail_messages";
const EXCEPTIONS: &str = "SELECT item_key, state FROM ingest_exceptions WHERE stream = 'messages'";
const LEFT_OUT: [(&str, &str); 4] = [("spam", "SPAM"), ("trash", "TRASH"), ("drafts", "DRAFT"), ("chats", "CHAT")];

/// What the truth counts, and so the store must.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Expected {
    pub(super) stored: u64,
    pub(super) excluded: u64,
    pub(super) gone: u64,
    pub(super) unreachable: Vec<String>,
}

/// Asserts that the store has what the mailbox has, with `include` beyond what is mirrored by default.
#[track_caller]
pub(super) fn assert_mail(store: &impl Tables, sim: &Sim, include: &[&str]) -> Expected {
    assert_mail_since(store, sim, include, 0)
}

/// Of messages that came in since `first`, in milliseconds.
#[track_caller]
pub(super) fn assert_mail_since(store: &impl Tables, sim: &Sim, include: &[&str], first: i64) -> Expected {
    let mut mirror = Mirror::read(store, include);
    let mut expected = Expected::default();
    let truth = sim.messages();
    let within = truth.iter().filter(|line| number(&line["internalDate"]) >= first);
    let wrong: Vec<_> = within.filter_map(|line| mirror.compare(line, &mut expected).err()).collect();
    assert_eq!(wrong, [""; 0], "{} of {} messages differ", wrong.len(), truth.len());
    assert_eq!(mirror.rows.keys().collect::<Vec<_>>(), [""; 0], "there are rows nobody asked for");
    expected
}

struct Mirror {
    rows: BTreeMap<String, Vec<Json>>,
    exceptions: BTreeMap<String, String>,
    left_out: Vec<&'static str>,
}

impl Mirror {
    fn read(store: &impl Tables, include: &[&str]) -> Mirror {
        let keyed = |row: Vec<Json>| (text(&row[0]).to_owned(), row);
        let excepted = |row: Vec<Json>| (text(&row[0]).to_owned(), text(&row[1]).to_owned());
        let left_out = LEFT_OUT.iter().filter(|(kind, _)| !include.contains(kind)).map(|(_, label)| *label);
        Mirror {
            rows: store.cells(ROWS).into_iter().map(keyed).collect(),
            exceptions: store.cells(EXCEPTIONS).into_iter().map(excepted).collect(),
            left_out: left_out.collect(),
        }
    }

    fn compare(&mut self, line: &Json, expected: &mut Expected) -> Result<(), String> {
        let id = text(&line["id"]).to_owned();
        let state = self.exceptions.get(&id).map(String::as_str);
        let is_left_out = labels(&line["labelIds"]).iter().any(|label| self.left_out.contains(&label.as_str()));
        match (self.rows.remove(&id), text(&line["state"])) {
            (Some(row), "deleted") => {
                expected.gone += 1;
                if row[6] == 1 { Ok(()) } else { Err(format!("{id} was deleted, and its row does not say so")) }
            }
            (Some(row), _) => {
                expected.stored += 1;
                agrees(&row, line)
            }
            (None, "deleted") => Ok(()),
            (None, _) if is_left_out && state == Some("excluded") => {
                expected.excluded += 1;
                Ok(())
            }
            (None, "unreachable") if state == Some("dead_letter") => {
                expected.unreachable.push(id);
                Ok(())
            }
            (None, there) => Err(format!("{id} is {there} with {}, its exception is {state:?}", line["labelIds"])),
        }
    }
}

fn agrees(row: &[Json], line: &Json) -> Result<(), String> {
    let mut wanted = labels(&line["labelIds"]);
    wanted.sort();
    let found: Vec<String> = serde_json::from_str(text(&row[2])).unwrap();
    let is_same = row[1] == line["threadId"]
        && found == wanted
        && row[3].as_i64() == Some(number(&line["internalDate"]))
        && row[4] == line["sha256"]
        && row[5] == line["sizeEstimate"]
        && row[6] == 0;
    if is_same { Ok(()) } else { Err(format!("{row:?} is not {line}")) }
}

fn labels(list: &Json) -> Vec<String> {
    list.as_array().unwrap().iter().map(|label| text(label).to_owned()).collect()
}

fn text(json: &Json) -> &str {
    json.as_str().unwrap_or_else(|| panic!("{json} is no text"))
}

fn number(json: &Json) -> i64 {
    text(json).parse().unwrap()
}
