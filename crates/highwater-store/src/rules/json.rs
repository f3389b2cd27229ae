//! JSON in its one canonical spelling, whatever order and spacing a database gives back. Numbers are spelled as
//! PostgreSQL spells them; sources hand over only such as every database returns unchanged.

use std::collections::BTreeMap;

use highwater_core::spelled_number;
use serde_json::{Value as Json, value::RawValue};

/// Compact, with sorted names. What is no JSON comes back as it is, so that it differs from anything a source says.
pub(crate) fn canonical(text: &str) -> String {
    let mut spelled = String::with_capacity(text.len());
    match spell(text, &mut spelled) {
        Some(()) => spelled,
        None => text.to_owned(),
    }
}

fn spell(text: &str, out: &mut String) -> Option<()> {
    match text.as_bytes().first()? {
        b'{' => spell_object(text, out),
        b'[' => spell_list(text, out),
        b'"' => {
            let text: String = serde_json::from_str(text).ok()?;
            out.push_str(&Json::from(text).to_string());
            Some(())
        }
        b'-' | b'0'..=b'9' => {
            out.push_str(&spelled_number(text));
            Some(())
        }
        _ => {
            out.push_str(text);
            Some(())
        }
    }
}

fn spell_object(text: &str, out: &mut String) -> Option<()> {
    let members: BTreeMap<String, &RawValue> = serde_json::from_str(text).ok()?;
    out.push('{');
    for (index, (name, value)) in members.into_iter().enumerate() {
        if index > 0 {
            out.push(',');
        }
        out.push_str(&Json::from(name).to_string());
        out.push(':');
        spell(value.get(), out)?;
    }
    out.push('}');
    Some(())
}

fn spell_list(text: &str, out: &mut String) -> Option<()> {
    let list: Vec<&RawValue> = serde_json::from_str(text).ok()?;
    out.push('[');
    for (index, value) in list.into_iter().enumerate() {
        if index > 0 {
            out.push(',');
        }
        spell(value.get(), out)?;
    }
    out.push(']');
    Some(())
}

#[cfg(test)]
mod tests {
    use super::canonical;

    /// The right side is what PostgreSQL 15 answers to `SELECT '…'::jsonb`.
    #[test]
    fn a_number_is_spelled_without_an_exponent() {
        let spellings = [
            ("1.2345678901234568e29", "123456789012345680000000000000"),
            ("1e-7", "0.0000001"),
            ("1.50e1", "15.0"),
            ("-1.5E+3", "-1500"),
            ("-12.5e-3", "-0.0125"),
            ("12e-1", "1.2"),
            ("0e5", "0"),
            ("0.0e1", "0"),
            ("1e0", "1"),
            ("-0", "0"),
            ("-0.00", "0.00"),
            ("-0.10", "-0.10"),
            ("100", "100"),
        ];
        for (given, spelled) in spellings {
            assert_eq!(canonical(given), spelled);
        }
    }

    #[test]
    fn only_order_and_spaces_are_ours() {
        let jsonb =
            r#"{"b": [1.0, -0.10, {"z": null, "aa": "\u0001\"é"}], "aa": 100000000000000000000000000000000000001}"#;
        let ours = r#"{"aa":100000000000000000000000000000000000001,"b":[1.0,-0.10,{"aa":"\u0001\"é","z":null}]}"#;
        assert_eq!(canonical(jsonb), ours);
        assert_eq!(canonical(ours), ours);
        assert_eq!(canonical("[1"), "[1");
        assert_eq!(canonical(""), "");
    }
}
