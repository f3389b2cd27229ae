//! Every odd item known, items nobody has seen yet, and a day of real ones.

use std::{io::Read, path::Path};

use base64::{Engine, prelude::BASE64_STANDARD};
use proptest::prelude::*;
use serde_json::{Map, Value as Json, json};

use super::*;
use crate::hn::schema::{self, ITEMS, USERS};

fn item_of(json: &str) -> Body {
    decode(json.as_bytes(), &ITEMS).unwrap().unwrap()
}

/// The columns that are not empty, and the kids, as JSON.
fn fields(json: &str) -> Json {
    let mut fields = item_of(json).to_json(&ITEMS);
    let object = fields.as_object_mut().unwrap();
    object.retain(|_, value| *value != Json::Bool(false));
    fields
}

fn check(json: &str, expected: Json) {
    assert_eq!(fields(json), expected, "{json}");
}

fn base64(bytes: impl AsRef<[u8]>) -> String {
    BASE64_STANDARD.encode(bytes)
}

#[test]
fn no_table_has_more_columns_than_there_is_room_for() {
    assert!([&ITEMS, &USERS].into_iter().all(|table| own_columns(table).len() <= COLUMNS_MAX));
}

#[test]
fn sound_items_are_taken_as_they_are() {
    for json in [
        r#"{"by":"dhouston","descendants":71,"id":8863,"kids":[8952,9224],"score":111,"time":1175714200,"title":"My YC app","type":"story","url":"http://x/"}"#,
        r#"{"by":"norvig","id":2921983,"kids":[2922097],"parent":2921506,"text":"Aw shucks, guys <p>&#x27;","time":1314211127,"type":"comment"}"#,
        r#"{"by":"pg","descendants":54,"id":126809,"kids":[126822],"parts":[126810,126811],"score":46,"text":"","time":1204403652,"title":"Poll","type":"poll"}"#,
        r#"{"by":"pg","id":160705,"poll":160704,"score":335,"text":"Yes","time":1207886576,"type":"pollopt"}"#,
        r#"{"by":"justin","id":192327,"score":6,"text":"","time":1210981217,"title":"Justin.tv","type":"job","url":""}"#,
        r#"{"dead":true,"deleted":true,"id":3,"parent":2,"time":1,"type":"comment"}"#,
        r#"{"by":"a","dead":true,"id":4,"kids":[5],"score":1,"time":1,"type":"story"}"#,
        r#"{"by":"a","dead":true,"id":5,"parent":4,"text":"[flagged]","time":1,"type":"comment"}"#,
        r#"{"descendants":-1,"id":6,"time":4102444800,"type":"story"}"#,
        r#"{"id":78692,"type":"story"}"#,
    ] {
        check(json, serde_json::from_str(json).unwrap());
    }
}

#[test]
fn odd_types_are_normalised() {
    check(r#"{"id":41550939,"deleted":[true],"dead":[]}"#, json!({"id": 41550939, "deleted": true}));
    check(r#"{"id":"7","time":"12","score":3.0}"#, json!({"id": 7, "time": 12, "score": 3}));
    check(r#"{"id":1,"kids":{"0":5,"2":7,"10":9}}"#, json!({"id": 1, "kids": [5, 7, 9]}));
    check(r#"{"id":1,"kids":[5,null,5,6,5],"parts":8}"#, json!({"id": 1, "kids": [5, 6], "parts": [8]}));
    check(r#"{"id":1,"by":null,"kids":null,"dead":null}"#, json!({"id": 1}));
    check("{ \"id\" : 1,\n  \"kids\" : [ 2, 3 ] }", json!({"id": 1, "kids": [2, 3]}));
    check(r#"{"id":1,"score":1,"id":2,"\u0073core":2}"#, json!({"id": 2, "score": 2}));
}

#[test]
fn what_does_not_fit_is_kept_as_it_was() {
    check(r#"{"id":1,"score":1.5,"by":7}"#, json!({"id": 1, "extra": {"score": 1.5, "by": 7}}));
    check(r#"{"id":1,"dead":"maybe","kids":[1,"x"]}"#, json!({"id": 1, "extra": {"dead": "maybe", "kids": [1, "x"]}}));
    check(
        r#"{"id":1,"new":{"b":[],"a":null},"x":null}"#,
        json!({"id": 1, "extra": {"new": {"a": null, "b": []}, "x": null}}),
    );
    check(r#"{"id":1,"extra":2}"#, json!({"id": 1, "extra": {"extra": 2}}));
    let extra = |json: &str| match item_of(json).values.pop() {
        Some(Value::Json(extra)) => extra,
        other => panic!("{other:?}"),
    };
    assert_eq!(extra(r#"{"id":1,"z":{"d":1, "c":2},"a":" "}"#), r#"{"a":" ","z":{"c":2,"d":1}}"#);
    let big = "123456789012345678901234567890";
    assert_eq!(extra(&format!(r#"{{"id":1,"score":{big}}}"#)), format!(r#"{{"score":{big}}}"#));
    assert_eq!(extra(r#"{"id":1,"x":[1e400],"y":-0.0}"#), r#"{"x":"[1e400]","y":"-0.0"}"#);
}

#[test]
fn what_a_database_cannot_hold_is_kept_exactly() {
    check(
        r#"{"id":8073000,"text":"a\u0000b","title":"\ud800"}"#,
        json!({"id": 8073000, "text": "a\u{fffd}b", "title": "\u{fffd}",
            "extra": {"_exact": {"text": base64("a\0b"), "title": base64([0xed, 0xa0, 0x80])}}}),
    );
    check(
        r#"{"id":1,"new":"\u0000","time":"\u0000","deep":[ {"k\udc00":"\u0000"} ]}"#,
        json!({"id": 1, "extra": {
            "new": "\u{fffd}", "time": "\u{fffd}", "deep": [{"k\u{fffd}": "\u{fffd}"}],
            "_exact": {"new": base64("\0"), "time": base64("\0"), "deep": base64(r#"[ {"k\udc00":"\u0000"} ]"#)}}}),
    );
    check(
        r#"{"id":1,"b\u0000":2,"a\u0000":"x"}"#,
        json!({"id": 1, "extra": {"_exact": {"_exact": base64(r#"{"a\u0000":"x","b\u0000":2}"#)}}}),
    );
    check(r#"{"id":1,"x":"\u0000","x":"y"}"#, json!({"id": 1, "extra": {"x": "y"}}));
    check(r#"{"id":1,"text":"\u0000","text":"y"}"#, json!({"id": 1, "text": "y"}));
}

#[test]
fn a_remote_field_cannot_forge_exact_bytes() {
    let forged = r#"{"text":"Zm9yZ2Vk"}"#;
    check(
        &format!(r#"{{"id":1,"text":"real","_exact":{forged}}}"#),
        json!({"id": 1, "text": "real", "extra": {"_exact": {"_exact": base64(format!(r#"{{"_exact":{forged}}}"#))}}}),
    );
}

#[test]
fn no_depth_is_too_deep() {
    let nest = |depth: usize| format!("{}{}", "[".repeat(depth), "]".repeat(depth));
    let shallow = nest(32);
    check(
        &format!(r#"{{"id":1,"x":{shallow}}}"#),
        json!({"id": 1, "extra": {"x": serde_json::from_str::<Json>(&shallow).unwrap()}}),
    );
    check(r#"{"id":1,"x":"[[\"{"}"#, json!({"id": 1, "extra": {"x": "[[\"{"}}));
    for field in ["x", "kids", "dead", "text", "id"] {
        let deep = nest(500_000);
        let extra = match item_of(&format!(r#"{{"{field}":{deep}}}"#)).values.pop() {
            Some(Value::Json(extra)) => extra,
            other => panic!("{other:?}"),
        };
        assert_eq!(extra, format!(r#"{{"{field}":"{deep}"}}"#), "{field}");
    }
}

fn check_user(json: &str, expected: Json) {
    let user = decode(json.as_bytes(), &USERS).unwrap().unwrap();
    assert_eq!(user.to_json(&USERS), expected, "{json}");
    assert!(user.edges.is_empty());
}

#[test]
fn users_are_read_by_the_same_rules() {
    let pg = r#"{"about":"Bug fixer.","created":1160418092,"id":"pg","karma":157316,"submitted":[2,1]}"#;
    check_user(pg, serde_json::from_str(pg).unwrap());
    check_user(r#"{"id":"a"}"#, json!({"id": "a"}));
    check_user(
        r#"{"id":"a","karma":"3","submitted":{"1":5,"0":4},"about":""}"#,
        json!({"id": "a", "karma": 3, "submitted": [4, 5], "about": ""}),
    );
    check_user(r#"{"id":"a","submitted":7}"#, json!({"id": "a", "submitted": [7]}));
    check_user(
        r#"{"id":"a","delay":2,"kids":[1],"karma":1.5,"submitted":["x"],"created":null}"#,
        json!({"id": "a", "extra": {"delay": 2, "kids": [1], "karma": 1.5, "submitted": ["x"]}}),
    );
    check_user(
        r#"{"id":"a","about":"x\u0000","new\u0000":1}"#,
        json!({"id": "a", "about": "x\u{fffd}",
            "extra": {"_exact": {"about": base64("x\0"), "_exact": base64(r#"{"new\u0000":1}"#)}}}),
    );
}

/// Any JSON value, as text, with strings that escape what they like.
fn any_json() -> impl Strategy<Value = String> {
    let text = prop::collection::vec(any::<u16>(), 0..6)
        .prop_map(|units| units.iter().map(|unit| format!("\\u{unit:04x}")).collect::<String>());
    let plain = "[a-z0-9 éß😀]{0,8}";
    let string = prop_oneof![text, plain].prop_map(|inner| format!("\"{inner}\""));
    let number = prop_oneof![
        any::<i64>().prop_map(|n| n.to_string()),
        "-?(0|[1-9][0-9]{0,40})(\\.[0-9]{1,5})?([eE][+-]?[0-9]{1,4})?"
    ];
    let word =
        prop::sample::select(vec!["null", "true", "false", "[]", "{}", "0", "1", "\"\""]).prop_map(str::to_owned);
    let leaf = prop_oneof![string.clone(), number, word];
    leaf.prop_recursive(4, 32, 5, move |inner| {
        let index = (0..20_u8).prop_map(|n| format!("\"{n}\""));
        let name = prop_oneof![string.clone(), index];
        let object = prop::collection::vec((name, inner.clone()), 0..5).prop_map(|members| {
            format!("{{{}}}", members.iter().map(|(n, v)| format!("{n}:{v}")).collect::<Vec<_>>().join(","))
        });
        prop_oneof![prop::collection::vec(inner, 0..5).prop_map(|list| format!("[{}]", list.join(","))), object]
    })
}

fn any_name() -> impl Strategy<Value = String> {
    let columns = ITEMS.columns.iter().chain(USERS.columns);
    let known = columns.map(|column| column.name).chain(["kids", "_exact", "new", "a\\u0000", "\\ud800"]);
    prop::sample::select(known.map(str::to_owned).collect::<Vec<_>>())
}

/// Whether a database can hold it, and a parser with a limit reads it back.
fn is_holdable(value: &Value) -> bool {
    match value {
        Value::Text(text) => !text.contains('\0'),
        Value::Json(text) => serde_json::from_str::<Json>(text).is_ok_and(|json| has_no_nul(&json)),
        _ => true,
    }
}

fn has_no_nul(json: &Json) -> bool {
    match json {
        Json::String(text) => !text.contains('\0'),
        Json::Array(list) => list.iter().all(has_no_nul),
        Json::Object(members) => members.iter().all(|(name, value)| !name.contains('\0') && has_no_nul(value)),
        Json::Null | Json::Bool(_) | Json::Number(_) => true,
    }
}

#[test]
fn a_text_that_spells_an_escape_holds_no_nul() {
    let user = decode(br#"{"id":"a","new":["\u0000",0e0]}"#, &USERS).unwrap().unwrap();
    assert!(user.values.iter().all(is_holdable), "{user:?}");
}

proptest! {
    #[test]
    fn no_value_of_any_field_can_fail(members in prop::collection::vec((any_name(), any_json()), 0..8)) {
        let json = format!("{{{}}}", members.iter().map(|(n, v)| format!("\"{n}\":{v}")).collect::<Vec<_>>().join(","));
        let user = decode(json.as_bytes(), &USERS).unwrap().unwrap();
        prop_assert_eq!(user.values.len(), USERS.columns.len());
        prop_assert!(user.values.iter().all(is_holdable), "{:?}", user);
        let item = item_of(&json);
        prop_assert_eq!(item.values.len(), ITEMS.columns.len());
        prop_assert!(item.values.iter().all(is_holdable), "{:?}", item);
        for table in [&ITEMS, &USERS] {
            let parsed = row(&mut parsed(&json, table).unwrap());
            prop_assert_eq!(decode(json.as_bytes(), table).unwrap().unwrap(), parsed, "plain or not");
        }
        let mut kids = item.edges.clone();
        kids.sort_unstable();
        kids.dedup();
        prop_assert_eq!(kids.len(), item.edges.len());
    }

    #[test]
    fn no_bytes_can_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        decode(&bytes, &ITEMS).ok();
    }

    #[test]
    fn what_is_not_utf8_is_malformed_wherever_it_stands(
        text in "[a-zé—😀]{1,150}", at in any::<prop::sample::Index>(), byte in 0x80_u8..,
    ) {
        let mut json = format!(r#"{{"id":1,"text":"{text}"}}"#).into_bytes();
        let place = r#"{"id":1,"text":""#.len() + at.index(text.len());
        json[place] = byte;
        prop_assert_eq!(decode(&json, &ITEMS).is_ok(), str::from_utf8(&json).is_ok());
    }

    #[test]
    fn damaged_items_can_not_panic(at in 0_usize..120, byte in any::<u8>()) {
        let mut json = br#"{"by":"a\u0000","dead":[true],"id":1,"kids":{"0":1},"parts":[1,null],"text":"\ud800x","time":"3","x":{"y":1}}"#.to_vec();
        let at = at % json.len();
        json[at] = byte;
        decode(&json, &ITEMS).ok();
        decode(&json[..at], &ITEMS).ok();
    }

    #[test]
    fn every_string_comes_back_exactly(units in prop::collection::vec(prop_oneof![Just(0_u16), 0xd800_u16..0xe000, any::<u16>()], 0..20)) {
        let escaped: String = units.iter().map(|unit| format!("\\u{unit:04x}")).collect();
        let item = item_of(&format!(r#"{{"id":1,"text":"{escaped}"}}"#));
        let Value::Text(shown) = &item.values[schema::TEXT] else { panic!("no text") };
        let exact = match item.values.last() {
            Some(Value::Json(extra)) => {
                let extra: Json = serde_json::from_str(extra).unwrap();
                BASE64_STANDARD.decode(extra["_exact"]["text"].as_str().unwrap()).unwrap()
            }
            _ => shown.as_bytes().to_vec(),
        };
        prop_assert_eq!(exact, wtf8(&units));
        let lossy: String = char::decode_utf16(units).map(|c| c.unwrap_or('\u{fffd}')).collect();
        prop_assert_eq!(shown.as_str(), &lossy.replace('\0', "\u{fffd}"));
    }
}

/// UTF-8 in which a lone surrogate is encoded like any other code point.
fn wtf8(units: &[u16]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for unit in char::decode_utf16(units.iter().copied()) {
        match unit {
            Ok(c) => bytes.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes()),
            Err(lone) => {
                let [high, low] = lone.unpaired_surrogate().to_be_bytes();
                bytes.extend([0xe0 | high >> 4, 0x80 | (high & 0xf) << 2 | low >> 6, 0x80 | low & 0x3f]);
            }
        }
    }
    bytes
}

#[test]
fn a_day_of_real_items_comes_back_field_by_field() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data/hn-items-2025-04.jsonl.gz");
    let Ok(packed) = std::fs::read(&path) else { return println!("no sample of real items here: nothing checked") };
    let mut lines = String::new();
    flate2::read::MultiGzDecoder::new(&packed[..]).read_to_string(&mut lines).unwrap();
    for line in lines.lines() {
        let original: Map<String, Json> = serde_json::from_str(line).unwrap();
        assert_eq!(fields(line), Json::Object(original), "{line}");
        assert_eq!(item_of(line).values.last(), Some(&Value::Null));
    }
    assert!(lines.lines().count() > 5_000);
}
