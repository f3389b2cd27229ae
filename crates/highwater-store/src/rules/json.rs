//! JSON in its one canonical spelling, whatever order and spacing a database gives back. Numbers stay as they are
//! spelled: sources hand over only such as every database returns unchanged.

use std::collections::BTreeMap;

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
