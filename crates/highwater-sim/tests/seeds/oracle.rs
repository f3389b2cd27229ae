//! The truth, asked by plain SQL and an undisturbed decoder: nothing here trusts the engine's own books.

use std::{collections::BTreeMap, path::Path, sync::Arc, time::Duration};

use highwater_core::{
    Key, Lane, Record, StreamName,
    throttle::{InFlight, Rate, Settings},
};
use highwater_sim::{Expected, FaultPlan, HnSim, Seed, SimTransport, World};
use highwater_sources::{Beat, Call, Clock, Decoding, Fetched, Gateway, Hn, Source};
use rusqlite::{Connection, OpenFlags, OptionalExtension};

use crate::scenario::Scenario;

pub(crate) fn open(path: &Path) -> Connection {
    Connection::open_with_flags(path, OpenFlags::SQLITE_OPEN_READ_ONLY).unwrap()
}

/// The frontier never crosses an id that is neither stored, confirmed missing nor excluded; segments tile the axis.
pub(crate) fn check_frontier(path: &Path) {
    let db = open(path);
    let streams = "SELECT origin, frontier, target FROM ingest_streams WHERE stream = 'items'";
    let stream = db.query_row(streams, [], |row| Ok((row.get::<_, i64>(0)?, row.get::<_, i64>(1)?, row.get(2)?)));
    // Nothing has begun before the first commit.
    let Some((origin, frontier, target)) = stream.optional().unwrap() else { return };
    assert!(origin <= frontier && frontier <= target, "{origin} {frontier} {target}");
    let accounted: i64 = db
        .query_row(
            "SELECT count(*) FROM (
                SELECT id FROM hn_items WHERE id >= ?1 AND id < ?2
                UNION SELECT CAST(item_key AS INTEGER) FROM ingest_exceptions
                WHERE stream = 'items' AND state IN ('missing', 'excluded') AND item_number >= ?1 AND item_number < ?2)",
            [origin, frontier],
            |row| row.get(0),
        )
        .unwrap();
    assert_eq!(accounted, frontier - origin, "the frontier {frontier} has crossed ids nobody can account for");
    check_tiling(&db, origin, target);
}

fn check_tiling(db: &Connection, origin: i64, target: i64) {
    let sql = "SELECT start_pos, end_pos FROM ingest_segments WHERE stream = 'items' AND purpose = 'catchup'
        ORDER BY start_pos";
    let mut statement = db.prepare(sql).unwrap();
    let spans = statement.query_map([], |row| Ok((row.get::<_, i64>(0)?, row.get::<_, i64>(1)?))).unwrap();
    let mut next = origin;
    for span in spans {
        let (start, end) = span.unwrap();
        assert_eq!(start, next, "segments overlap or leave a gap");
        next = end;
    }
    assert!(next == target || origin == target, "segments end at {next}, the target is {target}");
}

/// Keys that still wait for a retry.
pub(crate) fn waiting(path: &Path) -> i64 {
    in_state(path, "retry_wait")
}

pub(crate) fn in_state(path: &Path, state: &str) -> i64 {
    let sql = "SELECT count(*) FROM ingest_exceptions WHERE state = ?1";
    open(path).query_row(sql, [state], |row| row.get(0)).unwrap()
}

/// Keys and reasons.
pub(crate) fn dead_letters(path: &Path) -> Vec<(String, String)> {
    let db = open(path);
    let sql = "SELECT item_key, reason FROM ingest_exceptions WHERE state = 'dead_letter' ORDER BY item_key";
    let mut statement = db.prepare(sql).unwrap();
    statement.query_map([], |row| Ok((row.get(0)?, row.get(1)?))).unwrap().map(Result::unwrap).collect()
}

/// Every id ends as the simulator says it must.
pub(crate) fn check_truth(path: &Path, sim: &HnSim, scenario: &Scenario) {
    let db = open(path);
    let exceptions = exceptions(&db);
    let target: i64 = db.query_row("SELECT target FROM ingest_streams", [], |row| row.get(0)).unwrap();
    let ids: Vec<u64> = sim.world().ids().filter(|id| *id < target as u64).collect();
    assert_eq!(target as u64, *sim.world().ids().end() + 1, "the target is the head");
    let bodies: Vec<Key> = ids
        .iter()
        .filter(|id| matches!(sim.expected(**id), Expected::Body(_)))
        .map(|id| Key::Number(*id as i64))
        .collect();
    let mut expected = decode_all(scenario, &bodies);
    for id in ids {
        let state = exceptions.get(&id.to_string()).map(String::as_str);
        let stored = stored_body(&db, id);
        match sim.expected(id) {
            Expected::Body(_) => {
                let body = expected.remove(&Key::Number(id as i64)).expect("every sound body decodes");
                assert_eq!((stored.as_ref(), state), (Some(&body), None), "item {id}");
            }
            Expected::Missing => assert_eq!((stored, state), (None, Some("missing")), "item {id}"),
            Expected::Unreachable(fault) => {
                assert_eq!((stored, state), (None, Some("dead_letter")), "item {id}, {}", fault.as_str());
            }
        }
    }
}

fn exceptions(db: &Connection) -> BTreeMap<String, String> {
    let mut statement = db.prepare("SELECT item_key, state FROM ingest_exceptions").unwrap();
    statement.query_map([], |row| Ok((row.get(0)?, row.get(1)?))).unwrap().map(Result::unwrap).collect()
}

/// Columns by name as text, and the kids in order.
pub(crate) type Plain = (BTreeMap<String, String>, Vec<i64>);

const COLUMNS: [&str; 14] = [
    "type",
    "by",
    "time",
    "title",
    "url",
    "text",
    "score",
    "descendants",
    "parent",
    "poll",
    "parts",
    "dead",
    "deleted",
    "extra",
];

pub(crate) fn stored_body(db: &Connection, id: u64) -> Option<Plain> {
    let columns = COLUMNS.map(|column| format!("CAST(\"{column}\" AS TEXT)")).join(", ");
    let sql = format!("SELECT {columns} FROM hn_items WHERE id = ?1");
    let row = db.prepare_cached(&sql).unwrap().query_row([id as i64], |row| {
        let texts: Result<BTreeMap<String, String>, _> = COLUMNS
            .iter()
            .enumerate()
            .filter_map(|(index, name)| {
                row.get::<_, Option<String>>(index).transpose().map(|text| Ok(((*name).into(), text?)))
            })
            .collect();
        texts
    });
    let mut kids = db.prepare_cached("SELECT kid FROM hn_kids WHERE item = ?1 ORDER BY display_order").unwrap();
    let kids: Vec<i64> = kids.query_map([id as i64], |row| row.get(0)).unwrap().map(Result::unwrap).collect();
    match row {
        Ok(row) => Some((row, kids)),
        Err(rusqlite::Error::QueryReturnedNoRows) => None,
        Err(error) => panic!("{error}"),
    }
}

/// What the decoder makes of the true bodies when nothing goes wrong.
fn decode_all(scenario: &Scenario, keys: &[Key]) -> BTreeMap<Key, Plain> {
    let plan = FaultPlan { body: scenario.plan.body.clone(), ..FaultPlan::default() };
    let calm = Arc::new(HnSim::new(World::generated(Seed(scenario.seed), scenario.items), plan));
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
    runtime.block_on(async {
        let clock = Clock::simulated(highwater_core::Timestamp::from_millis(1_750_000_000_000));
        let transport = Arc::new(SimTransport::new(calm, clock.clone(), Duration::ZERO));
        let settings = Settings::new(Rate::Unlimited, InFlight { start: 64, max: 64 });
        let hn = Hn::new(Gateway::new(transport, settings, clock.clone(), Box::new(|| 0.0)), Decoding::Inline);
        let call = Call::new(Lane::Backfill, Beat::new(clock));
        let stream: StreamName = "items".parse().unwrap();
        let answers = hn.fetch(&stream, keys, &call).await.unwrap();
        answers.into_iter().map(|answer| (answer.key, plain(record(answer.fetched)))).collect()
    })
}

pub(crate) fn record(fetched: Fetched) -> Record {
    match fetched {
        Fetched::Found(record) | Fetched::Delayed { record, .. } => record,
        unsound => panic!("a sound body: {unsound:?}"),
    }
}

pub(crate) fn plain(record: Record) -> Plain {
    let columns = record.table.columns.iter().zip(record.body.values);
    let texts = columns.filter(|(column, _)| column.name != "id").filter_map(|(column, value)| {
        use highwater_core::Value;
        let text = match value {
            Value::Null => return None,
            Value::Bool(flag) => i64::from(flag).to_string(),
            Value::Int(number) => number.to_string(),
            Value::Text(text) => text.into(),
            Value::Json(text) => text,
            Value::Ints(numbers) => format!("[{}]", numbers.iter().map(i64::to_string).collect::<Vec<_>>().join(",")),
            other => panic!("no item has {other:?}"),
        };
        Some((column.name.to_owned(), text))
    });
    (texts.collect(), record.body.edges)
}
